/* store_sql.c: wraps SQLite's calls, so that callers get a status and a message. */
#include "store/store_sql.h"

#include "base/hash.h"
#include "base/heartbeat.h"

/* All statements fit the schema. If one does not, the schema's text is damaged. */
const struct sqlite_use store_sqlite = {.name = "state file", .bad_statement = STATUS_CORRUPT};

enum status store_sql_fail(sqlite3 *db, int rc, const char *what, struct err *err)
{
    return sqlite_fail(&store_sqlite, db, rc, NULL, what, err);
}

enum status store_sql_exec(sqlite3 *db, const char *sql, struct err *err)
{
    const int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? STATUS_OK : store_sql_fail(db, rc, sql, err);
}

static int bind_values(sqlite3_stmt *stmt, const struct sql_value *values, int count)
{
    int rc = SQLITE_OK;

    for (int i = 0; rc == SQLITE_OK && i < count; i++) {
        if (values[i].text)
            rc = sqlite3_bind_text(stmt, i + 1, values[i].text, -1, SQLITE_STATIC);
        else
            rc = sqlite3_bind_int64(stmt, i + 1, values[i].number);
    }
    return rc;
}

enum status store_sql_query(sqlite3 *db, const char *sql, const struct sql_value *values, int count,
                            sqlite3_stmt **out, struct err *err)
{
    enum status s;
    int rc;

    *out = NULL;
    rc = sqlite3_prepare_v2(db, sql, -1, out, NULL);
    if (rc == SQLITE_OK)
        rc = bind_values(*out, values, count);
    if (rc == SQLITE_OK)
        return STATUS_OK;
    s = store_sql_fail(db, rc, sql, err); /* before errno and the message change */
    sqlite3_finalize(*out);
    *out = NULL;
    return s;
}

enum status store_sql_next(sqlite3_stmt *stmt, bool *out_row, struct err *err)
{
    const int rc = sqlite3_step(stmt);

    heartbeat_beat(); /* many rows take long, but a disk that hangs never returns */
    *out_row = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return STATUS_OK;
    return store_sql_fail(sqlite3_db_handle(stmt), rc, sqlite3_sql(stmt), err);
}

enum status store_sql_first(sqlite3 *db, const char *sql, const struct sql_value *values, int count,
                            sqlite3_stmt **out, bool *out_row, struct err *err)
{
    const enum status s = store_sql_query(db, sql, values, count, out, err);

    *out_row = false;
    return s == STATUS_OK ? store_sql_next(*out, out_row, err) : s;
}

const char *store_sql_text(sqlite3_stmt *stmt, int column)
{
    const char *const text = (const char *)sqlite3_column_text(stmt, column);

    return text ? text : "";
}

enum status store_sql_run(sqlite3 *db, const char *sql, const struct sql_value *values, int count,
                          int *out_changes, struct err *err)
{
    sqlite3_stmt *stmt;
    bool row;
    const enum status s = store_sql_first(db, sql, values, count, &stmt, &row, err);

    sqlite3_finalize(stmt);
    if (s == STATUS_OK && out_changes)
        *out_changes = sqlite3_changes(db);
    return s;
}

enum status store_sql_number(sqlite3 *db, const char *sql, int64_t *out, struct err *err)
{
    sqlite3_stmt *stmt;
    bool row;
    const enum status s = store_sql_first(db, sql, NULL, 0, &stmt, &row, err);

    *out = row ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_finalize(stmt);
    return s;
}

enum status store_sql_begin(sqlite3 *db, struct err *err)
{
    return store_sql_exec(db, "BEGIN IMMEDIATE", err);
}

enum status store_sql_end(sqlite3 *db, enum status so_far, struct err *err)
{
    if (so_far == STATUS_OK)
        so_far = store_sql_exec(db, "COMMIT", err);
    /* Some failures have rolled back already, and a COMMIT that failed may have left the
     * transaction open. */
    if (so_far != STATUS_OK && !sqlite3_get_autocommit(db))
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return so_far;
}

/* Hashes a text with its length before it (reach_checksum) or its terminator after it
 * (reach_row_hash), so that "ab","c" and "a","bc" differ. Returns false if memory runs out. */
static bool hash_text(uint64_t *h, sqlite3_value *value, bool checksum)
{
    const void *const text = sqlite3_value_text(value);
    const int size = sqlite3_value_bytes(value);

    if (!text)
        return false;
    if (checksum)
        *h = hash_bytes(hash_u64(*h, (uint64_t)size), text, (size_t)size);
    else
        *h = hash_bytes(hash_bytes(*h, text, (size_t)size), "", 1);
    return true;
}

/* Implements both SQL functions. Only reach_checksum has user data. */
static void hash_values(sqlite3_context *context, int count, sqlite3_value **values)
{
    const bool checksum = sqlite3_user_data(context) != NULL;
    uint64_t h = HASH_START;

    for (int i = 0; i < count; i++) {
        const int type = sqlite3_value_type(values[i]);

        /* Real numbers and blobs are never written, and reach_row_hash must not take one for a
         * null. */
        if (checksum || type == SQLITE_FLOAT || type == SQLITE_BLOB)
            h = hash_u64(h, (uint64_t)type);
        if (type == SQLITE_INTEGER) {
            h = hash_u64(h, (uint64_t)sqlite3_value_int64(values[i]));
        } else if (type == SQLITE_TEXT && !hash_text(&h, values[i], checksum)) {
            sqlite3_result_error_nomem(context);
            return;
        }
    }
    sqlite3_result_int64(context, (sqlite3_int64)h);
}

int store_sql_add_functions(sqlite3 *db)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    const int rc =
        sqlite3_create_function(db, "reach_row_hash", -1, flags, NULL, hash_values, NULL, NULL);

    return rc == SQLITE_OK ? sqlite3_create_function(db, "reach_checksum", -1, flags, db,
                                                     hash_values, NULL, NULL)
                           : rc;
}
