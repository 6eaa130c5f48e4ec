/* server.h: the HTTP server. libmicrohttpd driven by external epoll: the daemon's own loop watches
 * one descriptor and calls api_server_run when it is ready. (MHD's internal epoll thread stalls
 * when exactly 128 connections are ready at once.) One thread.
 */
#ifndef REACH_API_SERVER_H
#define REACH_API_SERVER_H

#include "api/backend.h"
#include "base/clock.h"
#include "base/status.h"
#include "snapshot/snapshot.h"

struct api_server;

/* Whom a listening socket is for. */
enum api_audience {
    API_FOR_ALL = 0,
    API_FOR_PROBES /* those who watch the daemon: /healthz, /readyz and /metrics, nothing of /v1 */
};

struct api_listener {
    int fd; /* TCP or Unix, listening; the server's once api_server_new succeeds */
    enum api_audience audience;
    uint32_t connection_limit; /* of this socket; 0: 1024, or 64 for probes */
};

enum { API_MAX_LISTENERS = 4, API_TOKEN_BYTES = 257 };

struct api_options {
    struct api_listener listeners[API_MAX_LISTENERS];
    uint32_t listen_count;
    nsec_t request_deadline_ns; /* whole request, first byte to last; 0: 10 s */
    const char *daemon_version; /* static string */
    const char *token; /* what changes something must bring it; copied. NULL or "": nothing need */
};

/* Borrows cell and backend until api_server_free. */
enum status api_server_new(const struct api_options *options, struct snapshot_cell *cell,
                           const struct api_backend *backend, struct api_server **out,
                           struct err *err);

/* Another token from now on. */
void api_server_set_token(struct api_server *server, const char *token);

/* Descriptor to watch for reading in the daemon's epoll loop. */
int api_server_fd(const struct api_server *server);
/* Serves what is ready, never waits. */
void api_server_run(struct api_server *server);
/* Milliseconds until api_server_run wants to be called even if nothing is ready; -1: never. */
int api_server_timeout_ms(const struct api_server *server);
/* Finishes answers under way (at most 1 s) and closes everything. NULL is fine. */
void api_server_free(struct api_server *take);

#endif
