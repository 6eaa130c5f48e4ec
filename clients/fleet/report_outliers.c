/* report_outliers.c: GPUs that differ from the others of their model and origin. What is right is
 * not known here; what is usual is.
 *
 * A number of the structure is odd where it is not the value that more than half of the fleet has
 * (found in one pass by Boyer and Moore's majority vote, MJRTY, 1981/1991). A measured number is
 * odd where it is further from the median than REPORT_DEVIATIONS robust deviations and than
 * REPORT_SHARE of the median: where nearly all agree the first is nothing.
 */
#include "clients/fleet/report_numbers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct report_table outliers_table = {
    .name = "outliers",
    .part = "",
    .title = "GPUs that differ from the others of their model",
    .columns = {"model", "origin", "uuid", "host", "slot", "number", "value", "usual",
                "deviations"},
};

static const struct report_table counts_table = {
    .name = "outliers",
    .part = "counts",
    .title = "How many GPUs differ from the others of their model",
    .columns = {"model", "origin", "gpus", "differ_in_structure", "differ_in_numbers"},
};

double report_deviations(double v, double median, double mad)
{
    const double far = fabs(v - median);

    return far == 0 ? 0 : mad > 0 ? far / (REPORT_MAD_SCALE * mad) : INFINITY;
}

bool report_is_far(double v, double median, double mad, double scale)
{
    return report_deviations(v, median, mad) > REPORT_DEVIATIONS &&
           fabs(v - median) > REPORT_SHARE * fabs(scale);
}

/* ---- what most have ---- */

static struct majority_line *line_of(struct majority *m, const char *name)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (strcmp(m->lines[i].name, name) == 0)
            return &m->lines[i];
    }
    if (m->count == REPORT_MAX_LINES)
        return NULL;
    (void)snprintf(m->lines[m->count].name, NUMBER_NAME_BYTES, "%s", name);
    return &m->lines[m->count++];
}

/* structure, GPUs: the vote */
static enum status vote_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct majority *const m = self;
    const uint64_t weight = strtoull(values[1], NULL, 10);
    const char *at = values[0];
    struct structure_line line;

    (void)columns;
    (void)err;
    while (numbers_structure_line(&at, &line)) {
        struct majority_line *const l = line_of(m, line.name);
        if (!l || line.known != MAYBE_KNOWN)
            continue;
        if (strcmp(l->value, line.value) == 0) {
            l->lead += weight;
        } else if (l->lead >= weight) {
            l->lead -= weight;
        } else {
            l->lead = weight - l->lead;
            memcpy(l->value, line.value, sizeof(l->value));
        }
    }
    return STATUS_OK;
}

/* structure, GPUs, its row: is it really more than half? */
static enum status count_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct majority *const m = self;
    bool differs = false;
    const uint64_t weight = strtoull(values[1], NULL, 10);
    const char *at = values[0];
    struct structure_line line;

    (void)columns;
    (void)err;
    while (numbers_structure_line(&at, &line)) {
        struct majority_line *const l = line_of(m, line.name);
        if (!l || line.known != MAYBE_KNOWN)
            continue;
        l->known += weight;
        if (strcmp(l->value, line.value) == 0)
            l->have += weight;
        else
            differs = true;
    }
    if (!differs && weight > m->usual_gpus) {
        m->usual = strtoll(values[2], NULL, 10);
        m->usual_gpus = weight;
    }
    return STATUS_OK;
}

enum status report_majority(struct report *r, const struct report_kind *kind, struct majority *out,
                            struct err *err)
{
    static const char sql[] =
        "SELECT t.text, c.n, t.id FROM (SELECT structure, COUNT(*) AS n FROM fleet_sighting "
        "WHERE survey = $1 AND counted = 1 AND kind = $2 AND structure IS NOT NULL "
        "GROUP BY structure) c JOIN fleet_structure t ON t.id = c.structure ORDER BY t.id";
    enum status s;

    memset(out, 0, sizeof(*out));
    s = fleet_run(r->db, sql, FLEET_VALUES(r->survey, kind->id), vote_row, out, err);
    if (s == STATUS_OK)
        s = fleet_run(r->db, sql, FLEET_VALUES(r->survey, kind->id), count_row, out, err);
    return s;
}

const struct majority_line *report_majority_line(const struct majority *m, const char *name)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const struct majority_line *const l = &m->lines[i];
        if (strcmp(l->name, name) == 0)
            return l->known >= REPORT_MIN_FLEET && 2 * l->have > l->known ? l : NULL;
    }
    return NULL;
}

/* ---- who differs ---- */

struct outliers {
    struct report_rows rows;
    const struct report_kind *kind;
    const struct majority *majority;
    struct gather *g;
    int64_t in_structure; /* GPUs that differ there */
    int64_t in_numbers;
    uint32_t who;       /* the last one that does, */
    char names[3][300]; /* and its UUID, host and slot */
};

static void put(struct outliers *o, const char *const *values, const char *number,
                struct cell value, struct cell usual, double deviations)
{
    const struct cell cells[] = {cell_text(o->kind->model),
                                 cell_text(report_origin(o->kind->origin)),
                                 cell_text(values[0]),
                                 cell_text(values[1]),
                                 cell_count_text(values[2]),
                                 cell_text(number),
                                 value,
                                 usual,
                                 isfinite(deviations) ? cell_real(deviations) : cell_none};

    if (report_rows_next(&o->rows))
        report_row(o->rows.r->to, cells);
}

/* uuid, host, slot, structure */
static enum status structure_row(void *self, int columns, const char *const *values,
                                 struct err *err)
{
    struct outliers *const o = self;
    const char *at = values[3];
    struct structure_line line;
    bool any = false;

