/* db_thread.h: runs one thread for answers that must read the database. The serving thread hands
 * such a request over and continues. The connection stays suspended in libmicrohttpd until the
 * answer is ready. So neither a slow disk nor a long history delays an answer from memory.
 */
#pragma once

#include "api/handlers/handlers.h"

#include <microhttpd.h>

struct api_server;
struct db_thread;

/* One request on its way to the thread and back. The caller initializes it to zero. */
struct db_thread_call {
    struct db_thread_call *next;
    struct MHD_Connection *connection;
    struct request *request; /* the request to dispatch; the thread uses it during the call */
    struct reply reply;      /* the answer, once the connection is called again */
};

struct db_thread_options {
    struct snapshot_cell *cell;
    const struct api_backend *backend;
    const char *daemon_version;
    void (*wake)(struct api_server *server); /* called by the thread after each answer */
    struct api_server *server;
};

/* Borrows all options until db_thread_free. The thread starts with the first call. Returns NULL if
 * memory runs out. */
struct db_thread *db_thread_new(const struct db_thread_options *options);
/* Ends the thread after its current call; queued calls return with an empty reply. Every connection
 * is resumed. NULL is allowed. */
void db_thread_free(struct db_thread *take);

/* Suspends the connection and lets the thread dispatch the request; libmicrohttpd then calls the
 * access handler again. Returns false if the thread cannot be created; the call is then unchanged.
 * Only the serving thread may call this function. */
bool db_thread_take(struct db_thread *db_thread, struct db_thread_call *call);

/* Returns whether the thread has made progress since the last call. Wakes it, so that it can make
 * progress until the next call. Only one watcher may call this function, on any thread. */
bool db_thread_is_alive(struct db_thread *db_thread);
