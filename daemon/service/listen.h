/* listen.h: the sockets that the daemon serves: handed over by systemd, or made here. */
#ifndef REACH_SERVICE_LISTEN_H
#define REACH_SERVICE_LISTEN_H

#include "base/status.h"
#include "config/config.h"

#include <stdint.h>

enum { LISTEN_MAX = 4, LISTEN_TEXT_BYTES = 160 };

/* What a socket is for. */
enum listen_role { LISTEN_TCP = 0, LISTEN_UNIX, LISTEN_HEALTH };

struct listen_set {
    uint32_t count;
    int fds[LISTEN_MAX]; /* -1: taken over by http_threads_open */
    enum listen_role roles[LISTEN_MAX];
    char addresses[LISTEN_MAX]
                  [LISTEN_TEXT_BYTES];   /* "127.0.0.1:17322", "/run/reachd/reachd.sock" */
    char unlink_path[LISTEN_TEXT_BYTES]; /* the Unix socket made here; "" if there is none */
    bool checking; /* --check-config: an address that another process has is no error */
    char made_directory[LISTEN_TEXT_BYTES]; /* by a check, which removes it; "" if there is none */
};

/* Sockets from systemd (LISTEN_FDS), if there are any; else those of the configuration. A
 * default that cannot be had is logged and left out; one that was asked for is an error. Of those
 * from systemd the ones whose name has "health" in it (FileDescriptorName=) are for probes. */
enum status listen_open(const struct config *config, struct listen_set *out, struct err *err);
/* STATUS_INVALID_ARGUMENT if any of them but the one for probes can be reached from another
 * machine. */
enum status listen_check_local(const struct listen_set *set, struct err *err);
/* Closes the sockets that are still in the set, and removes the Unix socket's name. */
void listen_close(struct listen_set *set);

#endif
