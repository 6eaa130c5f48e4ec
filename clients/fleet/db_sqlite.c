/* db_sqlite.c: surveys in a SQLite file. It uses a write-ahead log, so that a report can be made
 * while a survey is stored.
 *
 * Processes of one host share memory about the log. On a network file system, where another host
 * can use the file, the process that writes has the file for itself until it ends.
 *
 * The application id marks the file as a database of surveys. Any other file that is not empty,
 * such as the state file of the daemon, is not changed. */
#include "clients/fleet/db_engine.h"

#include "base/assert.h"
#include "base/stats.h"
#include "compare/outlier.h"
#include "sqlite/sqlite_read.h"

#include <linux/magic.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

enum {
    BUSY_TIMEOUT_MS = 10000, /* time to wait for another survey that is being stored */
    MAX_APPENDS = 9,         /* most statements: one for each table and number of rows */
    MAX_SQL_BYTES = 600,
    NUMBER_BYTES = 32
};

/* Types of file systems that linux/magic.h lacks, from the sources of Lustre and the manual of stat
 * in coreutils. */
enum { LUSTRE_MAGIC = 0x0bd00bd0, GPFS_MAGIC = 0x47504653 };

#define APPLICATION_ID "1382435924" /* "RfLT" */
#define STATE_FILE_ID                                                                              \
    "1382376296" /* "Rech", the id of a state file of the daemon (daemon/store/store_file.h) */

/* These settings limit the memory of SQLite for any size of the file. Pages are large because
 * reports read whole tables. */
static const char settings[] = "PRAGMA cache_size = -8192;"
                               "PRAGMA mmap_size = 0;"
                               "PRAGMA temp_store = 1;"
                               "PRAGMA foreign_keys = ON;"
                               "PRAGMA trusted_schema = OFF;";

/* These settings write to a new file. */
static const char write_settings[] = "PRAGMA synchronous = FULL;"
                                     "PRAGMA page_size = 16384;"
                                     "PRAGMA journal_mode = WAL;"
                                     "PRAGMA application_id = " APPLICATION_ID;

struct sqlite_engine {
    sqlite3 *db;
    char *path;
    struct sqlite_read read; /* used if the file was opened to read; its connection is `db` */
    struct appending {
        const struct fleet_table *table;
        int rows;
        sqlite3_stmt *stmt;
    } append[MAX_APPENDS];
};

/* An invalid statement is an error of the caller of fleet_query. */
static const struct sqlite_use surveys = {.name = "database of surveys",
                                          .bad_statement = STATUS_INVALID_ARGUMENT};

static enum status set_error(const struct sqlite_engine *e, int rc, const char *what,
                             struct err *err)
{
    return sqlite_fail(&surveys, e->db, rc, e->path, what, err);
}

static void close_engine(void *take)
{
    struct sqlite_engine *const e = take;

    if (!e)
        return;
    for (int i = 0; i < MAX_APPENDS; i++)
        sqlite3_finalize(e->append[i].stmt);
    sqlite3_close(e->db);
    free(e->path);
    free(e);
}

/* ---- the collation "C" of PostgreSQL; median, quartiles and median distance of a group ---- */

static int by_bytes(void *self, int a_bytes, const void *a, int b_bytes, const void *b)
{
    const int c = memcmp(a, b, (size_t)(a_bytes < b_bytes ? a_bytes : b_bytes));

    (void)self;
    return c ? c : a_bytes - b_bytes;
}

static void add_value(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    sqlite3_str **const a = sqlite3_aggregate_context(context, sizeof(sqlite3_str *)); /* doubles */
    const double v = sqlite3_value_double(argv[0]);

    (void)argc;
    if (!a || sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    if (!*a)
        *a = sqlite3_str_new(sqlite3_context_db_handle(context));
    sqlite3_str_append(*a, (const char *)&v, sizeof(v));
}

static struct aggregate {
    const char *name;
    double (*of)(const double *values, size_t count); /* NULL if the result is a quantile */
    double quantile;
} aggregates[] = {
    {"median", .of = stats_median_f64},       {"lower_quartile", .quantile = 0.25},
    {"upper_quartile", .quantile = 0.75},     {"inner_least", .of = outlier_inner_least},
    {"inner_most", .of = outlier_inner_most}, {"mad", .of = stats_mad_f64}};

static void end_values(sqlite3_context *context)
{
    const struct aggregate *const aggregate = sqlite3_user_data(context);
    sqlite3_str **const a = sqlite3_aggregate_context(context, 0);

    if (!a || !*a)
        return;
    const double *const values = (const void *)sqlite3_str_value(*a);
    const size_t count = (size_t)sqlite3_str_length(*a) / sizeof(*values);
    if (sqlite3_str_errcode(*a) != SQLITE_OK)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_double(
            context, aggregate->of ? aggregate->of(values, count)
                                   : stats_quantile_f64(values, count, aggregate->quantile));
    sqlite3_free(sqlite3_str_finish(*a));
}

static int add_functions(sqlite3 *db)
{
    int rc = sqlite3_create_collation(db, "C", SQLITE_UTF8, NULL, by_bytes);

    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(aggregates) / sizeof(*aggregates); i++)
        rc = sqlite3_create_function(db, aggregates[i].name, 1, SQLITE_UTF8, &aggregates[i], NULL,
                                     add_value, end_values);
    return rc;
}

