/* store_sql.h: SQLite's calls in the project's terms. Whoever calls holds the connection's mutex.
 */
#ifndef REACH_STORE_STORE_SQL_H
#define REACH_STORE_STORE_SQL_H

#include "base/status.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* A value for one "?" of a statement. Texts are borrowed until the statement has run. */
struct sql_value {
    const char *text; /* NULL: the number */
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

/* The status of a failed call, with a sentence: what failed and SQLite's own words. */
enum status store_sql_fail(sqlite3 *db, int rc, const char *what, struct err *err);

/* Statements without values or rows. */
enum status store_sql_exec(sqlite3 *db, const char *sql, struct err *err);
/* One number: PRAGMA application_id and the like. */
enum status store_sql_number(sqlite3 *db, const char *sql, int64_t *out, struct err *err);
/* One statement that gives no rows; `*out_changes` (may be NULL) is how many rows it changed. */
enum status store_sql_run(sqlite3 *db, const char *sql, const struct sql_value *values, int count,
                          int *out_changes, struct err *err);
/* A statement ready for store_sql_next; the caller finalizes `*out` (NULL is fine). */
enum status store_sql_query(sqlite3 *db, const char *sql, const struct sql_value *values, int count,
                            sqlite3_stmt **out, struct err *err);
/* The next row; `*out_row` is false behind the last one. */
enum status store_sql_next(sqlite3_stmt *stmt, bool *out_row, struct err *err);

/* BEGIN IMMEDIATE, and its end: COMMIT where `so_far` is STATUS_OK, otherwise ROLLBACK. Returns the
 * first failure. */
enum status store_sql_begin(sqlite3 *db, struct err *err);
enum status store_sql_end(sqlite3 *db, enum status so_far, struct err *err);

/* Gives the connection the function reach_checksum(value, ..): a hash over the type and value of
 * each argument (integers, texts, nulls). Returns an SQLite code. */
int store_sql_add_checksum(sqlite3 *db);

/* Hash of a row, column by column. */
uint64_t store_sql_hash_int(uint64_t h, int64_t v);
uint64_t store_sql_hash_text(uint64_t h, const char *text);

#endif
