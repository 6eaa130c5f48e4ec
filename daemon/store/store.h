/* store.h: the state of reachd in one SQLite file: GPUs, observations, fingerprints.
 *
 * WAL journal, synchronous=FULL, STRICT tables, schema in schema/db/NNNN_*.sql applied by
 * user_version (the migrations are embedded in the binary). Every row has checksums, verified on
 * load: PRAGMA integrity_check misses most flipped bytes. A row that fails is never served;
 * maintenance drops it, counts it and records that its GPU must be measured again.
 *
 * One writer, guarded by an internal mutex: any thread may call any function. A lock file (path +
 * "-lock", flock) keeps a second daemon out: STATUS_CONFLICT. Documents are JSON texts as the
 * observe and fingerprint layers write them.
 *
 * The store never overwrites a file it did not make: what is not a database, or is damaged, or is
 * another application's, is moved to PATH.corrupt-<time>. A newer schema refuses to open.
 *
 * A write that fails changes nothing for the readers. The health has the reason; maintenance
 * retries until writing works. store_queue.h keeps in memory what could not be written.
 * docs/store.md has the guarantees and their tests.
 */
#ifndef REACH_STORE_STORE_H
#define REACH_STORE_STORE_H

#include "base/clock.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

struct store;

/* Opens or makes the database at `path` (":memory:": lost at the end of the process).
 * On success the caller owns `*out` (store_close).
 * Errors: STATUS_IO (directory missing, permission), STATUS_READ_ONLY, STATUS_FULL,
 * STATUS_CORRUPT (cannot be used, and cannot be quarantined), STATUS_NOT_SUPPORTED (newer schema),
 * STATUS_CONFLICT (another daemon has it), STATUS_INVALID_ARGUMENT (no path of a file). */
enum status store_open(const char *path, struct store **out, struct err *err);
/* The same for a daemon: errors that may pass (IO, READ_ONLY, FULL, CORRUPT) are not failures. What
 * can be read is read, or the store is empty; writes fail with the reason, which is in the health,
 * until maintenance finds the file usable. */
enum status store_open_degraded(const char *path, struct store **out, struct err *err);
void store_close(struct store *take);

/* Numbers of results. */
struct store_results {
    uint64_t fingerprints;
    uint64_t observations;
};

/* An error stays until maintenance has written new pages and all that waits in memory. */
struct store_health {
    struct err last_error;          /* why nothing can be written; STATUS_OK: nothing is wrong */
    int64_t last_error_since;       /* wall clock, seconds; 0 without an error */
    struct store_results unwritten; /* in memory, until they can be stored */
    struct store_results dropped;   /* since the start, for lack of memory, as what follows */
    uint64_t failed_writes;
    uint64_t damaged_rows; /* dropped */
    uint64_t quarantined;  /* files */
};
void store_health(struct store *store, struct store_health *out);
/* Requests a write from maintenance if there was none for a while, so that the health of an idle
 * daemon is true. Never waits. */
void store_check_soon(struct store *store);

/* What is kept. */
struct store_limits {
    uint32_t runs;     /* of one GPU: older ones go, with their fingerprints */
    uint32_t observed; /* of these, the newest whose observations are kept */
    uint64_t bytes;    /* beyond that, observations of the oldest runs go */
    uint32_t damage;   /* rows about what was damaged */
};
#define STORE_LIMITS_DEFAULT                                                                       \
    (struct store_limits)                                                                          \
    {                                                                                              \
        .runs = 256, .observed = 8, .bytes = (uint64_t)1 << 30, .damage = 1000                     \
    }
/* Before the threads start. The run of a GPU's current fingerprint is always kept whole. */
void store_set_limits(struct store *store, const struct store_limits *limits);

/* Maintenance, which one thread of the daemon repeats: store_maintain, then store_wait. Tries to
 * make an unusable file usable, checks all rows after a start and whenever one was found damaged,
 * and deletes what is beyond the limits. `*out_recreated`: the file was damaged beyond its rows; it
 * was quarantined and the store is empty. Returns the first failure; the health has what a client
 * should know. */
enum status store_maintain(struct store *store, bool *out_recreated, struct err *err);
#define STORE_NO_TIMEOUT ((nsec_t)UINT64_MAX)
/* Sleeps until there is something to do, the health has changed, or `most` has passed. */
void store_wait(struct store *store, nsec_t most);
/* Makes a thread in store_wait beat its heartbeat; store_maintain beats it by itself. */
void store_check_alive(struct store *store);
/* Ends store_wait, and store_maintain as soon as possible. */
void store_wake(struct store *store);

