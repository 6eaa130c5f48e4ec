/* report.c: which reports, about which survey, in which format. A report is one table or two; the
 * rows of each come from statements of schema/fleet, and are printed as they come. */
#include "clients/fleet/report.h"

#include "clients/fleet/db_engine.h"
#include "clients/fleet/report_chart.h"
#include "clients/fleet/report_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BRIEF_ROWS = 10 /* of a table of the summary */, TEXT_BYTES = 512 };

/* A table. Its first statement gives its title for people, its columns, and a note or null; the
 * others its rows. A column is a name and what its values are:
 *
 *     name          text
 *     name:count    an integer; name:real, name:percent: numbers
 *     name:any      two columns of the row: a text, or else a real number
 *     :people       not printed: 1 marks a row for people alone
 */
struct source {
    unsigned bit;
    const char *name;
    const char *part;
    const char *sql;
    enum { BRIEF = 0, WHOLE, OMITTED } in_summary;
};

static const struct source sources[] = {
    {FLEET_REPORT_SIGNATURES, "signatures", "", fleet_sql_report_signatures, BRIEF},
    {FLEET_REPORT_MAPS, "maps", "counts", fleet_sql_report_maps_counts, BRIEF},
    {FLEET_REPORT_MAPS, "maps", "", fleet_sql_report_maps, OMITTED},
    {FLEET_REPORT_SPREAD, "spread", "", fleet_sql_report_spread, OMITTED},
    {FLEET_REPORT_OUTLIERS, "outliers", "", fleet_sql_report_outliers, BRIEF},
    {FLEET_REPORT_OUTLIERS, "outliers", "counts", fleet_sql_report_outliers_counts, BRIEF},
    {FLEET_REPORT_DRIFT, "drift", "", fleet_sql_report_drift, BRIEF},
    {FLEET_REPORT_DRIFT, "drift", "counts", fleet_sql_report_drift_counts, BRIEF},
    {FLEET_REPORT_HOSTS, "hosts", "counts", fleet_sql_report_hosts_counts, WHOLE},
    {FLEET_REPORT_HOSTS, "hosts", "names", fleet_sql_report_hosts, BRIEF},
    {FLEET_REPORT_INVENTORY, "inventory", "", fleet_sql_report_inventory, BRIEF},
};
enum { SOURCE_COUNT = sizeof(sources) / sizeof(*sources) };

