/* store_queue.c: see store_queue.h.
 *
 *     record  ->  if the queue is empty and writing works: written by its thread
 *             ->  otherwise: appended to the queue in memory  ->  written by maintenance, in order
 *
 * A run begins in the file with its first record, and begins again if the file was replaced.
 */
#include "store/store_queue.h"

#include "base/log.h"
#include "fingerprint/fingerprint_json.h"
#include "store/store_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct store_run {
    struct gpu_identity gpu;
    struct gpu_limits limits;
    enum depth depth;
    int64_t started_at;
    /* Number of the run in the file; 0 if the run has not begun there. It belongs to the thread of
     * the run. While a record of the run waits, it belongs to the thread that writes the queue. */
    int64_t number;
    uint32_t references; /* references of its owner and of its records in the queue; guarded by the
                            state mutex */
    bool incomplete;     /* whether observations were dropped; guarded by the state mutex */
};

enum record_kind { RECORD_OBSERVATION, RECORD_FINISHED, RECORD_FAILED };

/* The fingerprints at the end of a run. */
struct finished {
    struct fingerprint measured;
    struct fingerprint known;
    char measured_id[FINGERPRINT_ID_BYTES];
    char known_id[FINGERPRINT_ID_BYTES];
};

struct queued_record {
    struct queued_record *next;
    struct store_run *run;
    enum record_kind kind;
    size_t bytes;
    bool is_being_written;
    struct store_document observation;
    struct finished *finished; /* owned */
    struct err why;            /* of RECORD_FAILED */
};

static void free_record(struct queued_record *take)
{
    free(take->observation.text);
    free(take->finished);
    free(take);
}

/* Releases a reference to a run, and frees it after the last one. The state mutex must be held. */
static void release_run(struct store_run *run)
{
    if (--run->references == 0)
        free(run);
}

static struct queued_record *new_record(struct store_run *run, enum record_kind kind,
                                        struct err *err)
{
    struct queued_record *const r = calloc(1, sizeof(*r));

    if (!r) {
        err_no_memory(err, "a result");
        return NULL;
    }
    r->run = run;
    r->kind = kind;
    r->bytes = sizeof(*r);
    return r;
}

/* ---- writing ---- */

static enum status begin_run(struct store *store, struct store_run *run, struct err *err)
{
    return run->number ? STATUS_OK
                       : store_begin_run(store, &run->gpu, &run->limits, run->depth,
                                         run->started_at, &run->number, err);
}

static enum status write_to_file(struct store *store, const struct queued_record *r,
                                 struct err *err)
{
    const enum status s = begin_run(store, r->run, err);

    if (s != STATUS_OK)
        return s;
    if (r->kind == RECORD_OBSERVATION)
        return store_add_document(store, r->run->number, &r->observation, NULL, err);
    if (r->kind == RECORD_FINISHED)
        return store_finish_run(store, r->run->number, &r->finished->measured, &r->finished->known,
                                err);
    return store_fail_run(store, r->run->number, &r->why, err);
}

static enum status write_record(struct store *store, const struct queued_record *r, struct err *err)
{
    const enum status s = write_to_file(store, r, err);

    if (s != STATUS_NOT_FOUND)
        return s;
    r->run->number = 0; /* the file was replaced */
    return write_to_file(store, r, err);
}

/* ---- the queue; the state mutex is held ---- */

/* Adds `by` to the number of results of the kind in this record. */
static void count_result(struct store_results *results, const struct queued_record *r, int by)
{
    if (r->kind == RECORD_OBSERVATION)
        results->observations += (uint64_t)by;
    else if (r->kind == RECORD_FINISHED)
        results->fingerprints += (uint64_t)by;
}

/* Removes the record at `*link` and frees it. */
static void remove_record(struct store *store, struct queued_record **link,
                          struct queued_record *before)
{
    struct store_queue *const q = &store->queue;
    struct queued_record *const r = *link;

    *link = r->next;
    if (q->last == r)
        q->last = before;
    q->bytes -= r->bytes;
    count_result(&store->health.unwritten, r, -1);
    release_run(r->run);
    free_record(r);
}

/* Removes the observations of `run`, or its other records. If `run` is NULL, removes only the
 * oldest such record of all runs. Returns whether a record was removed. */
