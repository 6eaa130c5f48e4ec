/* store.h: the state of reachd in one SQLite file: GPUs, observations, fingerprints.
 *
 * The database has a WAL journal, synchronous=FULL and STRICT tables. The binary contains the
 * tables of schema/db/tables.sql. Every row has checksums, which are verified on load, because
 * PRAGMA integrity_check misses most flipped bytes. A row with a wrong checksum is never served.
 * Maintenance drops it, counts it and records that its GPU must be measured again.
 *
 * An internal mutex guards the one writer, so any thread may call any function. A lock file (path +
 * "-lock", flock) keeps a second daemon out: STATUS_CONFLICT. Documents are JSON texts in the form
 * that the observe and fingerprint layers write.
 *
 * The store never overwrites a file that it did not make. A file that is not a database, is
 * damaged, or belongs to another application is moved to PATH.corrupt-<time>. A file with another
 * schema is not opened.
 *
 * A write that fails changes nothing for the readers. The health has the reason; maintenance
 * retries until writing works. store_queue.h keeps in memory the records that could not be written.
 * docs/store.md has the guarantees and their tests.
 */
#pragma once

#include "base/clock.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

struct store;

/* Opens or makes the database at `path` (":memory:" is lost at the end of the process). On success
 * the caller owns `*out` (store_close). Errors: STATUS_IO (directory missing, permission),
 * STATUS_READ_ONLY, STATUS_FULL, STATUS_CORRUPT (cannot be used, and cannot be quarantined),
 * STATUS_NOT_SUPPORTED (another schema), STATUS_CONFLICT (another daemon has it),
 * STATUS_INVALID_ARGUMENT (not the path of a file). */
enum status store_open(const char *path, struct store **out, struct err *err);
/* Opens the store for a daemon: temporary errors (IO, READ_ONLY, FULL, CORRUPT) are not failures. A
 * readable file is read; otherwise the store is empty. Writes fail with the reason, which is in the
 * health, until maintenance finds the file usable. */
enum status store_open_degraded(const char *path, struct store **out, struct err *err);
void store_close(struct store *take);

/* Numbers of results. */
struct store_results {
    uint64_t fingerprints;
    uint64_t observations;
};

/* The health of the store. An error stays until maintenance has written new pages and all records
 * that wait in memory. */
struct store_health {
    struct err last_error;          /* why nothing can be written; STATUS_OK if nothing is wrong */
    int64_t last_error_since;       /* wall clock in seconds; 0 without an error */
    struct store_results unwritten; /* results in memory, until they can be stored */
    struct store_results dropped;   /* dropped since the start, for lack of memory */
    uint64_t failed_writes;
    uint64_t damaged_rows; /* dropped */
    uint64_t quarantined;  /* files */
};
void store_health(struct store *store, struct store_health *out);
/* Requests a write from maintenance if there was none for a while, so that the health of an idle
 * daemon is current. Never waits. */
void store_check_soon(struct store *store);

/* The limits of the stored data. */
struct store_limits {
    uint32_t runs;     /* runs per GPU: older ones are deleted with their fingerprints */
    uint32_t observed; /* newest runs per GPU, whose observations are kept */
    uint64_t bytes;    /* size above which observations of the oldest runs are deleted */
    uint32_t damage;   /* rows in the table damage */
};
#define STORE_LIMITS_DEFAULT                                                                       \
    (struct store_limits)                                                                          \
    {                                                                                              \
        .runs = 256, .observed = 8, .bytes = (uint64_t)1 << 30, .damage = 1000                     \
    }
/* Sets the limits. Call it before the threads start. The run of a GPU's current fingerprint is
 * always kept whole. */
void store_set_limits(struct store *store, const struct store_limits *limits);

/* Does maintenance; one thread of the daemon repeats store_maintain and store_wait. A call tries to
 * make an unusable file usable, checks all rows after a start and after each damaged row, and
 * deletes rows beyond the limits. `*out_recreated` is true if the file was damaged beyond its rows.
 * In that case it is quarantined, and the store is empty. Returns the first failure; the health has
 * the information for clients. */
enum status store_maintain(struct store *store, bool *out_recreated, struct err *err);
#define STORE_NO_TIMEOUT ((nsec_t)UINT64_MAX)
/* Sleeps until there is work, the health has changed, or `most` has passed. */
void store_wait(struct store *store, nsec_t most);
/* Makes a thread in store_wait beat its heartbeat. store_maintain beats it by itself. */
void store_check_alive(struct store *store);
/* Ends store_wait, and store_maintain as soon as possible. */
void store_wake(struct store *store);

/* Sets `*out` to true if this GPU must be measured: its fingerprint is missing, or a newer one was
 * damaged. */
enum status store_lacks_fingerprint(struct store *store, const char *uuid, bool *out,
                                    struct err *err);

/* Writes the committed state of the file at `path` to a new file at `to`: whole, compact and
 * durable, or not at all. Any process that may read the file can make the copy, also while a daemon
 * uses the file. `*out_rows` (may be NULL) is the number of rows; every row passes its check.
 * Returns STATUS_CONFLICT if `to` exists. Returns STATUS_CORRUPT if rows are damaged; the copy is
 * then removed. */
