/* store_read.c: what is read. A row counts only if its hashes agree and its document decodes; one
 * that does not is logged and passed over. The layer above measures again; it never sees a number
 * that was not written.
 *
 * Every row is looked at while its statement stands on it and copied out; no statement outlives its
 * function, because an open one would keep the log from being checkpointed.
 */
#include "store/store_private.h"

#include "base/json_reader.h"
#include "base/json_load.h"
#include "base/log.h"
#include "store/store_rows.h"
#include "store/store_sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns come in this order in every query below, so that one reader fits all. */
#define FINGERPRINT_COLUMNS                                                                        \
    "run, uuid, id, depth, origin, taken_at, duration_ms, document_hash, row_hash"
#define OBSERVATION_COLUMNS                                                                        \
    "o.id, o.run, o.kind, o.started_at, o.duration_ns, o.value_count, o.document_hash, "           \
    "o.row_hash, o.verdict, o.checksum = reach_checksum(o.id, o.row_hash)"

/* The column behind them. */
enum { FINGERPRINT_DOCUMENT = 9, OBSERVATION_DOCUMENT = 10 };

static const char *text_column(sqlite3_stmt *stmt, int column)
{
    const char *const text = (const char *)sqlite3_column_text(stmt, column);

    return text ? text : ""; /* no memory: no hash agrees with it */
}

static bool document_agrees(sqlite3_stmt *stmt, int column, uint64_t hash)
{
    const char *const text = text_column(stmt, column);

    return store_rows_document(text, (size_t)sqlite3_column_bytes(stmt, column)) == hash;
}

/* The column's text as JSON; NULL where it is none, or `*out_why` says that memory has ended. */
static json_t *parse_column(sqlite3_stmt *stmt, int column, struct err *out_why)
{
    const char *const text = text_column(stmt, column);
    json_t *json = json_load_whole(text, (size_t)sqlite3_column_bytes(stmt, column), NULL);

    if (!json && json_load_was_short())
        err_set(out_why, STATUS_NO_MEMORY, "no memory to read a document of the state file");
    return json;
}

/* False: the row is corrupt, and `*corrupt` says so. Likewise below. */
static bool fingerprint_row(sqlite3_stmt *stmt, struct store_fingerprint_row *out, bool *corrupt)
{
    const uint64_t document_hash = (uint64_t)sqlite3_column_int64(stmt, 7);
    const uint64_t row_hash = (uint64_t)sqlite3_column_int64(stmt, 8);

    *out = (struct store_fingerprint_row){.run = sqlite3_column_int64(stmt, 0),
                                          .taken_at = sqlite3_column_int64(stmt, 5),
                                          .duration_ms = (uint32_t)sqlite3_column_int64(stmt, 6)};
    (void)snprintf(out->id, sizeof(out->id), "%s", text_column(stmt, 2));
    if (depth_from_name(text_column(stmt, 3), &out->depth) &&
        origin_from_name(text_column(stmt, 4), &out->origin) &&
        store_rows_fingerprint(out, text_column(stmt, 1), document_hash) == row_hash)
        return true;
    log_warning("state file: the fingerprint of run %lld fails its check and is skipped",
                (long long)out->run);
    *corrupt = true;
    return false;
}

static bool observation_row(sqlite3_stmt *stmt, struct store_observation_row *out, bool *corrupt)
{
    const uint64_t document_hash = (uint64_t)sqlite3_column_int64(stmt, 6);
    const uint64_t row_hash = (uint64_t)sqlite3_column_int64(stmt, 7);

    *out = (struct store_observation_row){.id = sqlite3_column_int64(stmt, 0),
                                          .run = sqlite3_column_int64(stmt, 1),
                                          .started_at = sqlite3_column_int64(stmt, 3),
                                          .duration_ns = (nsec_t)sqlite3_column_int64(stmt, 4),
                                          .value_count = (uint64_t)sqlite3_column_int64(stmt, 5)};
    if (probe_kind_from_name(text_column(stmt, 2), &out->kind) &&
        verdict_from_name(text_column(stmt, 8), &out->verdict) &&
        sqlite3_column_int(stmt, 9) == 1 && store_rows_observation(out, document_hash) == row_hash)
        return true;
    log_warning("state file: observation %lld fails its check and is skipped", (long long)out->id);
    *corrupt = true;
    return false;
}

/* The document behind a fingerprint's columns; `*out_good` is false if it is corrupt, which the
 * log is told. STATUS_NO_MEMORY: it may be good. */
static enum status fingerprint_document(sqlite3_stmt *stmt, const struct store_fingerprint_row *row,
                                        struct fingerprint *out, bool *out_good, bool *corrupt,
                                        struct err *err)
{
    struct err why = {0};
    json_t *json = NULL;
    bool good;

