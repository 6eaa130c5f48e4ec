/* db_postgres.c: surveys in PostgreSQL, through libpq. Rows are read one by one (single-row mode),
 * so that a report over any number of GPUs has one of them in memory, and written by COPY.
 *
 * A build without libpq has everything else; see `libpq` in the Makefile.
 */
#include "clients/fleet/db_engine.h"

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

enum {
    MAX_STATEMENTS = 64,
    MAX_COLUMNS = 24,
    MAX_TABLES = 8,
    NAME_BYTES = 16,
    NUMBER_BYTES = 32,
    COPY_BYTES = 1 << 20 /* of a table, before they are sent */
};

/* Rows of a table that wait, in COPY's text format. */
struct waiting {
    const struct fleet_table *table;
    char *text; /* owned */
    size_t bytes;
    size_t room;
};

struct postgres_engine {
    PGconn *connection;
    int count;
    const char *prepared[MAX_STATEMENTS]; /* borrowed: constants; the place is the name */
    struct waiting waiting[MAX_TABLES];
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
    for (int i = 0; i < MAX_TABLES; i++)
        free(e->waiting[i].text);
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
    /* Compiling a plan takes longer than most of these queries; memory is for the sorts of medians.
     */
    if (s == STATUS_OK)
        s = exec(e, "SET standard_conforming_strings = on; SET jit = off; SET work_mem = '64MB'",
                 err);
    if (s != STATUS_OK) {
        close_engine(e);
        e = NULL;
    }
    *out = e;
    return s;
}

/* The place of a prepared statement; MAX_STATEMENTS where it cannot be one. */
static enum status prepare(struct postgres_engine *e, const char *sql, int *out, struct err *err)
{
    char name[NAME_BYTES];
    PGresult *result;
    enum status s = STATUS_OK;

    for (int i = 0; i < e->count; i++) {
        if (e->prepared[i] == sql) {
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
        e->prepared[e->count++] = sql;
    }
    return s;
}

static enum status emit_row(const PGresult *result, int row, fleet_row_fn *fn, void *self,
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
static enum status emit_rows(struct postgres_engine *e, fleet_row_fn *fn, void *self,
                             struct err *err)
{
    enum status s = STATUS_OK;
    PGresult *result;

    while ((result = PQgetResult(e->connection))) {
        const ExecStatusType type = PQresultStatus(result);
        if (s == STATUS_OK && type == PGRES_SINGLE_TUPLE) {
            s = emit_row(result, 0, fn, self, err);
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

static enum status query(void *engine, const char *sql, bool prepared, int parameter_count,
                         const char *const *parameters, fleet_row_fn *row, void *self,
                         struct err *err)
{
    struct postgres_engine *const e = engine;
    int at = MAX_STATEMENTS;
    char name[NAME_BYTES];
    enum status s = prepared ? prepare(e, sql, &at, err) : STATUS_OK;
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
    return emit_rows(e, row, self, err);
}

/* ---- rows ---- */

static struct waiting *waiting_for(struct postgres_engine *e, const struct fleet_table *table)
{
    int i = 0;

    while (i < MAX_TABLES - 1 && e->waiting[i].table && e->waiting[i].table != table)
        i++;
    e->waiting[i].table = table;
    return &e->waiting[i];
}

static enum status send(struct postgres_engine *e, struct waiting *w, struct err *err)
{
    char sql[512];
    PGresult *result;
    enum status s = STATUS_OK;

    if (w->bytes == 0)
        return STATUS_OK;
    (void)snprintf(sql, sizeof(sql), "COPY %s (%s) FROM STDIN", w->table->name, w->table->columns);
    result = PQexec(e->connection, sql);
    if (PQresultStatus(result) != PGRES_COPY_IN ||
        PQputCopyData(e->connection, w->text, (int)w->bytes) != 1 ||
        PQputCopyEnd(e->connection, NULL) != 1)
        s = fail(e, result, err);
    PQclear(result);
    while ((result = PQgetResult(e->connection))) {
        if (s == STATUS_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
            s = fail(e, result, err);
        PQclear(result);
    }
    w->bytes = 0;
    return s;
}

static enum status flush(void *engine, struct err *err)
{
    struct postgres_engine *const e = engine;
    enum status s = STATUS_OK;

    for (int i = 0; s == STATUS_OK && i < MAX_TABLES; i++)
        s = send(e, &e->waiting[i], err);
    return s;
}

/* Room for `bytes` more. */
static bool make_room(struct waiting *w, size_t bytes)
{
    size_t room = w->room ? w->room : COPY_BYTES;
    char *grown;

    while (room < w->bytes + bytes)
        room *= 2;
    if (room == w->room)
        return true;
    grown = realloc(w->text, room);
    if (!grown)
        return false;
    w->text = grown;
    w->room = room;
    return true;
}

/* As COPY reads a text: a backslash before what it gives a meaning to. */
static void put_text(struct waiting *w, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\\t\n\r", *text)) {
            w->text[w->bytes++] = '\\';
            w->text[w->bytes++] = (char)(*text == '\t'   ? 't'
                                         : *text == '\n' ? 'n'
                                         : *text == '\r' ? 'r'
                                                         : '\\');
        } else {
            w->text[w->bytes++] = *text;
        }
    }
}

static bool put_value(struct waiting *w, const struct fleet_value *v, char end)
{
    char number[NUMBER_BYTES] = "";

    if (!make_room(w, (v->type == FLEET_TEXT ? 2 * strlen(v->text) : NUMBER_BYTES) + 1))
        return false;
    if (v->type == FLEET_INTEGER)
        (void)snprintf(number, sizeof(number), "%lld", (long long)v->integer);
    else if (v->type == FLEET_NUMBER)
        (void)snprintf(number, sizeof(number), "%.17g", v->number);
    if (v->type == FLEET_NULL) {
        w->text[w->bytes++] = '\\';
        w->text[w->bytes++] = 'N';
    } else {
        put_text(w, v->type == FLEET_TEXT ? v->text : number);
    }
    w->text[w->bytes++] = end;
    return true;
}

static enum status append(void *engine, const struct fleet_table *table,
                          const struct fleet_value *values, struct err *err)
{
    struct postgres_engine *const e = engine;
    struct waiting *const w = waiting_for(e, table);

    for (int i = 0; i < table->count; i++) {
        if (!put_value(w, &values[i], i + 1 < table->count ? '\t' : '\n'))
            return err_set(err, STATUS_NO_MEMORY, "no memory for rows");
    }
    return w->bytes >= COPY_BYTES ? send(e, w, err) : STATUS_OK;
}

/* A number of this program's own: two surveys that are stored, or a survey and what creates the
 * tables, wait for each other. */
#define WRITERS "7453010397413921"

const struct fleet_engine fleet_postgres = {
    .name = "PostgreSQL",
    .open = open_engine,
    .close = close_engine,
    .exec = exec,
    .query = query,
    .append = append,
    .flush = flush,
    .tables = fleet_sql_metric_postgres,
    .quartiles = fleet_sql_quartiles_postgres,
    .begin_write = "BEGIN; SELECT pg_advisory_xact_lock(" WRITERS ")",
    .begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    /* Without it the first report after a first survey is planned for empty tables, and takes a
     * hundred times as long. */
    .after_survey = "ANALYZE fleet_sighting, fleet_outcome, fleet_host, fleet_gpu, "
                    "fleet_fingerprint, fleet_kind, fleet_map, fleet_signature, fleet_structure, "
                    "fleet_structure_line, fleet_spread, fleet_outlier, fleet_change, fleet_drift",
};

#endif
