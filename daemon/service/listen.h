/* listen.h: the sockets that the daemon serves. They are passed by systemd or created here. */
#pragma once

#include "base/status.h"
#include "config/config.h"

#include <stdint.h>

enum { LISTEN_MAX = 4, LISTEN_TEXT_BYTES = 160 };

/* The purpose of a socket. */
enum listen_role { LISTEN_TCP = 0, LISTEN_UNIX, LISTEN_HEALTH };

struct listen_set {
    uint32_t count;
    int fds[LISTEN_MAX]; /* listening sockets; -1 if http_threads_open took the socket */
    enum listen_role roles[LISTEN_MAX];
    char addresses[LISTEN_MAX]
                  [LISTEN_TEXT_BYTES];   /* "127.0.0.1:17322", "/run/reachd/reachd.sock" */
    char unlink_path[LISTEN_TEXT_BYTES]; /* path of the Unix socket created here; "" if there is
                                            none */
    bool checking; /* --check-config: an address that another process has is no error */
    char made_directory[LISTEN_TEXT_BYTES]; /* directory that a check made and removes; "" if there
                                               is none */
};

/* Takes the sockets from systemd (LISTEN_FDS) if there are any, else the sockets of the
 * configuration. A default socket that is not available is logged and left out. A requested socket
 * that is not available is an error. Sockets from systemd with "health" in their name
 * (FileDescriptorName=) are for probes. */
enum status listen_open(const struct config *config, struct listen_set *out, struct err *err);
/* Returns STATUS_INVALID_ARGUMENT if a socket can be reached from another machine. The socket for
 * probes is exempt. */
enum status listen_check_local(const struct listen_set *set, struct err *err);
/* Closes the sockets that are still in the set, and removes the Unix socket's name. */
void listen_close(struct listen_set *set);
