/* store_state.h: an open store: its connections, its health and what its maintenance has to do.
 *
 * store.c             opens and closes
 * store_health.c      begins and ends write transactions; is writing possible, what was damaged
 * store_runs.c        writes
 * store_read.c        reads
 * store_maintain.c    recovers, checks every row, keeps to the limits
 * store_scrub.c       checks every row and drops the corrupt ones
 * store_prune.c       deletes what is beyond the limits
 * store_backup.c      copies the file while it is in use
 * store_connect.c     opens connections, or refuses to
 * store_migrate.c     brings an older file to the newest schema
 * store_file.c        the lock; whose file it is
 * store_quarantine.c  moves a file that cannot be used out of the way
 * store_sql.c         SQLite's calls and codes in the project's terms
 * store_rows.h        what the checksums of a row cover
 */
#ifndef REACH_STORE_STORE_STATE_H
#define REACH_STORE_STORE_STATE_H

#include "store/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

/* A connection, and the mutex to hold while it is used. */
struct store_connection {
    pthread_mutex_t mutex;
    sqlite3 *db;
};

/* What maintenance has to do. Guarded by the state mutex. */
struct store_work {
    bool scan;   /* a row or page was corrupt, or none has been checked yet */
    bool prune;  /* a run has ended */
    bool reopen; /* the writing connection has met an I/O error */
    bool woken;  /* store_wake */
};

/* Reads have a connection of their own, so that an answer does not wait for a writer's fsync. A
 * store in memory has one for both. Order of the mutexes: writing, reading, state. */
struct store {
    char *path;
    bool in_memory;
    int lock_fd;                     /* -1: none; guarded by both connections' mutexes */
    struct store_connection writing; /* db NULL: the file cannot be written, `health` has why */
    struct store_connection reading_apart;
    struct store_connection *reading;
    struct store_limits limits;

    pthread_mutex_t state_mutex; /* never held during I/O */
    pthread_cond_t wake;
    struct store_health health;
    struct store_work work;
    uint64_t health_changes;   /* incremented when the health changes */
    uint64_t reported_changes; /* health_changes when store_wait last returned */
    int64_t last_run;          /* the highest run number so far; guarded by the writing mutex */
    atomic_bool stop_soon;     /* store_wake: maintenance should end soon */
};

/* Locks the writing connection and begins a transaction. On failure neither is held. */
enum status store_write_begin(struct store *store, struct err *err);
/* Ends the transaction: commits if `s` is STATUS_OK, else rolls back. Releases the connection and
 * its cache, and records in the health whether writing works. Returns the first failure. */
enum status store_write_end(struct store *store, enum status s, struct err *err);
/* Records that a reader found a corrupt row or page. Returns `s`. */
enum status store_read_end(struct store *store, enum status s, bool corrupt);

/* Open files; a connection is NULL if it is closed. */
struct store_files {
    int lock_fd;
    sqlite3 *writing;
    sqlite3 *reading;
};
/* Locks (if `files->lock_fd` is -1), quarantines what cannot be used, opens. On failure it holds
 * nothing that was not held before. */
enum status store_open_files(struct store *store, struct store_files *files, struct err *err);

/* Opens a reading connection to a file that cannot be written, or to nothing. */
enum status store_open_to_read(struct store *store, struct err *err);
/* Moves a file that cannot be used because of `why` out of the way, counts and logs it. */
enum status store_quarantine(struct store *store, const struct err *why, struct err *err);
/* Counts one dropped row. */
void store_count_damage(struct store *store);
/* Ends as failed the runs that an earlier daemon did not finish. The writing mutex is held, or no
 * other thread uses the store yet. */
void store_end_interrupted_runs(struct store *store);

/* Checks every row through a connection of its own, deletes the corrupt ones and records them in
 * the table damage. STATUS_CORRUPT: the file itself is damaged. STATUS_CANCELLED: store_wake. */
enum status store_scrub(struct store *store, struct err *err);
/* The same without changing anything: counts rows, and corrupt ones. */
enum status store_scrub_count(sqlite3 *db, uint64_t *out_rows, uint64_t *out_bad, struct err *err);
/* Deletes what is beyond the limits. */
enum status store_prune(struct store *store, struct err *err);

#endif
