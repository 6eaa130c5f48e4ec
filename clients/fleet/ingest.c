/* ingest.c: moves a survey from its temporary tables into the database. Statements over all rows do
 * the work (schema/fleet/ingest.sql), and compute the tables for reports and dashboards
 * (quartiles.sql, quartiles_*.sql, outliers.sql). */
#include "clients/fleet/db_engine.h"

#include "fingerprint/diff.h"
#include "fingerprint/fingerprint_read.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- repeated measurements of GPUs, too few of a kind to determine the noise ---- */

/* Two fingerprints of one GPU. They are kept here because no statement can run while rows are read.
 */
struct pair {
    char id[FLEET_INTEGER_BYTES]; /* id of the later fingerprint */
    struct fingerprint before;
    struct fingerprint after;
};

static enum status read_document(const char *text, struct fingerprint *out, struct err *err)
{
    json_error_t why;
    json_t *const json = json_loads(text, 0, &why);
    enum status s;

    if (!json)
        return err_set(err, STATUS_CORRUPT, "a stored fingerprint is not JSON: %.120s", why.text);
    s = fingerprint_from_json(json, out, err);
    json_decref(json);
    return s;
}

/* The columns are the id, the earlier document and the document. */
static enum status read_pair(void *self, const char *const *values, struct err *err)
{
    struct pair *const pair = self;
    enum status s = read_document(values[1], &pair->before, err);

    (void)snprintf(pair->id, sizeof(pair->id), "%s", values[0]);
    return s == STATUS_OK ? read_document(values[2], &pair->after, err) : s;
}

static enum status store_pair(struct fleet_db *db, const char *survey, const struct pair *pair,
                              struct err *err)
{
    struct fingerprint_diff diff;
    char place[FLEET_INTEGER_BYTES];
    enum status s = STATUS_OK;

    fingerprint_compare(&pair->before, &pair->after, &diff);
    const uint32_t rows = diff.count > 0 ? diff.count : diff.result != FINGERPRINT_SAME;
    for (uint32_t i = 0; s == STATUS_OK && i < rows; i++)
        s = fleet_query(db,
                        "INSERT INTO fleet_drift (survey, fingerprint, place, what, class) "
                        "VALUES ($1, $2, $3, $4, $5)",
                        FLEET_VALUES(survey, pair->id, fleet_integer_text(i, place),
                                     diff.count ? diff.sentences[i] : NULL,
                                     fingerprint_class_name(diff.result)),
                        NULL, NULL, err);
    return s;
}

static enum status compare_pairs(struct fleet_db *db, const char *survey, struct err *err)
{
    struct pair *const pair = calloc(1, sizeof(*pair));
    char last[FLEET_INTEGER_BYTES] = "0";
    enum status s = STATUS_OK;

    if (!pair)
        return err_no_memory(err, "a survey");
    while (s == STATUS_OK) {
        pair->id[0] = '\0';
        s = fleet_query(db,
                        "SELECT p.fingerprint, a.document, b.document FROM fleet_new_pair p "
                        "JOIN fleet_document a ON a.fingerprint = p.was "
                        "JOIN fleet_document b ON b.fingerprint = p.fingerprint "
                        "WHERE p.many = 0 AND p.fingerprint > CAST($1 AS INTEGER) "
                        "ORDER BY p.fingerprint LIMIT 1",
                        FLEET_VALUES(last), read_pair, pair, err);
        if (s != STATUS_OK || !pair->id[0])
            break;
        s = store_pair(db, survey, pair, err);
        memcpy(last, pair->id, sizeof(last));
    }
    free(pair);
    return s;
}

/* ---- the survey ---- */

static enum status compute_tables(struct fleet_db *db, const char *survey, struct err *err)
{
    const char *const scripts[] = {fleet_sql_quartiles, db->engine->quartiles, fleet_sql_outliers};
    int64_t news = 0;
    enum status s = fleet_run_integer(db,
                                      "SELECT (SELECT COUNT(*) FROM fleet_new_fleet) + "
                                      "(SELECT COUNT(*) FROM fleet_new_pair)",
                                      0, NULL, &news, err);

