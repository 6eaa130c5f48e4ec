/* sd_notify.h: the service manager's protocol (sd_notify(3)), of which the daemon needs ten lines:
 * datagrams to the socket that NOTIFY_SOCKET names. Without one, all of this does nothing. */
#ifndef REACH_SERVICE_SD_NOTIFY_H
#define REACH_SERVICE_SD_NOTIFY_H

struct sd_notify {
    int fd;          /* connected; -1: nobody to tell */
    int watchdog_ms; /* how often "WATCHDOG=1" is due: half of what the manager allows; -1: never */
};

/* Reads the environment and clears it, so that workers do not inherit it. */
struct sd_notify sd_notify_open(void);
/* "READY=1", "STOPPING=1\nSTATUS=...": lines as in sd_notify(3). */
void sd_notify_send(const struct sd_notify *n, const char *lines);
void sd_notify_close(struct sd_notify *n);

#endif