/* ---- statements ---- */

/* SQLite treats "$2" as a name. Its number depends on the place of its first use. */
static int bind_parameters(sqlite3_stmt *stmt, int count, const char *const *parameters)
{
    int rc = SQLITE_OK;

    for (int i = 0; rc == SQLITE_OK && i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "$%d", i + 1);
        const int at = sqlite3_bind_parameter_index(stmt, name);
        if (at > 0)
            rc =
                sqlite3_bind_text(stmt, at, parameters[i], -1, SQLITE_STATIC); /* NULL means null */
    }
    return rc;
}

/* Returns the value as text. SQLite itself would write only 15 digits of a number. */
static const char *column_text(sqlite3_stmt *stmt, int i, char *room)
{
    if (sqlite3_column_type(stmt, i) != SQLITE_FLOAT)
        return (const char *)sqlite3_column_text(stmt, i);
    (void)snprintf(room, NUMBER_BYTES, "%.17g", sqlite3_column_double(stmt, i));
    return room;
}

static enum status emit_rows(const struct sqlite_engine *e, sqlite3_stmt *stmt, fleet_row_fn *row,
                             void *self, struct err *err)
{
    char numbers[FLEET_MAX_COLUMNS][NUMBER_BYTES];
    const char *values[FLEET_MAX_COLUMNS];
    const int columns = sqlite3_column_count(stmt);
    int rc;

    REACH_ASSERT(columns <= FLEET_MAX_COLUMNS);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        enum status s;
        REACH_ASSERT(columns > 0);
        for (int i = 0; i < columns; i++)
            values[i] = column_text(stmt, i, numbers[i]);
        s = row ? row(self, values, err) : STATUS_OK;
        if (s != STATUS_OK)
            return s;
    }
    return rc == SQLITE_DONE ? STATUS_OK : set_error(e, rc, sqlite3_sql(stmt), err);
}

static enum status run_query(void *engine, const char *sql, int parameter_count,
                             const char *const *parameters, fleet_row_fn *row, void *self,
                             struct err *err)
{
    struct sqlite_engine *const e = engine;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(e->db, sql, -1, &stmt, NULL);
    enum status s;

    if (rc == SQLITE_OK)
        rc = bind_parameters(stmt, parameter_count, parameters);
    s = rc == SQLITE_OK ? emit_rows(e, stmt, row, self, err) : set_error(e, rc, sql, err);
    sqlite3_finalize(stmt);
    return s;
}

/* ---- opening ---- */

/* Refuses another program's file before anything is written. */
static enum status check_owner(void *self, const char *const *values, struct err *err)
{
    const struct sqlite_engine *const e = self;

    if (strcmp(values[0], "ours") == 0)
        return STATUS_OK;
    if (strcmp(values[0], "state") == 0)
        return err_set_hint(err, STATUS_INVALID_ARGUMENT,
                            "Name the database that reachctl survey wrote with --db; reachctl gpus "
                            "queries the daemon.",
                            "%.200s is the state file of a daemon, not a database of surveys",
                            e->path);
    return err_set_hint(err, STATUS_INVALID_ARGUMENT,
                        "Name the database that reachctl survey wrote with --db.",
                        "%.200s is not a database of surveys", e->path);
}

/* Returns whether other hosts may use the file: the type of its file system is one of those that
 * hosts share. */
