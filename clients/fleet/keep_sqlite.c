/* keep_sqlite.c: surveys in a SQLite file. Write-ahead log, so that a report can be made while a
 * survey is under way.
 *
 * The file says whose it is in its application id. One that is not empty and not ours is left as it
 * is: the daemon's own state file, say.
 */
#include "clients/fleet/keep_engine.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    APPLICATION_ID = 0x52664c54, /* "RfLT" */
    BUSY_TIMEOUT_MS = 10000,     /* another survey may be at it */
    MAX_STATEMENTS = 48,
    MAX_COLUMNS = 24,
    PRIMARY_CODE = 0xff
};

/* Bounds on what SQLite keeps in memory, whatever the size of the file. */
static const char settings[] = "PRAGMA cache_size = -8192;"
                               "PRAGMA mmap_size = 0;"
                               "PRAGMA temp_store = 1;"
                               "PRAGMA foreign_keys = ON;"
                               "PRAGMA trusted_schema = OFF;"
                               "PRAGMA synchronous = FULL;";

struct kept_statement {
    const char *sql; /* borrowed: constant */
    sqlite3_stmt *stmt;
};

struct sqlite_engine {
    sqlite3 *db;
    int count;
    struct kept_statement kept[MAX_STATEMENTS];
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

/* Refuses what is somebody else's, before anything is written. */
static enum status whose(struct sqlite_engine *e, const char *path, struct err *err)
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
        sqlite3_finalize(e->kept[i].stmt);
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
    rc = sqlite3_create_collation(e->db, "C", SQLITE_UTF8, NULL, by_bytes);
    s = rc == SQLITE_OK ? whose(e, where, err) : fail(e, rc, err);
    if (s == STATUS_OK)
        s = exec(e, settings, err);
    /* Pages of a new file that are read in one go. */
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

/* A statement ready to be bound; `*out_kept` says that it stays when it is done with. */
static int prepare(struct sqlite_engine *e, const char *sql, bool kept, sqlite3_stmt **out,
                   bool *out_kept)
{
    int rc;

    *out_kept = kept;
    for (int i = 0; kept && i < e->count; i++) {
        if (e->kept[i].sql == sql) {
            *out = e->kept[i].stmt;
            return SQLITE_OK;
        }
    }
    rc = sqlite3_prepare_v2(e->db, sql, -1, out, NULL);
    *out_kept = kept && rc == SQLITE_OK && e->count < MAX_STATEMENTS;
    if (*out_kept)
        e->kept[e->count++] = (struct kept_statement){.sql = sql, .stmt = *out};
    return rc;
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

static enum status give_rows(struct sqlite_engine *e, sqlite3_stmt *stmt, fleet_row_fn *row,
                             void *self, struct err *err)
{
    const char *values[MAX_COLUMNS];
    const int columns = sqlite3_column_count(stmt);
    int rc;

    if (columns > MAX_COLUMNS)
        return err_set(err, STATUS_INVALID_ARGUMENT, "a query gives more than %d columns",
                       MAX_COLUMNS);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        enum status s;
        for (int i = 0; i < columns; i++)
            values[i] = (const char *)sqlite3_column_text(stmt, i);
        s = row ? row(self, columns, values, err) : STATUS_OK;
        if (s != STATUS_OK)
            return s;
    }
    return rc == SQLITE_DONE ? STATUS_OK : fail(e, rc, err);
}

static enum status query(void *engine, const char *sql, bool kept, int parameter_count,
                         const char *const *parameters, fleet_row_fn *row, void *self,
                         struct err *err)
{
    struct sqlite_engine *const e = engine;
    sqlite3_stmt *stmt = NULL;
    bool stays = false;
    enum status s;
    int rc = prepare(e, sql, kept, &stmt, &stays);

    if (rc == SQLITE_OK)
        rc = bind(stmt, parameter_count, parameters);
    s = rc == SQLITE_OK ? give_rows(e, stmt, row, self, err) : fail(e, rc, err);
    if (stays) {
        sqlite3_reset(stmt);
        sqlite3_clear_bindings(stmt);
    } else {
        sqlite3_finalize(stmt);
    }
    return s;
}

const struct fleet_engine fleet_sqlite = {
    .name = "SQLite",
    .open = open_engine,
    .close = close_engine,
    .exec = exec,
    .query = query,
    .begin_write = "BEGIN IMMEDIATE",
    .begin_read = "BEGIN",
};