static bool drop_records(struct store *store, const struct store_run *run, bool observations)
{
    struct queued_record **link = &store->queue.first;
    struct queued_record *before = NULL;
    bool any = false;

    while (*link && (run || !any)) {
        struct queued_record *const r = *link;

        if ((r->kind == RECORD_OBSERVATION) == observations && !r->is_being_written &&
            (!run || r->run == run)) {
            count_result(&store->health.dropped, r, 1);
            remove_record(store, link, before);
            any = true;
        } else {
            before = r;
            link = &r->next;
        }
    }
    return any;
}

static struct store_run *oldest_observed(const struct store *store)
{
    const struct queued_record *r = store->queue.first;

    while (r && (r->kind != RECORD_OBSERVATION || r->is_being_written))
        r = r->next;
    return r ? r->run : NULL;
}

/* Drops observations before fingerprints, and old ones before new ones. Incomplete observations
 * would mislead analysis, so all observations of a measurement are dropped together. */
static void keep_to_limit(struct store *store)
{
    struct store_queue *const q = &store->queue;
    bool any = true;

    while (q->bytes > q->limit_bytes && any) {
        struct store_run *const run = oldest_observed(store);

        if (run) {
            log_warning("state file: more than %zu MiB wait in memory; the observations of a "
                        "measurement of %s are dropped",
                        q->limit_bytes >> 20, run->gpu.uuid);
            run->incomplete = true;
            any = drop_records(store, run, true);
        } else {
            log_warning("state file: more than %zu MiB wait in memory; a fingerprint is dropped",
                        q->limit_bytes >> 20);
            any = drop_records(store, NULL, false);
        }
    }
}

static void append_record(struct store *store, struct queued_record *take)
{
    struct store_queue *const q = &store->queue;

    if (take->kind == RECORD_OBSERVATION && take->run->incomplete) {
        count_result(&store->health.dropped, take, 1);
        free_record(take);
        return;
    }
    if (q->last)
        q->last->next = take;
    else
        q->first = take;
    q->last = take;
    q->bytes += take->bytes;
    take->run->references++;
    count_result(&store->health.unwritten, take, 1);
    keep_to_limit(store);
}

/* ---- from a measurement to the file or the queue ---- */

static bool may_write(struct store *store)
{
    bool may;

    pthread_mutex_lock(&store->state_mutex);
    may = !store->queue.first && store->health.last_error.status == STATUS_OK;
    pthread_mutex_unlock(&store->state_mutex);
    return may;
}

/* Appends a record to the queue. `why` is the failure of its write, or NULL if no write was tried.
 * Returns false if no write was tried and the record can be written now. */
static bool keep_record(struct store *store, struct queued_record *take, const struct err *why)
{
    bool kept = true;

    pthread_mutex_lock(&store->state_mutex);
    if (store->health.last_error.status == STATUS_OK) {
        if (why)
            store_note_error(store, why->status, why);
        else
            kept = false;
    }
    if (kept)
        append_record(store, take);
    pthread_mutex_unlock(&store->state_mutex);
    return kept;
}

/* Writes the record, or appends it to the queue. Takes ownership of the record. */
static enum status write_or_keep(struct store *store, struct queued_record *take, struct err *err)
{
    for (;;) {
        struct err why = {0};

        if (may_write(store)) {
            const enum status s = write_record(store, take, &why);

            if (!store_is_write_error(s)) {
                free_record(take);
                return s == STATUS_OK ? s : err_set(err, s, "%s", why.text);
            }
        }
        if (keep_record(store, take, why.status == STATUS_OK ? NULL : &why))
            return STATUS_OK;
    }
}

static void release_as_owner(struct store *store, struct store_run *take)
{
    pthread_mutex_lock(&store->state_mutex);
    release_run(take);
    pthread_mutex_unlock(&store->state_mutex);
}

enum status store_run_begin(struct store *store, const struct gpu_identity *gpu,
                            const struct gpu_limits *limits, enum depth depth, int64_t started_at,
                            struct store_run **out, struct err *err)
{
    struct store_run *const run = calloc(1, sizeof(*run));
    struct err why = {0};
    enum status s = STATUS_OK;

    if (!run)
        return err_no_memory(err, "a measurement");
    *run = (struct store_run){
        .gpu = *gpu, .limits = *limits, .depth = depth, .started_at = started_at, .references = 1};
    if (may_write(store))
        s = begin_run(store, run, &why);
    if (s != STATUS_OK && !store_is_write_error(s)) {
        free(run);
        return err_set(err, s, "%s", why.text);
    }
    *out = run;
    return STATUS_OK;
}

