/* store_runs.c: what is written. Each function is one transaction, durable when it returns. */
#include "store/store_private.h"

#include "base/clock.h"
#include "base/json_builder.h"
#include "base/log.h"
#include "store/store_rows.h"
#include "store/store_sql.h"

#include <stdlib.h>
#include <string.h>

/* Text of a document that is made for it; NULL without memory. The caller frees it. */
static char *render(json_t *take)
{
    size_t bytes = 0;
    char *text = json_render(take, &bytes);

    json_decref(take);
    if (text)
        text[bytes - 1] = '\0'; /* rows need no line feed */
    return text;
}

static enum status document_failed(const char *what, struct err *err)
{
    return err_set(err, STATUS_NO_MEMORY,
                   "%s cannot be written as JSON (no memory, or a size of "
                   "2^63 and above)",
                   what);
}

#define CHECKSUM_RUN                                                                               \
    "UPDATE run SET checksum = reach_checksum(id, row_hash, state, ended_at, failure, "            \
    "failure_text) "                                                                               \
    "WHERE id = ?"

/* In the transaction that has changed the run. */
static enum status checksum_run(sqlite3 *db, int64_t run, struct err *err)
{
    return store_sql_run(db, CHECKSUM_RUN, SQL_VALUES(SQL_INT(run)), NULL, err);
}

static enum status insert_run(struct store *store, const struct store_run_row *row,
                              const char *text, int64_t *out_run, struct err *err)
{
    const uint64_t hash = store_rows_document(text, strlen(text));
    sqlite3 *const db = store->writing.db;
    int64_t run = 0;
    enum status s = store_sql_begin(db, err);

    if (s != STATUS_OK)
        return s;
    s = store_sql_run(
        db,
        "INSERT INTO run (uuid, depth, started_at, document, document_hash, row_hash) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        SQL_VALUES(SQL_TEXT(row->uuid), SQL_TEXT(row->depth), SQL_INT(row->started_at),
                   SQL_TEXT(text), SQL_INT(hash), SQL_INT(store_rows_run(row, hash))),
        NULL, err);
    run = sqlite3_last_insert_rowid(db);
    if (s == STATUS_OK)
        s = checksum_run(db, run, err);
    s = store_sql_end(db, s, err);
    if (s == STATUS_OK)
        *out_run = store->last_run = run;
    return s;
}

enum status store_begin_run(struct store *store, const struct gpu_identity *gpu,
                            const struct gpu_limits *limits, enum depth depth, int64_t started_at,
                            int64_t *out_run, struct err *err)
{
    const struct store_run_row row = {
        .uuid = gpu->uuid, .depth = depth_name(depth), .started_at = started_at};
    struct json_builder o;
    enum status s;
    char *text;

    json_builder_begin(&o);
    json_builder_value(&o, "gpu", gpu_identity_to_json(gpu));
    json_builder_value(&o, "limits", gpu_limits_to_json(limits));
    text = render(json_builder_end(&o));
    if (!text)
        return document_failed("the GPU", err);
    s = store_write_begin(store, err);
    if (s == STATUS_OK)
        s = store_write_end(store, insert_run(store, &row, text, out_run, err), err);
    free(text);
    return s;
}

/* Is there such a run, and does it go on? Fills `uuid` (of its GPU) where it is not NULL. */
static enum status check_running(sqlite3 *db, int64_t run, char *uuid, size_t uuid_size,
                                 struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    enum status s;

    s = store_sql_query(
        db,
        "SELECT state, uuid, checksum = reach_checksum(id, row_hash, state, ended_at, "
        "failure, failure_text) FROM run WHERE id = ?",
        SQL_VALUES(SQL_INT(run)), &stmt, err);
    if (s == STATUS_OK)
        s = store_sql_next(stmt, &row, err);
    if (s == STATUS_OK && !row)
        s = err_set(err, STATUS_NOT_FOUND, "there is no run %lld", (long long)run);
    if (s == STATUS_OK && sqlite3_column_int(stmt, 2) != 1)
        s = err_set(err, STATUS_CORRUPT, "run %lld fails its check", (long long)run);
    if (s == STATUS_OK && strcmp((const char *)sqlite3_column_text(stmt, 0), "running") != 0)
        s = err_set(err, STATUS_CONFLICT, "run %lld has ended (%s)", (long long)run,
                    (const char *)sqlite3_column_text(stmt, 0));
    if (s == STATUS_OK && uuid)
        (void)snprintf(uuid, uuid_size, "%s", (const char *)sqlite3_column_text(stmt, 1));
    sqlite3_finalize(stmt);
    return s;
}

