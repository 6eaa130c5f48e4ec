/* http_threads.h: serves each socket with its own thread, so that clients that keep the TCP port
 * busy delay neither health probes nor the administrators at the Unix socket. */
#pragma once

#include "api/handlers/backend.h"
#include "base/clock.h"
#include "service/listen.h"
#include "snapshot/snapshot.h"

struct http_threads;

struct http_threads_options {
    struct snapshot_cell *cell;        /* borrowed, like the backend, until http_threads_close */
    const struct api_backend *backend; /* several threads may call its functions */
    const char *daemon_version;        /* static string */
    const char *token;          /* secret for POST and DELETE, copied; "" if there is no token */
    nsec_t request_deadline_ns; /* limit of one request; 0 means 10 s */
    uint32_t max_connections;   /* limit for each TCP socket */
};

/* Serves all sockets of the set, and removes them from it. `*out` must be closed also after a
 * failure. */
enum status http_threads_open(struct listen_set *sockets,
                              const struct http_threads_options *options, struct http_threads **out,
                              struct err *err);
/* Returns whether every thread was alive since the last call, and wakes them, so that they can beat
 * their heartbeats. `out_stuck` gets the name of a thread that was not alive. Only one watcher may
 * call it. */
bool http_threads_are_alive(struct http_threads *http_threads, char *out_stuck, size_t size);
/* Sets another token for POST and DELETE, from the next request on. */
void http_threads_set_token(struct http_threads *http_threads, const char *token);
/* Finishes pending answers (in at most 1 s) and closes everything. NULL is allowed. */
void http_threads_close(struct http_threads *take);
