/* keep.c: opening, making the tables, transactions and queries: what both engines do alike.
 *
 * A survey is one transaction. Writers wait for each other at its begin, so that whatever reads a
 * row and then writes (the highest number so far, is this name there?) is right on both engines.
 */
#include "clients/fleet/keep_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fleet_outcome_name(enum fleet_outcome outcome)
{
    static const char *const names[FLEET_OUTCOME_COUNT] = {
        [FLEET_ANSWERED] = "answered",   [FLEET_UNCHANGED] = "unchanged",
        [FLEET_NO_NAME] = "no-name",     [FLEET_REFUSED] = "refused",
        [FLEET_TIMEOUT] = "timeout",     [FLEET_UNTRUSTED] = "untrusted",
        [FLEET_TOO_LARGE] = "too-large", [FLEET_GARBAGE] = "garbage",
        [FLEET_ERROR] = "error",         [FLEET_LIED] = "lied",
    };
    return (unsigned)outcome < FLEET_OUTCOME_COUNT ? names[outcome] : "unknown";
}

const char *fleet_number_text(int64_t v, char *out)
{
    (void)snprintf(out, FLEET_NUMBER_BYTES, "%" PRId64, v);
    return out;
}

/* ---- queries ---- */

enum status fleet_run(struct fleet_db *db, const char *sql, int parameter_count,
                      const char *const *parameters, fleet_row_fn *row, void *self, struct err *err)
{
    return db->engine->query(db->connection, sql, true, parameter_count, parameters, row, self,
                             err);
}

enum status fleet_query(struct fleet_db *db, const char *sql, int parameter_count,
                        const char *const *parameters, fleet_row_fn *row, void *self,
                        struct err *err)
{
    return db->engine->query(db->connection, sql, false, parameter_count, parameters, row, self,
                             err);
}

struct first_number {
    int64_t v;
    bool found;
    bool any_row;
};

static enum status take_number(void *self, int columns, const char *const *values, struct err *err)
{
    struct first_number *const n = self;

    (void)err;
    if (!n->any_row && columns > 0 && values[0]) {
        n->v = strtoll(values[0], NULL, 10);
        n->found = true;
    }
    n->any_row = true;
    return STATUS_OK;
}

enum status fleet_run_number(struct fleet_db *db, const char *sql, int parameter_count,
                             const char *const *parameters, int64_t *out, bool *out_found,
                             struct err *err)
{
    struct first_number n = {.v = 0};
    const enum status s = fleet_run(db, sql, parameter_count, parameters, take_number, &n, err);

    *out = n.v;
    *out_found = n.found;
    return s;
}

/* ---- transactions ---- */

static enum status begin_write(struct fleet_db *db, struct err *err)
{
    return db->engine->exec(db->connection, db->engine->begin_write, err);
}

/* COMMIT where `so_far` is STATUS_OK, ROLLBACK otherwise; returns the first failure. */
static enum status end_write(struct fleet_db *db, enum status so_far, struct err *err)
{
    if (so_far == STATUS_OK)
        so_far = db->engine->exec(db->connection, "COMMIT", err);
    if (so_far != STATUS_OK)
        (void)db->engine->exec(db->connection, "ROLLBACK", NULL);
    return so_far;
}

enum status fleet_read_begin(struct fleet_db *db, struct err *err)
{
    return db->engine->exec(db->connection, db->engine->begin_read, err);
}

void fleet_read_end(struct fleet_db *db)
{
    (void)db->engine->exec(db->connection, "ROLLBACK", NULL);
}

/* ---- tables ---- */

/* Brings the tables from `version` to the newest. */
static enum status migrate(struct fleet_db *db, int64_t version, struct err *err)
{
    char number[FLEET_NUMBER_BYTES];
    enum status s = STATUS_OK;

    for (int64_t i = version; s == STATUS_OK && i < (int64_t)fleet_migration_count; i++)
        s = db->engine->exec(db->connection, fleet_migrations[i], err);
    if (s == STATUS_OK)
        s = db->engine->exec(db->connection, "DELETE FROM fleet_schema", err);
    if (s == STATUS_OK)
        s = fleet_run(db, "INSERT INTO fleet_schema (version) VALUES ($1)",
                      FLEET_VALUES(fleet_number_text(fleet_migration_count, number)), NULL, NULL,
                      err);
    return s;
}