static enum status insert_observation(sqlite3 *db, const struct store_observation_row *row,
                                      const char *text, struct err *err)
{
    const uint64_t hash = store_rows_document(text, strlen(text));

    return store_sql_run(db,
                         "INSERT INTO observation (run, kind, started_at, duration_ns, "
                         "value_count, verdict, document, document_hash, row_hash) "
                         "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         SQL_VALUES(SQL_INT(row->run), SQL_TEXT(probe_kind_name(row->kind)),
                                    SQL_INT(row->started_at), SQL_INT(row->duration_ns),
                                    SQL_INT(row->value_count), SQL_TEXT(verdict_name(row->verdict)),
                                    SQL_TEXT(text), SQL_INT(hash),
                                    SQL_INT(store_rows_observation(row, hash))),
                         NULL, err);
}

/* One transaction: the run must go on. */
static enum status append(sqlite3 *db, const struct store_observation_row *row, const char *text,
                          int64_t *out_id, struct err *err)
{
    enum status s = store_sql_begin(db, err);

    if (s != STATUS_OK)
        return s;
    s = check_running(db, row->run, NULL, 0, err);
    if (s == STATUS_OK)
        s = insert_observation(db, row, text, err);
    *out_id = sqlite3_last_insert_rowid(db);
    if (s == STATUS_OK)
        s = store_sql_run(
            db, "UPDATE observation SET checksum = reach_checksum(id, row_hash) WHERE id = ?",
            SQL_VALUES(SQL_INT(*out_id)), NULL, err);
    return store_sql_end(db, s, err);
}

enum status store_add_observation(struct store *store, int64_t run, const struct observation *o,
                                  int64_t *out_id, struct err *err)
{
    const struct store_observation_row row = {.run = run,
                                              .kind = o->spec.kind,
                                              .started_at = o->result.conditions.started_at,
                                              .duration_ns = o->result.conditions.duration_ns,
                                              .value_count = o->result.value_count,
                                              .verdict = o->assessment.verdict};
    char *const text = render(observation_to_json(o));
    int64_t id = 0;
    enum status s;

    if (!text)
        return document_failed("the observation", err);
    s = store_write_begin(store, err);
    if (s == STATUS_OK)
        s = store_write_end(store, append(store->writing.db, &row, text, &id, err), err);
    if (s == STATUS_OK && out_id)
        *out_id = id;
    free(text);
    return s;
}

/* A fingerprint on its way into a table. */
struct fingerprint_text {
    struct store_fingerprint_row row;
    char *text; /* owned */
};

#define FINGERPRINT_COLUMNS                                                                        \
    "(run, uuid, id, depth, origin, taken_at, duration_ms, document, document_hash, row_hash) "    \
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
static const char insert_measured[] = "INSERT INTO fingerprint " FINGERPRINT_COLUMNS;
static const char insert_known[] = "INSERT INTO knowledge " FINGERPRINT_COLUMNS;
static const char delete_known_before[] =
    "DELETE FROM knowledge WHERE uuid = ?1 AND run NOT IN "
    "(SELECT run FROM knowledge WHERE uuid = ?1 ORDER BY run DESC LIMIT 2)";

static enum status insert_fingerprint(sqlite3 *db, const char *statement,
                                      const struct fingerprint_text *fp, const char *uuid,
                                      struct err *err)
{
    const struct store_fingerprint_row *const row = &fp->row;
    const char *const text = fp->text;
    const uint64_t hash = store_rows_document(text, strlen(text));

    return store_sql_run(db, statement,
                         SQL_VALUES(SQL_INT(row->run), SQL_TEXT(uuid), SQL_TEXT(row->id),
                                    SQL_TEXT(depth_name(row->depth)),
                                    SQL_TEXT(origin_name(row->origin)), SQL_INT(row->taken_at),
                                    SQL_INT(row->duration_ms), SQL_TEXT(text), SQL_INT(hash),
                                    SQL_INT(store_rows_fingerprint(row, uuid, hash))),
                         NULL, err);
}

/* Inside a transaction: the run must go on and be of this GPU. */
static enum status finish(sqlite3 *db, const struct fingerprint_text *measured,
                          const struct fingerprint_text *known, const char *uuid, struct err *err)
{
    char of_run[sizeof(((struct gpu_identity *)0)->uuid)] = "";
    const int64_t run = measured->row.run;
    enum status s;

    s = check_running(db, run, of_run, sizeof(of_run), err);
    if (s == STATUS_OK && strcmp(of_run, uuid) != 0)
        s = err_set(err, STATUS_INVALID_ARGUMENT, "the fingerprint is of %s, run %lld of %s", uuid,
                    (long long)run, of_run);
    if (s == STATUS_OK)
        s = insert_fingerprint(db, insert_measured, measured, uuid, err);
    if (s == STATUS_OK)
        s = insert_fingerprint(db, insert_known, known, uuid, err);
    if (s == STATUS_OK)
        s = store_sql_run(db, delete_known_before, SQL_VALUES(SQL_TEXT(uuid)), NULL, err);
    if (s == STATUS_OK)
        s = store_sql_run(db, "UPDATE run SET state = 'done', ended_at = ? WHERE id = ?",
                          SQL_VALUES(SQL_INT(clock_wall_seconds()), SQL_INT(run)), NULL, err);
    return s == STATUS_OK ? checksum_run(db, run, err) : s;
}

