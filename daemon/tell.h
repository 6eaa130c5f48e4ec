/* tell.h: what the service manager is told while the daemon serves: a line for `systemctl status`,
 * and that all is well, but only as long as every loop moves. */
#ifndef REACH_TELL_H
#define REACH_TELL_H

#include "base/clock.h"
#include "desks.h"
#include "keeper.h"
#include "notify.h"
#include "pipeline/pipeline.h"
#include "snapshot/snapshot.h"

struct tell {
    struct notify notify;
    nsec_t watchdog_due;
    bool stuck; /* said so already */
    char status[200];
};

/* Reads the environment (notify.h). */
void tell_open(struct tell *t);
void tell_close(struct tell *t);

/* READY=1, with the state of the GPUs. */
void tell_ready(struct tell *t, const struct snapshot *s);
/* The state of the GPUs, where it is another than told last: "2 GPUs: 1 ready, 1 measuring". */
void tell_state(struct tell *t, const struct snapshot *s);
/* RELOADING=1; tell_ready follows. */
void tell_reloading(struct tell *t);
void tell_stopping(struct tell *t);

/* Feeds the watchdog where that is due and every thread of `p`, of `desks` and that of `k` move.
 * Returns the milliseconds until it wants to be called again, -1: never. The caller's own loop
 * moves, since it calls. */
int tell_due(struct tell *t, struct pipeline *p, struct keeper *k, struct desks *desks);

#endif
