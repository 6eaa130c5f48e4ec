/* store_state.h: an open store: its connections, its health and the work of its maintenance.
 *
 *   store_open.c        opens and frees
 *   store_health.c      begins and ends write transactions; records errors and damage
 *   store_runs.c        writes rows
 *   store_queue.c       keeps in memory what cannot be written
 *   store_room.c        checks the room for new pages
 *   store_read.c        reads rows
 *   store_maintain.c    recovers, checks every row, enforces the limits, closes
 *   store_scrub.c       checks every row and drops the corrupt ones
 *   store_prune.c       deletes rows beyond the limits
 *   store_backup.c      copies the file while it is in use
 *   store_connect.c     opens connections, or refuses to
 *   store_file.c        takes the lock and checks the header
 *   store_quarantine.c  moves an unusable file to another name
 *   store_sql.c         wraps SQLite's calls
 *   store_rows.h        the columns that the checksums of a row cover
 */
#pragma once

#include "store/store.h"
#include "store/store_queue.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

/* A connection, and the mutex to hold while it is used. */
struct store_connection {
    pthread_mutex_t mutex;
    sqlite3 *db;
};

/* The pending work of maintenance, which the state mutex guards. */
struct store_work {
    bool scan;   /* a row or page was corrupt, or no check was made yet */
    bool prune;  /* a run has ended */
    bool reopen; /* the writing connection had an I/O error */
    bool check;  /* nothing was written for a while, so writing must be checked */
    bool woken;  /* store_wake */
};

/* The records that cannot be written yet, in order. The state mutex guards them. The queue is empty
 * unless the health has an error. */
struct store_queue {
    struct queued_record *first; /* owned */
    struct queued_record *last;
    size_t bytes;
    size_t limit_bytes;
};

/* Reads have a connection of their own, so that an answer does not wait for a writer's fsync. A
 * store in memory has one connection for reads and writes. The mutexes are locked in the order
 * writing, reading, state. */
struct store {
    char *path;
    bool in_memory;
    int lock_fd; /* the lock file, or -1; guarded by both connections' mutexes */
    struct store_connection writing; /* db is NULL if the file cannot be written */
    struct store_connection reading_apart;
    struct store_connection *reading;
    struct store_limits limits;

    pthread_mutex_t state_mutex; /* guards the next members; not held during I/O */
    pthread_cond_t wake;
    struct store_health health;
    struct store_work work;
    struct store_queue queue;
    nsec_t written_at;         /* monotonic time of the last write that succeeded */
    uint64_t health_changes;   /* incremented when the health changes */
    uint64_t reported_changes; /* health_changes when store_wait last returned */
    /* The next three are guarded by the writing mutex. */
    int64_t last_run;      /* the highest run number so far */
    int64_t first_run;     /* the first run of this process; 0 before its first run */
    bool runs_interrupted; /* runs of an earlier process may still be recorded as running */
    atomic_bool stop_soon; /* whether maintenance should end soon (store_wake) */
};

/* Locks the writing connection and begins a transaction. On failure the connection is not locked
 * and there is no transaction. */
enum status store_write_begin(struct store *store, struct err *err);
/* Ends the transaction: commits if `s` is STATUS_OK, else rolls back. Releases the connection and
 * its cache, and records a failure in the health. The failure stays there until store_write_works.
 * Returns the first failure. */
enum status store_write_end(struct store *store, enum status s, struct err *err);
/* Returns whether the status means that the file cannot be written, and not that a request is
 * wrong. */
bool store_is_write_error(enum status s);
/* Records in the health that nothing can be written. The state mutex must be held. */
void store_note_error(struct store *store, enum status s, const struct err *err);
/* Clears the error of the health after a successful write, unless records wait in the queue. */
bool store_write_works(struct store *store);

/* An observation that is ready for its table. */
struct store_document {
    enum probe_kind kind;
    int64_t started_at;
    nsec_t duration_ns;
    uint64_t value_count;
    enum verdict verdict;
    char *text; /* owned */
    size_t text_bytes;
    uint64_t hash; /* hash of the text */
};
enum status store_document_render(const struct observation *o, struct store_document *out,
                                  struct err *err);
/* Adds a document like store_add_observation. */
enum status store_add_document(struct store *store, int64_t run, const struct store_document *d,
                               int64_t *out_id, struct err *err);

/* Writes the queue in order, until it is empty or a write fails. Only one thread may call it. */
enum status store_queue_write(struct store *store, struct err *err);
/* Logs the results that are lost with the queue, and frees the queue. */
void store_queue_free(struct store *store);
/* Finds a fingerprint of a GPU in the queue by its id. If `id` is NULL, finds the served
 * fingerprint from the newest measurement. Returns false if there is none. */
bool store_queue_find(struct store *store, const char *uuid, const char *id,
                      struct fingerprint *out);
/* Returns STATUS_OK if there is room beside the file for some new pages. */
enum status store_room_check(const char *path, struct err *err);
/* Returns whether the file system reports that it has little space, or that it is read-only. */
bool store_room_is_short(const char *path);
/* Records that a reader found a corrupt row or page. Returns `s`. */
enum status store_read_end(struct store *store, enum status s, bool corrupt);

/* Takes the lock unless it is held, quarantines an unusable file, and opens the connections, which
 * are closed. On failure the store holds nothing new. */
enum status store_open_files(struct store *store, struct err *err);

/* Closes and frees a store, also a partly opened one. Records in the queue are lost. */
void store_free(struct store *take);
/* Opens a reading connection to a file that cannot be written, or to an empty database. */
enum status store_open_to_read(struct store *store, struct err *err);
/* Quarantines a file that cannot be used because of `why`, and counts and logs it. */
enum status store_quarantine(struct store *store, const struct err *why, struct err *err);
/* Counts one dropped row. */
void store_count_damage(struct store *store);
/* Records as failed the runs that an earlier daemon did not finish, below `first_run`. The writing
 * mutex must be held, unless no other thread uses the store yet. After a failure `runs_interrupted`
 * stays set, and store_maintain tries again when writing works. */
enum status store_end_interrupted_runs(struct store *store, struct err *err);
/* Does so in a file that has just been opened. Logs a failure and records it in the health. */
void store_end_interrupted_at_open(struct store *store);

/* Checks every row through a connection of its own, deletes the corrupt ones and records them in
 * the table damage. Returns STATUS_CORRUPT if the file itself is damaged, and STATUS_CANCELLED
 * after store_wake. */
enum status store_scrub(struct store *store, struct err *err);
/* Counts the rows and the corrupt rows, without a change. */
enum status store_scrub_count(sqlite3 *db, uint64_t *out_rows, uint64_t *out_bad, struct err *err);
/* Deletes the rows beyond the limits. */
enum status store_prune(struct store *store, struct err *err);
