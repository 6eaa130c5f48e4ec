/* db_sqlite.c: surveys in a SQLite file. Write-ahead log, so that a report can be made while a
 * survey is stored.
 *
 * The application id of the file says that it is a database of surveys. Another file that is not
 * empty, the daemon's own state file for example, is left as it is.
 */
#include "clients/fleet/db_engine.h"

#include "base/stats.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    APPLICATION_ID = 0x52664c54, /* "RfLT" */
    BUSY_TIMEOUT_MS = 10000,     /* for another survey that is being stored */
    MAX_STATEMENTS = 48,
    MAX_COLUMNS = 24,
    MAX_SQL_BYTES = 600,
    NUMBER_BYTES = 32,
    FIRST_ROOM = 1024,
    PRIMARY_CODE = 0xff
};

/* Bounds on what SQLite keeps in memory, whatever the size of the file. */
static const char settings[] = "PRAGMA cache_size = -8192;"
                               "PRAGMA mmap_size = 0;"
                               "PRAGMA temp_store = 1;"
                               "PRAGMA foreign_keys = ON;"
                               "PRAGMA trusted_schema = OFF;"
                               "PRAGMA synchronous = FULL;";

struct prepared {
    const void *of; /* a constant: the text, or the table that it appends to */
    sqlite3_stmt *stmt;
};

struct sqlite_engine {
    sqlite3 *db;
    int count;
    struct prepared prepared[MAX_STATEMENTS];
};

static enum status status_of(int rc)
{
    switch (rc & PRIMARY_CODE) {
    case SQLITE_FULL:
        return STATUS_FULL;
    case SQLITE_READONLY:
        return STATUS_READ_ONLY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return STATUS_CORRUPT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return STATUS_CONFLICT;
    case SQLITE_NOMEM:
        return STATUS_NO_MEMORY;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return STATUS_IO;
    case SQLITE_ERROR: /* a statement of the caller's, see fleet_query */
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
        return STATUS_INVALID_ARGUMENT;
    default:
        return STATUS_INTERNAL;
    }
}

static enum status fail(const struct sqlite_engine *e, int rc, struct err *err)
{
    const char *const words = e->db ? sqlite3_errmsg(e->db) : sqlite3_errstr(rc);

    return err_set(err, status_of(rc), "the database of surveys: %s (SQLite code %d)", words, rc);
}

static enum status exec(void *engine, const char *sql, struct err *err)
{
    const struct sqlite_engine *const e = engine;
    const int rc = sqlite3_exec(e->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? STATUS_OK : fail(e, rc, err);
}

/* One number: a PRAGMA, a count. */
static enum status number(struct sqlite_engine *e, const char *sql, int64_t *out, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(e->db, sql, -1, &stmt, NULL);
    enum status s = STATUS_OK;

    *out = 0;
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(stmt, 0);
    else if (rc != SQLITE_DONE)
        s = fail(e, rc, err);
    sqlite3_finalize(stmt);
    return s;
}

/* Refuses another program's file before anything is written. */
static enum status check_owner(struct sqlite_engine *e, const char *path, struct err *err)
{
    int64_t id = 0;
    int64_t tables = 0;
    enum status s = number(e, "PRAGMA application_id", &id, err);

