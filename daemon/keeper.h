/* keeper.h: the thread that does the store's upkeep (store.h) while the daemon serves. */
#ifndef REACH_KEEPER_H
#define REACH_KEEPER_H

#include "pipeline/pipeline.h"
#include "store/store.h"

struct keeper;

/* Borrows both until keeper_stop. At rest it sleeps; while nothing can be written it tries every
 * few seconds. */
enum status keeper_start(struct store *store, struct pipeline *pipeline, struct keeper **out,
                         struct err *err);
/* Has the thread moved since the last time this was asked? Wakes it for a moment, so that it can
 * move until the next time. For one watcher. */
bool keeper_moves(struct keeper *k);
/* Ends it; NULL is fine. Waits for what it is at, which it does not finish. */
void keeper_stop(struct keeper *take);

#endif