    *out_good = false;

    if (!document_agrees(stmt, FINGERPRINT_DOCUMENT, (uint64_t)sqlite3_column_int64(stmt, 7))) {
        err_set(&why, STATUS_CORRUPT, "its document has changed");
        *corrupt = true;
        good = false;
    } else {
        json = parse_column(stmt, FINGERPRINT_DOCUMENT, &why);
        if (why.status)
            return err_set(err, why.status, "%s", why.text);
        good = fingerprint_from_json(json, out, &why) == STATUS_OK;
    }
    if (good && strcmp(out->gpu.uuid, text_column(stmt, 1)) != 0) {
        err_set(&why, STATUS_CORRUPT, "its document is of another GPU");
        good = false;
    }
    if (!good)
        log_warning("state file: the fingerprint of run %lld is skipped: %s", (long long)row->run,
                    why.text);
    json_decref(json);
    *out_good = good;
    return STATUS_OK;
}

/* The first row of the query that is good. */
static enum status first_fingerprint(struct store *store, const char *sql,
                                     const struct sql_value *values, int count,
                                     struct fingerprint *out, struct err *err)
{
    struct store_fingerprint_row row;
    sqlite3_stmt *stmt = NULL;
    bool found = false;
    bool more = false;
    bool corrupt = false;
    enum status s;

    pthread_mutex_lock(&store->reading->mutex);
    s = store_sql_query(store->reading->db, sql, values, count, &stmt, err);
    while (s == STATUS_OK && !found) {
        s = store_sql_next(stmt, &more, err);
        if (s != STATUS_OK || !more)
            break;
        if (fingerprint_row(stmt, &row, &corrupt))
            s = fingerprint_document(stmt, &row, out, &found, &corrupt, err);
    }
    sqlite3_finalize(stmt);
    pthread_mutex_unlock(&store->reading->mutex);
    if (s == STATUS_OK && !found)
        s = STATUS_NOT_FOUND;
    return store_read_end(store, s, corrupt);
}

#define SELECT_FINGERPRINT(table) "SELECT " FINGERPRINT_COLUMNS ", document FROM " table
#define OF_GPU                    " WHERE uuid = ?1 ORDER BY run DESC"
#define OF_GPU_AND_ID             " WHERE uuid = ?1 AND id = ?2 ORDER BY run DESC"

/* The first good row of the first query, or else of the second. */
static enum status first_of_two(struct store *store, const char *first, const char *second,
                                const struct sql_value *values, int count, struct fingerprint *out,
                                struct err *err)
{
    enum status s = first_fingerprint(store, first, values, count, out, err);

    if (s == STATUS_NOT_FOUND)
        s = first_fingerprint(store, second, values, count, out, err);
    return s;
}

enum status store_current_fingerprint(struct store *store, const char *uuid,
                                      struct fingerprint *out, struct err *err)
{
    const enum status s = first_of_two(store, SELECT_FINGERPRINT("knowledge") OF_GPU,
                                       SELECT_FINGERPRINT("fingerprint") OF_GPU,
                                       SQL_VALUES(SQL_TEXT(uuid)), out, err);

    if (s == STATUS_NOT_FOUND)
        return err_set(err, s, "there is no fingerprint of %s yet", uuid);
    return s;
}

enum status store_fingerprint(struct store *store, const char *uuid, const char *id,
                              struct fingerprint *out, struct err *err)
{
    const enum status s = first_of_two(store, SELECT_FINGERPRINT("fingerprint") OF_GPU_AND_ID,
                                       SELECT_FINGERPRINT("knowledge") OF_GPU_AND_ID,
                                       SQL_VALUES(SQL_TEXT(uuid), SQL_TEXT(id)), out, err);

    if (s == STATUS_NOT_FOUND)
        return err_set(err, s, "there is no fingerprint %s of %s", id, uuid);
    return s;
}

enum status store_lacks_fingerprint(struct store *store, const char *uuid, bool *out,
                                    struct err *err)
{
    static const char sql[] =
        "SELECT f = 0 OR damaged_f > f OR damaged_k > k FROM (SELECT "
        "(SELECT coalesce(max(run), 0) FROM fingerprint WHERE uuid = ?1) AS f, "
        "(SELECT coalesce(max(run), 0) FROM knowledge WHERE uuid = ?1) AS k, "
        "(SELECT coalesce(max(run), 0) FROM damage "
        " WHERE uuid = ?1 AND kind IN ('run', 'fingerprint')) AS damaged_f, "
        "(SELECT coalesce(max(run), 0) FROM damage "
        " WHERE uuid = ?1 AND kind = 'knowledge') AS damaged_k)";
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    enum status s;

