/* store_runs.c: writes rows. Each function is one transaction, which is durable when the function
 * returns. */
#include "store/store_state.h"

#include "base/hash.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "fingerprint/fingerprint_check.h"
#include "fingerprint/fingerprint_json.h"
#include "store/store_rows.h"
#include "store/store_sql.h"

#include <stdlib.h>
#include <string.h>

/* The text of a document for one row. */
struct document {
    char *text; /* owned */
    uint64_t hash;
};

/* Takes ownership of a text with a line feed at its end. The caller frees `out->text`. */
static enum status complete(char *take, size_t bytes, const char *what, struct document *out,
                            struct err *err)
{
    out->text = take;
    if (!out->text)
        return err_set(err, STATUS_NO_MEMORY,
                       "cannot write %s as JSON: out of memory, or a size of 2^63 or more", what);
    out->text[bytes - 1] = '\0'; /* rows have no line feed */
    out->hash = hash_bytes(HASH_START, out->text, bytes - 1);
    return STATUS_OK;
}

/* Ends `t`. The caller frees `out->text`. */
static enum status render(struct json_writer *t, const char *what, struct document *out,
                          struct err *err)
{
    size_t bytes = 0;
    char *const text = json_writer_end(t, &bytes);

    return complete(text, bytes, what, out, err);
}

/* Inserts a row. The transaction has begun. */
static enum status insert_run(struct store *store, const struct gpu_identity *gpu, enum depth depth,
                              int64_t started_at, const struct document *document, int64_t *out_run,
                              struct err *err)
{
    sqlite3 *const db = store->writing.db;
    enum status s;

    s = store_sql_run(db,
                      "INSERT INTO run (uuid, depth, started_at, document_hash, document, row_hash)"
                      " VALUES (?1, ?2, ?3, ?4, ?5, reach_row_hash(?1, ?2, ?3, ?4))",
                      SQL_VALUES(SQL_TEXT(gpu->uuid), SQL_TEXT(depth_name(depth)),
                                 SQL_INT(started_at), SQL_INT(document->hash),
                                 SQL_TEXT(document->text)),
                      NULL, err);
    *out_run = store->last_run = sqlite3_last_insert_rowid(db);
    if (store->first_run == 0)
        store->first_run = *out_run;
    if (s == STATUS_OK)
        s = store_sql_run(db, "UPDATE run SET checksum = " RUN_CHECKSUM " WHERE id = ?1",
                          SQL_VALUES(SQL_INT(*out_run)), NULL, err);
    return s;
}

enum status store_begin_run(struct store *store, const struct gpu_identity *gpu,
                            const struct gpu_limits *limits, enum depth depth, int64_t started_at,
                            int64_t *out_run, struct err *err)
{
    struct document document;
    struct json_writer t;
    int64_t run = 0;
    enum status s;

    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    identity_json_write(&t, "gpu", gpu);
    gpu_limits_write(&t, "limits", limits);
    json_writer_close(&t, '}');
    s = render(&t, "the GPU", &document, err);
    if (s == STATUS_OK)
        s = store_write_begin(store, err);
    if (s == STATUS_OK) {
        s = insert_run(store, gpu, depth, started_at, &document, &run, err);
        s = store_write_end(store, s, err);
    }
    if (s == STATUS_OK)
        *out_run = run;
    free(document.text);
    return s;
}

/* Returns STATUS_OK if the run exists and has not ended. If `uuid` is not NULL, it gets the UUID of
 * the GPU. */
static enum status check_running(sqlite3 *db, int64_t run, char *uuid, size_t uuid_size,
                                 struct err *err)
{
    sqlite3_stmt *stmt;
    bool row;
    enum status s;

    s = store_sql_first(db,
                        "SELECT state, uuid, checksum = " RUN_CHECKSUM " FROM run WHERE id = ?1",
                        SQL_VALUES(SQL_INT(run)), &stmt, &row, err);
    if (s == STATUS_OK && !row)
        s = err_set(err, STATUS_NOT_FOUND, "there is no run %lld", (long long)run);
    if (s == STATUS_OK && sqlite3_column_int(stmt, 2) != 1)
        s = err_set(err, STATUS_CORRUPT, "run %lld fails its check", (long long)run);
    if (s == STATUS_OK && strcmp(store_sql_text(stmt, 0), "running") != 0)
        s = err_set(err, STATUS_CONFLICT, "run %lld has ended (%s)", (long long)run,
                    store_sql_text(stmt, 0));
    if (s == STATUS_OK && uuid)
        (void)snprintf(uuid, uuid_size, "%s", store_sql_text(stmt, 1));
    sqlite3_finalize(stmt);
    return s;
}