/* Must this GPU be measured? Its fingerprint is missing, or a newer one was damaged. */
enum status store_lacks_fingerprint(struct store *store, const char *uuid, bool *out,
                                    struct err *err);

/* Writes what is committed in the state file at `path` to a new file at `to`: whole, compact and
 * durable, or not at all. May be called from any process that may read the file, whether a daemon
 * has it or not. `*out_rows` (may be NULL): rows, all of which pass their checks.
 * STATUS_CONFLICT: `to` is there already. STATUS_CORRUPT: rows are damaged; the copy is removed. */
enum status store_backup(const char *path, const char *to, uint64_t *out_rows, struct err *err);

/* Begins one measurement of one GPU: a run. Observations and at most one fingerprint belong to it.
 * `*out_run` is its number, >= 1. */
enum status store_begin_run(struct store *store, const struct gpu_identity *gpu,
                            const struct gpu_limits *limits, enum depth depth, int64_t started_at,
                            int64_t *out_run, struct err *err);

/* Appends one observation to a run; durable when it returns. `*out_id` (may be NULL) >= 1. */
enum status store_add_observation(struct store *store, int64_t run, const struct observation *o,
                                  int64_t *out_id, struct err *err);

/* Ends a run with its fingerprint as it was measured, and with what is known of the GPU from now on
 * (fingerprint/merge.h; the same pointer if it is the same), in one transaction. */
enum status store_finish_run(struct store *store, int64_t run, const struct fingerprint *measured,
                             const struct fingerprint *known, struct err *err);
/* Adds a document that is served from now on: what is known since `run`, as this release writes it.
 */
enum status store_add_served(struct store *store, int64_t run, const struct fingerprint *served,
                             struct err *err);
/* Ends a run without one; the reason is kept. What is known of the GPU stays. */
enum status store_fail_run(struct store *store, int64_t run, const struct err *why,
                           struct err *err);

/* The GPUs with a fingerprint that passes its check, as the newest of each describes them, by UUID.
 * At most `max`. */
enum status store_list_gpus(struct store *store, struct gpu_identity *out, uint32_t max,
                            uint32_t *out_count, struct err *err);

/* What is known of this GPU: the newest such row that passes its check, or the newest fingerprint
 * that does. STATUS_NOT_FOUND if none does. */
enum status store_current_fingerprint(struct store *store, const char *uuid,
                                      struct fingerprint *out, struct err *err);
/* The same as this release writes it, and its id. An earlier release may have written another
 * document under another id: the new one is stored too, so that its id is found later, and names
 * the old one as its measurement (measurement_id). If it cannot be stored, the log has the error.
 */
enum status store_recall(struct store *store, const char *uuid, struct fingerprint *out,
                         char out_id[FINGERPRINT_ID_BYTES], struct err *err);
/* One by its id (fingerprint_id): a measurement as it was made, or a document that was served
 * since. Every id of the listings is found, until its run is deleted. STATUS_NOT_FOUND. */
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
/* History of one GPU, newest first: at most `max` rows with run < `before` (0: from the newest). */
enum status store_list_fingerprints(struct store *store, const char *uuid, int64_t before,
                                    struct store_fingerprint_row *out, uint32_t max,
                                    uint32_t *out_count, struct err *err);

/* The ids of what was served since this run of the GPU, until the next one; newest first, at most
 * `max`. */
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
/* Observations of one GPU, newest first: at most `max` with id < `before` (0: from the newest),
 * of one run (0: of all). */
enum status store_list_observations(struct store *store, const char *uuid, int64_t run,
                                    int64_t before, struct store_observation_row *out, uint32_t max,
                                    uint32_t *out_count, struct err *err);
/* The JSON text of one observation of this GPU; the caller frees `*out_json` with free(). */
enum status store_observation_json(struct store *store, const char *uuid, int64_t id,
                                   char **out_json, struct err *err);

/* Deletes all rows about this GPU: its runs with their observations and fingerprints, what is known
 * of it, and what was damaged. */
enum status store_forget(struct store *store, const char *uuid, struct err *err);

/* All observations of one run with the GPU and the limits it ran under, oldest first: the input of
 * analysis. Those that are not clean are excluded in it. The caller owns `*out`
 * (observation_set_free). */
enum status store_load_run(struct store *store, int64_t run, struct observation_set *out,
                           struct err *err);

#endif