bool fleet_report_from_name(const char *name, unsigned *out)
{
    if (strcmp(name, "summary") == 0) {
        *out = FLEET_REPORT_SUMMARY;
        return true;
    }
    for (int i = 0; i < SOURCE_COUNT; i++) {
        if (strcmp(name, sources[i].name) == 0) {
            *out = sources[i].bit;
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
    head->gpus = strtoll(values[3], NULL, 10);
    head->simulated = strcmp(values[4], "0") != 0;
    head->measured = strcmp(values[5], "0") != 0;
    return STATUS_OK;
}

/* Fills the head; `number` 0 is the latest. */
static enum status find_survey(struct fleet_db *db, int64_t number, const char *model,
                               struct report_head *head, struct err *err)
{
    char wanted[FLEET_INTEGER_BYTES];
    const enum status s = fleet_script(
        db, fleet_sql_report_head, fleet_integer_text(number, wanted), model, read_head, head, err);

    if (s != STATUS_OK || head->survey != 0)
        return s;
    if (number == 0)
        return err_set_hint(
            err, STATUS_NOT_FOUND,
            "Make one: reachctl survey HOST.... Or name another database with --db.",
            "no survey has been made yet");
    return err_set_hint(err, STATUS_NOT_FOUND,
                        "Omit --survey for the latest, or name another database with --db.",
                        "there is no survey %" PRId64, number);
}

/* ---- one table ---- */

struct printing {
    const struct source *source;
    struct report_out *to;
    bool brief;
    struct report_table table;
    char head[3][TEXT_BYTES];           /* its first row: title, columns, note */
    char kinds[REPORT_MAX_COLUMNS + 1]; /* of the columns, by their first letters; 't' text */
    uint64_t rows;                      /* so far, with the first one */
    uint64_t more;                      /* rows that a summary leaves out */
};

static void begin_table(struct printing *p, const char *const *values)
{
    char *rest = p->head[1];
    int count = 0;

    for (int i = 0; i < 3; i++)
        (void)snprintf(p->head[i], sizeof(p->head[i]), "%s", values[i] ? values[i] : "");
    p->table = (struct report_table){p->source->name, p->source->part, p->head[0], {NULL}};
    for (char *kind, *name; (kind = strsep(&rest, " ")); count++) {
        name = strsep(&kind, ":");
        p->kinds[count] = kind ? *kind : 't';
        p->table.columns[count] = *name ? name : NULL;
    }
    report_table_begin(p->to, &p->table);
}

/* The cell of the columns from `*at` on. */
static struct cell cell_of(char kind, const char *const *at)
{
    const char *const text = kind == 'a' && !at[0] ? at[1] : at[0];

    if (!text)
        return (struct cell){.kind = CELL_NONE};
    if (kind == 't' || (kind == 'a' && at[0]))
        return (struct cell){.kind = CELL_TEXT, .text = text};
    return (struct cell){.kind = kind == 'p'   ? CELL_PERCENT
                                 : kind == 'c' ? CELL_COUNT
                                               : CELL_REAL,
                         .v = strtod(text, NULL)};
}

static enum status print_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct printing *const p = self;
    struct cell cells[REPORT_MAX_COLUMNS];
    int count = 0;
    int at = 0;

    (void)columns;
    (void)err;
    if (p->rows == 0) {
        p->rows = 1;
        begin_table(p, values);
        return STATUS_OK;
    }
    for (; p->table.columns[count]; count++) {
        cells[count] = cell_of(p->kinds[count], &values[at]);
        at += p->kinds[count] == 'a' ? 2 : 1;
    }
    const bool for_people = p->kinds[count] == 'p' && strcmp(values[at], "0") != 0;
    const bool hidden = p->brief && p->source->in_summary != WHOLE &&
                        (for_people ? p->more > 0 : p->rows > BRIEF_ROWS);
    if (!hidden)
        report_row(p->to, cells, for_people);
    p->rows += !for_people && !hidden;
    p->more += !for_people && hidden;
    return STATUS_OK;
}

static enum status print_table(struct fleet_db *db, const struct source *source, const char *survey,
                               const char *model, bool brief, struct report_out *to,
                               struct err *err)
{
    struct printing p = {.source = source, .to = to, .brief = brief};
    char more[80];
    const enum status s = fleet_script(db, source->sql, survey, model, print_row, &p, err);

    if (s != STATUS_OK)
        return s;
    (void)snprintf(more, sizeof(more), "and %" PRIu64 " more: survey report %s", p.more,
                   source->name);
    report_table_end(to, p.head[2][0] ? p.head[2] : NULL, p.more > 0 ? more : NULL);
    return STATUS_OK;
}

/* ---- all of it ---- */

static enum status print_chart(struct fleet_db *db, const struct report_head *head,
                               const char *survey, const char *model, FILE *out, struct err *err)
{
    struct report_chart chart = {.out = out, .head = head};
    const enum status s =
        fleet_script(db, fleet_sql_report_chart, survey, model, report_chart_row, &chart, err);

    return s == STATUS_OK ? report_chart_end(&chart, err) : s;
}

static enum status print_tables(struct fleet_db *db, unsigned bits, const struct report_head *head,
                                const char *survey, const char *model, struct report_out *to,
                                struct err *err)
{
    enum status s = STATUS_OK;

    report_begin(to, head);
    for (int i = 0; s == STATUS_OK && i < SOURCE_COUNT; i++) {
        const bool brief = !(bits & sources[i].bit);
        if (!brief || (bits & FLEET_REPORT_SUMMARY && sources[i].in_summary != OMITTED))
            s = print_table(db, &sources[i], survey, model, brief, to, err);
    }
    return s == STATUS_OK ? report_end(to, err) : s;
}

static enum status print(struct fleet_db *db, const struct fleet_report_options *options,
                         struct report_out *to, FILE *out, struct err *err)
{
    const char *const model = options->model ? options->model : "";
    struct report_head head = {.survey = 0};
    char survey[FLEET_INTEGER_BYTES];
    enum status s = find_survey(db, options->survey, model, &head, err);

    if (s != STATUS_OK)
        return s;
    fleet_integer_text(head.survey, survey);
    if (options->format == FLEET_FORMAT_SVG)
        return print_chart(db, &head, survey, model, out, err);
    return print_tables(db, options->reports ? options->reports : FLEET_REPORT_SUMMARY, &head,
                        survey, model, to, err);
}

enum status fleet_report(struct fleet_db *db, const struct fleet_report_options *options, FILE *out,
                         struct err *err)
{
    struct report_out *to;
    enum status s;

    if (db->in_survey)
        return err_set(err, STATUS_CONFLICT, "a survey is in progress");
    if (options->format == FLEET_FORMAT_SVG &&
        options->reports & ~(unsigned)FLEET_REPORT_SIGNATURES)
        return err_set(err, STATUS_INVALID_ARGUMENT, "only signatures have a chart");
    to = report_out_new(options->format, out);
    if (!to)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    s = fleet_exec(db, db->engine->begin_read, err);
    if (s == STATUS_OK) {
        s = print(db, options, to, out, err);
        (void)fleet_exec(db, "ROLLBACK", NULL);
    }
    report_out_free(to);
    return s;
}
