/* store_private.h: what the files of this layer share.
 *
 *   store.c          open, close
 *   store_health.c   does writing work, and what was found damaged?
 *   store_maintain.c     upkeep: recover, look at every row, keep to the limits
 *   store_scrub.c    looking at every row, and dropping what has rotted
 *   store_prune.c    what is forgotten
 *   store_connect.c  connections: refuse, migrate
 *   store_file.c     the files themselves: lock, and whose database is this?
 *   store_quarantine.c    a file that cannot be used is moved out of the way
 *   store_sql.c      SQLite's calls and codes in the project's terms
 *   store_rows.c     what a row's hashes cover
 *   store_runs.c     what is written
 *   store_read.c     what is read
 *   store_backup.c   a copy while all goes on
 */
#ifndef REACH_STORE_STORE_PRIVATE_H
#define REACH_STORE_STORE_PRIVATE_H

#include "store/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

/* A connection and the mutex that whoever uses it holds. */
struct store_connection {
    pthread_mutex_t mutex;
    sqlite3 *db;
};

/* What upkeep has to do. Guarded by the state mutex. */
struct store_work {
    bool scan;   /* a row or a page was not what it should be, or nobody has looked yet */
    bool prune;  /* a run has ended */
    bool reopen; /* the writing connection has seen an input/output error */
    bool woken;  /* store_wake */
};

/* Reads have a connection of their own, so that an answer does not wait for a writer's fsync. A
 * store in memory has one for both. Order of the mutexes: writing, reading, state. */
struct store {
    char *path;
    bool in_memory;
    int lock_fd;                     /* -1: none; guarded by both connections' mutexes */
    struct store_connection writing; /* no db: it cannot be written, and `health` says why */
    struct store_connection reading_apart;
    struct store_connection *reading;
    struct store_limits limits;

    pthread_mutex_t state_mutex; /* never held while something waits for the disk */
    pthread_cond_t wake;
    struct store_health health;
    struct store_work work;
    uint64_t health_changes;   /* rises when the health has changed */
    uint64_t reported_changes; /* of the news, the last that store_wait has returned for */
    int64_t last_run;          /* the highest number given out */
    atomic_bool stop_soon;     /* store_wake: what upkeep is at should end soon */
};

/* Takes the writing mutex, for store_write_end to give back; on failure it is not held. */
enum status store_write_begin(struct store *store, struct err *err);
/* Ends a write that came to `s`: notes in the health whether writing works, returns `s`. */
enum status store_write_end(struct store *store, enum status s, const struct err *err);
/* Notes what a reader met: a row or page that is not what was written. Returns `s`. */
enum status store_read_end(struct store *store, enum status s, bool corrupt);

/* Files that are open, or NULL each. */
struct store_files {
    int lock_fd;
    sqlite3 *writing;
    sqlite3 *reading;
};
/* Locks (where `files->lock_fd` is -1), moves aside what cannot be used, opens. On failure nothing
 * is held that was not before. */
enum status store_open_files(struct store *store, struct store_files *files, struct err *err);

/* Something to read from where the file cannot be had as it should: what is in it, or nothing. */
enum status store_open_to_read(struct store *store, struct err *err);
/* The file cannot be used because of `why`: moved aside, counted, logged. */
enum status store_quarantine(struct store *store, const struct err *why, struct err *err);
/* One row was dropped. */
void store_count_damage(struct store *store);
/* Runs that a daemon which is no more has left unfinished end as failed. Before the first run. */
void store_end_interrupted_runs(struct store *store);

/* Looks at every row through a connection of its own; what fails its check is deleted, and written
 * down in the table damage. STATUS_CORRUPT: the file itself is damaged. STATUS_CANCELLED. */
enum status store_scrub(struct store *store, struct err *err);
/* The same without changing anything: counts rows, and those that fail. */
enum status store_scrub_count(sqlite3 *db, uint64_t *out_rows, uint64_t *out_bad, struct err *err);
/* Deletes what is beyond the limits. */
enum status store_prune(struct store *store, struct err *err);

#endif
