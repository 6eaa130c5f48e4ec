/* store_read.c: reads rows. A row counts only if its checksums match and its document can be
 * decoded. Any other row is logged and skipped, and the layer above measures its GPU again.
 *
 * Rows are copied while their statement is active. No statement outlives its function, because an
 * open statement would prevent a checkpoint of the log.
 */
#include "store/store_state.h"

#include "base/hash.h"
#include "base/json_load.h"
#include "base/json_reader.h"
#include "base/log.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_read.h"
#include "store/store_rows.h"
#include "store/store_sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of one query. */
struct reading {
    void *to;     /* argument of its row function */
    uint32_t max; /* number of elements at `to` */
    uint32_t count;
    bool enough;  /* no more rows are needed */
    bool corrupt; /* a row failed its check */
    struct err *err;
};

/* Reads the current row of the statement. Returns STATUS_OK also for a skipped row. */
typedef enum status read_row(struct reading *r, sqlite3_stmt *stmt);

/* Calls `row` for each row of the query, until it fails or needs no more rows. */
static enum status read_rows(struct store *store, const char *sql, const struct sql_value *values,
                             int count, read_row *row, struct reading *r)
{
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    enum status s;

    pthread_mutex_lock(&store->reading->mutex);
    s = store_sql_query(store->reading->db, sql, values, count, &stmt, r->err);
    while (s == STATUS_OK && !r->enough) {
        s = store_sql_next(stmt, &more, r->err);
        if (s != STATUS_OK || !more)
            break;
        s = row(r, stmt);
    }
    sqlite3_finalize(stmt);
    pthread_mutex_unlock(&store->reading->mutex);
    return store_read_end(store, s, r->corrupt);
}

/* ---- columns ---- */

/* Every query for rows with documents begins with these columns. */
enum { DOCUMENT = 0, DOCUMENT_HASH, IS_GOOD, FIRST_COLUMN };

#define ROW_COLUMNS         ", uuid, run, id, depth, origin, taken_at, duration_ms"
#define FINGERPRINT_COLUMNS "document_hash, " FINGERPRINT_IS_GOOD ROW_COLUMNS
#define KNOWLEDGE_COLUMNS   "document_hash, " KNOWLEDGE_IS_GOOD ROW_COLUMNS
#define OBSERVATION_COLUMNS                                                                        \
    "document_hash, " OBSERVATION_IS_GOOD ", id, run, kind, started_at, duration_ns, "             \
    "value_count, verdict"

static bool document_is_good(sqlite3_stmt *stmt)
{
    const char *const text = store_sql_text(stmt, DOCUMENT);

    return hash_bytes(HASH_START, text, (size_t)sqlite3_column_bytes(stmt, DOCUMENT)) ==
           (uint64_t)sqlite3_column_int64(stmt, DOCUMENT_HASH);
}

/* Returns the document of a row, or NULL if it is corrupt or memory runs out. `*out_why` has the
 * reason. */
static json_t *load_document(sqlite3_stmt *stmt, struct reading *r, struct err *out_why)
{
    const char *const text = store_sql_text(stmt, DOCUMENT);
    json_t *json = NULL;

    if (document_is_good(stmt)) {
        json = json_load_whole(text, (size_t)sqlite3_column_bytes(stmt, DOCUMENT), NULL);
        if (!json && json_load_was_short())
            err_set(out_why, STATUS_NO_MEMORY,
                    "cannot read a document of the state file: out of memory");
        else if (!json)
            err_set(out_why, STATUS_CORRUPT, "the document is not JSON");
    } else {
        r->corrupt = true;
        err_set(out_why, STATUS_CORRUPT, "the document has changed");
    }
    return json;
}

