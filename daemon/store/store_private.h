/* store_private.h: what the files of this layer share.
 *
 *   store.c       open, migrate, close
 *   store_file.c  the files themselves: lock, and whose database is this?
 *   store_sql.c   SQLite's calls and codes in the project's terms
 *   store_runs.c  what is written
 *   store_read.c  what is read
 */
#ifndef REACH_STORE_STORE_PRIVATE_H
#define REACH_STORE_STORE_PRIVATE_H

#include "store/store.h"

#include <pthread.h>
#include <sqlite3.h>

/* A connection and the mutex that whoever uses it holds. */
struct store_connection {
    pthread_mutex_t mutex;
    sqlite3 *db;
};

/* Reads have a connection of their own, so that an answer does not wait for a writer's fsync. A
 * store in memory has one for both. */
struct store {
    char *path;
    int lock_fd; /* -1: in memory */
    struct store_connection writing;
    struct store_connection reading_apart;
    struct store_connection *reading;
};

#endif