static bool is_on_network(const char *path)
{
    static const uint32_t types[] = {NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  CIFS_SUPER_MAGIC,
                                     SMB2_SUPER_MAGIC, CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC,
                                     AFS_FS_MAGIC,     CODA_SUPER_MAGIC, V9FS_MAGIC,
                                     FUSE_SUPER_MAGIC, LUSTRE_MAGIC,     GPFS_MAGIC};
    struct statfs fs;

    if (statfs(path, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        if ((uint32_t)fs.f_type == types[i])
            return true;
    }
    return false;
}

static int open_to_write(struct sqlite_engine *e)
{
    int rc = sqlite3_open_v2(
        e->path, &e->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

    sqlite3_extended_result_codes(e->db, 1);
    if (rc == SQLITE_OK && is_on_network(e->path))
        rc = sqlite3_exec(e->db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
    return rc;
}

static enum status open_file(struct sqlite_engine *e, bool read_only, struct err *err)
{
    enum status s;
    int rc;

    if (!read_only) {
        rc = open_to_write(e);
        return rc == SQLITE_OK ? STATUS_OK : set_error(e, rc, "opening", err);
    }
    s = sqlite_read_open(&surveys, e->path, SQLITE_OPEN_NOMUTEX, &e->read, err);
    e->db = e->read.db;
    if (s == STATUS_NOT_FOUND && err)
        err->hint =
            "Name the database of a survey with --db, or make a survey: reachctl survey HOST.";
    return s;
}

static enum status set_up(struct sqlite_engine *e, bool read_only, struct err *err)
{
    static const char owner[] =
        "SELECT CASE WHEN application_id = " APPLICATION_ID
        " OR (application_id = 0 AND NOT EXISTS (SELECT 1 FROM sqlite_master)) THEN 'ours' "
        "WHEN application_id = " STATE_FILE_ID " THEN 'state' ELSE 'other' END "
        "FROM pragma_application_id";
    enum status s;
    int rc;

    sqlite3_busy_timeout(e->db, BUSY_TIMEOUT_MS);
    s = run_query(e, owner, 0, NULL, check_owner, e, err);
    if (s != STATUS_OK)
        return s;
    rc = add_functions(e->db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(e->db, settings, NULL, NULL, NULL);
    if (rc == SQLITE_OK && !read_only)
        rc = sqlite3_exec(e->db, write_settings, NULL, NULL, NULL);
    return rc == SQLITE_OK ? STATUS_OK : set_error(e, rc, "opening", err);
}

static enum status open_engine(const char *where, bool read_only, void **out, struct err *err)
{
    struct sqlite_engine *e = calloc(1, sizeof(*e));
    enum status s = STATUS_OK;

    *out = NULL;
    if (!e)
        return err_no_memory(err, "a database");
    e->path = strdup(where);
    if (!e->path)
        s = err_no_memory(err, "a database");
    if (s == STATUS_OK)
        s = open_file(e, read_only, err);
    if (s == STATUS_OK)
        s = set_up(e, read_only, err);
    if (s != STATUS_OK) {
        close_engine(e);
        e = NULL;
    }
    *out = e;
    return s;
}

static enum status check_read(void *engine, struct err *err)
{
    const struct sqlite_engine *const e = engine;

    return e->read.db ? sqlite_read_check(&surveys, &e->read, e->path, err) : STATUS_OK;
}

/* ---- rows ---- */

/* Returns the statement that appends `rows` rows to a table. */
static int prepare_append(struct sqlite_engine *e, const struct fleet_table *table, int rows,
                          sqlite3_stmt **out)
{
    char sql[MAX_SQL_BYTES];
    struct appending *a = e->append;
    int rc = SQLITE_OK;

    while (a->table && (a->table != table || a->rows != rows))
        a++;
    if (!a->table) {
        int n =
            snprintf(sql, sizeof(sql), "INSERT INTO %s (%s) VALUES ", table->name, table->columns);
        for (int i = 0; i < rows * table->count; i++)
            n += snprintf(sql + n, sizeof(sql) - (size_t)n, "%s?",
                          i == 0                  ? "("
                          : i % table->count == 0 ? "), ("
                                                  : ", ");
        (void)snprintf(sql + n, sizeof(sql) - (size_t)n, ")");
        rc = sqlite3_prepare_v2(e->db, sql, -1, &a->stmt, NULL);
        *a = (struct appending){rc == SQLITE_OK ? table : NULL, rows, a->stmt};
    }
    *out = a->stmt;
    return rc;
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

static enum status append_rows(void *engine, const struct fleet_table *table, int rows,
                               const struct fleet_value *values, struct err *err)
{
    struct sqlite_engine *const e = engine;
    sqlite3_stmt *stmt = NULL;
    int rc = prepare_append(e, table, rows, &stmt);
    enum status s;

    for (int i = 0; rc == SQLITE_OK && i < rows * table->count; i++)
        rc = bind_value(stmt, i + 1, &values[i]);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    s = rc == SQLITE_DONE ? STATUS_OK : set_error(e, rc, "INSERT", err);
    sqlite3_reset(stmt);
    return s;
}

const struct fleet_engine fleet_sqlite = {
    .open = open_engine,
    .close = close_engine,
    .query = run_query,
    .append = append_rows,
    .check_read = check_read,
    .tables = fleet_sql_metric_sqlite,
    .quartiles = fleet_sql_quartiles_sqlite,
    .begin_staging =
        "BEGIN", /* a commit per row would take longer than the row; BEGIN locks nothing */
    .begin_write = "BEGIN IMMEDIATE",
    .begin_read = "BEGIN",
};