/* Nothing is written where all is as it should be: a report needs no more than to read. */
static enum status make_tables(struct fleet_db *db, struct err *err)
{
    static const char version_of[] = "SELECT version FROM fleet_schema";
    int64_t version = 0;
    bool found = false;
    enum status s;

    if (fleet_run_number(db, version_of, 0, NULL, &version, &found, NULL) == STATUS_OK && found &&
        version == (int64_t)fleet_migration_count)
        return STATUS_OK;
    s = begin_write(db, err);
    if (s != STATUS_OK)
        return s;
    s = db->engine->exec(db->connection,
                         "CREATE TABLE IF NOT EXISTS fleet_schema (version INTEGER NOT NULL)", err);
    if (s == STATUS_OK)
        s = fleet_run_number(db, version_of, 0, NULL, &version, &found, err);
    if (s == STATUS_OK && (version < 0 || version > (int64_t)fleet_migration_count))
        s = err_set_hint(
            err, STATUS_CONFLICT, "Use a reachctl of that release, or another database.",
            "the surveys were kept by a newer release: version %" PRId64 ", and this one knows %u",
            version, fleet_migration_count);
    if (s == STATUS_OK && version < (int64_t)fleet_migration_count)
        s = migrate(db, version, err);
    return end_write(db, s, err);
}

static bool is_postgres(const char *where)
{
    return strncmp(where, "postgresql://", 13) == 0 || strncmp(where, "postgres://", 11) == 0;
}

enum status fleet_open(const char *where, struct fleet_db **out, struct err *err)
{
    struct fleet_db *db = calloc(1, sizeof(*db));
    enum status s;

    *out = NULL;
    if (!db)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a database");
    db->engine = is_postgres(where) ? &fleet_postgres : &fleet_sqlite;
    s = db->engine->open(where, &db->connection, err);
    if (s == STATUS_OK)
        s = make_tables(db, err);
    if (s != STATUS_OK) {
        fleet_close(db);
        return s;
    }
    *out = db;
    return STATUS_OK;
}

void fleet_close(struct fleet_db *take)
{
    if (!take)
        return;
    fleet_survey_abort(take);
    if (take->connection)
        take->engine->close(take->connection);
    number_names_free(take->names);
    free(take);
}

/* ---- surveys ---- */

enum status fleet_survey_begin(struct fleet_db *db, const char *at, int64_t *out_survey,
                               struct err *err)
{
    bool found = false;
    enum status s;

    *out_survey = 0;
    if (db->survey)
        return err_set(err, STATUS_CONFLICT, "a survey is under way");
    s = begin_write(db, err);
    if (s != STATUS_OK)
        return s;
    s = fleet_run_number(
        db,
        "INSERT INTO fleet_survey (id, at) "
        "VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM fleet_survey), $1) RETURNING id",
        FLEET_VALUES(at), out_survey, &found, err);
    if (s != STATUS_OK)
        return end_write(db, s, err);
    db->survey = *out_survey;
    return STATUS_OK;
}

enum status fleet_survey_end(struct fleet_db *db, int64_t survey, uint32_t elapsed_ms,
                             struct err *err)
{
    char id[FLEET_NUMBER_BYTES];
    char elapsed[FLEET_NUMBER_BYTES];
    enum status s;

    if (!db->survey || db->survey != survey)
        return err_set(err, STATUS_CONFLICT, "survey %" PRId64 " is not under way", survey);
    s = fleet_run(
        db, "UPDATE fleet_survey SET elapsed_ms = $2 WHERE id = $1",
        FLEET_VALUES(fleet_number_text(survey, id), fleet_number_text(elapsed_ms, elapsed)), NULL,
        NULL, err);
    s = end_write(db, s, err);
    db->survey = 0;
    if (s == STATUS_OK && db->engine->after_survey) /* the survey is kept, whatever comes of it */
        (void)db->engine->exec(db->connection, db->engine->after_survey, NULL);
    if (s != STATUS_OK) {
        number_names_free(db->names); /* some of them may be gone again */
        db->names = NULL;
    }
    return s;
}

void fleet_survey_abort(struct fleet_db *db)
{
    if (!db->survey)
        return;
    (void)end_write(db, STATUS_CANCELLED, NULL);
    db->survey = 0;
    number_names_free(db->names);
    db->names = NULL;
}