enum status store_backup(const char *path, const char *to, uint64_t *out_rows, struct err *err);

/* Begins a run, which is one measurement of one GPU. Observations and at most one fingerprint
 * belong to it. `*out_run` is the number of the run, >= 1. */
enum status store_begin_run(struct store *store, const struct gpu_identity *gpu,
                            const struct gpu_limits *limits, enum depth depth, int64_t started_at,
                            int64_t *out_run, struct err *err);

/* Appends one observation to a run; it is durable on return. `*out_id` (may be NULL) is >= 1. */
enum status store_add_observation(struct store *store, int64_t run, const struct observation *o,
                                  int64_t *out_id, struct err *err);

/* Ends a run in one transaction. It stores the fingerprint as it was measured and the merged
 * fingerprint that is served from now on (fingerprint/merge.h). Both may be the same pointer. */
enum status store_finish_run(struct store *store, int64_t run, const struct fingerprint *measured,
                             const struct fingerprint *known, struct err *err);
/* Adds a document that is served from now on: the merged fingerprint since `run`, in the form of
 * this release. */
enum status store_add_served(struct store *store, int64_t run, const struct fingerprint *served,
                             struct err *err);
/* Ends a run without a fingerprint, and stores the reason. The served fingerprint of the GPU
 * stays. */
enum status store_fail_run(struct store *store, int64_t run, const struct err *why,
                           struct err *err);

/* Lists the GPUs with a valid fingerprint, at most `max`, in order of UUID. The newest fingerprint
 * of a GPU describes it. */
enum status store_list_gpus(struct store *store, struct gpu_identity *out, uint32_t max,
                            uint32_t *out_count, struct err *err);

/* Reads the served fingerprint of this GPU: the newest valid merged row, or the newest valid
 * fingerprint. Returns STATUS_NOT_FOUND if there is none. */
enum status store_current_fingerprint(struct store *store, const char *uuid,
                                      struct fingerprint *out, struct err *err);
/* Reads the served fingerprint in the form of this release, and its id. An earlier release may have
 * written another document under another id. The new document is then stored too, so that its id is
 * found later, and it contains the old id as its measurement (measurement_id). If it cannot be
 * stored, the error is logged. */
enum status store_recall(struct store *store, const char *uuid, struct fingerprint *out,
                         char out_id[FINGERPRINT_ID_BYTES], struct err *err);
/* Finds a fingerprint by its id (fingerprint_id): a measurement as it was made, or a document that
 * was served since. Every id of the listings is found until its run is deleted. Returns
 * STATUS_NOT_FOUND if there is none. */
enum status store_fingerprint(struct store *store, const char *uuid, const char *id,
                              struct fingerprint *out, struct err *err);

/* One line of a listing. */
struct store_fingerprint_row {
    int64_t run;
    char id[FINGERPRINT_ID_BYTES];
    enum depth depth;
    enum origin origin;
    int64_t taken_at;
    uint32_t duration_ms;
};
/* Lists the history of one GPU, newest first: at most `max` rows with run < `before` (0 means from
 * the newest). */
enum status store_list_fingerprints(struct store *store, const char *uuid, int64_t before,
                                    struct store_fingerprint_row *out, uint32_t max,
                                    uint32_t *out_count, struct err *err);

/* Lists the ids of the documents that were served between this run of the GPU and the next one,
 * newest first, at most `max`. */
enum status store_list_served(struct store *store, const char *uuid, int64_t run,
                              char (*out)[FINGERPRINT_ID_BYTES], uint32_t max, uint32_t *out_count,
                              struct err *err);

struct store_observation_row {
    int64_t id;
    int64_t run;
    enum probe_kind kind;
    int64_t started_at;
    nsec_t duration_ns;
    uint64_t value_count;
    enum verdict verdict;
};
/* Lists observations of one GPU, newest first: at most `max` with id < `before` (0 means from the
 * newest), of one run (0 means of all runs). */
enum status store_list_observations(struct store *store, const char *uuid, int64_t run,
                                    int64_t before, struct store_observation_row *out, uint32_t max,
                                    uint32_t *out_count, struct err *err);
/* Reads the JSON text of one observation of this GPU; the caller frees `*out_json` with free(). */
enum status store_observation_json(struct store *store, const char *uuid, int64_t id,
                                   char **out_json, struct err *err);

/* Deletes all rows about this GPU: its runs with their observations and fingerprints, its merged
 * fingerprints, and its rows in the table damage. */
enum status store_forget(struct store *store, const char *uuid, struct err *err);

/* Reads all observations of one run, oldest first, with the GPU and the limits of the run. They are
 * the input of analysis. Observations that are not clean are in `out->excluded`. The caller owns
 * `*out` (observation_set_free). */
enum status store_load_run(struct store *store, int64_t run, struct observation_set *out,
                           struct err *err);