/* Returns false if the row is corrupt. */
static bool fingerprint_row(struct reading *r, sqlite3_stmt *stmt,
                            struct store_fingerprint_row *out)
{
    *out = (struct store_fingerprint_row){
        .run = sqlite3_column_int64(stmt, FIRST_COLUMN + 1),
        .taken_at = sqlite3_column_int64(stmt, FIRST_COLUMN + 5),
        .duration_ms = (uint32_t)sqlite3_column_int64(stmt, FIRST_COLUMN + 6)};
    (void)snprintf(out->id, sizeof(out->id), "%s", store_sql_text(stmt, FIRST_COLUMN + 2));
    if (sqlite3_column_int(stmt, IS_GOOD) == 1 &&
        depth_from_name(store_sql_text(stmt, FIRST_COLUMN + 3), &out->depth) &&
        origin_from_name(store_sql_text(stmt, FIRST_COLUMN + 4), &out->origin))
        return true;
    log_warning("state file: the fingerprint of run %lld fails its check and is skipped",
                (long long)out->run);
    r->corrupt = true;
    return false;
}

static bool observation_row(struct reading *r, sqlite3_stmt *stmt,
                            struct store_observation_row *out)
{
    *out = (struct store_observation_row){
        .id = sqlite3_column_int64(stmt, FIRST_COLUMN),
        .run = sqlite3_column_int64(stmt, FIRST_COLUMN + 1),
        .started_at = sqlite3_column_int64(stmt, FIRST_COLUMN + 3),
        .duration_ns = (nsec_t)sqlite3_column_int64(stmt, FIRST_COLUMN + 4),
        .value_count = (uint64_t)sqlite3_column_int64(stmt, FIRST_COLUMN + 5)};
    if (sqlite3_column_int(stmt, IS_GOOD) == 1 &&
        probe_kind_from_name(store_sql_text(stmt, FIRST_COLUMN + 2), &out->kind) &&
        verdict_from_name(store_sql_text(stmt, FIRST_COLUMN + 6), &out->verdict))
        return true;
    log_warning("state file: observation %lld fails its check and is skipped", (long long)out->id);
    r->corrupt = true;
    return false;
}

/* ---- fingerprints ---- */

/* A fingerprint and its row. */
struct found {
    struct fingerprint *fp;
    struct store_fingerprint_row row;
};

/* Takes the first fingerprint with a valid row and document. */
static enum status read_fingerprint(struct reading *r, sqlite3_stmt *stmt)
{
    struct found *const found = r->to;
    struct fingerprint *const out = found->fp;
    struct store_fingerprint_row row;
    struct err why = {0};
    json_t *json;

    if (!fingerprint_row(r, stmt, &row))
        return STATUS_OK;
    json = load_document(stmt, r, &why);
    if (why.status == STATUS_NO_MEMORY)
        return err_set(r->err, why.status, "%s", why.text);
    r->enough = json && fingerprint_from_json(json, out, &why) == STATUS_OK;
    json_decref(json);
    if (r->enough && strcmp(out->gpu.uuid, store_sql_text(stmt, FIRST_COLUMN)) != 0) {
        err_set(&why, STATUS_CORRUPT, "the document is of another GPU");
        r->enough = false;
    }
    if (r->enough)
        found->row = row;
    else
        log_warning("state file: the fingerprint of run %lld is skipped: %s", (long long)row.run,
                    why.text);
    return STATUS_OK;
}

#define SELECT_MEASURED "SELECT document, " FINGERPRINT_COLUMNS " FROM fingerprint WHERE uuid = ?1 "
#define SELECT_SERVED                                                                              \
    "SELECT coalesce(document, (SELECT f.document FROM fingerprint f "                             \
    "WHERE f.run = knowledge.run AND f.id = knowledge.id)), " KNOWLEDGE_COLUMNS                    \
    " FROM knowledge WHERE uuid = ?1 "
#define NEWEST_FIRST " ORDER BY run DESC, number DESC"

/* Two queries: the second is read only if no row of the first is valid. */
struct queries {
    const char *first;
    const char *second;
};
static const struct queries current = {SELECT_SERVED NEWEST_FIRST,
                                       SELECT_MEASURED "ORDER BY run DESC"};
static const struct queries by_id = {SELECT_MEASURED "AND id = ?2 ORDER BY run DESC",
                                     SELECT_SERVED "AND id = ?2" NEWEST_FIRST};

/* Finds the first valid row. Returns STATUS_NOT_FOUND if there is none. */
static enum status first_of_two(struct store *store, const struct queries *queries,
                                const struct sql_value *values, int count, struct found *out,
                                struct err *err)
{
    struct reading r = {.to = out, .err = err};
    enum status s = read_rows(store, queries->first, values, count, read_fingerprint, &r);

