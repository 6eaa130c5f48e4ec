/* db_engine.h: declares the functions and scripts in which SQLite and PostgreSQL differ, for db.c,
 * staging.c, ingest.c and report.c. The header also includes the statements of schema/fleet.
 *
 * Placeholders are $1, $2, ...; a parameter of NULL means null. */
#pragma once

#include "build/gen/fleet_sql.h" /* schema/fleet, embedded by the build */
#include "clients/fleet/db.h"

enum {
    FLEET_MAX_COLUMNS = 24, /* columns of a query */
    FLEET_ROWS = 16 /* rows per append; SQLite stores 16 rows at once in a third of the time of
                       single rows */
};

/* A table that rows are appended to. */
struct fleet_table {
    const char *name;
    const char *columns; /* names separated by commas: "host, slot, uuid" */
    int count;           /* number of columns */
};

struct fleet_value {
    enum { FLEET_NULL = 0, FLEET_TEXT, FLEET_INTEGER, FLEET_NUMBER } type;
    const char *text; /* borrowed */
    int64_t integer;
    double number;
};

struct fleet_engine {
    /* With `read_only` the call creates and changes nothing, and only queries follow. */
    enum status (*open)(const char *where, bool read_only, void **out, struct err *err);
    void (*close)(void *take);
    /* Runs one statement. No other call of this engine is allowed while `row` runs. `row` may be
     * NULL. */
    enum status (*query)(void *engine, const char *sql, int parameter_count,
                         const char *const *parameters, fleet_row_fn *row, void *self,
                         struct err *err);
    /* Adds 1 or FLEET_ROWS rows to a table; they can be invisible until `flush`. `table` must be a
     * static object, because engines compare its address. `values` has all columns of each row. */
    enum status (*append)(void *engine, const struct fleet_table *table, int rows,
                          const struct fleet_value *values, struct err *err);
    enum status (*flush)(void *engine, struct err *err); /* NULL if rows are always visible */
    /* Called after the last query of a report; returns STATUS_CONFLICT if another process has
     * written meanwhile. NULL if the engine prevents that. */
    enum status (*check_read)(void *engine, struct err *err);
    /* Scripts. */
    const char *tables;        /* fleet_metric */
    const char *quartiles;     /* $1 is the number of the survey */
    const char *begin_staging; /* runs before rows are appended, and COMMIT runs after them; NULL if
                                  neither is needed */
    const char *begin_write;   /* begins a transaction that excludes other writers */
    const char
        *begin_read; /* begins a transaction that reads one state of the database to its end */
    const char *after_survey; /* runs outside of a transaction and speeds up reports; NULL if it is
                                 not needed */
};

extern const struct fleet_engine fleet_sqlite;
extern const struct fleet_engine fleet_postgres; /* returns STATUS_NOT_SUPPORTED without libpq */

/* The texts of one survey, numbered from 1. */
struct fleet_numbering {
    void *tree; /* owned */
    int64_t count;
};

struct fleet_db {
    const struct fleet_engine *engine;
    void *connection; /* owned by the engine */
    bool has_staging; /* the temporary tables exist */
    bool in_survey;   /* the other members describe the survey in progress */
    int64_t fingerprint_count;
    struct fleet_numbering series;
    struct fleet_numbering structures;
};

/* Writes an integer as the text of a parameter. */
enum { FLEET_INTEGER_BYTES = 24 };
const char *fleet_integer_text(int64_t v, char *out); /* returns out[FLEET_INTEGER_BYTES] */

/* Expands to the arguments `parameter_count` and `parameters` of fleet_query. */
#define FLEET_VALUES(...)                                                                          \
    (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)),                      \
        (const char *const[])                                                                      \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* Runs a query that returns one row, and reads the integer in its first column. `*out` is 0 if
 * there is no row or the value is null. */
enum status fleet_run_integer(struct fleet_db *db, const char *sql, int parameter_count,
                              const char *const *parameters, int64_t *out, struct err *err);
/* Runs statements that are separated by ";" at the end of a line. A statement that names $1 gets
 * `first`, and a statement that names $2 gets both parameters. `row` gets the rows of all
 * statements. */
enum status fleet_script(struct fleet_db *db, const char *sql, const char *first,
                         const char *second, fleet_row_fn *row, void *self, struct err *err);
/* Runs a script without parameters and rows. */
enum status fleet_exec(struct fleet_db *db, const char *sql, struct err *err);
/* Runs COMMIT if `so_far` is STATUS_OK, and ROLLBACK otherwise; returns the first failure. */
enum status fleet_end_write(struct fleet_db *db, enum status so_far, struct err *err);
