/* notify.h: the service manager's protocol (sd_notify(3)), of which the daemon needs ten lines:
 * datagrams to the socket that NOTIFY_SOCKET names. Without one, all of this does nothing. */
#ifndef REACH_NOTIFY_H
#define REACH_NOTIFY_H

struct notify {
    int fd;          /* connected; -1: nobody to tell */
    int watchdog_ms; /* how often "WATCHDOG=1" is due: half of what the manager allows; -1: never */
};

/* Reads the environment and clears it, so that workers do not inherit it. */
struct notify notify_open(void);
/* "READY=1", "STOPPING=1\nSTATUS=...": lines as in sd_notify(3). */
void notify_send(const struct notify *n, const char *lines);
void notify_close(struct notify *n);

#endif
