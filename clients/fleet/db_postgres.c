/* db_postgres.c: surveys in PostgreSQL, through libpq. Rows are read one by one (single-row mode),
 * so that a report over any number of GPUs has one row in memory. Rows are written with COPY.
 *
 * A build without libpq lacks only this engine; see PQ_FOUND in mk/flags.mk. */
#include "clients/fleet/db_engine.h"

#ifndef REACH_HAVE_LIBPQ

static enum status open_engine(const char *where, bool read_only, void **out, struct err *err)
{
    (void)where;
    (void)read_only;
    *out = NULL;
    return err_set(err, STATUS_NOT_SUPPORTED,
                   "this build does not support PostgreSQL (built without libpq)");
}

const struct fleet_engine fleet_postgres = {.open = open_engine};

#else

#include "base/assert.h"
#include "base/text.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TABLES = 8,
    COPY_BYTES = 1 << 17 /* bytes of rows that are sent at once; a socket buffers this amount */
};

/* Rows of a table in the text format of COPY, which wait to be sent. */
struct waiting {
    const struct fleet_table *table;
    FILE *out; /* stream that writes to `text`, owned; NULL if there are no rows */
    char *text;
    size_t bytes;
};

struct postgres_engine {
    PGconn *connection;
    struct waiting waiting[MAX_TABLES];
};

/* Returns the status for a SQLSTATE, by its beginning (appendix A of PostgreSQL's manual). */
static enum status status_from_state(const char *state)
{
    static const struct {
        const char *begins;
        enum status status;
    } classes[] = {
        {"42501", STATUS_READ_ONLY},     {"25006", STATUS_READ_ONLY},
        {"53100", STATUS_FULL},          {"53200", STATUS_NO_MEMORY},
        {"XX", STATUS_CORRUPT},          {"42", STATUS_INVALID_ARGUMENT},
        {"22", STATUS_INVALID_ARGUMENT},
    };

    for (size_t i = 0; state && i < sizeof(classes) / sizeof(*classes); i++) {
        if (strncmp(state, classes[i].begins, strlen(classes[i].begins)) == 0)
            return classes[i].status;
    }
    return STATUS_IO;
}

/* Messages of libpq have several lines, and the text of an err has one line. The messages contain
 * no password. */
static enum status set_error(const struct postgres_engine *e, const PGresult *result,
                             struct err *err)
{
    const char *const state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *const primary = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    static const char hint[] = "Check that the server runs, and host, user and password in --db.";
    char words[300];

    (void)snprintf(words, sizeof(words), "%s", primary ? primary : PQerrorMessage(e->connection));
    if (words[0] && words[strlen(words) - 1] == '\n')
        words[strlen(words) - 1] = '\0';
    text_sanitize(words);
    return err_set_hint(err, status_from_state(state), state ? NULL : hint, "PostgreSQL: %s%s%s%s",
                        words, state ? " (SQLSTATE " : "", state ? state : "", state ? ")" : "");
}

static void close_engine(void *take)
{
    struct postgres_engine *const e = take;

    if (!e)
        return;
    PQfinish(e->connection);
    for (int i = 0; i < MAX_TABLES; i++) {
        if (e->waiting[i].out)
            (void)fclose(e->waiting[i].out);
        free(e->waiting[i].text);
    }
    free(e);
}

static enum status open_engine(const char *where, bool read_only, void **out, struct err *err)
{
    /* The compilation of a plan takes longer than most queries. The working memory is for the sorts
     * of medians.
     */
    static const char settings[] =
        "SET standard_conforming_strings = on; SET jit = off; SET work_mem = '64MB'; "
        "SET client_min_messages = error" /* suppresses "relation already exists, skipping" */;
    struct postgres_engine *e = calloc(1, sizeof(*e));
    enum status s = STATUS_OK;

    (void)read_only; /* a report only reads */
    *out = NULL;
    if (e)
        e->connection = PQconnectdb(where);
    if (!e || !e->connection) {
        free(e);
        return err_no_memory(err, "a database");
    }
    if (PQstatus(e->connection) != CONNECTION_OK || PQsetClientEncoding(e->connection, "UTF8") != 0)
        s = set_error(e, NULL, err);
    PGresult *const set = s == STATUS_OK ? PQexec(e->connection, settings) : NULL;
    if (s == STATUS_OK && PQresultStatus(set) != PGRES_COMMAND_OK)
        s = set_error(e, set, err);
    PQclear(set);
    if (s == STATUS_OK) /* lz4 stores documents in half the time; servers before version 14 do not
                           support it */
        PQclear(PQexec(e->connection, "SET default_toast_compression = lz4"));
    if (s != STATUS_OK) {
        close_engine(e);
        e = NULL;
    }
    *out = e;
    return s;
}

/* ---- queries ---- */

static enum status emit_row(const PGresult *result, fleet_row_fn *row, void *self, struct err *err)
{
    const char *values[FLEET_MAX_COLUMNS];
    const int columns = PQnfields(result);

    REACH_ASSERT(columns <= FLEET_MAX_COLUMNS);
    for (int i = 0; i < columns; i++)
        values[i] = PQgetisnull(result, 0, i) ? NULL : PQgetvalue(result, 0, i);
    return row ? row(self, values, err) : STATUS_OK;
}

/* Reads all results of the server, also after an error. Until then the connection accepts no other
 * call. */
