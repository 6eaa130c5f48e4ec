/* db_thread.h: one thread for answers that must read the database. The serving thread hands such a
 * request over and goes on; libmicrohttpd leaves the connection alone until the answer is there.
 * So neither a slow disk nor a long history delays those who ask for what is in memory.
 */
#ifndef REACH_API_DB_THREAD_H
#define REACH_API_DB_THREAD_H

#include "api/handlers/handlers.h"

#include <microhttpd.h>

struct api_server;
struct db_thread;

/* One request on its way to the reader and back. Zero it to start. */
struct db_thread_call {
    struct db_thread_call *next;
    struct MHD_Connection *connection;
    const struct request *request; /* stays as it is meanwhile */
    handlers_fn *handler;
    struct reply reply; /* the answer, once the connection is called again */
};

struct db_thread_options {
    struct snapshot_cell *cell;
    const struct api_backend *backend;
    const char *daemon_version;
    void (*wake)(struct api_server *server); /* called by the thread with each answer */
    struct api_server *server;
};

/* Borrows all that until db_thread_free. The thread begins with the first call. NULL without
 * memory.
 */
struct db_thread *db_thread_new(const struct db_thread_options *options);
/* Ends the thread after the call that it is at; those behind it are given back as they are, with an
 * empty reply. Every connection is resumed. NULL is fine. */
void db_thread_free(struct db_thread *take);

/* Suspends the connection and lets the thread call the handler; libmicrohttpd then calls the access
 * handler again. False where no thread can be had: the call is as it was. Serving thread only. */
bool db_thread_take(struct db_thread *reader, struct db_thread_call *call);

/* Did the thread move since it was asked last? Wakes it, so that it can next time. For one watcher,
 * in any thread. */
bool db_thread_moves(struct db_thread *reader);

#endif