static enum status insert_observation(sqlite3 *db, int64_t run, const struct store_document *d,
                                      int64_t *out_id, struct err *err)
{
    enum status s = check_running(db, run, NULL, 0, err);

    if (s == STATUS_OK)
        s = store_sql_run(
            db,
            "INSERT INTO observation (run, kind, started_at, duration_ns, value_count, verdict, "
            "document_hash, document, row_hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
            "reach_row_hash(?1, ?2, ?3, ?4, ?5, nullif(?6, 'clean'), ?7))",
            SQL_VALUES(SQL_INT(run), SQL_TEXT(probe_kind_name(d->kind)), SQL_INT(d->started_at),
                       SQL_INT(d->duration_ns), SQL_INT(d->value_count),
                       SQL_TEXT(verdict_name(d->verdict)), SQL_INT(d->hash), SQL_TEXT(d->text)),
            NULL, err);
    *out_id = sqlite3_last_insert_rowid(db);
    if (s == STATUS_OK)
        s = store_sql_run(
            db, "UPDATE observation SET checksum = " OBSERVATION_CHECKSUM " WHERE id = ?1",
            SQL_VALUES(SQL_INT(*out_id)), NULL, err);
    return s;
}

enum status store_document_render(const struct observation *o, struct store_document *out,
                                  struct err *err)
{
    struct document document = {.text = NULL};
    size_t bytes = 0;
    char *const text = observation_to_text(o, &bytes);
    const enum status s = complete(text, bytes, "the observation", &document, err);

    *out = (struct store_document){.kind = o->spec.kind,
                                   .started_at = o->result.conditions.started_at,
                                   .duration_ns = o->result.conditions.duration_ns,
                                   .value_count = o->result.value_count,
                                   .verdict = o->assessment.verdict,
                                   .text = document.text,
                                   .text_bytes = bytes,
                                   .hash = document.hash};
    return s;
}

enum status store_add_document(struct store *store, int64_t run, const struct store_document *d,
                               int64_t *out_id, struct err *err)
{
    int64_t id = 0;
    enum status s = store_write_begin(store, err);

    if (s == STATUS_OK) {
        s = insert_observation(store->writing.db, run, d, &id, err);
        s = store_write_end(store, s, err);
    }
    if (s == STATUS_OK && out_id)
        *out_id = id;
    return s;
}

enum status store_add_observation(struct store *store, int64_t run, const struct observation *o,
                                  int64_t *out_id, struct err *err)
{
    struct store_document d;
    enum status s = store_document_render(o, &d, err);

    if (s == STATUS_OK)
        s = store_add_document(store, run, &d, out_id, err);
    free(d.text);
    return s;
}

/* A fingerprint that is ready for a table. */
struct rendered {
    const struct fingerprint *fp;
    char id[FINGERPRINT_ID_BYTES];
    struct document document;
};

static enum status render_fingerprint(const struct fingerprint *fp, struct rendered *out,
                                      struct err *err)
{
    enum status s = fingerprint_check(fp, err);
    struct json_writer t;

    if (s == STATUS_OK)
        s = fingerprint_id(fp, out->id, err);
    if (s != STATUS_OK)
        return s;
    out->fp = fp;
    json_writer_begin(&t, 0);
    fingerprint_write(&t, NULL, fp, out->id);
    return render(&t, "the fingerprint", &out->document, err);
}

#define ROW_HASH "reach_row_hash(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"

static const char insert_measured[] =
    "INSERT INTO fingerprint (run, uuid, id, depth, origin, taken_at, duration_ms, document_hash, "
    "document, row_hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, " ROW_HASH ")";

static const char insert_served[] =
    "INSERT INTO knowledge (number, run, uuid, id, depth, origin, taken_at, duration_ms, "
    "document_hash, document, row_hash, checksum) "
    "SELECT next, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, " ROW_HASH ", "
    "reach_checksum(next, " ROW_HASH ") "
    "FROM (SELECT coalesce(max(number), 0) + 1 AS next FROM knowledge)";

/* Drops documents that are copies of the fingerprint of their run. The two newest runs of a GPU
 * keep them. */
static const char drop_copies[] =
    "UPDATE knowledge SET document = NULL WHERE uuid = ?1 AND document IS NOT NULL AND run NOT IN "
    "(SELECT DISTINCT run FROM knowledge WHERE uuid = ?1 ORDER BY run DESC LIMIT 2) AND EXISTS "
    "(SELECT 1 FROM fingerprint f WHERE f.run = knowledge.run AND f.id = knowledge.id "
    "AND f.document_hash = knowledge.document_hash)";

static enum status insert_fingerprint(sqlite3 *db, const char *statement, int64_t run,
                                      const struct rendered *r, struct err *err)
{
    const struct fingerprint *const fp = r->fp;

    return store_sql_run(db, statement,
                         SQL_VALUES(SQL_INT(run), SQL_TEXT(fp->gpu.uuid), SQL_TEXT(r->id),
                                    SQL_TEXT(depth_name(fp->depth)),
                                    SQL_TEXT(origin_name(fp->gpu.origin)), SQL_INT(fp->taken_at),
                                    SQL_INT(fp->duration_ms), SQL_INT(r->document.hash),
                                    SQL_TEXT(r->document.text)),
                         NULL, err);
}

/* Ends a run; `why` is NULL if it succeeded. The transaction has begun, and the run has not
 * ended. */
static enum status end_run(sqlite3 *db, int64_t run, const struct err *why, struct err *err)
{
    const struct sql_value values[] = {
        SQL_INT(run), SQL_INT(clock_wall_seconds()), SQL_TEXT(why ? "failed" : "done"),
        SQL_TEXT(why ? status_info(why->status)->slug : NULL), SQL_TEXT(why ? why->text : NULL)};

