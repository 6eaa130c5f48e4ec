/* report_spread.c: least, quartiles, median and most of every number, by model and origin; and how
 * the numbers of one kind are gathered, which outliers need as well. */
#include "clients/fleet/report_numbers.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct report_table spread_table = {
    .name = "spread",
    .part = "",
    .title = "Spread of every number",
    .columns = {"model", "origin", "number", "gpus", "min", "lower_quartile", "median",
                "upper_quartile", "max", "deviation", "unknown", "not_observable"},
};

struct gathering {
    struct gather *g;
    const struct number_names *names;
    uint64_t left_out;
};

/* The plus signs in the queries keep an index out of it that would give rows in another order. */

/* structure, GPUs */
static enum status structure_row(void *self, int columns, const char *const *values,
                                 struct err *err)
{
    struct gathering *const in = self;
    const uint32_t weight = (uint32_t)strtoul(values[1], NULL, 10);
    const char *at = values[0];
    struct structure_line line;

    (void)columns;
    (void)err;
    while (numbers_structure_line(&at, &line)) {
        if (line.known == MAYBE_KNOWN && !line.is_number)
            continue;
        gather_put(in->g, gather_slot(in->g, GATHER_STRUCTURE, line.name), line.known, line.v,
                   weight, 0);
    }
    return STATUS_OK;
}

/* cells, left out, GPU */
static enum status cells_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct gathering *const in = self;
    const char *at = values[0];
    const uint32_t who = (uint32_t)strtoul(values[2], NULL, 10);
    struct number_cell cell;

    (void)columns;
    (void)err;
    in->left_out += strtoull(values[1], NULL, 10);
    while (numbers_get(&at, &cell)) {
        uint32_t slot = gather_find(in->g, cell.id);
        if (slot == GATHER_NONE)
            slot = gather_slot(in->g, cell.id, number_names_get(in->names, cell.id));
        gather_put(in->g, slot, cell.known, cell.v, 1, who);
    }
    return STATUS_OK;
}

enum status report_gather_kind(struct report *r, const struct report_kind *kind, struct gather *g,
                               struct err *err)
{
    struct gathering in = {.g = g};
    enum status s = fleet_names(r->db, &in.names, err);

    gather_reset(g);
    if (s == STATUS_OK)
        s = fleet_run(r->db,
                      "SELECT t.text, c.n FROM (SELECT structure, COUNT(*) AS n "
                      "FROM fleet_sighting WHERE survey = $1 AND counted = 1 AND kind = $2 "
                      "AND structure IS NOT NULL GROUP BY structure) c "
                      "JOIN fleet_structure t ON t.id = c.structure ORDER BY t.id",
                      FLEET_VALUES(r->survey, kind->id), structure_row, &in, err);
    if (s == STATUS_OK)
        s = fleet_run(r->db,
                      "SELECT n.cells, n.left_out, s.gpu FROM fleet_sighting s "
                      "JOIN fleet_numbers n ON n.fingerprint = s.fingerprint "
                      "WHERE s.survey = $1 AND +s.counted = 1 "
                      "AND +s.kind = CAST($2 AS INTEGER) ORDER BY s.host, s.slot",
                      FLEET_VALUES(r->survey, kind->id), cells_row, &in, err);
    g->left_out += in.left_out;
    return s == STATUS_OK ? gather_finish(g, err) : s;
}

static void put_numbers(struct report *r, const struct report_kind *kind, const struct gather *g)
{
    for (uint32_t i = 0; i < g->count; i++) {
        const struct gather_number *const n = &g->numbers[i];
        const bool any = n->n > 0;
        const struct cell cells[] = {
            cell_text(kind->model),
            cell_text(report_origin(kind->origin)),
            cell_text(n->name),
            cell_count((int64_t)n->n),
            any ? cell_real(n->least) : cell_none,
            any ? cell_real(n->lower) : cell_none,
            any ? cell_real(n->median) : cell_none,
            any ? cell_real(n->upper) : cell_none,
            any ? cell_real(n->most) : cell_none,
            any ? cell_real(n->mad) : cell_none,
            cell_count((int64_t)n->unknown),
            cell_count((int64_t)n->unobservable),
        };
        report_row(r->to, cells);
    }
}

enum status report_spread(struct report *r, struct err *err)
{
    struct report_kinds kinds = {.count = 0};
    struct gather *g = NULL;
    uint64_t left_out = 0;
    enum status s = report_kinds(r, &kinds, err);

    if (s == STATUS_OK)
        s = gather_new(&g, err);
    report_table_begin(r->to, &spread_table);
    for (uint32_t i = 0; s == STATUS_OK && i < kinds.count; i++) {
        s = report_gather_kind(r, &kinds.kinds[i], g, err);
        if (s == STATUS_OK)
            put_numbers(r, &kinds.kinds[i], g);
        left_out += g->left_out;
    }
    report_note(r->to, "Quartiles are values that were measured (nearest rank), the median is the "
                       "mean of the two middle ones, deviation is the median distance from it.");
    if (left_out > 0)
        report_note(r->to, "%" PRIu64 " values are left out: their numbers have too many names.",
                    left_out);
    if (kinds.more)
        report_note(r->to, "Models beyond the first %d are left out.", REPORT_MAX_KINDS);
    report_table_end(r->to);
    gather_free(g);
    free(kinds.kinds);
    return s;
}
