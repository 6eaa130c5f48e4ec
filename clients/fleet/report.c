/* report.c: which reports, about which survey, in which format. A report is one table or two; the
 * rows of each come from statements of schema/fleet, and are printed as they come. */
#include "clients/fleet/report.h"

#include "clients/fleet/db_engine.h"
#include "clients/fleet/report_chart.h"
#include "clients/fleet/report_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BRIEF_ROWS = 10 /* of a table of the summary */ };

/* A table and where its rows come from. `cells` says how the columns of a row become cells:
 *
 *     t text, c count, r real number, p percent, v two columns: a text, or else a real number
 *     ! the last one: 1 is a row for people alone
 */
struct source {
    unsigned bit;
    struct report_table table;
    const char *cells;
    const char *sql;
    const char *note; /* NULL: none */
    bool whole;       /* the summary has all rows */
    bool not_brief;   /* the summary leaves it out */
};

#define KIND "model", "origin"

static const struct source sources[] = {
    {.bit = FLEET_REPORT_SIGNATURES,
     .table = {"signatures",
               "",
               "Signatures of the disabled SMs",
               {KIND, "signature", "gpus", "percent", "candidates", "candidate_count"}},
     .cells = "tttcptc!",
     .sql = fleet_sql_report_signatures,
     .note =
         "A signature is the same on every chip with the same pattern; where several sets of SMs "
         "would leave it, all of them are candidates."},
    {.bit = FLEET_REPORT_MAPS,
     .table =
         {"maps", "counts", "Different group maps", {KIND, "gpus", "maps", "most_common_percent"}},
     .cells = "ttccp",
     .sql = fleet_sql_report_maps_counts},
    {.bit = FLEET_REPORT_MAPS,
     .table = {"maps",
               "",
               "Group maps: which SMs share a TLB",
               {KIND, "map", "groups", "gpus", "percent"}},
     .cells = "tttccp",
     .sql = fleet_sql_report_maps,
     .note = "A map's name is a hash of which SM ids go together, whatever the groups are called.",
     .not_brief = true},
    /* The spread of every metric is too long for a summary, which has the outliers. */
    {.bit = FLEET_REPORT_SPREAD,
     .table = {"spread",
               "",
               "Spread of every metric",
               {KIND, "metric", "gpus", "min", "lower_quartile", "median", "upper_quartile", "max",
                "deviation", "unknown", "not_observable"}},
     .cells = "tttcrrrrrrcc",
     .sql = fleet_sql_report_spread,
     .note =
         "Quartiles are values that were measured (nearest rank), the median is the mean of the "
         "two middle ones, deviation is the median distance from it.",
     .not_brief = true},
    {.bit = FLEET_REPORT_OUTLIERS,
     .table = {"outliers",
               "",
               "GPUs that differ from the others of their model",
               {KIND, "uuid", "host", "slot", "metric", "value", "usual", "deviations"}},
     .cells = "ttttctvvr",
     .sql = fleet_sql_report_outliers,
     .note =
         "A metric differs where it is more than 6 deviations (1.4826 x the median distance) and "
         "more than 5% from the median of its model and origin; one of the structure where more "
         "than half have another."},
    {.bit = FLEET_REPORT_OUTLIERS,
     .table = {"outliers",
               "counts",
               "How many GPUs differ from the others of their model",
               {KIND, "gpus", "differ_in_structure", "differ_in_metrics"}},
     .cells = "ttccc",
     .sql = fleet_sql_report_outliers_counts,
     .note = "Fewer than 8 GPUs of a model and origin are not told from each other."},
    {.bit = FLEET_REPORT_DRIFT,
     .table = {"drift",
               "",
               "What changed since the survey before",
               {KIND, "uuid", "host", "slot", "since", "what", "before", "after", "change_percent",
                "fleet_percent"}},
     .cells = "ttttcctvvpp",
     .sql = fleet_sql_report_drift,
     .note =
         "A change counts where it stands out of the fleet's own by more than 6 deviations and by "
         "more than 5%; with fewer than 8 GPUs measured again, as \"reachctl diff\" "
         "has it."},
    {.bit = FLEET_REPORT_DRIFT,
     .table = {"drift",
               "counts",
               "GPUs that were measured again",
               {KIND, "again", "changed", "structure", "groups", "metrics", "other_driver"}},
     .cells = "ttcccccc",
     .sql = fleet_sql_report_drift_counts},
    {.bit = FLEET_REPORT_HOSTS,
     .table = {"hosts",
               "counts",
               "Hosts by outcome",
               {"outcome", "hosts", "gpus", "received_bytes", "slowest_ms"}},
     .cells = "tcccc",
     .sql = fleet_sql_report_hosts_counts,
     .whole = true},
    {.bit = FLEET_REPORT_HOSTS,
     .table = {"hosts",
               "names",
               "Hosts that did not answer as they should",
               {"host", "outcome", "detail", "attempts", "elapsed_ms", "last_answered"}},
     .cells = "tttccc",
     .sql = fleet_sql_report_hosts,
     .note = "last_answered is the survey in which the host answered last."},
    {.bit = FLEET_REPORT_INVENTORY,
     .table = {"inventory",
               "",
               "Inventory: what changed places",
               {"what", "uuid", "serial", KIND, "host", "slot", "before"}},
     .cells = "ttttttct",
     .sql = fleet_sql_report_inventory,
     .note =
         "A GPU is its UUID and its serial number. A host that was not reached says nothing: none "
         "of its GPUs is called gone."},
};
enum { SOURCE_COUNT = sizeof(sources) / sizeof(*sources) };

bool fleet_report_from_name(const char *name, unsigned *out)
{
    if (strcmp(name, "summary") == 0) {
        *out = FLEET_REPORT_SUMMARY;
        return true;
    }
    for (int i = 0; i < SOURCE_COUNT; i++) {
        if (strcmp(name, sources[i].table.name) == 0) {
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
    uint64_t printed;
    uint64_t more; /* rows that a summary leaves out */
};

/* The cell of the columns from `*at` on. */
static struct cell cell_of(char kind, const char *const *at)
{
    const char *const text = kind == 'v' && !at[0] ? at[1] : at[0];

    if (!text)
        return (struct cell){.kind = CELL_NONE};
    if (kind == 't' || (kind == 'v' && at[0]))
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
    for (const char *kind = p->source->cells; *kind && *kind != '!'; kind++) {
        cells[count++] = cell_of(*kind, &values[at]);
        at += *kind == 'v' ? 2 : 1;
    }
    const bool for_people = p->source->cells[count] == '!' && strcmp(values[at], "0") != 0;
    const bool hidden =
        p->brief && !p->source->whole && (for_people ? p->more > 0 : p->printed == BRIEF_ROWS);
    if (!hidden)
        report_row(p->to, cells, for_people);
    p->printed += !for_people && !hidden;
    p->more += !for_people && hidden;
    return STATUS_OK;
}

static enum status print_table(struct fleet_db *db, const struct source *source, const char *survey,
                               const char *model, bool brief, struct report_out *to,
                               struct err *err)
{
    struct printing p = {.source = source, .to = to, .brief = brief};
    char more[80];
    enum status s;

    report_table_begin(to, &source->table);
    s = fleet_script(db, source->sql, survey, model, print_row, &p, err);
    (void)snprintf(more, sizeof(more), "and %" PRIu64 " more: survey report %s", p.more,
                   source->table.name);
    report_table_end(to, source->note, p.more > 0 ? more : NULL);
    return s;
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
        if (!brief || (bits & FLEET_REPORT_SUMMARY && !sources[i].not_brief))
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