    if (s == STATUS_OK && id != APPLICATION_ID)
        s = number(e, "SELECT COUNT(*) FROM sqlite_master", &tables, err);
    if (s == STATUS_OK && id != APPLICATION_ID && (id != 0 || tables > 0))
        s = err_set(err, STATUS_CORRUPT, "%.200s is a database, but not one of surveys", path);
    return s;
}

static void close_engine(void *take)
{
    struct sqlite_engine *const e = take;

    if (!e)
        return;
    for (int i = 0; i < e->count; i++)
        sqlite3_finalize(e->prepared[i].stmt);
    sqlite3_close(e->db);
    free(e);
}

/* The order of bytes by PostgreSQL's name for it, so that both sort alike. */
static int by_bytes(void *self, int a_bytes, const void *a, int b_bytes, const void *b)
{
    const int least = a_bytes < b_bytes ? a_bytes : b_bytes;
    const int c = memcmp(a, b, (size_t)least);

    (void)self;
    return c ? c : a_bytes - b_bytes;
}

/* ---- median and percentile_disc, which SQLite has from 3.47 on, and the median distance from the
 * median ---- */

struct values {
    double *v; /* owned */
    size_t count;
    size_t room;
    double fraction;
};

static void add_value(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    struct values *const a = sqlite3_aggregate_context(context, sizeof(*a));

    if (!a || sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    if (a->count == a->room) {
        const size_t room = a->room ? 2 * a->room : FIRST_ROOM;
        double *const grown = realloc(a->v, room * sizeof(*grown));
        if (!grown) {
            sqlite3_result_error_nomem(context);
            return;
        }
        a->v = grown;
        a->room = room;
    }
    if (argc > 1 && a->count == 0)
        a->fraction = sqlite3_value_double(argv[1]);
    a->v[a->count++] = sqlite3_value_double(argv[0]);
}

static void end_values(sqlite3_context *context, double (*of)(const struct values *a))
{
    struct values *const a = sqlite3_aggregate_context(context, 0);

    if (a && a->count > 0)
        sqlite3_result_double(context, of(a));
    if (a)
        free(a->v);
}

static double median_of(const struct values *a)
{
    return stats_median_f64(a->v, a->count);
}

static double percentile_of(const struct values *a)
{
    return stats_quantile_f64(a->v, a->count, a->fraction);
}

static double deviation_of(const struct values *a)
{
    return stats_mad_f64(a->v, a->count);
}

static void end_median(sqlite3_context *context)
{
    end_values(context, median_of);
}

static void end_percentile(sqlite3_context *context)
{
    end_values(context, percentile_of);
}

static void end_deviation(sqlite3_context *context)
{
    end_values(context, deviation_of);
}

static enum status add_functions(struct sqlite_engine *e, struct err *err)
{
    int rc = sqlite3_create_collation(e->db, "C", SQLITE_UTF8, NULL, by_bytes);

    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(e->db, "median", 1, SQLITE_UTF8, NULL, NULL, add_value,
                                     end_median);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(e->db, "percentile_disc", 2, SQLITE_UTF8, NULL, NULL,
                                     add_value, end_percentile);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(e->db, "mad", 1, SQLITE_UTF8, NULL, NULL, add_value,
                                     end_deviation);
    return rc == SQLITE_OK ? STATUS_OK : fail(e, rc, err);
}

/* ---- opening ---- */

static enum status open_engine(const char *where, void **out, struct err *err)
{
    struct sqlite_engine *e = calloc(1, sizeof(*e));
    char mark[64];
    enum status s = STATUS_OK;
    int rc;

    *out = NULL;
    if (!e)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a database");
    rc = sqlite3_open_v2(where, &e->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (rc != SQLITE_OK) {
        s = fail(e, rc, err);
        goto out;
    }
    sqlite3_extended_result_codes(e->db, 1);
    sqlite3_busy_timeout(e->db, BUSY_TIMEOUT_MS);
    s = check_owner(e, where, err);
    if (s == STATUS_OK)
        s = add_functions(e, err);
    if (s == STATUS_OK)
        s = exec(e, settings, err);
    /* Pages of a new file that are read at once. */
    if (s == STATUS_OK)
        s = exec(e, "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL", err);
    (void)snprintf(mark, sizeof(mark), "PRAGMA application_id = %d", APPLICATION_ID);
    if (s == STATUS_OK)
        s = exec(e, mark, err);
out:
    if (s != STATUS_OK) {
        err_prefix(err, "%.200s", where);
        close_engine(e);
        e = NULL;
    }
    *out = e;
    return s;
}

/* ---- statements ---- */

/* The statement that is prepared for `of`; NULL: none yet. */
static sqlite3_stmt *find_prepared(const struct sqlite_engine *e, const void *of)
{
    for (int i = 0; i < e->count; i++) {
        if (e->prepared[i].of == of)
            return e->prepared[i].stmt;
    }
    return NULL;
}

/* A statement ready to be bound; `*out_stays` says that it is not to be finalized. */
static int prepare(struct sqlite_engine *e, const char *sql, const void *of, sqlite3_stmt **out,
                   bool *out_stays)
{
    int rc;

    *out = of ? find_prepared(e, of) : NULL;
    *out_stays = *out != NULL;
    if (*out)
        return SQLITE_OK;
    rc = sqlite3_prepare_v2(e->db, sql, -1, out, NULL);
    *out_stays = of && rc == SQLITE_OK && e->count < MAX_STATEMENTS;
    if (*out_stays)
        e->prepared[e->count++] = (struct prepared){.of = of, .stmt = *out};
    return rc;
}

static void release(sqlite3_stmt *stmt, bool stays)
{
    if (!stays) {
        sqlite3_finalize(stmt);
        return;
    }
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
}

/* "$2" is a name to SQLite, whose place is that of its first use. */
static int bind(sqlite3_stmt *stmt, int count, const char *const *parameters)
{
    int rc = SQLITE_OK;

    for (int i = 0; rc == SQLITE_OK && i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "$%d", i + 1);
        const int at = sqlite3_bind_parameter_index(stmt, name);
        if (at == 0)
            continue;
        if (parameters[i])
            rc = sqlite3_bind_text(stmt, at, parameters[i], -1, SQLITE_STATIC);
        else
            rc = sqlite3_bind_null(stmt, at);
    }
    return rc;
}

/* The value as text. Of a number SQLite itself would give 15 digits alone. */
static const char *column_text(sqlite3_stmt *stmt, int i, char *room)
{
    if (sqlite3_column_type(stmt, i) != SQLITE_FLOAT)
        return (const char *)sqlite3_column_text(stmt, i);
    (void)snprintf(room, NUMBER_BYTES, "%.17g", sqlite3_column_double(stmt, i));
    return room;
}

static enum status emit_rows(struct sqlite_engine *e, sqlite3_stmt *stmt, fleet_row_fn *row,
                             void *self, struct err *err)
{
    char numbers[MAX_COLUMNS][NUMBER_BYTES];
    const char *values[MAX_COLUMNS];
    const int columns = sqlite3_column_count(stmt);
    int rc;

    if (columns > MAX_COLUMNS)
        return err_set(err, STATUS_INVALID_ARGUMENT, "a query gives more than %d columns",
                       MAX_COLUMNS);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        enum status s;
        for (int i = 0; i < columns; i++)
            values[i] = column_text(stmt, i, numbers[i]);
        s = row ? row(self, columns, values, err) : STATUS_OK;
        if (s != STATUS_OK)
            return s;
    }
    return rc == SQLITE_DONE ? STATUS_OK : fail(e, rc, err);
}

static enum status query(void *engine, const char *sql, bool prepared, int parameter_count,
                         const char *const *parameters, fleet_row_fn *row, void *self,
                         struct err *err)
{
    struct sqlite_engine *const e = engine;
    sqlite3_stmt *stmt = NULL;
    bool stays = false;
    enum status s;
    int rc = prepare(e, sql, prepared ? sql : NULL, &stmt, &stays);