/* A run has ended: something may be beyond the limits. */
static void ask_for_pruning(struct store *store)
{
    pthread_mutex_lock(&store->state_mutex);
    store->work.prune = true;
    pthread_cond_broadcast(&store->wake);
    pthread_mutex_unlock(&store->state_mutex);
}

static enum status render_fingerprint(int64_t run, const struct fingerprint *fp,
                                      struct fingerprint_text *out, struct err *err)
{
    enum status s = fingerprint_check(fp, err);
    json_t *json;

    if (s != STATUS_OK)
        return s;
    out->row = (struct store_fingerprint_row){.run = run,
                                              .depth = fp->depth,
                                              .origin = fp->gpu.origin,
                                              .taken_at = fp->taken_at,
                                              .duration_ms = fp->duration_ms};
    json = fingerprint_to_json(fp);
    (void)snprintf(out->row.id, sizeof(out->row.id), "%s",
                   json ? json_string_value(json_object_get(json, "id")) : "");
    out->text = render(json);
    return out->text ? STATUS_OK : document_failed("the fingerprint", err);
}

/* One transaction. */
static enum status write_finish(struct store *store, const struct fingerprint_text *measured,
                                const struct fingerprint_text *known, const char *uuid,
                                struct err *err)
{
    enum status s = store_write_begin(store, err);
    sqlite3 *db;

    if (s != STATUS_OK)
        return s;
    db = store->writing.db;
    s = store_sql_begin(db, err);
    if (s == STATUS_OK)
        s = store_sql_end(db, finish(db, measured, known, uuid, err), err);
    (void)sqlite3_db_release_memory(db); /* the next write may be days away */
    return store_write_end(store, s, err);
}

enum status store_finish_run(struct store *store, int64_t run, const struct fingerprint *measured,
                             const struct fingerprint *known, struct err *err)
{
    struct fingerprint_text as_measured = {.text = NULL}, as_known = {.text = NULL};
    enum status s;

    if (strcmp(measured->gpu.uuid, known->gpu.uuid) != 0)
        return err_set(err, STATUS_INVALID_ARGUMENT, "what is known is of %s, not of %s",
                       known->gpu.uuid, measured->gpu.uuid);
    s = render_fingerprint(run, measured, &as_measured, err);
    if (s == STATUS_OK)
        s = render_fingerprint(run, known, &as_known, err);
    if (s == STATUS_OK)
        s = write_finish(store, &as_measured, &as_known, measured->gpu.uuid, err);
    if (s == STATUS_OK)
        ask_for_pruning(store);
    free(as_measured.text);
    free(as_known.text);
    return s;
}

static enum status fail_run(sqlite3 *db, int64_t run, const struct err *why, struct err *err)
{
    enum status s = store_sql_begin(db, err);

    if (s != STATUS_OK)
        return s;
    s = check_running(db, run, NULL, 0, err);
    if (s == STATUS_OK)
        s = store_sql_run(db,
                          "UPDATE run SET state = 'failed', ended_at = ?, failure = ?, "
                          "failure_text = ? WHERE id = ?",
                          SQL_VALUES(SQL_INT(clock_wall_seconds()),
                                     SQL_TEXT(status_info(why->status)->slug), SQL_TEXT(why->text),
                                     SQL_INT(run)),
                          NULL, err);
    if (s == STATUS_OK)
        s = checksum_run(db, run, err);
    return store_sql_end(db, s, err);
}

enum status store_fail_run(struct store *store, int64_t run, const struct err *why, struct err *err)
{
    enum status s = store_write_begin(store, err);

    if (s != STATUS_OK)
        return s;
    s = fail_run(store->writing.db, run, why, err);
    (void)sqlite3_db_release_memory(store->writing.db);
    s = store_write_end(store, s, err);
    if (s == STATUS_OK)
        ask_for_pruning(store);
    return s;
}

void store_end_interrupted_runs(struct store *store)
{
    static const struct err why = {.status = STATUS_CANCELLED,
                                   .text = "the daemon ended before the measurement did"};
    struct err err = {0};
    int64_t run = 0;
    enum status s = STATUS_OK;

    while (s == STATUS_OK) {
        s = store_sql_number(store->writing.db,
                             "SELECT max(id) FROM run WHERE state = 'running' AND "
                             "checksum = reach_checksum(id, row_hash, state, ended_at, failure, "
                             "failure_text)",
                             &run, &err);
        if (s != STATUS_OK || run == 0)
            break;
        s = fail_run(store->writing.db, run, &why, &err);
    }
    if (s != STATUS_OK)
        log_warning("state file: a run that was cut short stays open: %s", err.text);
}
