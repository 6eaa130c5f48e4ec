/* sd_status.c: see sd_status.h. */
#include "service/sd_status.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum { TELL_STATES = GPU_STATE_STALE + 1 };

void sd_status_open(struct sd_status *t)
{
    *t = (struct sd_status){.sd_notify = sd_notify_open()};
}

void sd_status_close(struct sd_status *t)
{
    sd_notify_close(&t->sd_notify);
}

/* "2 GPUs: 1 ready, 1 measuring". */
static void sd_status_describe(const struct snapshot *s, char *out, size_t size)
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

static void sd_status_status(struct sd_status *t, const char *before)
{
    char lines[sizeof t->status + 40];

    snprintf(lines, sizeof lines, "%sSTATUS=%s", before, t->status);
    sd_notify_send(&t->sd_notify, lines);
}

void sd_status_ready(struct sd_status *t, const struct snapshot *s)
{
    sd_status_describe(s, t->status, sizeof t->status);
    sd_status_status(t, "READY=1\n");
}

void sd_status_state(struct sd_status *t, const struct snapshot *s)
{
    char now[sizeof t->status];

    sd_status_describe(s, now, sizeof now);
    if (strcmp(now, t->status) != 0) {
        memcpy(t->status, now, sizeof now);
        sd_status_status(t, "");
    }
}

void sd_status_reloading(struct sd_status *t)
{
    char lines[64];

    snprintf(lines, sizeof lines, "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)(clock_monotonic() / NSEC_PER_USEC));
    sd_notify_send(&t->sd_notify, lines);
}

void sd_status_stopping(struct sd_status *t)
{
    sd_notify_send(&t->sd_notify, "STOPPING=1\nSTATUS=stopping");
}

/* Every thread moves, or the log says which does not. */
static bool sd_status_all_alive(struct sd_status *t, struct pipeline *p,
                                struct store_maintenance *k, struct http_threads *http_threads)
{
    char gpu_thread[64] = "";
    char http_thread[200] = "";
    /* All are asked, and woken, whatever the others are. */
    const bool kept = store_maintenance_is_alive(k);
    const bool measured = pipeline_is_alive(p, gpu_thread, sizeof gpu_thread);
    const bool served = http_threads_are_alive(http_threads, http_thread, sizeof http_thread);
    const bool move = kept && measured && served;

    if (!move && !t->stuck) {
        log_error("%s does not move; the service manager's watchdog is not fed",
                  !measured ? gpu_thread
                  : !served ? http_thread
                            : "the thread that keeps the state file");
    } else if (move && t->stuck) {
        log_info("every thread moves again");
    }
    t->stuck = !move;
    return move;
}

int sd_status_due(struct sd_status *t, struct pipeline *p, struct store_maintenance *k,
                  struct http_threads *http_threads)
{
    const nsec_t now = clock_monotonic();

    if (t->sd_notify.watchdog_ms < 0) {
        return -1;
    }
    if (now >= t->watchdog_due) {
        /* The first time some threads may not have begun yet. */
        if (t->watchdog_due == 0 || sd_status_all_alive(t, p, k, http_threads)) {
            sd_notify_send(&t->sd_notify, "WATCHDOG=1");
        }
        t->watchdog_due = now + (nsec_t)t->sd_notify.watchdog_ms * NSEC_PER_MSEC;
    }
    return (int)((t->watchdog_due - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}