    *out = false;
    pthread_mutex_lock(&store->reading->mutex);
    s = store_sql_query(store->reading->db, sql, SQL_VALUES(SQL_TEXT(uuid)), &stmt, err);
    if (s == STATUS_OK)
        s = store_sql_next(stmt, &row, err);
    if (s == STATUS_OK && row)
        *out = sqlite3_column_int(stmt, 0) != 0;
    sqlite3_finalize(stmt);
    pthread_mutex_unlock(&store->reading->mutex);
    return store_read_end(store, s, false);
}

/* "Before 0" is the newest; SQL is told so by the largest number there is. */
static int64_t upper_bound(int64_t before)
{
    return before > 0 ? before : INT64_MAX;
}

enum status store_list_fingerprints(struct store *store, const char *uuid, int64_t before,
                                    struct store_fingerprint_row *out, uint32_t max,
                                    uint32_t *out_count, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    bool corrupt = false;
    enum status s;

    *out_count = 0;
    pthread_mutex_lock(&store->reading->mutex);
    s = store_sql_query(store->reading->db,
                        "SELECT " FINGERPRINT_COLUMNS " FROM fingerprint "
                        "WHERE uuid = ? AND run < ? ORDER BY run DESC",
                        SQL_VALUES(SQL_TEXT(uuid), SQL_INT(upper_bound(before))), &stmt, err);
    while (s == STATUS_OK && *out_count < max) {
        s = store_sql_next(stmt, &more, err);
        if (s != STATUS_OK || !more)
            break;
        if (fingerprint_row(stmt, &out[*out_count], &corrupt))
            (*out_count)++;
    }
    sqlite3_finalize(stmt);
    pthread_mutex_unlock(&store->reading->mutex);
    return store_read_end(store, s, corrupt);
}

enum status store_list_observations(struct store *store, const char *uuid, int64_t run,
                                    int64_t before, struct store_observation_row *out, uint32_t max,
                                    uint32_t *out_count, struct err *err)
{
    static const char of_all[] =
        "SELECT " OBSERVATION_COLUMNS " FROM observation o JOIN run r ON r.id = o.run "
        "WHERE r.uuid = ? AND o.id < ? ORDER BY o.id DESC";
    static const char of_one[] =
        "SELECT " OBSERVATION_COLUMNS " FROM observation o JOIN run r ON r.id = o.run "
        "WHERE r.uuid = ? AND o.id < ? AND o.run = ? ORDER BY o.id DESC";
    const struct sql_value values[] = {SQL_TEXT(uuid), SQL_INT(upper_bound(before)), SQL_INT(run)};
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    bool corrupt = false;
    enum status s;

    *out_count = 0;
    pthread_mutex_lock(&store->reading->mutex);
    s = store_sql_query(store->reading->db, run > 0 ? of_one : of_all, values, run > 0 ? 3 : 2,
                        &stmt, err);
    while (s == STATUS_OK && *out_count < max) {
        s = store_sql_next(stmt, &more, err);
        if (s != STATUS_OK || !more)
            break;
        if (observation_row(stmt, &out[*out_count], &corrupt))
            (*out_count)++;
    }
    sqlite3_finalize(stmt);
    pthread_mutex_unlock(&store->reading->mutex);
    return store_read_end(store, s, corrupt);
}

enum status store_observation_json(struct store *store, const char *uuid, int64_t id,
                                   char **out_json, struct err *err)
{
    struct store_observation_row row;
    sqlite3_stmt *stmt = NULL;
    bool found = false;
    bool corrupt = false;
    enum status s;

    *out_json = NULL;
    pthread_mutex_lock(&store->reading->mutex);
    s = store_sql_query(store->reading->db,
                        "SELECT " OBSERVATION_COLUMNS ", o.document FROM observation o "
                        "JOIN run r ON r.id = o.run WHERE r.uuid = ? AND o.id = ?",
                        SQL_VALUES(SQL_TEXT(uuid), SQL_INT(id)), &stmt, err);
    if (s == STATUS_OK)
        s = store_sql_next(stmt, &found, err);
    if (s != STATUS_OK)
        goto out;
    if (!found) {
        s = err_set(err, STATUS_NOT_FOUND, "there is no observation %lld of %s", (long long)id,
                    uuid);
    } else if (!observation_row(stmt, &row, &corrupt) ||
               !document_agrees(stmt, OBSERVATION_DOCUMENT,
                                (uint64_t)sqlite3_column_int64(stmt, 6))) {
        s = err_set(err, STATUS_CORRUPT, "observation %lld fails its check", (long long)id);
    } else {
        *out_json = strdup(text_column(stmt, OBSERVATION_DOCUMENT));
        if (!*out_json)
            s = err_set(err, STATUS_NO_MEMORY, "no memory for observation %lld", (long long)id);
    }
out:
    sqlite3_finalize(stmt);
    pthread_mutex_unlock(&store->reading->mutex);
    return store_read_end(store, s, corrupt);
}

