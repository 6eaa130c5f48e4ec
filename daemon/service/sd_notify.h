/* sd_notify.h: implements the service manager's protocol (sd_notify(3)). It sends the line of
 * `systemctl status`, and notifies the watchdog only while every thread is alive. Without a service
 * manager (NOTIFY_SOCKET) the functions do nothing. */
#pragma once

#include "base/clock.h"
#include "measure/pipeline.h"
#include "service/http_threads.h"
#include "service/store_maintenance.h"
#include "snapshot/snapshot.h"

struct sd_notify {
    int fd;          /* connected; -1 if there is no service manager */
    int watchdog_ms; /* interval of "WATCHDOG=1", half of the manager's limit; -1 means never */
    nsec_t watchdog_due;
    bool stuck;       /* already logged */
    char status[200]; /* sent last */
};

/* Reads the variables of the protocol and unsets them, so that workers do not inherit them. */
struct sd_notify sd_notify_open(void);
/* Sends lines as in sd_notify(3): "READY=1", "STOPPING=1\nSTATUS=...". */
void sd_notify_send(const struct sd_notify *n, const char *lines);
void sd_notify_close(struct sd_notify *n);

/* Sends the state of the GPUs if it has changed: "2 GPUs: 1 ready, 1 measuring". If `ready` is
 * true, sends it in any case, with READY=1. */
void sd_notify_state(struct sd_notify *n, const struct snapshot *s, bool ready);
/* Sends RELOADING=1; READY=1 follows. */
void sd_notify_reloading(struct sd_notify *n);

/* Notifies the watchdog if that is due and all threads of `p` and `http_threads` and the thread of
 * `k` are alive. Returns the milliseconds until the next call is due, or -1 for never. The caller's
 * own loop is alive, because it makes this call. */
int sd_notify_due(struct sd_notify *n, struct pipeline *p, struct store_maintenance *k,
                  struct http_threads *http_threads);