static enum status read_results(const struct postgres_engine *e, fleet_row_fn *row, void *self,
                                struct err *err)
{
    enum status s = STATUS_OK;
    PGresult *result;

    while ((result = PQgetResult(e->connection))) {
        const ExecStatusType type = PQresultStatus(result);
        if (s == STATUS_OK && type == PGRES_SINGLE_TUPLE)
            s = emit_row(result, row, self, err);
        else if (s == STATUS_OK && type != PGRES_TUPLES_OK && type != PGRES_COMMAND_OK)
            s = set_error(e, result, err);
        PQclear(result);
    }
    return s;
}

static enum status run_query(void *engine, const char *sql, int parameter_count,
                             const char *const *parameters, fleet_row_fn *row, void *self,
                             struct err *err)
{
    struct postgres_engine *const e = engine;
    enum status s = read_results(e, NULL, NULL, err); /* the result of rows that were sent before */

    if (s == STATUS_OK && PQsendQueryParams(e->connection, sql, parameter_count, NULL, parameters,
                                            NULL, NULL, 0) != 1)
        s = set_error(e, NULL, err);
    if (s != STATUS_OK)
        return s;
    (void)PQsetSingleRowMode(e->connection);
    return read_results(e, row, self, err);
}

/* ---- rows ---- */

/* Sends rows. The server reads them while the caller continues, and the next call gets the result.
 */
static enum status send_rows(struct postgres_engine *e, struct waiting *w, struct err *err)
{
    char sql[512];
    PGresult *result = NULL;
    const bool complete = fclose(w->out) == 0;
    enum status s = read_results(e, NULL, NULL, err);

    w->out = NULL;
    (void)snprintf(sql, sizeof(sql), "COPY %s (%s) FROM STDIN", w->table->name, w->table->columns);
    if (s == STATUS_OK && !complete)
        s = err_no_memory(err, "rows");
    if (s == STATUS_OK)
        result = PQexec(e->connection, sql);
    if (s == STATUS_OK && (PQresultStatus(result) != PGRES_COPY_IN ||
                           PQputCopyData(e->connection, w->text, (int)w->bytes) != 1 ||
                           PQputCopyEnd(e->connection, NULL) != 1))
        s = set_error(e, result, err);
    PQclear(result);
    free(w->text);
    w->text = NULL;
    return s;
}

static enum status flush_rows(void *engine, struct err *err)
{
    struct postgres_engine *const e = engine;
    enum status s = STATUS_OK;

    for (int i = 0; s == STATUS_OK && i < MAX_TABLES; i++)
        s = e->waiting[i].out ? send_rows(e, &e->waiting[i], err) : STATUS_OK;
    return s == STATUS_OK ? read_results(e, NULL, NULL, err) : s;
}

/* COPY needs a backslash before a character that ends a value, a row or the data. */
static void put_text(FILE *out, const char *text)
{
    static const char special[] = "\\\t\n\r";
    static const char letters[] = "\\tnr";

    for (;;) {
        const size_t plain = strcspn(text, special);
        (void)fwrite(text, 1, plain, out);
        text += plain;
        if (!*text)
            return;
        fprintf(out, "\\%c", letters[strchr(special, *text++) - special]);
    }
}

static void put_value(FILE *out, const struct fleet_value *v)
{
    switch (v->type) {
    case FLEET_TEXT:
        put_text(out, v->text);
        break;
    case FLEET_INTEGER:
        fprintf(out, "%lld", (long long)v->integer);
        break;
    case FLEET_NUMBER:
        fprintf(out, "%.17g", v->number);
        break;
    case FLEET_NULL:
        fputs("\\N", out);
    }
}

static enum status append_rows(void *engine, const struct fleet_table *table, int rows,
                               const struct fleet_value *values, struct err *err)
{
    struct postgres_engine *const e = engine;
    struct waiting *w = e->waiting;

    while (w->table && w->table != table)
        w++;
    w->table = table;
    if (!w->out)
        w->out = open_memstream(&w->text, &w->bytes);
    if (!w->out)
        return err_no_memory(err, "rows");
    for (int i = 0; i < rows * table->count; i++) {
        put_value(w->out, &values[i]);
        fputc((i + 1) % table->count > 0 ? '\t' : '\n', w->out);
    }
    return ftello(w->out) >= COPY_BYTES ? send_rows(e, w, err) : STATUS_OK;
}

/* The number of an advisory lock. A program that stores a survey or creates the tables waits for
 * this lock. */
#define WRITERS "7453010397413921"

const struct fleet_engine fleet_postgres = {
    .open = open_engine,
    .close = close_engine,
    .query = run_query,
    .append = append_rows,
    .flush = flush_rows,
    .tables = fleet_sql_metric_postgres,
    .quartiles = fleet_sql_quartiles_postgres,
    .begin_write = "BEGIN;\nSELECT pg_advisory_xact_lock(" WRITERS ")",
    .begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    /* Without these statistics, PostgreSQL plans the first report after the first survey for empty
       tables. The report then takes a hundred times longer. */
    .after_survey =
        "ANALYZE fleet_sighting, fleet_outcome, fleet_host, fleet_gpu, "
        "fleet_fingerprint, fleet_kind, fleet_map, fleet_signature, fleet_structure, "
        "fleet_structure_line, fleet_quartiles, fleet_outlier, fleet_change, fleet_drift",
};

#endif