/* Of a run: which GPU, and how far it could be asked to go. */
static enum status run_document(sqlite3_stmt *stmt, int64_t run, struct observation_set *out,
                                struct err *err)
{
    const struct store_run_row row = {.uuid = text_column(stmt, 0),
                                      .depth = text_column(stmt, 1),
                                      .started_at = sqlite3_column_int64(stmt, 2)};
    const uint64_t document_hash = (uint64_t)sqlite3_column_int64(stmt, 3);
    struct err why = {0};
    struct json_reader in;
    json_t *json;
    enum status s;

    if (store_rows_run(&row, document_hash) != (uint64_t)sqlite3_column_int64(stmt, 4) ||
        !document_agrees(stmt, 5, document_hash) || sqlite3_column_int(stmt, 6) != 1)
        return err_set(err, STATUS_CORRUPT, "run %lld fails its check", (long long)run);
    json = parse_column(stmt, 5, &why);
    if (why.status)
        return err_set(err, why.status, "%s", why.text);
    json_reader_begin(&in, json, "", JSON_READER_LENIENT, STATUS_CORRUPT, err);
    json_reader_absorb(&in, gpu_identity_from_json(json_reader_object(&in, "gpu"), &out->gpu, err));
    if (json_reader_ok(&in))
        json_reader_absorb(
            &in, gpu_limits_from_json(json_reader_object(&in, "limits"), &out->limits, err));
    s = json_reader_end(&in);
    json_decref(json);
    return s == STATUS_PROTOCOL
               ? err_set(err, STATUS_CORRUPT, "run %lld: %s", (long long)run, err ? err->text : "")
               : s;
}

static enum status load_run_row(sqlite3 *db, int64_t run, struct observation_set *out,
                                struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool found = false;
    enum status s;

    s = store_sql_query(
        db,
        "SELECT uuid, depth, started_at, document_hash, row_hash, document, "
        "checksum = reach_checksum(id, row_hash, state, ended_at, failure, failure_text) "
        "FROM run WHERE id = ?",
        SQL_VALUES(SQL_INT(run)), &stmt, err);
    if (s == STATUS_OK)
        s = store_sql_next(stmt, &found, err);
    if (s == STATUS_OK)
        s = found ? run_document(stmt, run, out, err)
                  : err_set(err, STATUS_NOT_FOUND, "there is no run %lld", (long long)run);
    sqlite3_finalize(stmt);
    return s;
}

/* Appends the row's observation; one that is corrupt is left out. */
static enum status add_observation(sqlite3_stmt *stmt, struct observation_set *out, bool *corrupt,
                                   struct err *err)
{
    struct store_observation_row row;
    struct observation o = {0};
    struct err why = {0};
    json_t *json = NULL;
    bool good;

    if (!observation_row(stmt, &row, corrupt))
        return STATUS_OK;
    good = document_agrees(stmt, OBSERVATION_DOCUMENT, (uint64_t)sqlite3_column_int64(stmt, 6));
    if (!good) {
        err_set(&why, STATUS_CORRUPT, "its document has changed");
        *corrupt = true;
    } else {
        json = parse_column(stmt, OBSERVATION_DOCUMENT, &why);
        good = !why.status && observation_from_json(json, &o, &why) == STATUS_OK;
    }
    json_decref(json);
    if (good)
        return observation_set_add(out, &o, err);
    if (why.status == STATUS_NO_MEMORY)
        return err_set(err, why.status, "%s", why.text);
    log_warning("state file: observation %lld is skipped: %s", (long long)row.id, why.text);
    return STATUS_OK;
}

enum status store_load_run(struct store *store, int64_t run, struct observation_set *out,
                           struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    bool corrupt = false;
    enum status s;

    *out = (struct observation_set){0};
    pthread_mutex_lock(&store->reading->mutex);
    s = load_run_row(store->reading->db, run, out, err);
    if (s == STATUS_OK)
        s = store_sql_query(store->reading->db,
                            "SELECT " OBSERVATION_COLUMNS ", o.document FROM observation o "
                            "WHERE o.run = ? ORDER BY o.id",
                            SQL_VALUES(SQL_INT(run)), &stmt, err);
    while (s == STATUS_OK) {
        s = store_sql_next(stmt, &more, err);
        if (s != STATUS_OK || !more)
            break;
        s = add_observation(stmt, out, &corrupt, err);
    }
    sqlite3_finalize(stmt);
    (void)sqlite3_db_release_memory(store->reading->db);
    pthread_mutex_unlock(&store->reading->mutex);
    if (s != STATUS_OK)
        observation_set_free(out);
    return store_read_end(store, s, corrupt);
}
