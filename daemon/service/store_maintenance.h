/* store_maintenance.h: the thread that maintains the store (store.h) while the daemon serves. */
#ifndef REACH_SERVICE_STORE_MAINTENANCE_H
#define REACH_SERVICE_STORE_MAINTENANCE_H

#include "measure/pipeline.h"
#include "store/store.h"

struct store_maintenance;

/* Borrows both until store_maintenance_stop. At rest it sleeps; while nothing can be written it
 * tries every few seconds. */
enum status store_maintenance_start(struct store *store, struct pipeline *pipeline,
                                    struct store_maintenance **out, struct err *err);
/* Was the thread alive since the last call? Wakes it, so that it can beat its heartbeat. For one
 * watcher. */
bool store_maintenance_is_alive(struct store_maintenance *k);
/* Ends it, without finishing its work. NULL is fine. */
void store_maintenance_stop(struct store_maintenance *take);

#endif