    if (s == STATUS_OK && !r.enough)
        s = read_rows(store, queries->second, values, count, read_fingerprint, &r);
    return s == STATUS_OK && !r.enough ? STATUS_NOT_FOUND : s;
}

static enum status find_current(struct store *store, const char *uuid, struct found *out,
                                struct err *err)
{
    if (store_queue_find(store, uuid, NULL, out->fp))
        return fingerprint_id(out->fp, out->row.id, err);
    const enum status s = first_of_two(store, &current, SQL_VALUES(SQL_TEXT(uuid)), out, err);

    return s == STATUS_NOT_FOUND ? err_set(err, s, "there is no fingerprint of %s yet", uuid) : s;
}

enum status store_current_fingerprint(struct store *store, const char *uuid,
                                      struct fingerprint *out, struct err *err)
{
    return find_current(store, uuid, &(struct found){.fp = out}, err);
}

enum status store_recall(struct store *store, const char *uuid, struct fingerprint *out,
                         char out_id[FINGERPRINT_ID_BYTES], struct err *err)
{
    struct found found = {.fp = out};
    struct err why = {0};
    enum status s = find_current(store, uuid, &found, err);

    s = s == STATUS_OK ? fingerprint_id(out, out_id, err) : s;
    if (s != STATUS_OK || strcmp(out_id, found.row.id) == 0)
        return s;
    fingerprint_set_measurement(out, found.row.id);
    s = fingerprint_id(out, out_id, err);
    if (s != STATUS_OK)
        return s;
    log_info("state file: fingerprint %s of %s was written by another release; its id in this "
             "release is %s",
             found.row.id, uuid, out_id);
    if (store_add_served(store, found.row.run, out, &why) != STATUS_OK)
        log_warning("state file: fingerprint %s cannot be stored: %s", out_id, why.text);
    return STATUS_OK;
}

enum status store_fingerprint(struct store *store, const char *uuid, const char *id,
                              struct fingerprint *out, struct err *err)
{
    if (store_queue_find(store, uuid, id, out))
        return STATUS_OK;
    const enum status s = first_of_two(store, &by_id, SQL_VALUES(SQL_TEXT(uuid), SQL_TEXT(id)),
                                       &(struct found){.fp = out}, err);

    return s == STATUS_NOT_FOUND ? err_set(err, s, "there is no fingerprint %s of %s", id, uuid)
                                 : s;
}

static enum status read_flag(struct reading *r, sqlite3_stmt *stmt)
{
    *(bool *)r->to = sqlite3_column_int(stmt, 0) != 0;
    return STATUS_OK;
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
    struct reading r = {.to = out, .err = err};

    *out = false;
    if (store_queue_find(store, uuid, NULL, NULL))
        return STATUS_OK;
    return read_rows(store, sql, SQL_VALUES(SQL_TEXT(uuid)), read_flag, &r);
}

static enum status read_uuid(struct reading *r, sqlite3_stmt *stmt)
{
    struct gpu_identity *const out = r->to;

    (void)snprintf(out[r->count].uuid, sizeof(out->uuid), "%s", store_sql_text(stmt, 0));
    r->enough = ++r->count == r->max;
    return STATUS_OK;
}

enum status store_list_gpus(struct store *store, struct gpu_identity *out, uint32_t max,
                            uint32_t *out_count, struct err *err)
{
    struct reading r = {.to = out, .max = max, .enough = max == 0, .err = err};
    struct fingerprint *fp = calloc(1, sizeof(*fp));
    enum status s;

    *out_count = 0;
    if (!fp)
        return err_no_memory(err, "a fingerprint");
    s = read_rows(store, "SELECT DISTINCT uuid FROM fingerprint ORDER BY uuid", NULL, 0, read_uuid,
                  &r);
    for (uint32_t i = 0; i < r.count && s == STATUS_OK; i++) {
        s = store_current_fingerprint(store, out[i].uuid, fp, err);
        if (s == STATUS_OK)
            out[(*out_count)++] = fp->gpu;
        else if (s == STATUS_NOT_FOUND) /* all of its rows are corrupt */
            s = STATUS_OK;
    }
    free(fp);
    return s;
}

