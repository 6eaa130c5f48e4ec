/* store.h: what reachd remembers, in one SQLite file: GPUs, observations, fingerprints.
 *
 * WAL journal, synchronous=FULL, STRICT tables, schema in schema/db/NNNN_*.sql applied by
 * user_version (the migrations are embedded in the binary). Every row that carries a document has a
 * checksum of its own, verified on load: PRAGMA integrity_check misses most flipped bytes. A row
 * that fails is skipped and logged, never served.
 *
 * One writer, guarded by a mutex inside: any thread may call anything. A lock file (path + "-lock",
 * flock) keeps a second daemon out: STATUS_CONFLICT. Documents are JSON texts as the observe and
 * fingerprint layers write them.
 *
 * The store never moves, truncates or replaces a file it did not make: a file that is not a
 * database, or is one of another application (application_id) or of a newer schema, makes
 * store_open fail with a sentence.
 */
#ifndef REACH_STORE_STORE_H
#define REACH_STORE_STORE_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

struct store;

/* Opens or makes the database at `path` (":memory:": a trial that ends with the process).
 * On success the caller owns `*out` (store_close).
 * Errors: STATUS_IO (directory missing, permission), STATUS_READ_ONLY, STATUS_FULL,
 * STATUS_CORRUPT (not a database, or of another application), STATUS_NOT_SUPPORTED (newer schema),
 * STATUS_CONFLICT (another daemon has it). */
enum status store_open(const char *path, struct store **out, struct err *err);
void store_close(struct store *take);

/* True for ":memory:". */
bool store_is_volatile(const struct store *store);

/* Begins one measurement of one GPU: a run. Observations and at most one fingerprint belong to it.
 * `*out_run` is its number, >= 1. */
enum status store_begin_run(struct store *store, const struct gpu_identity *gpu,
                            const struct gpu_limits *limits, enum depth depth, int64_t started_at,
                            int64_t *out_run, struct err *err);

/* Appends one observation to a run; durable when it returns. `*out_id` (may be NULL) >= 1. */
enum status store_add_observation(struct store *store, int64_t run, const struct observation *o,
                                  int64_t *out_id, struct err *err);

/* Ends a run with its fingerprint, which becomes the current one of its GPU, in one transaction. */
enum status store_finish_run(struct store *store, int64_t run, const struct fingerprint *fp,
                             struct err *err);
/* Ends a run without one; the reason is kept. The current fingerprint stays. */
enum status store_fail_run(struct store *store, int64_t run, const struct err *why,
                           struct err *err);

/* The newest fingerprint of this UUID that passes its check. STATUS_NOT_FOUND where none does. */
enum status store_current_fingerprint(struct store *store, const char *uuid,
                                      struct fingerprint *out, struct err *err);
/* One by its id (fingerprint_id). STATUS_NOT_FOUND. */
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

/* All observations of one run with the GPU and the limits it ran under, oldest first: the input of
 * analysis, to conclude again. Those that are not clean are set aside in it. The caller owns `*out`
 * (observation_set_free). */
enum status store_load_run(struct store *store, int64_t run, struct observation_set *out,
                           struct err *err);

#endif