    if (rc == SQLITE_OK)
        rc = bind(stmt, parameter_count, parameters);
    s = rc == SQLITE_OK ? emit_rows(e, stmt, row, self, err) : fail(e, rc, err);
    release(stmt, stays);
    return s;
}

/* ---- rows ---- */

static int prepare_append(struct sqlite_engine *e, const struct fleet_table *table,
                          sqlite3_stmt **out, bool *out_stays)
{
    char sql[MAX_SQL_BYTES];
    size_t n;

    *out = find_prepared(e, table);
    *out_stays = true;
    if (*out)
        return SQLITE_OK;
    n = (size_t)snprintf(sql, sizeof(sql), "INSERT INTO %s (%s) VALUES (", table->name,
                         table->columns);
    for (int i = 0; i < table->count; i++)
        n += (size_t)snprintf(sql + n, sizeof(sql) - n, i ? ", ?" : "?");
    (void)snprintf(sql + n, sizeof(sql) - n, ")");
    return prepare(e, sql, table, out, out_stays);
}

static int bind_value(sqlite3_stmt *stmt, int at, const struct fleet_value *v)
{
    switch (v->type) {
    case FLEET_TEXT:
        return sqlite3_bind_text(stmt, at, v->text, -1, SQLITE_STATIC);
    case FLEET_INTEGER:
        return sqlite3_bind_int64(stmt, at, v->integer);
    case FLEET_NUMBER:
        return sqlite3_bind_double(stmt, at, v->number);
    case FLEET_NULL:
        break;
    }
    return sqlite3_bind_null(stmt, at);
}

static enum status append(void *engine, const struct fleet_table *table,
                          const struct fleet_value *values, struct err *err)
{
    struct sqlite_engine *const e = engine;
    sqlite3_stmt *stmt = NULL;
    bool stays = false;
    enum status s = STATUS_OK;
    int rc = prepare_append(e, table, &stmt, &stays);

    for (int i = 0; rc == SQLITE_OK && i < table->count; i++)
        rc = bind_value(stmt, i + 1, &values[i]);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc != SQLITE_DONE)
        s = fail(e, rc, err);
    release(stmt, stays);
    return s;
}

static enum status flush(void *engine, struct err *err)
{
    (void)engine;
    (void)err;
    return STATUS_OK;
}

const struct fleet_engine fleet_sqlite = {
    .name = "SQLite",
    .open = open_engine,
    .close = close_engine,
    .exec = exec,
    .query = query,
    .append = append,
    .flush = flush,
    .tables = fleet_sql_metric_sqlite,
    .quartiles = fleet_sql_quartiles_sqlite,
    .begin_staging = "BEGIN", /* a commit per row takes longer than the row; locks nothing */
    .begin_write = "BEGIN IMMEDIATE",
    .begin_read = "BEGIN",
};