/* ---- listings ---- */

/* Returns the upper bound of the row numbers of a page. If `before` is 0, the page begins with the
 * newest row, because no row has the largest number. */
static int64_t upper_bound(int64_t before)
{
    return before > 0 ? before : INT64_MAX;
}

static enum status list_fingerprint(struct reading *r, sqlite3_stmt *stmt)
{
    if (fingerprint_row(r, stmt, (struct store_fingerprint_row *)r->to + r->count))
        r->enough = ++r->count == r->max;
    return STATUS_OK;
}

enum status store_list_fingerprints(struct store *store, const char *uuid, int64_t before,
                                    struct store_fingerprint_row *out, uint32_t max,
                                    uint32_t *out_count, struct err *err)
{
    struct reading r = {.to = out, .max = max, .enough = max == 0, .err = err};
    const enum status s =
        read_rows(store,
                  "SELECT NULL, " FINGERPRINT_COLUMNS " FROM fingerprint "
                  "WHERE uuid = ?1 AND run < ?2 ORDER BY run DESC",
                  SQL_VALUES(SQL_TEXT(uuid), SQL_INT(upper_bound(before))), list_fingerprint, &r);

    *out_count = r.count;
    return s;
}

static enum status list_served(struct reading *r, sqlite3_stmt *stmt)
{
    char(*const out)[FINGERPRINT_ID_BYTES] = r->to;
    struct store_fingerprint_row row;

    if (fingerprint_row(r, stmt, &row)) {
        memcpy(out[r->count], row.id, sizeof(row.id));
        r->enough = ++r->count == r->max;
    }
    return STATUS_OK;
}

enum status store_list_served(struct store *store, const char *uuid, int64_t run,
                              char (*out)[FINGERPRINT_ID_BYTES], uint32_t max, uint32_t *out_count,
                              struct err *err)
{
    struct reading r = {.to = out, .max = max, .enough = max == 0, .err = err};
    const enum status s = read_rows(store,
                                    "SELECT NULL, " KNOWLEDGE_COLUMNS " FROM knowledge "
                                    "WHERE uuid = ?1 AND run = ?2" NEWEST_FIRST,
                                    SQL_VALUES(SQL_TEXT(uuid), SQL_INT(run)), list_served, &r);

    *out_count = r.count;
    return s;
}

static enum status list_observation(struct reading *r, sqlite3_stmt *stmt)
{
    if (observation_row(r, stmt, (struct store_observation_row *)r->to + r->count))
        r->enough = ++r->count == r->max;
    return STATUS_OK;
}

/* The "+" makes SQLite read the rows in the order of their numbers, not run by run. */
#define OF_RUNS_OF_GPU                                                                             \
    " FROM observation WHERE +run IN (SELECT run.id FROM run WHERE run.uuid = ?1) AND "
#define LIST_OBSERVATIONS(which)                                                                   \
    "SELECT NULL, " OBSERVATION_COLUMNS OF_RUNS_OF_GPU "id < ?2" which " ORDER BY id DESC"

enum status store_list_observations(struct store *store, const char *uuid, int64_t run,
                                    int64_t before, struct store_observation_row *out, uint32_t max,
                                    uint32_t *out_count, struct err *err)
{
    const struct sql_value values[] = {SQL_TEXT(uuid), SQL_INT(upper_bound(before)), SQL_INT(run)};
    struct reading r = {.to = out, .max = max, .enough = max == 0, .err = err};
    const enum status s =
        run > 0
            ? read_rows(store, LIST_OBSERVATIONS(" AND run = ?3"), values, 3, list_observation, &r)
            : read_rows(store, LIST_OBSERVATIONS(""), values, 2, list_observation, &r);

    *out_count = r.count;
    return s;
}

static enum status copy_observation(struct reading *r, sqlite3_stmt *stmt)
{
    struct store_observation_row row;
    char **const out = r->to;

