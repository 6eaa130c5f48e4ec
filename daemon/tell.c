/* tell.c: see tell.h. */
#include "tell.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum { TELL_STATES = GPU_STATE_STALE + 1 };

void tell_open(struct tell *t)
{
    *t = (struct tell){.notify = notify_open()};
}

void tell_close(struct tell *t)
{
    notify_close(&t->notify);
}

/* "2 GPUs: 1 ready, 1 measuring". */
static void tell_describe(const struct snapshot *s, char *out, size_t size)
{
    uint32_t counts[TELL_STATES] = {0};
    size_t used = 0;

    if (s->discovering) {
        snprintf(out, size, "%.150s", s->source_error.text);
        return;
    }
    if (s->gpu_count == 0) {
        snprintf(out, size, "no GPUs: %.150s",
                 s->source_error.status ? s->source_error.text : "the source lists none");
        return;
    }
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        counts[s->gpus[i].state]++;
    }
    used = (size_t)snprintf(out, size, "%u GPU%s", s->gpu_count, s->gpu_count == 1 ? "" : "s");
    for (int state = 0, shown = 0; state < TELL_STATES && used < size; state++) {
        if (counts[state]) {
            used += (size_t)snprintf(out + used, size - used, "%s %u %s", shown++ ? "," : ":",
                                     counts[state], gpu_state_name((enum gpu_state)state));
        }
    }
}

static void tell_status(struct tell *t, const char *before)
{
    char lines[sizeof t->status + 40];

    snprintf(lines, sizeof lines, "%sSTATUS=%s", before, t->status);
    notify_send(&t->notify, lines);
}

void tell_ready(struct tell *t, const struct snapshot *s)
{
    tell_describe(s, t->status, sizeof t->status);
    tell_status(t, "READY=1\n");
}

void tell_state(struct tell *t, const struct snapshot *s)
{
    char now[sizeof t->status];

    tell_describe(s, now, sizeof now);
    if (strcmp(now, t->status) != 0) {
        memcpy(t->status, now, sizeof now);
        tell_status(t, "");
    }
}

void tell_reloading(struct tell *t)
{
    char lines[64];

    snprintf(lines, sizeof lines, "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)(clock_monotonic() / NSEC_PER_USEC));
    notify_send(&t->notify, lines);
}

void tell_stopping(struct tell *t)
{
    notify_send(&t->notify, "STOPPING=1\nSTATUS=stopping");
}

/* Every thread moves, or the log says which does not. */
static bool tell_all_move(struct tell *t, struct pipeline *p, struct keeper *k, struct desks *desks)
{
    char lane[64] = "";
    char desk[200] = "";
    /* All are asked, and woken, whatever the others are. */
    const bool kept = keeper_moves(k);
    const bool measured = pipeline_moves(p, lane, sizeof lane);
    const bool served = desks_move(desks, desk, sizeof desk);
    const bool move = kept && measured && served;

    if (!move && !t->stuck) {
        log_error("%s does not move; the service manager's watchdog is not fed",
                  !measured ? lane
                  : !served ? desk
                            : "the thread that keeps the state file");
    } else if (move && t->stuck) {
        log_info("every thread moves again");
    }
    t->stuck = !move;
    return move;
}

int tell_due(struct tell *t, struct pipeline *p, struct keeper *k, struct desks *desks)
{
    const nsec_t now = clock_monotonic();

    if (t->notify.watchdog_ms < 0) {
        return -1;
    }
    if (now >= t->watchdog_due) {
        /* The first time some threads may not have begun yet. */
        if (t->watchdog_due == 0 || tell_all_move(t, p, k, desks)) {
            notify_send(&t->notify, "WATCHDOG=1");
        }
        t->watchdog_due = now + (nsec_t)t->notify.watchdog_ms * NSEC_PER_MSEC;
    }
    return (int)((t->watchdog_due - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}
