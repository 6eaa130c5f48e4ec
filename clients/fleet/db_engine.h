/* db_engine.h: what SQLite and PostgreSQL do differently, and the statements of schema/fleet. For
 * db.c, staging.c, ingest.c and report.c.
 *
 * Placeholders are $1, $2, ...; a parameter that is NULL is null.
 */
#ifndef REACH_CLIENTS_FLEET_DB_ENGINE_H
#define REACH_CLIENTS_FLEET_DB_ENGINE_H

#include "build/gen/fleet_sql.h" /* schema/fleet, as the build embeds it */
#include "clients/fleet/db.h"

enum {
    FLEET_MAX_COLUMNS = 24, /* of a query */
    FLEET_ROWS = 16         /* appended at once, which takes SQLite a third of the time */
};

/* A table that rows are appended to. */
struct fleet_table {
    const char *name;
    const char *columns; /* "host, slot, uuid" */
    int count;           /* of the columns */
};

struct fleet_value {
    enum { FLEET_NULL = 0, FLEET_TEXT, FLEET_INTEGER, FLEET_NUMBER } type;
    const char *text; /* borrowed */
    int64_t integer;
    double number;
};

struct fleet_engine {
    /* `read_only`: creates and changes nothing; only queries follow. */
    enum status (*open)(const char *where, bool read_only, void **out, struct err *err);
    void (*close)(void *take);
    /* One statement. No other call of this engine while `row` runs. `row` may be NULL. */
    enum status (*query)(void *engine, const char *sql, int parameter_count,
                         const char *const *parameters, fleet_row_fn *row, void *self,
                         struct err *err);
    /* Adds rows to a table, 1 or FLEET_ROWS; they may be invisible until `flush`. `table` is a
     * constant, `values` has all columns of each row. */
    enum status (*append)(void *engine, const struct fleet_table *table, int rows,
                          const struct fleet_value *values, struct err *err);
    enum status (*flush)(void *engine, struct err *err); /* NULL: nothing to do */
    /* After all is read: STATUS_CONFLICT if another process has written meanwhile. NULL: the engine
     * sees to it that this cannot happen. */
    enum status (*check_read)(void *engine, struct err *err);
    /* Scripts. */
    const char *tables;        /* fleet_metric */
    const char *quartiles;     /* $1: the survey */
    const char *begin_staging; /* before rows are appended, COMMIT after them; NULL: nothing */
    const char *begin_write;   /* begins a transaction that excludes other writers */
    const char *begin_read;    /* begins one that sees one state to its end */
    const char *after_survey;  /* outside a transaction, speeds up reports; NULL: nothing */
};

extern const struct fleet_engine fleet_sqlite;
extern const struct fleet_engine fleet_postgres; /* open: STATUS_NOT_SUPPORTED without libpq */

/* Stores the surveys of a SQLite file of version 1 in a new file of this version, which takes its
 * place; the old one is kept as PATH.version-1. (upgrade_1.c) */
enum status fleet_upgrade_version_1(const char *path, struct err *err);

/* Connects to the database, and unless `read_only` creates its tables or upgrades those of versions
 * 2 and 3. `*out_oldest`: it is a file of version 1; nothing was changed, and the call fails. */
enum status fleet_connect(const char *where, bool read_only, struct fleet_db **out,
                          bool *out_oldest, struct err *err);

/* Texts of one survey, each with a number from 1 on. */
struct fleet_numbering {
    void *tree; /* owned */
    int64_t count;
};

struct fleet_db {
    const struct fleet_engine *engine;
    void *connection; /* the engine's */
    bool has_staging; /* the temporary tables exist */
    bool in_survey;   /* the rest is about the survey in progress */
    int64_t fingerprint_count;
    struct fleet_numbering series;
    struct fleet_numbering structures;
};

/* An integer as a parameter. */
enum { FLEET_INTEGER_BYTES = 24 };
const char *fleet_integer_text(int64_t v, char *out); /* returns `out`, of FLEET_INTEGER_BYTES */

/* The parameters of fleet_query. */
#define FLEET_VALUES(...)                                                                          \
    (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)),                      \
        (const char *const[])                                                                      \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* One integer, the first column of the only row; 0 if there is no row, or a null in it. */
enum status fleet_run_integer(struct fleet_db *db, const char *sql, int parameter_count,
                              const char *const *parameters, int64_t *out, struct err *err);
/* Statements separated by ";" at the end of a line, each with those of two parameters that it
 * names; the rows of all go to `row`. */
enum status fleet_script(struct fleet_db *db, const char *sql, const char *first,
                         const char *second, fleet_row_fn *row, void *self, struct err *err);
/* A script without parameters and rows. */
enum status fleet_exec(struct fleet_db *db, const char *sql, struct err *err);
/* COMMIT if `so_far` is STATUS_OK, ROLLBACK otherwise; returns the first failure. */
enum status fleet_end_write(struct fleet_db *db, enum status so_far, struct err *err);

#endif