    r->enough = true;
    if (!observation_row(r, stmt, &row) || !document_is_good(stmt))
        return err_set(r->err, STATUS_CORRUPT, "observation %lld fails its check",
                       (long long)row.id);
    *out = strdup(store_sql_text(stmt, DOCUMENT));
    return *out ? STATUS_OK
                : err_set(r->err, STATUS_NO_MEMORY, "cannot read observation %lld: out of memory",
                          (long long)row.id);
}

enum status store_observation_json(struct store *store, const char *uuid, int64_t id,
                                   char **out_json, struct err *err)
{
    struct reading r = {.to = out_json, .err = err};
    enum status s;

    *out_json = NULL;
    s = read_rows(store, "SELECT document, " OBSERVATION_COLUMNS OF_RUNS_OF_GPU "id = ?2",
                  SQL_VALUES(SQL_TEXT(uuid), SQL_INT(id)), copy_observation, &r);
    return s == STATUS_OK && !r.enough
               ? err_set(err, STATUS_NOT_FOUND, "there is no observation %lld of %s", (long long)id,
                         uuid)
               : s;
}

/* ---- a whole run ---- */

/* Reads the GPU and the limits of a run. */
static enum status read_run(struct reading *r, sqlite3_stmt *stmt)
{
    struct observation_set *const out = r->to;
    struct json_reader in;
    struct err why = {0};
    json_t *json = NULL;

    r->enough = true;
    if (sqlite3_column_int(stmt, IS_GOOD) == 1)
        json = load_document(stmt, r, &why);
    else
        err_set(&why, STATUS_CORRUPT, "the row fails its check");
    if (json) {
        json_reader_begin(&in, json, "", JSON_READER_LENIENT, STATUS_CORRUPT, &why);
        json_reader_absorb(&in,
                           gpu_identity_from_json(json_reader_object(&in, "gpu"), &out->gpu, &why));
        if (json_reader_ok(&in))
            json_reader_absorb(
                &in, gpu_limits_from_json(json_reader_object(&in, "limits"), &out->limits, &why));
        (void)json_reader_end(&in);
        json_decref(json);
    }
    return why.status
               ? err_set(r->err, why.status == STATUS_NO_MEMORY ? why.status : STATUS_CORRUPT,
                         "run %lld: %s", (long long)sqlite3_column_int64(stmt, FIRST_COLUMN),
                         why.text)
               : STATUS_OK;
}

/* Appends the row's observation. A corrupt observation is skipped. */
static enum status read_observation(struct reading *r, sqlite3_stmt *stmt)
{
    struct store_observation_row row;
    struct observation o = {0};
    struct err why = {0};
    json_t *json;
    bool good;

    if (!observation_row(r, stmt, &row))
        return STATUS_OK;
    json = load_document(stmt, r, &why);
    good = json && observation_from_json(json, &o, &why) == STATUS_OK;
    json_decref(json);
    if (good)
        return observation_set_add(r->to, &o, r->err);
    if (why.status == STATUS_NO_MEMORY)
        return err_set(r->err, why.status, "%s", why.text);
    log_warning("state file: observation %lld is skipped: %s", (long long)row.id, why.text);
    return STATUS_OK;
}

enum status store_load_run(struct store *store, int64_t run, struct observation_set *out,
                           struct err *err)
{
    struct reading one = {.to = out, .err = err}, all = one;
    enum status s;

    *out = (struct observation_set){0};
    s = read_rows(store,
                  "SELECT document, document_hash, " RUN_IS_GOOD ", id FROM run WHERE id = ?1",
                  SQL_VALUES(SQL_INT(run)), read_run, &one);
    if (s == STATUS_OK && !one.enough)
        s = err_set(err, STATUS_NOT_FOUND, "there is no run %lld", (long long)run);
    if (s == STATUS_OK)
        s = read_rows(store,
                      "SELECT document, " OBSERVATION_COLUMNS
                      " FROM observation WHERE run = ?1 ORDER BY id",
                      SQL_VALUES(SQL_INT(run)), read_observation, &all);
    pthread_mutex_lock(&store->reading->mutex);
    (void)sqlite3_db_release_memory(store->reading->db);
    pthread_mutex_unlock(&store->reading->mutex);
    if (s != STATUS_OK)
        observation_set_free(out);
    return s;
}
