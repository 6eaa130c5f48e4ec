/* store_sql.h: wraps SQLite's calls. The caller holds the connection's mutex. */
#pragma once

#include "base/status.h"
#include "sqlite/sqlite_error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* A value for one parameter of a statement. The first value is for ?1; parameters without a value
 * are NULL. Texts are borrowed until the statement is finalized. */
struct sql_value {
    const char *text; /* a text; NULL means that the value is the number */
    int64_t number;
};
#define SQL_INT(n)                                                                                 \
    {                                                                                              \
        .number = (int64_t)(n)                                                                     \
    }
#define SQL_TEXT(t)                                                                                \
    {                                                                                              \
        .text = (t)                                                                                \
    }
#define SQL_VALUES(...)                                                                            \
    (const struct sql_value[]){__VA_ARGS__},                                                       \
        (int)(sizeof((const struct sql_value[]){__VA_ARGS__}) / sizeof(struct sql_value))

extern const struct sqlite_use store_sqlite;
/* Reports a failed call on a state file, like sqlite_fail. */
enum status store_sql_fail(sqlite3 *db, int rc, const char *what, struct err *err);

/* Runs statements without values or rows. */
enum status store_sql_exec(sqlite3 *db, const char *sql, struct err *err);
/* Reads one number, such as PRAGMA application_id. It is 0 if there is no row. */
enum status store_sql_number(sqlite3 *db, const char *sql, int64_t *out, struct err *err);
/* Runs one statement without rows. `*out_changes` (may be NULL) gets the number of changed rows. */
enum status store_sql_run(sqlite3 *db, const char *sql, const struct sql_value *values, int count,
                          int *out_changes, struct err *err);
/* Prepares a statement for store_sql_next. The caller finalizes `*out`, which may be NULL. */
enum status store_sql_query(sqlite3 *db, const char *sql, const struct sql_value *values, int count,
                            sqlite3_stmt **out, struct err *err);
/* Moves to the next row. `*out_row` is false after the last one. */
enum status store_sql_next(sqlite3_stmt *stmt, bool *out_row, struct err *err);
/* Prepares a statement and moves to its first row, for queries with at most one row. */
enum status store_sql_first(sqlite3 *db, const char *sql, const struct sql_value *values, int count,
                            sqlite3_stmt **out, bool *out_row, struct err *err);
/* Returns a column's text, or "" if memory runs out. It is valid until the next row. */
const char *store_sql_text(sqlite3_stmt *stmt, int column);

/* Run BEGIN IMMEDIATE, and COMMIT if `so_far` is STATUS_OK, else ROLLBACK. Return the first
 * failure. */
enum status store_sql_begin(sqlite3 *db, struct err *err);
enum status store_sql_end(sqlite3 *db, enum status so_far, struct err *err);

/* Adds two functions to the connection, both FNV-1a over their arguments (integers, texts, nulls).
 * reach_checksum covers the type and value of each argument; reach_row_hash covers only the values,
 * without nulls. Returns an SQLite code. */
int store_sql_add_functions(sqlite3 *db);
