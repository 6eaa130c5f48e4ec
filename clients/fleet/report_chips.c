/* report_chips.c: how often each pattern of disabled SMs occurs, in the form of table 3 of Karnagel
 * 2017, and how many different group maps a model has. */
#include "clients/fleet/report_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct report_table signatures_table = {
    .name = "signatures",
    .part = "",
    .title = "Signatures of the disabled SMs",
    .columns = {"model", "origin", "signature", "gpus", "percent", "candidates", "candidate_count"},
};

static const struct report_table maps_table = {
    .name = "maps",
    .part = "",
    .title = "Group maps: which SMs share a TLB",
    .columns = {"model", "origin", "map", "groups", "gpus", "percent"},
};

static const struct report_table map_counts_table = {
    .name = "maps",
    .part = "counts",
    .title = "Different group maps",
    .columns = {"model", "origin", "gpus", "maps", "most_common_percent"},
};

/* The rows of one model and origin end with their total. */
struct signatures {
    struct report_rows rows;
    char model[128];
    char origin[16];
    int64_t total; /* of the kind whose rows come; 0: none yet */
    bool all;      /* its rows were all printed */
};

static void put_total(struct signatures *s)
{
    const struct cell cells[] = {cell_text(s->model),
                                 cell_text(s->origin),
                                 cell_text("total"),
                                 cell_count(s->total),
                                 cell_percent(1, 1),
                                 cell_none,
                                 cell_none};

    if (s->total > 0 && s->all)
        report_row_for_people(s->rows.r->to, cells);
}

/* What stands for a signature that is not there. */
static const char *signature_text(const char *signature)
{
    if (!signature)
        return "(no fingerprint)";
    return signature[0] ? signature : "(not known)";
}

/* model, origin, signature, number, of how many, candidates, their number */
static enum status signature_row(void *self, int columns, const char *const *values,
                                 struct err *err)
{
    struct signatures *const s = self;
    const int64_t total = strtoll(values[4], NULL, 10);
    const bool ambiguous = values[6] && strcmp(values[6], "1") != 0;

    (void)columns;
    (void)err;
    if (s->total == 0 || strcmp(s->model, values[0]) != 0 ||
        strcmp(s->origin, report_origin(values[1])) != 0) {
        put_total(s);
        (void)snprintf(s->model, sizeof(s->model), "%s", values[0]);
        (void)snprintf(s->origin, sizeof(s->origin), "%s", report_origin(values[1]));
        s->total = total;
        s->all = true;
    }
    if (!report_rows_next(&s->rows)) {
        s->all = false;
        return STATUS_OK;
    }
    const struct cell cells[] = {
        cell_text(values[0]),
        cell_text(report_origin(values[1])),
        cell_text(signature_text(values[2])),
        cell_count_text(values[3]),
        cell_percent((double)strtoll(values[3], NULL, 10), (double)total),
        ambiguous && values[5] && values[5][0] ? cell_text(values[5]) : cell_none,
        cell_count_text(values[6]),
    };
    report_row(s->rows.r->to, cells);
    return STATUS_OK;
}

enum status report_signatures(struct report *r, struct err *err)
{
    struct signatures s = {.rows = {.r = r}};
    enum status status;

    report_table_begin(r->to, &signatures_table);
    status = fleet_run(r->db, REPORT_SIGNATURES_SQL, FLEET_VALUES(r->survey, r->model),
                       signature_row, &s, err);
    put_total(&s);
    report_note(r->to, "A signature is the same on every chip with the same pattern; where several "
                       "sets of SMs would leave it, all of them are candidates.");
    report_rows_end(&s.rows, "signatures");
    return status;
}

/* model, origin, map, groups, number, of how many */
static enum status map_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct report_rows *const rows = self;
    const struct cell cells[] = {
        cell_text(values[0]),
        cell_text(values[1]),
        cell_text(values[2][0] ? values[2] : "(not known)"),
        cell_count_text(values[3]),
        cell_count_text(values[4]),
        cell_percent((double)strtoll(values[4], NULL, 10), (double)strtoll(values[5], NULL, 10)),
    };

    (void)columns;
    (void)err;
    if (report_rows_next(rows))
        report_row(rows->r->to, cells);
    return STATUS_OK;
}

/* model, origin, GPUs with a map, maps, the most common one's */
static enum status map_count_row(void *self, int columns, const char *const *values,
                                 struct err *err)
{
    struct report_rows *const rows = self;
    const struct cell cells[] = {
        cell_text(values[0]),
        cell_text(values[1]),
        cell_count_text(values[2]),
        cell_count_text(values[3]),
        cell_percent((double)strtoll(values[4], NULL, 10), (double)strtoll(values[2], NULL, 10)),
    };

    (void)columns;
    (void)err;
    if (report_rows_next(rows))
        report_row(rows->r->to, cells);
    return STATUS_OK;
}

/* How many SMs share with whom, by kind and map, where the GPU has a fingerprint. */
#define MAPS_SQL                                                                                   \
    "(SELECT kind, map, COUNT(*) AS n FROM fleet_sighting WHERE survey = $1 AND counted = 1 "      \
    "AND map IS NOT NULL GROUP BY kind, map) c JOIN fleet_kind k ON k.id = c.kind "                \
    "JOIN fleet_map m ON m.id = c.map WHERE (CAST($2 AS TEXT) = '' OR k.model = $2) "

enum status report_maps(struct report *r, struct err *err)
{
    struct report_rows counts = {.r = r};
    struct report_rows rows = {.r = r};
    enum status s;

    report_table_begin(r->to, &map_counts_table);
    s = fleet_run(r->db,
                  "SELECT k.model, k.origin, SUM(c.n), COUNT(*), MAX(c.n) FROM " MAPS_SQL
                  "AND m.hash <> '' GROUP BY k.model, k.origin "
                  "ORDER BY k.model COLLATE \"C\", k.origin COLLATE \"C\"",
                  FLEET_VALUES(r->survey, r->model), map_count_row, &counts, err);
    report_rows_end(&counts, "maps");
    if (s != STATUS_OK || r->brief)
        return s;
    report_table_begin(r->to, &maps_table);
    s = fleet_run(r->db,
                  "SELECT k.model, k.origin, m.hash, m.group_count, c.n, "
                  "SUM(c.n) OVER (PARTITION BY c.kind) FROM " MAPS_SQL
                  "ORDER BY k.model COLLATE \"C\", k.origin COLLATE \"C\", c.n DESC, "
                  "m.hash COLLATE \"C\"",
                  FLEET_VALUES(r->survey, r->model), map_row, &rows, err);
    report_note(r->to, "A map's name is a hash of which SM ids go together, whatever the groups "
                       "are called.");
    report_rows_end(&rows, "maps");
    return s;
}
