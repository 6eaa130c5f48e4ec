/* keep_postgres.c: surveys in PostgreSQL, through libpq. Rows are asked for one by one (single-row
 * mode), so that a report over any number of GPUs has one of them in memory.
 *
 * A build without libpq has everything else; see `libpq` in the Makefile.
 */
#include "clients/fleet/keep_engine.h"

#ifndef REACH_HAVE_LIBPQ

static enum status open_engine(const char *where, void **out, struct err *err)
{
    (void)where;
    *out = NULL;
    return err_set(err, STATUS_NOT_SUPPORTED,
                   "this build has no PostgreSQL: libpq was not there when it was made");
}

const struct fleet_engine fleet_postgres = {.name = "PostgreSQL", .open = open_engine};

#else

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STATEMENTS = 64, MAX_COLUMNS = 24, NAME_BYTES = 16 };

struct postgres_engine {
    PGconn *connection;
    int count;
    const char *kept[MAX_STATEMENTS]; /* borrowed: constants; the place is the name */
};

/* What a failure means, by the class of its SQLSTATE (PostgreSQL's appendix A). */
static enum status status_of(const char *state)
{
    static const struct {
        const char *begins;
        enum status status;
    } classes[] = {
        {"08", STATUS_IO},
        {"28", STATUS_IO},
        {"3D", STATUS_NOT_FOUND},
        {"42501", STATUS_READ_ONLY},
        {"25006", STATUS_READ_ONLY},
        {"53100", STATUS_FULL},
        {"53200", STATUS_NO_MEMORY},
        {"53", STATUS_CONFLICT},
        {"40", STATUS_CONFLICT},
        {"55", STATUS_CONFLICT},
        {"57", STATUS_IO},
        {"58", STATUS_IO},
        {"XX", STATUS_CORRUPT},
        {"42", STATUS_INVALID_ARGUMENT},
        {"22", STATUS_INVALID_ARGUMENT},
    };

    for (size_t i = 0; state && i < sizeof(classes) / sizeof(*classes); i++) {
        if (strncmp(state, classes[i].begins, strlen(classes[i].begins)) == 0)
            return classes[i].status;
    }
    return state ? STATUS_INTERNAL : STATUS_IO;
}

/* libpq's words are lines; a sentence has none. Its messages hold no password. */
static enum status fail(const struct postgres_engine *e, const PGresult *result, struct err *err)
{
    const char *const state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *const primary = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    static const char hint[] = "Check that the server runs, and host, user and password in --db.";
    char words[300];

    (void)snprintf(words, sizeof(words), "%s", primary ? primary : PQerrorMessage(e->connection));
    for (char *c = words; *c; c++) {
        if (*c == '\n')
            *c = c[1] ? ' ' : '\0';
        if (!*c)
            break;
    }
    return err_set_hint(err, status_of(state), state ? NULL : hint, "PostgreSQL: %s%s%s%s", words,
                        state ? " (SQLSTATE " : "", state ? state : "", state ? ")" : "");
}

static void close_engine(void *take)
{
    struct postgres_engine *const e = take;

    if (!e)
        return;
    PQfinish(e->connection);
    free(e);
}

static void quiet(void *self, const PGresult *result)
{
    (void)self;
    (void)result; /* notices: "relation already exists, skipping" */
}

static enum status exec(void *engine, const char *sql, struct err *err)
{
    struct postgres_engine *const e = engine;
    PGresult *const result = PQexec(e->connection, sql);
    const ExecStatusType type = PQresultStatus(result);
    enum status s = STATUS_OK;

    if (type != PGRES_COMMAND_OK && type != PGRES_TUPLES_OK)
        s = fail(e, result, err);
    PQclear(result);
    return s;
}

static enum status open_engine(const char *where, void **out, struct err *err)
{
    struct postgres_engine *e = calloc(1, sizeof(*e));
    enum status s = STATUS_OK;

    *out = NULL;
    if (!e)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a database");
    e->connection = PQconnectdb(where);
    if (!e->connection || PQstatus(e->connection) != CONNECTION_OK) {
        s = e->connection ? fail(e, NULL, err)
                          : err_set(err, STATUS_NO_MEMORY, "no memory for a database");
        close_engine(e);
        return s;
    }
    PQsetNoticeReceiver(e->connection, quiet, NULL);
    if (PQsetClientEncoding(e->connection, "UTF8") != 0)
        s = fail(e, NULL, err);
    /* A sort beyond a few megabytes goes to the server's disk, and a plan is made for any values.
     */
    if (s == STATUS_OK)
        s = exec(e, "SET standard_conforming_strings = on", err);
    if (s != STATUS_OK) {
        close_engine(e);
        e = NULL;
    }
    *out = e;
    return s;
}

