/* server.h: the HTTP server: libmicrohttpd, driven by a loop of the daemon that calls
 * api_server_wait again and again. Only one thread may use a server. The comment of a function
 * names the exceptions. Several servers may share one cell and one backend.
 */
#pragma once

#include "api/handlers/backend.h"
#include "base/clock.h"
#include "base/status.h"
#include "snapshot/snapshot.h"

struct api_server;
struct stats;

/* The requests that a listening socket accepts. */
enum api_listener_role {
    API_FOR_ALL = 0,
    API_FOR_PROBES /* health probes and monitoring: all routes except /v1 */
};

struct api_listener {
    int fd; /* TCP or Unix, listening; owned by the server once api_server_new succeeds */
    enum api_listener_role role;
    uint32_t connection_limit; /* limit of this socket; 0 means 1024, or 64 for probes */
};

enum { API_MAX_LISTENERS = 4, API_TOKEN_BYTES = 257 };

struct api_options {
    struct api_listener listeners[API_MAX_LISTENERS];
    uint32_t listen_count;
    nsec_t request_deadline_ns; /* limit from the first to the last byte of a request; 0 is 10 s */
    const char *daemon_version; /* static string */
    const char *token;          /* required for POST and DELETE; copied. NULL or "" means none */
    struct stats *stats;        /* counters (stats.h), borrowed; NULL means the server's own */
};

/* Sets the limit of each listener to its default if it has no limit, or to a share if the process
 * may not open enough files. Call the function once for all sockets of the process, before making
 * the servers. Returns STATUS_NOT_PERMITTED if the files do not suffice for one connection each. */
enum status api_share_slots(struct api_listener *listeners, uint32_t count, struct err *err);

/* Borrows cell and backend until api_server_free. */
enum status api_server_new(const struct api_options *options, struct snapshot_cell *cell,
                           const struct api_backend *backend, struct api_server **out,
                           struct err *err);

/* Sets another token for all later requests. The function may be called on any thread. */
void api_server_set_token(struct api_server *server, const char *token);

/* Sleeps until something is ready, due, or another thread wakes it; then serves what is ready. */
void api_server_wait(struct api_server *server);
/* Ends the sleep of api_server_wait. The function may be called on any thread. */
void api_server_wake(struct api_server *server);
/* Returns whether its db_thread makes progress (db_thread.h). Any thread may call the function, but
 * only one at a time. */
bool api_server_db_thread_is_alive(struct api_server *server);

/* The next three functions are for a loop that also watches other descriptors. This one returns the
 * descriptor that the loop watches for reading. */
int api_server_fd(const struct api_server *server);
/* Serves what is ready and never waits. The loop calls it when the descriptor is readable. */
void api_server_run(struct api_server *server);
/* Returns the milliseconds until api_server_run is due even if the descriptor is not readable; -1
 * means never. */
int api_server_timeout_ms(const struct api_server *server);

/* Accepts no more connections and finishes answers in progress, for at most 1 s. */
void api_server_finish(struct api_server *server);
/* Stops the server unless that was done, and closes everything. NULL is allowed. */
void api_server_free(struct api_server *take);
