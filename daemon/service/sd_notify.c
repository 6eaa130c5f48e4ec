/* sd_notify.c: see sd_notify.h. */
#include "service/sd_notify.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NOTIFY_USEC_PER_MSEC = 1000, NOTIFY_GPU_STATES = GPU_STATE_STALE + 1 };

/* Returns half of WATCHDOG_USEC in milliseconds, or -1 without a watchdog. */
static int sd_notify_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    long long allowed = usec ? strtoll(usec, NULL, 10) : 0;

    if (allowed <= 0 || (pid && strtol(pid, NULL, 10) != (long)getpid()))
        return -1;
    long long ms = allowed / 2 / NOTIFY_USEC_PER_MSEC;

    return ms < 1 ? 1 : ms > INT_MAX ? INT_MAX : (int)ms;
}

struct sd_notify sd_notify_open(void)
{
    struct sd_notify n = {.fd = -1, .watchdog_ms = sd_notify_watchdog_ms()};
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;

    if (length > 1 && length < sizeof name.sun_path && (path[0] == '/' || path[0] == '@')) {
        memcpy(name.sun_path, path, length);
        if (path[0] == '@') {
            name.sun_path[0] = '\0'; /* a name in the abstract namespace */
        }
        n.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (n.fd >= 0 &&
            connect(n.fd, (const struct sockaddr *)&name,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0) {
            log_warning("cannot reach the service manager at %s: %s", path, strerror(errno));
            close(n.fd);
            n.fd = -1;
        }
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    if (n.fd < 0)
        n.watchdog_ms = -1;
    return n;
}

void sd_notify_send(const struct sd_notify *n, const char *lines)
{
    if (n->fd >= 0 && send(n->fd, lines, strlen(lines), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_debug("cannot notify the service manager: %s", strerror(errno));
}

void sd_notify_close(struct sd_notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    *n = (struct sd_notify){.fd = -1, .watchdog_ms = -1};
}

/* Writes the state of the GPUs: "2 GPUs: 1 ready, 1 measuring". */
static void sd_notify_describe(const struct snapshot *s, char *out, size_t size)
{
    uint32_t counts[NOTIFY_GPU_STATES] = {0};
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
    for (uint32_t i = 0; i < s->gpu_count; i++)
        counts[s->gpus[i].state]++;
    used = (size_t)snprintf(out, size, "%u GPU%s", s->gpu_count, s->gpu_count == 1 ? "" : "s");
    for (int state = 0, shown = 0; state < NOTIFY_GPU_STATES && used < size; state++) {
        if (counts[state])
            used += (size_t)snprintf(out + used, size - used, "%s %u %s", shown++ ? "," : ":",
                                     counts[state], gpu_state_name((enum gpu_state)state));
    }
}

void sd_notify_state(struct sd_notify *n, const struct snapshot *s, bool ready)
{
    char now[sizeof n->status], lines[sizeof n->status + 40];

    sd_notify_describe(s, now, sizeof now);
    if (!ready && strcmp(now, n->status) == 0)
        return;
    memcpy(n->status, now, sizeof now);
    snprintf(lines, sizeof lines, "%sSTATUS=%s", ready ? "READY=1\n" : "", now);
    sd_notify_send(n, lines);
}

void sd_notify_reloading(struct sd_notify *n)
{
    char lines[64];

    snprintf(lines, sizeof lines, "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)(clock_monotonic() / NSEC_PER_USEC));
    sd_notify_send(n, lines);
}

/* Returns whether every thread is alive, and logs the first thread that is not alive. */
static bool sd_notify_all_alive(struct sd_notify *n, struct pipeline *p,
                                struct store_maintenance *k, struct http_threads *http_threads)
{
    char gpu_thread[64] = "";
    char http_thread[200] = "";
    /* Every call wakes its threads, so all calls are made. */
    const bool maintained = store_maintenance_is_alive(k);
    const bool measured = pipeline_is_alive(p, gpu_thread, sizeof gpu_thread);
    const bool served = http_threads_are_alive(http_threads, http_thread, sizeof http_thread);
    const bool alive = maintained && measured && served;

    if (!alive && !n->stuck) {
        log_error("%s does not respond; the service manager's watchdog is not notified",
                  !measured ? gpu_thread
                  : !served ? http_thread
                            : "the thread that maintains the state file");
    } else if (alive && n->stuck) {
        log_info("every thread responds again");
    }
    n->stuck = !alive;
    return alive;
}

int sd_notify_due(struct sd_notify *n, struct pipeline *p, struct store_maintenance *k,
                  struct http_threads *http_threads)
{
    const nsec_t now = clock_monotonic();

    if (n->watchdog_ms < 0)
        return -1;
    if (now >= n->watchdog_due) {
        /* Some threads may not have started yet at the first call. */
        if (n->watchdog_due == 0 || sd_notify_all_alive(n, p, k, http_threads))
            sd_notify_send(n, "WATCHDOG=1");
        n->watchdog_due = now + (nsec_t)n->watchdog_ms * NSEC_PER_MSEC;
    }
    return (int)((n->watchdog_due - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}
