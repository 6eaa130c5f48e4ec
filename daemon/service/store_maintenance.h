/* store_maintenance.h: runs the thread that maintains the store (store.h) while the daemon runs. */
#pragma once

#include "measure/pipeline.h"
#include "store/store.h"

struct store_maintenance;

/* Starts the thread, which borrows `store` and `pipeline` until store_maintenance_stop. An idle
 * thread sleeps. While nothing can be written, the thread tries again every few seconds. */
enum status store_maintenance_start(struct store *store, struct pipeline *pipeline,
                                    struct store_maintenance **out, struct err *err);
/* Returns whether the thread was alive since the last call, and wakes it, so that it can beat its
 * heartbeat. Only one watcher may call it. */
bool store_maintenance_is_alive(struct store_maintenance *k);
/* Ends the thread without finishing its work. NULL is allowed. */
void store_maintenance_stop(struct store_maintenance *take);
