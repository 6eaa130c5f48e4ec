/* report.c: selects the reports, the survey and the format. A report is one table or two.
 * Statements of schema/fleet return the rows, which are printed as they arrive. */
#include "clients/fleet/report.h"

#include "clients/fleet/db_engine.h"
#include "clients/fleet/report_costs.h"
#include "clients/fleet/report_out.h"

#include "types/name_of.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    BRIEF_ROWS = 10, /* most rows of a table in the summary */
    PAGE_ROWS = 200, /* most rows of a table in the page; the table of all GPUs has no limit,
                        because the script of the page draws it */
    TEXT_BYTES = 512
};

/* A table. Its first statement returns its title, its columns, and a note or null; the others
 * return its rows. A column is a name and the type of its values:
 *
 *     name          text
 *     name:count    an integer; name:real and name:percent are numbers
 *     name:any      two columns of the row: a text, or a real number if the text is null
 *     :people       not printed; 1 marks a row for people only
 */
struct source {
    unsigned bit;
    const char *name;
    const char *part;
    const char *sql;
    enum { BRIEF = 0, WHOLE, OMITTED } in_summary;
};

static const struct source sources[] = {
    /* The summary consists of tables of the other reports. */
    {FLEET_REPORT_SUMMARY, "summary", "", NULL, OMITTED},
    /* Failures come first, and then what changed. */
    {FLEET_REPORT_HOSTS, "hosts", "names", fleet_sql_report_hosts, BRIEF},
    {FLEET_REPORT_CHANGES, "changes", "", fleet_sql_report_changes, BRIEF},
    {FLEET_REPORT_INVENTORY, "inventory", "", fleet_sql_report_inventory, BRIEF},
    {FLEET_REPORT_DRIFT, "drift", "", fleet_sql_report_drift, BRIEF},
    {FLEET_REPORT_DRIFT, "drift", "counts", fleet_sql_report_drift_counts, BRIEF},
    {FLEET_REPORT_HOSTS, "hosts", "counts", fleet_sql_report_hosts_counts, WHOLE},
    {FLEET_REPORT_SIGNATURES, "signatures", "", fleet_sql_report_signatures, BRIEF},
    {FLEET_REPORT_MAPS, "maps", "counts", fleet_sql_report_maps_counts, BRIEF},
    {FLEET_REPORT_MAPS, "maps", "", fleet_sql_report_maps, OMITTED},
    {FLEET_REPORT_QUARTILES, "quartiles", "", fleet_sql_report_quartiles, OMITTED},
    {FLEET_REPORT_OUTLIERS, "outliers", "", fleet_sql_report_outliers, BRIEF},
    {FLEET_REPORT_OUTLIERS, "outliers", "counts", fleet_sql_report_outliers_counts, BRIEF},
    {FLEET_REPORT_COSTS, "costs", "", NULL, OMITTED}, /* report_costs.c */
    {FLEET_REPORT_GPUS, "gpus", "", fleet_sql_report_gpus, OMITTED},
};
enum { SOURCE_COUNT = sizeof(sources) / sizeof(*sources) };

bool fleet_report_from_name(const char *name, unsigned *out)
{
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
    static const char *const names[] = {"table", "json", "csv", "markdown", "html"};

    return FROM_NAME(names, name, out);
}

/* ---- selection of a survey ---- */

static enum status read_head(void *self, const char *const *values, struct err *err)
{
    struct report_head *const head = self;

    (void)err;
    head->survey = strtoll(values[0], NULL, 10);
    (void)snprintf(head->at, sizeof(head->at), "%s", values[1]);
    head->hosts = strtoll(values[2], NULL, 10);
    head->gpus = strtoll(values[3], NULL, 10);
    head->simulated = strcmp(values[4], "0") != 0;
    head->measured = strcmp(values[5], "0") != 0;
    return STATUS_OK;
}

/* Fills the head. The number 0 means the latest survey. */
static enum status find_survey(struct fleet_db *db, int64_t number, const char *model,
                               struct report_head *head, struct err *err)
{
    char wanted[FLEET_INTEGER_BYTES];
    const enum status s = fleet_script(
        db, fleet_sql_report_head, fleet_integer_text(number, wanted), model, read_head, head, err);

    if (s != STATUS_OK || head->survey != 0)
        return s;
    if (number == 0)
        return err_set_hint(err, STATUS_NOT_FOUND,
                            "Run reachctl survey HOST..., or name another database with --db.",
                            "the database has no survey");
    return err_set_hint(err, STATUS_NOT_FOUND,
                        "Omit --survey for the latest, or name another database with --db.",
                        "there is no survey %" PRId64, number);
}

/* ---- one table ---- */

