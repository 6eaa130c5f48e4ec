/* report.c: which reports, about which survey, in which format. */
#include "clients/fleet/report_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bit;
    enum status (*print)(struct report *r, struct err *err);
} reports[] = {
    {"signatures", FLEET_REPORT_SIGNATURES, report_signatures},
    {"maps", FLEET_REPORT_MAPS, report_maps},
    {"spread", FLEET_REPORT_SPREAD, report_spread},
    {"outliers", FLEET_REPORT_OUTLIERS, report_outliers},
    {"drift", FLEET_REPORT_DRIFT, report_drift},
    {"hosts", FLEET_REPORT_HOSTS, report_hosts},
    {"boards", FLEET_REPORT_BOARDS, report_boards},
    {"summary", FLEET_REPORT_SUMMARY, NULL},
};
enum { REPORT_COUNT = sizeof(reports) / sizeof(*reports) };

bool fleet_report_from_name(const char *name, unsigned *out)
{
    for (int i = 0; i < REPORT_COUNT; i++) {
        if (strcmp(name, reports[i].name) == 0) {
            *out = reports[i].bit;
            return true;
        }
    }
    return false;
}

bool fleet_format_from_name(const char *name, enum fleet_format *out)
{
    static const char *const names[FLEET_FORMAT_COUNT] = {[FLEET_FORMAT_TABLE] = "table",
                                                          [FLEET_FORMAT_JSON] = "json",
                                                          [FLEET_FORMAT_CSV] = "csv",
                                                          [FLEET_FORMAT_MARKDOWN] = "markdown",
                                                          [FLEET_FORMAT_SVG] = "svg"};

    for (int i = 0; i < FLEET_FORMAT_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum fleet_format)i;
            return true;
        }
    }
    return false;
}

/* ---- which survey ---- */

static enum status read_head(void *self, int columns, const char *const *values, struct err *err)
{
    struct report_head *const head = self;

    (void)columns;
    (void)err;
    head->survey = strtoll(values[0], NULL, 10);
    (void)snprintf(head->at, sizeof(head->at), "%s", values[1]);
    head->hosts = strtoll(values[2], NULL, 10);
    return STATUS_OK;
}

static enum status read_origin(void *self, int columns, const char *const *values, struct err *err)
{
    struct report_head *const head = self;
    const bool simulated = strcmp(values[0], "simulated") == 0;

    (void)columns;
    (void)err;
    head->gpus += strtoll(values[1], NULL, 10);
    head->simulated = head->simulated || simulated;
    head->measured = head->measured || (!simulated && values[0][0]);
    return STATUS_OK;
}

/* Fills the head; `number` 0 is the latest. */
static enum status find_survey(struct report *r, int64_t number, struct report_head *head,
                               struct err *err)
{
    char wanted[FLEET_NUMBER_BYTES];
    enum status s =
        fleet_run(r->db,
                  "SELECT s.id, s.at, (SELECT COUNT(*) FROM fleet_outcome o WHERE o.survey = s.id) "
                  "FROM fleet_survey s WHERE s.id = CASE WHEN CAST($1 AS BIGINT) = 0 THEN "
                  "(SELECT MAX(id) FROM fleet_survey) ELSE CAST($1 AS BIGINT) END",
                  FLEET_VALUES(fleet_number_text(number, wanted)), read_head, head, err);

    if (s == STATUS_OK && head->survey == 0 && number == 0)
        return err_set_hint(err, STATUS_NOT_FOUND,
                            "Make one: reachctl survey HOST.... Or name the database of another "
                            "with --db.",
                            "no survey has been made yet");
    if (s == STATUS_OK && head->survey == 0)
        return err_set_hint(err, STATUS_NOT_FOUND,
                            "Leave --survey out for the latest, or name the database with --db.",
                            "there is no survey %" PRId64, number);
    fleet_number_text(head->survey, r->survey);
    if (s == STATUS_OK)
        s = fleet_run(r->db,
                      "SELECT k.origin, COUNT(*) FROM fleet_sighting s JOIN fleet_kind k "
                      "ON k.id = s.kind WHERE s.survey = $1 AND s.counted = 1 "
                      "AND (CAST($2 AS TEXT) = '' OR k.model = $2) GROUP BY k.origin",
                      FLEET_VALUES(r->survey, r->model), read_origin, head, err);
    return s;
}