    return store_sql_run(
        db,
        "UPDATE run SET ended_at = ?2, state = ?3, failure = ?4, failure_text = ?5,"
        " checksum = reach_checksum(id, row_hash, ?3, ?2, ?4, ?5) WHERE id = ?1",
        values, why ? 5 : 3, NULL, err);
}

static enum status finish(sqlite3 *db, int64_t run, const struct rendered *measured,
                          const struct rendered *known, struct err *err)
{
    const char *const uuid = measured->fp->gpu.uuid;
    char of_run[sizeof(measured->fp->gpu.uuid)] = "";
    enum status s;

    s = check_running(db, run, of_run, sizeof(of_run), err);
    if (s == STATUS_OK && strcmp(of_run, uuid) != 0)
        s = err_set(err, STATUS_INVALID_ARGUMENT,
                    "the fingerprint is for %s, but run %lld is for %s", uuid, (long long)run,
                    of_run);
    if (s == STATUS_OK)
        s = insert_fingerprint(db, insert_measured, run, measured, err);
    if (s == STATUS_OK)
        s = insert_fingerprint(db, insert_served, run, known, err);
    if (s == STATUS_OK)
        s = store_sql_run(db, drop_copies, SQL_VALUES(SQL_TEXT(uuid)), NULL, err);
    return s == STATUS_OK ? end_run(db, run, NULL, err) : s;
}

/* Ends the transaction that has ended a run. Rows may now be beyond the limits. */
static enum status end_and_prune(struct store *store, enum status s, struct err *err)
{
    s = store_write_end(store, s, err);
    if (s == STATUS_OK) {
        pthread_mutex_lock(&store->state_mutex);
        store->work.prune = true;
        pthread_cond_broadcast(&store->wake);
        pthread_mutex_unlock(&store->state_mutex);
    }
    return s;
}

enum status store_finish_run(struct store *store, int64_t run, const struct fingerprint *measured,
                             const struct fingerprint *known, struct err *err)
{
    struct rendered as_measured = {.fp = NULL}, as_known = {.fp = NULL};
    enum status s;

    if (strcmp(measured->gpu.uuid, known->gpu.uuid) != 0)
        return err_set(err, STATUS_INVALID_ARGUMENT, "the stored result is for %s, not for %s",
                       known->gpu.uuid, measured->gpu.uuid);
    s = render_fingerprint(measured, &as_measured, err);
    if (s == STATUS_OK)
        s = render_fingerprint(known, &as_known, err);
    if (s == STATUS_OK)
        s = store_write_begin(store, err);
    if (s == STATUS_OK) {
        s = finish(store->writing.db, run, &as_measured, &as_known, err);
        s = end_and_prune(store, s, err);
    }
    free(as_measured.document.text);
    free(as_known.document.text);
    return s;
}

enum status store_add_served(struct store *store, int64_t run, const struct fingerprint *served,
                             struct err *err)
{
    struct rendered r = {.fp = NULL};
    enum status s = render_fingerprint(served, &r, err);

    if (s == STATUS_OK)
        s = store_write_begin(store, err);
    if (s == STATUS_OK) {
        s = insert_fingerprint(store->writing.db, insert_served, run, &r, err);
        s = store_write_end(store, s, err);
    }
    free(r.document.text);
    return s;
}

enum status store_fail_run(struct store *store, int64_t run, const struct err *why, struct err *err)
{
    enum status s = store_write_begin(store, err);

    if (s != STATUS_OK)
        return s;
    s = check_running(store->writing.db, run, NULL, 0, err);
    if (s == STATUS_OK)
        s = end_run(store->writing.db, run, why, err);
    return end_and_prune(store, s, err);
}

enum status store_end_interrupted_runs(struct store *store, struct err *err)
{
    static const char sql[] =
        "UPDATE run SET ended_at = ?1, state = 'failed', failure = ?2, failure_text = ?3, "
        "checksum = reach_checksum(id, row_hash, 'failed', ?1, ?2, ?3) "
        "WHERE state = 'running' AND (?4 = 0 OR id < ?4) AND checksum = " RUN_CHECKSUM;
    const enum status s = store_sql_run(
        store->writing.db, sql,
        SQL_VALUES(SQL_INT(clock_wall_seconds()), SQL_TEXT(status_info(STATUS_CANCELLED)->slug),
                   SQL_TEXT("the daemon ended before the measurement did"),
                   SQL_INT(store->first_run)),
        NULL, err);

    store->runs_interrupted = s != STATUS_OK;
    return s;
}

void store_end_interrupted_at_open(struct store *store)
{
    struct err err = {0};
    const enum status s = store_end_interrupted_runs(store, &err);

    if (s == STATUS_OK)
        return;
    log_warning("state file: cannot yet end an interrupted run: %s", err.text);
    pthread_mutex_lock(&store->state_mutex);
    if (store_is_write_error(s))
        store_note_error(store, s, &err);
    pthread_mutex_unlock(&store->state_mutex);
}