enum status store_run_observe(struct store *store, struct store_run *run,
                              const struct observation *o, struct err *err)
{
    struct queued_record *const r = new_record(run, RECORD_OBSERVATION, err);
    enum status s;

    if (!r)
        return STATUS_NO_MEMORY;
    s = store_document_render(o, &r->observation, err);
    if (s != STATUS_OK) {
        free_record(r);
        return s;
    }
    r->bytes += r->observation.text_bytes;
    return write_or_keep(store, r, err);
}

/* Renders the fingerprints and their ids. The caller frees `*out`. */
static enum status copy_finished(const struct fingerprint *measured,
                                 const struct fingerprint *known, struct finished **out,
                                 struct err *err)
{
    struct finished *const f = calloc(1, sizeof(*f));
    enum status s;

    *out = f;
    if (!f)
        return err_no_memory(err, "a fingerprint");
    f->measured = *measured;
    f->known = *known;
    s = fingerprint_id(measured, f->measured_id, err);
    return s == STATUS_OK ? fingerprint_id(known, f->known_id, err) : s;
}

enum status store_run_finish(struct store *store, struct store_run *take,
                             const struct fingerprint *measured, const struct fingerprint *known,
                             struct err *err)
{
    struct queued_record *const r = new_record(take, RECORD_FINISHED, err);
    enum status s;

    if (!r)
        return STATUS_NO_MEMORY;
    r->bytes += sizeof(*r->finished);
    s = copy_finished(measured, known, &r->finished, err);
    if (s != STATUS_OK) {
        free_record(r);
        return s;
    }
    s = write_or_keep(store, r, err);
    if (s == STATUS_OK)
        release_as_owner(store, take);
    return s;
}

enum status store_run_fail(struct store *store, struct store_run *take, const struct err *why,
                           struct err *err)
{
    struct queued_record *const r = new_record(take, RECORD_FAILED, err);
    enum status s = STATUS_NO_MEMORY;

    if (r) {
        r->why = *why;
        s = write_or_keep(store, r, err);
    }
    release_as_owner(store, take);
    return s;
}

/* ---- maintenance and readers ---- */

static struct queued_record *next_to_write(struct store *store)
{
    struct queued_record *r;

    pthread_mutex_lock(&store->state_mutex);
    r = store->queue.first;
    if (r)
        r->is_being_written = true;
    pthread_mutex_unlock(&store->state_mutex);
    return r;
}

enum status store_queue_write(struct store *store, struct err *err)
{
    struct queued_record *r;

    while ((r = next_to_write(store))) {
        struct err why = {0};
        const enum status s = write_record(store, r, &why);
        const bool stays = store_is_write_error(s) || s == STATUS_NO_MEMORY;

        if (s != STATUS_OK && !stays)
            log_warning("state file: a result of %s is dropped: %s", r->run->gpu.uuid, why.text);
        pthread_mutex_lock(&store->state_mutex);
        r->is_being_written = false;
        if (s != STATUS_OK && !stays)
            count_result(&store->health.dropped, r, 1);
        if (!stays)
            remove_record(store, &store->queue.first, NULL);
        pthread_mutex_unlock(&store->state_mutex);
        if (stays)
            return err_set(err, s, "%s", why.text);
    }
    return STATUS_OK;
}

bool store_queue_find(struct store *store, const char *uuid, const char *id,
                      struct fingerprint *out)
{
    const struct fingerprint *found = NULL;

    pthread_mutex_lock(&store->state_mutex);
    for (const struct queued_record *r = store->queue.first; r; r = r->next) {
        const struct finished *const f = r->finished;

        if (r->kind != RECORD_FINISHED || strcmp(r->run->gpu.uuid, uuid) != 0)
            continue;
        if (!id || strcmp(f->known_id, id) == 0)
            found = &f->known;
        if (id && strcmp(f->measured_id, id) == 0)
            found = &f->measured;
    }
    if (found && out)
        *out = *found;
    pthread_mutex_unlock(&store->state_mutex);
    return found != NULL;
}

void store_queue_set_limit(struct store *store, size_t bytes)
{
    store->queue.limit_bytes = bytes;
}

void store_queue_free(struct store *store)
{
    const struct store_health *const h = &store->health;

    if (store->queue.first)
        log_error("state file: %" PRIu64 " fingerprints and %" PRIu64
                  " observations are not stored: %s; these results will be lost when reachd exits",
                  h->unwritten.fingerprints, h->unwritten.observations, h->last_error.text);
    while (store->queue.first)
        remove_record(store, &store->queue.first, NULL);
}