/* ---- what they share ---- */

static enum status read_kind(void *self, int columns, const char *const *values, struct err *err)
{
    struct report_kinds *const kinds = self;
    struct report_kind *k;

    (void)columns;
    (void)err;
    if (kinds->count == REPORT_MAX_KINDS) {
        kinds->more = true;
        return STATUS_OK;
    }
    k = &kinds->kinds[kinds->count++];
    (void)snprintf(k->id, sizeof(k->id), "%s", values[0]);
    (void)snprintf(k->model, sizeof(k->model), "%s", values[1]);
    (void)snprintf(k->origin, sizeof(k->origin), "%s", values[2]);
    k->gpus = strtoll(values[3], NULL, 10);
    return STATUS_OK;
}

enum status report_kinds(struct report *r, struct report_kinds *out, struct err *err)
{
    *out = (struct report_kinds){.kinds = calloc(REPORT_MAX_KINDS, sizeof(*out->kinds))};
    if (!out->kinds)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    return fleet_run(r->db,
                     "SELECT k.id, k.model, k.origin, c.n FROM (SELECT kind, COUNT(*) AS n "
                     "FROM fleet_sighting WHERE survey = $1 AND counted = 1 "
                     "AND fingerprint IS NOT NULL GROUP BY kind) c "
                     "JOIN fleet_kind k ON k.id = c.kind "
                     "WHERE CAST($2 AS TEXT) = '' OR k.model = $2 "
                     "ORDER BY k.model COLLATE \"C\", k.origin COLLATE \"C\"",
                     FLEET_VALUES(r->survey, r->model), read_kind, out, err);
}

bool report_rows_next(struct report_rows *rows)
{
    if (rows->r->brief && rows->printed == REPORT_BRIEF_ROWS) {
        rows->more++;
        return false;
    }
    rows->printed++;
    return true;
}

void report_rows_end(struct report_rows *rows, const char *which)
{
    if (rows->more > 0)
        report_note(rows->r->to, "and %" PRIu64 " more: survey report %s", rows->more, which);
    report_table_end(rows->r->to);
}

const char *report_origin(const char *origin)
{
    return origin && origin[0] ? origin : "unknown";
}

/* ---- all of it ---- */

static enum status print(struct report *r, unsigned bits, const struct report_head *head,
                         struct err *err)
{
    enum status s = STATUS_OK;

    report_begin(r->to, head);
    for (int i = 0; s == STATUS_OK && i < REPORT_COUNT; i++) {
        if (!reports[i].print || !(bits & (reports[i].bit | FLEET_REPORT_SUMMARY)))
            continue;
        r->brief = !(bits & reports[i].bit);
        /* Every number's spread is too long for a summary, which has the outliers. */
        if (!r->brief || reports[i].bit != FLEET_REPORT_SPREAD)
            s = reports[i].print(r, err);
    }
    return s == STATUS_OK ? report_end(r->to, err) : s;
}

enum status fleet_report(struct fleet_db *db, const struct fleet_report_options *options, FILE *out,
                         struct err *err)
{
    const unsigned bits = options->reports ? options->reports : FLEET_REPORT_SUMMARY;
    struct report r = {.db = db, .model = options->model ? options->model : ""};
    struct report_head head = {.survey = 0};
    const bool chart = options->format == FLEET_FORMAT_SVG;
    enum status s;

    if (db->survey)
        return err_set(err, STATUS_CONFLICT, "a survey is under way");
    if (chart && options->reports & ~(unsigned)FLEET_REPORT_SIGNATURES)
        return err_set(err, STATUS_INVALID_ARGUMENT, "only signatures have a chart");
    r.to = report_out_new(options->format, out);
    if (!r.to)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    s = fleet_read_begin(db, err);
    if (s == STATUS_OK) {
        s = find_survey(&r, options->survey, &head, err);
        if (s == STATUS_OK)
            s = chart ? report_chart(&r, &head, out, err) : print(&r, bits, &head, err);
        fleet_read_end(db);
    }
    report_out_free(r.to);
    return s;
}