    (void)columns;
    (void)err;
    while (numbers_structure_line(&at, &line)) {
        const struct majority_line *const most = report_majority_line(o->majority, line.name);
        if (line.known != MAYBE_KNOWN || !most || strcmp(most->value, line.value) == 0)
            continue;
        put(o, values, line.name, cell_text(line.value), cell_text(most->value), INFINITY);
        any = true;
    }
    o->in_structure += any;
    return STATUS_OK;
}

static enum status list_structures(struct report *r, struct outliers *o, struct err *err)
{
    char usual[FLEET_NUMBER_BYTES];

    return fleet_run(
        r->db,
        "SELECT g.uuid, h.name, s.slot, t.text FROM fleet_sighting s "
        "JOIN fleet_structure t ON t.id = s.structure "
        "JOIN fleet_gpu g ON g.id = s.gpu JOIN fleet_host h ON h.id = s.host "
        "WHERE s.survey = $1 AND s.counted = 1 AND s.kind = $2 AND s.structure <> $3 "
        "ORDER BY s.host, s.slot",
        FLEET_VALUES(r->survey, o->kind->id, fleet_number_text(o->majority->usual, usual)),
        structure_row, o, err);
}

static enum status name_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct outliers *const o = self;

    (void)columns;
    (void)err;
    for (int i = 0; i < 3; i++)
        (void)snprintf(o->names[i], sizeof(o->names[i]), "%s", values[i]);
    return STATUS_OK;
}

static enum status judge(void *self, const struct gather_number *n, double v, uint32_t who,
                         struct err *err)
{
    struct outliers *const o = self;
    const char *const names[] = {o->names[0], o->names[1], o->names[2]};
    char gpu[FLEET_NUMBER_BYTES];
    enum status s = STATUS_OK;

    if (n->id == GATHER_STRUCTURE || !n->judged || n->n < REPORT_MIN_FLEET ||
        !report_is_far(v, n->median, n->mad, n->median))
        return STATUS_OK;
    if (who != o->who) {
        o->who = who;
        o->in_numbers++;
        if (!o->rows.r->brief || o->rows.printed < REPORT_BRIEF_ROWS)
            s = fleet_run(o->rows.r->db,
                          "SELECT g.uuid, h.name, s.slot FROM fleet_sighting s "
                          "JOIN fleet_gpu g ON g.id = s.gpu JOIN fleet_host h ON h.id = s.host "
                          "WHERE s.gpu = $2 AND s.survey = $1 AND s.counted = 1",
                          FLEET_VALUES(o->rows.r->survey, fleet_number_text(who, gpu)), name_row, o,
                          err);
    }
    put(o, names, n->name, cell_real(v), cell_real(n->median),
        report_deviations(v, n->median, n->mad));
    return s;
}

static enum status one_kind(struct report *r, struct outliers *o, struct majority *majority,
                            struct err *err)
{
    enum status s = report_majority(r, o->kind, majority, err);

    if (s == STATUS_OK)
        s = list_structures(r, o, err);
    if (s == STATUS_OK)
        s = report_gather_kind(r, o->kind, o->g, err);
    return s == STATUS_OK ? gather_each(o->g, judge, o, err) : s;
}

struct kind_count {
    int64_t in_structure;
    int64_t in_numbers;
};

static void put_counts(struct report *r, const struct report_kinds *kinds,
                       const struct kind_count *counts)
{
    struct report_rows rows = {.r = r};

    report_table_begin(r->to, &counts_table);
    for (uint32_t i = 0; i < kinds->count; i++) {
        const struct report_kind *const k = &kinds->kinds[i];
        const bool enough = k->gpus >= REPORT_MIN_FLEET;
        const struct cell cells[] = {cell_text(k->model), cell_text(report_origin(k->origin)),
                                     cell_count(k->gpus),
                                     enough ? cell_count(counts[i].in_structure) : cell_none,
                                     enough ? cell_count(counts[i].in_numbers) : cell_none};
        if (report_rows_next(&rows))
            report_row(r->to, cells);
    }
    report_note(r->to, "Fewer than %d GPUs of a model and origin are not told from each other.",
                REPORT_MIN_FLEET);
    report_rows_end(&rows, "outliers");
}

enum status report_outliers(struct report *r, struct err *err)
{
    struct outliers o = {.rows = {.r = r}};
    struct report_kinds kinds = {.count = 0};
    struct majority *const majority = calloc(1, sizeof(*majority));
    struct kind_count *const counts = calloc(REPORT_MAX_KINDS, sizeof(*counts));
    enum status s = STATUS_NO_MEMORY;

    if (!majority || !counts) {
        err_set(err, s, "no memory for a report");
        goto out;
    }
    s = gather_new(&o.g, err);
    if (s == STATUS_OK)
        s = report_kinds(r, &kinds, err);
    report_table_begin(r->to, &outliers_table);
    for (uint32_t i = 0; s == STATUS_OK && i < kinds.count; i++) {
        o.kind = &kinds.kinds[i];
        o.majority = majority;
        o.in_structure = 0;
        o.in_numbers = 0;
        o.who = 0;
        if (o.kind->gpus >= REPORT_MIN_FLEET)
            s = one_kind(r, &o, majority, err);
        counts[i] = (struct kind_count){.in_structure = o.in_structure, .in_numbers = o.in_numbers};
    }
    report_note(r->to,
                "A number differs where it is more than %.0f deviations (1.4826 x the median "
                "distance) and more than %.0f%% from the median of its model and origin; one of "
                "the structure where more than half have another.",
                REPORT_DEVIATIONS, 100 * REPORT_SHARE);
    report_rows_end(&o.rows, "outliers");
    if (s == STATUS_OK)
        put_counts(r, &kinds, counts);
out:
    gather_free(o.g);
    free(counts);
    free(majority);
    free(kinds.kinds);
    return s;
}
