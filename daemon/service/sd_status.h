/* sd_status.h: what the service manager is told while the daemon serves: a line for `systemctl
 * status`, and that all is well, but only as long as every loop moves. */
#ifndef REACH_SERVICE_SD_STATUS_H
#define REACH_SERVICE_SD_STATUS_H

#include "base/clock.h"
#include "service/http_threads.h"
#include "service/store_maintenance.h"
#include "service/sd_notify.h"
#include "measure/pipeline.h"
#include "snapshot/snapshot.h"

struct sd_status {
    struct sd_notify sd_notify;
    nsec_t watchdog_due;
    bool stuck; /* said so already */
    char status[200];
};

/* Reads the environment (sd_notify.h). */
void sd_status_open(struct sd_status *t);
void sd_status_close(struct sd_status *t);

/* READY=1, with the state of the GPUs. */
void sd_status_ready(struct sd_status *t, const struct snapshot *s);
/* The state of the GPUs, where it is another than told last: "2 GPUs: 1 ready, 1 measuring". */
void sd_status_state(struct sd_status *t, const struct snapshot *s);
/* RELOADING=1; sd_status_ready follows. */
void sd_status_reloading(struct sd_status *t);
void sd_status_stopping(struct sd_status *t);

/* Feeds the watchdog where that is due and every thread of `p`, of `threads` and that of `k` move.
 * Returns the milliseconds until it wants to be called again, -1: never. The caller's own loop
 * moves, since it calls. */
int sd_status_due(struct sd_status *t, struct pipeline *p, struct store_maintenance *k,
                  struct http_threads *http_threads);

#endif