struct printing {
    const struct source *source;
    struct report_out *to;
    uint64_t most; /* rows */
    struct report_table table;
    char head[3][TEXT_BYTES]; /* the first row: title, columns, note */
    int people;               /* the column that marks a row for people only; 0 if there is none */
    uint64_t rows;            /* rows so far, including the first one */
    uint64_t more;            /* rows that the summary omits */
};

static void begin_table(struct printing *p, const char *const *values)
{
    char *rest = p->head[1];
    int count = 0;
    int at = 0;

    for (int i = 0; i < 3; i++)
        (void)snprintf(p->head[i], sizeof(p->head[i]), "%s", values[i] ? values[i] : "");
    p->table = (struct report_table){p->source->name, p->source->part, p->head[0], {NULL}, ""};
    for (char *kind, *name; (kind = strsep(&rest, " ")); count++) {
        name = strsep(&kind, ":");
        p->table.kinds[count] = kind ? *kind : 't';
        p->table.columns[count] = *name ? name : NULL;
        p->people = *name ? 0 : at;
        at += p->table.kinds[count] == 'a' ? 2 : 1;
    }
    report_table_begin(p->to, &p->table);
}

static enum status print_row(void *self, const char *const *values, struct err *err)
{
    struct printing *const p = self;
    const bool for_people = p->people && strcmp(values[p->people], "0") != 0;
    const bool hidden = for_people ? p->more > 0 : p->rows > p->most;

    (void)err;
    if (p->rows == 0) {
        p->rows = 1;
        begin_table(p, values);
        return STATUS_OK;
    }
    if (!hidden)
        report_row(p->to, values, for_people);
    p->rows += !for_people && !hidden;
    p->more += !for_people && hidden;
    return STATUS_OK;
}

static enum status print_table(struct fleet_db *db, const struct source *source, const char *survey,
                               const char *model, uint64_t most, struct report_out *to,
                               struct err *err)
{
    struct printing p = {.source = source, .to = to, .most = most};
    char more[80];
    const enum status s = fleet_script(db, source->sql, survey, model, print_row, &p, err);

    if (s != STATUS_OK)
        return s;
    (void)snprintf(more, sizeof(more), "and %" PRIu64 " more: survey report %s", p.more,
                   source->name);
    report_table_end(to, p.head[2][0] ? p.head[2] : NULL, p.more > 0 ? more : NULL);
    return STATUS_OK;
}

/* ---- all reports ---- */

/* Returns the number of rows of a table to print; 0 if the table is not printed. */
static uint64_t most_rows(const struct source *source, unsigned bits, enum fleet_format format)
{
    if (format == FLEET_FORMAT_HTML && bits & FLEET_REPORT_SUMMARY)
        return source->bit == FLEET_REPORT_GPUS        ? UINT64_MAX
               : source->bit == FLEET_REPORT_QUARTILES ? 0
                                                       : PAGE_ROWS;
    if (bits & source->bit)
        return UINT64_MAX;
    if (!(bits & FLEET_REPORT_SUMMARY) || source->in_summary == OMITTED)
        return 0;
    return source->in_summary == WHOLE ? UINT64_MAX : BRIEF_ROWS;
}

static enum status print_reports(struct fleet_db *db, const struct fleet_report_options *options,
                                 struct report_out *to, struct err *err)
{
    const unsigned bits = options->reports ? options->reports : FLEET_REPORT_SUMMARY;
    const char *const model = options->model ? options->model : "";
    struct report_head head = {.survey = 0};
    char survey[FLEET_INTEGER_BYTES];
    enum status s = find_survey(db, options->survey, model, &head, err);

    if (s != STATUS_OK)
        return s;
    fleet_integer_text(head.survey, survey);
    report_begin(to, &head);
    for (int i = 1; s == STATUS_OK && i < SOURCE_COUNT; i++) {
        const uint64_t most = most_rows(&sources[i], bits, options->format);
        if (most > 0 && sources[i].sql)
            s = print_table(db, &sources[i], survey, model, most, to, err);
        else if (most > 0)
            s = report_costs(db, survey, model, to, err);
    }
    return s;
}

enum status fleet_report(struct fleet_db *db, const struct fleet_report_options *options, FILE *out,
                         struct err *err)
{
    struct report_out to = {.out = out, .format = options->format};
    enum status s;

    if (db->in_survey)
        return err_set(err, STATUS_CONFLICT, "a survey is in progress");
    s = fleet_exec(db, db->engine->begin_read, err);
    if (s == STATUS_OK) {
        s = report_end(&to, print_reports(db, options, &to, err), err);
        (void)fleet_exec(db, "ROLLBACK", NULL);
    }
    return s == STATUS_OK && db->engine->check_read ? db->engine->check_read(db->connection, err)
                                                    : s;
}
