/* http_threads.h: one thread per socket, so that clients that keep the TCP port busy delay neither
 * health probes nor the administrators at the Unix socket. */
#ifndef REACH_SERVICE_HTTP_THREADS_H
#define REACH_SERVICE_HTTP_THREADS_H

#include "api/handlers/backend.h"
#include "base/clock.h"
#include "service/listen.h"
#include "snapshot/snapshot.h"

struct http_threads;

struct http_threads_options {
    struct snapshot_cell *cell;        /* borrowed, as the backend, until http_threads_close */
    const struct api_backend *backend; /* whose slots may be called from several threads */
    const char *daemon_version;        /* static string */
    const char *token;                 /* copied; "": none */
    nsec_t request_deadline_ns;        /* 0: 10 s */
    uint32_t max_connections;          /* of each TCP socket */
};

/* Serves all sockets of the set, and takes them out of it. `*out` is to be closed also after a
 * failure. */
enum status http_threads_open(struct listen_set *sockets,
                              const struct http_threads_options *options, struct http_threads **out,
                              struct err *err);
/* Was every thread alive since the last call? Wakes them, so that they can beat their heartbeats.
 * `out_stuck` names one that was not. For one watcher. */
bool http_threads_are_alive(struct http_threads *http_threads, char *out_stuck, size_t size);
/* Another token for POST and DELETE, from the next request on. */
void http_threads_set_token(struct http_threads *http_threads, const char *token);
/* Finishes answers under way (at most 1 s) and closes everything. NULL is fine. */
void http_threads_close(struct http_threads *take);

#endif