/* The place of a statement that is kept prepared; MAX_STATEMENTS where it is not. */
static enum status prepare(struct postgres_engine *e, const char *sql, int *out, struct err *err)
{
    char name[NAME_BYTES];
    PGresult *result;
    enum status s = STATUS_OK;

    for (int i = 0; i < e->count; i++) {
        if (e->kept[i] == sql) {
            *out = i;
            return STATUS_OK;
        }
    }
    *out = MAX_STATEMENTS;
    if (e->count == MAX_STATEMENTS)
        return STATUS_OK;
    (void)snprintf(name, sizeof(name), "s%d", e->count);
    result = PQprepare(e->connection, name, sql, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        s = fail(e, result, err);
    PQclear(result);
    if (s == STATUS_OK) {
        *out = e->count;
        e->kept[e->count++] = sql;
    }
    return s;
}

static enum status give_row(const PGresult *result, int row, fleet_row_fn *fn, void *self,
                            struct err *err)
{
    const char *values[MAX_COLUMNS];
    const int columns = PQnfields(result);

    if (columns > MAX_COLUMNS)
        return err_set(err, STATUS_INVALID_ARGUMENT, "a query gives more than %d columns",
                       MAX_COLUMNS);
    for (int i = 0; i < columns; i++)
        values[i] = PQgetisnull(result, row, i) ? NULL : PQgetvalue(result, row, i);
    return fn ? fn(self, columns, values, err) : STATUS_OK;
}

/* Reads to the end in any case: the connection can do nothing else before. */
static enum status give_rows(struct postgres_engine *e, fleet_row_fn *fn, void *self,
                             struct err *err)
{
    enum status s = STATUS_OK;
    PGresult *result;

    while ((result = PQgetResult(e->connection))) {
        const ExecStatusType type = PQresultStatus(result);
        if (s == STATUS_OK && type == PGRES_SINGLE_TUPLE) {
            s = give_row(result, 0, fn, self, err);
            if (s != STATUS_OK) {
                PGcancel *const cancel = PQgetCancel(e->connection);
                char words[128];
                if (cancel)
                    (void)PQcancel(cancel, words, sizeof(words));
                PQfreeCancel(cancel);
            }
        } else if (s == STATUS_OK && type != PGRES_TUPLES_OK && type != PGRES_COMMAND_OK) {
            s = fail(e, result, err);
        }
        PQclear(result);
    }
    return s;
}

static enum status query(void *engine, const char *sql, bool kept, int parameter_count,
                         const char *const *parameters, fleet_row_fn *row, void *self,
                         struct err *err)
{
    struct postgres_engine *const e = engine;
    int at = MAX_STATEMENTS;
    char name[NAME_BYTES];
    enum status s = kept ? prepare(e, sql, &at, err) : STATUS_OK;
    int sent;

    if (s != STATUS_OK)
        return s;
    (void)snprintf(name, sizeof(name), "s%d", at);
    if (at < MAX_STATEMENTS)
        sent = PQsendQueryPrepared(e->connection, name, parameter_count, parameters, NULL, NULL, 0);
    else
        sent =
            PQsendQueryParams(e->connection, sql, parameter_count, NULL, parameters, NULL, NULL, 0);
    if (sent != 1)
        return fail(e, NULL, err);
    (void)PQsetSingleRowMode(e->connection);
    return give_rows(e, row, self, err);
}

/* Any number that is ours: two surveys, or a survey and what makes the tables, wait for each
 * other. */
#define WRITERS "7453010397413921"

const struct fleet_engine fleet_postgres = {
    .name = "PostgreSQL",
    .open = open_engine,
    .close = close_engine,
    .exec = exec,
    .query = query,
    .begin_write = "BEGIN; SELECT pg_advisory_xact_lock(" WRITERS ")",
    .begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    /* Without it the first report after a first survey is planned for empty tables, and takes a
     * hundred times as long. */
    .after_survey = "ANALYZE fleet_sighting, fleet_outcome, fleet_host, fleet_gpu, "
                    "fleet_fingerprint, fleet_numbers, fleet_kind, fleet_map, fleet_signature, "
                    "fleet_structure",
};

#endif