    if (s != STATUS_OK || news == 0)
        return s; /* the quartiles of an earlier survey remain valid */
    for (size_t i = 0; s == STATUS_OK && i < sizeof(scripts) / sizeof(*scripts); i++)
        s = fleet_script(db, scripts[i], survey, NULL, NULL, NULL, err);
    return s == STATUS_OK ? compare_pairs(db, survey, err) : s;
}

static enum status read_counts(void *self, const char *const *values, struct err *err)
{
    struct fleet_survey *const out = self;

    (void)err;
    out->gpu_count = (uint32_t)strtoul(values[0], NULL, 10);
    out->conflict_count = (uint32_t)strtoul(values[1], NULL, 10);
    out->new_fingerprints = (uint32_t)strtoul(values[2], NULL, 10);
    return STATUS_OK;
}

/* Makes all changes of the transaction. */
static enum status store_survey(struct fleet_db *db, const char *at, nsec_t began,
                                struct fleet_survey *out, struct err *err)
{
    char survey[FLEET_INTEGER_BYTES];
    char elapsed[FLEET_INTEGER_BYTES];
    enum status s = fleet_run_integer(
        db,
        "INSERT INTO fleet_survey (id, at) "
        "VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM fleet_survey), $1) RETURNING id",
        FLEET_VALUES(at), &out->number, err);

    fleet_integer_text(out->number, survey);
    if (s == STATUS_OK)
        s = fleet_script(db, fleet_sql_ingest, survey, NULL, NULL, NULL, err);
    if (s == STATUS_OK)
        s = compute_tables(db, survey, err);
    out->elapsed_ms = (uint32_t)((clock_monotonic() - began) / NSEC_PER_MSEC);
    if (s == STATUS_OK)
        s = fleet_script(db, fleet_sql_finish, survey, fleet_integer_text(out->elapsed_ms, elapsed),
                         read_counts, out, err);
    return s;
}

enum status fleet_survey_begin(struct fleet_db *db, struct err *err)
{
    enum status s;

    if (db->in_survey)
        return err_set(err, STATUS_CONFLICT, "a survey is in progress");
    s = fleet_exec(db, db->has_staging ? fleet_sql_staging_empty : fleet_sql_staging, err);
    db->has_staging = db->has_staging || s == STATUS_OK;
    if (s == STATUS_OK && db->engine->begin_staging)
        s = fleet_exec(db, db->engine->begin_staging, err);
    db->in_survey = s == STATUS_OK;
    return s;
}

/* Writes all waiting rows to the temporary tables, so that none remains for the next survey. */
static enum status end_staging(struct fleet_db *db, struct err *err)
{
    enum status s = db->engine->flush ? db->engine->flush(db->connection, err) : STATUS_OK;

    if (s == STATUS_OK && db->engine->begin_staging)
        s = fleet_exec(db, "COMMIT", err);
    tdestroy(db->series.tree, free);
    tdestroy(db->structures.tree, free);
    db->series = db->structures = (struct fleet_numbering){.tree = NULL};
    db->fingerprint_count = 0;
    db->in_survey = false;
    return s;
}

enum status fleet_survey_end(struct fleet_db *db, const char *at, nsec_t began,
                             struct fleet_survey *out, struct err *err)
{
    enum status s;

    *out = (struct fleet_survey){.number = 0};
    if (!db->in_survey)
        return err_set(err, STATUS_CONFLICT, "no survey is in progress");
    s = end_staging(db, err);
    if (s == STATUS_OK)
        s = fleet_exec(db, db->engine->begin_write, err);
    if (s == STATUS_OK)
        s = fleet_end_write(db, store_survey(db, at, began, out, err), err);
    if (s == STATUS_OK && db->engine->after_survey) /* the survey is stored already */
        (void)fleet_exec(db, db->engine->after_survey, NULL);
    return s;
}

void fleet_survey_abort(struct fleet_db *db)
{
    if (db->in_survey)
        (void)end_staging(db, NULL);
}
