/* db.c: connects to the database, creates its tables, and runs queries and scripts, in the same way
 * for both engines. */
#include "clients/fleet/db_engine.h"

#include "types/name_of.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 5 };

NAME_FUNCTIONS(fleet_outcome,
               enum fleet_outcome, [FLEET_ANSWERED] = "answered", [FLEET_UNCHANGED] = "unchanged",
               [FLEET_NO_NAME] = "no-name", [FLEET_REFUSED] = "refused",
               [FLEET_TIMEOUT] = "timeout", [FLEET_TLS_ERROR] = "tls-error",
               [FLEET_TOO_LARGE] = "too-large", [FLEET_BAD_RESPONSE] = "bad-response",
               [FLEET_ERROR] = "error", [FLEET_INCONSISTENT] = "inconsistent")

const char *fleet_integer_text(int64_t v, char *out)
{
    (void)snprintf(out, FLEET_INTEGER_BYTES, "%" PRId64, v);
    return out;
}

/* ---- queries ---- */

enum status fleet_query(struct fleet_db *db, const char *sql, int parameter_count,
                        const char *const *parameters, fleet_row_fn *row, void *self,
                        struct err *err)
{
    return db->engine->query(db->connection, sql, parameter_count, parameters, row, self, err);
}

static enum status read_integer(void *self, const char *const *values, struct err *err)
{
    int64_t *const out = self;

    (void)err;
    *out = values[0] ? strtoll(values[0], NULL, 10) : 0;
    return STATUS_OK;
}

enum status fleet_run_integer(struct fleet_db *db, const char *sql, int parameter_count,
                              const char *const *parameters, int64_t *out, struct err *err)
{
    *out = 0;
    return fleet_query(db, sql, parameter_count, parameters, read_integer, out, err);
}

/* Skips blank lines and comments, because a comment can contain a parameter. */
static const char *skip_comments(const char *sql)
{
    while (*sql == '\n' || strncmp(sql, "--", 2) == 0)
        sql += strcspn(sql, "\n") + 1;
    return sql;
}

enum status fleet_script(struct fleet_db *db, const char *sql, const char *first,
                         const char *second, fleet_row_fn *row, void *self, struct err *err)
{
    const char *const parameters[] = {first, second};
    enum status s = STATUS_OK;

    for (const char *end; s == STATUS_OK && *sql; sql = *end ? end + 2 : end) {
        sql = skip_comments(sql);
        end = strstr(sql, ";\n");
        end = end ? end : sql + strlen(sql);
        char *const one = strndup(sql, (size_t)(end - sql));
        if (!one)
            return err_no_memory(err, "a query");
        const int count = strstr(one, "$2") ? 2 : strstr(one, "$1") ? 1 : 0;
        s = fleet_query(db, one, count, parameters, row, self, err);
        free(one);
    }
    return s;
}

enum status fleet_exec(struct fleet_db *db, const char *sql, struct err *err)
{
    return fleet_script(db, sql, NULL, NULL, NULL, NULL, err);
}

enum status fleet_end_write(struct fleet_db *db, enum status so_far, struct err *err)
{
    if (so_far == STATUS_OK)
        so_far = fleet_exec(db, "COMMIT", err);
    if (so_far != STATUS_OK)
        (void)fleet_exec(db, "ROLLBACK", NULL);
    return so_far;
}

/* ---- tables ---- */

static enum status create_tables(struct fleet_db *db, struct err *err)
{
    char version[FLEET_INTEGER_BYTES];
    enum status s = fleet_exec(db, db->engine->tables, err);

    if (s == STATUS_OK)
        s = fleet_exec(db, fleet_sql_tables, err);
    if (s == STATUS_OK)
        s = fleet_query(db, "INSERT INTO fleet_schema (version) VALUES ($1)",
                        FLEET_VALUES(fleet_integer_text(SCHEMA_VERSION, version)), NULL, NULL, err);
    return s;
}

static enum status other_version(int64_t version, struct err *err)
{
    return err_set_hint(
        err, STATUS_CONFLICT, "Use the release that wrote the database, or begin a new database.",
        "the database of surveys has version %" PRId64 "; this release uses version %d", version,
        SCHEMA_VERSION);
}

static const char version_of[] = "SELECT version FROM fleet_schema";

static enum status check_tables(struct fleet_db *db, struct err *err)
{
    int64_t version = 0;
    enum status s = fleet_run_integer(db, version_of, 0, NULL, &version, NULL);

    if (s == STATUS_OK && version == SCHEMA_VERSION)
        return STATUS_OK;
    s = fleet_exec(db, db->engine->begin_write, err);
    if (s != STATUS_OK)
        return s;
    s = fleet_exec(db, "CREATE TABLE IF NOT EXISTS fleet_schema (version INTEGER NOT NULL)", err);
    if (s == STATUS_OK)
        s = fleet_run_integer(db, version_of, 0, NULL, &version, err);
    if (s == STATUS_OK && version == 0)
        s = create_tables(db, err);
    else if (s == STATUS_OK && version != SCHEMA_VERSION)
        s = other_version(version, err);
    return fleet_end_write(db, s, err);
}

static enum status check_version(struct fleet_db *db, struct err *err)
{
    int64_t version = 0;

    if (fleet_run_integer(db, version_of, 0, NULL, &version, NULL) != STATUS_OK || version == 0)
        return err_set_hint(
            err, STATUS_NOT_FOUND,
            "Name the database of a survey with --db, or make a survey: reachctl survey HOST.",
            "there is no survey in this database");
    return version == SCHEMA_VERSION ? STATUS_OK : other_version(version, err);
}

static enum status connect_to(const char *where, bool read_only, struct fleet_db **out,
                              struct err *err)
{
    struct fleet_db *db = calloc(1, sizeof(*db));
    enum status s;

    *out = NULL;
    if (!db)
        return err_no_memory(err, "a database");
    db->engine = strncmp(where, "postgresql://", 13) == 0 || strncmp(where, "postgres://", 11) == 0
                     ? &fleet_postgres
                     : &fleet_sqlite;
    s = db->engine->open(where, read_only, &db->connection, err);
    if (s == STATUS_OK)
        s = read_only ? check_version(db, err) : check_tables(db, err);
    if (s == STATUS_OK)
        *out = db;
    else
        fleet_close(db);
    return s;
}

enum status fleet_open(const char *where, struct fleet_db **out, struct err *err)
{
    return connect_to(where, false, out, err);
}

enum status fleet_open_to_read(const char *where, struct fleet_db **out, struct err *err)
{
    return connect_to(where, true, out, err);
}

void fleet_close(struct fleet_db *take)
{
    if (!take)
        return;
    tdestroy(take->series.tree, free); /* a survey that is still in progress is not stored */
    tdestroy(take->structures.tree, free);
    if (take->connection)
        take->engine->close(take->connection);
    free(take);
}

/* ---- stored data of a host ---- */

static enum status copy_etag(void *self, const char *const *values, struct err *err)
{
    (void)err;
    (void)snprintf(self, FLEET_ETAG_BYTES, "%s", values[0]);
    return STATUS_OK;
}

enum status fleet_last_etag(struct fleet_db *db, const char *host, char *out_etag, struct err *err)
{
    out_etag[0] = '\0';
    return fleet_query(db, "SELECT etag FROM fleet_host WHERE name = $1 AND answered > 0",
                       FLEET_VALUES(host), copy_etag, out_etag, err);
}
