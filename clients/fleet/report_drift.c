/* report_drift.c: what changed since the same GPU (by UUID and serial number) was surveyed last.
 *
 * Two measurements of one chip differ by noise. How much is taken from the fleet: the changes of
 * all GPUs of the kind that were measured again, in parts of the number before. A GPU has drifted
 * where its change stands out of those, and the fleet has where most of it changed the same way (a
 * new driver, say). With too few of them the noise that fingerprint/diff.h knows has to do.
 */
#include "clients/fleet/report_numbers.h"

#include "fingerprint/diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct report_table drift_table = {
    .name = "drift",
    .part = "",
    .title = "What changed since the survey before",
    .columns = {"model", "origin", "uuid", "host", "slot", "since", "what", "before", "after",
                "change_percent", "fleet_percent"},
};

static const struct report_table counts_table = {
    .name = "drift",
    .part = "counts",
    .title = "GPUs that were measured again",
    .columns = {"model", "origin", "again", "changed", "structure", "groups", "numbers",
                "other_driver"},
};

struct drift_counts {
    int64_t again;
    int64_t changed; /* in any way but the driver */
    int64_t structure;
    int64_t groups;
    int64_t numbers;
    int64_t driver;
};

struct drift {
    struct report_rows rows;
    const struct report_kind *kind;
    const struct number_names *names;
    struct gather *g;
    struct drift_counts counts;
    double *before;  /* by number's id */
    uint32_t *stamp; /* whether it is of the GPU at hand */
    uint32_t turn;
};

/* The same SQL for both passes: which GPUs of a kind have another fingerprint than last time. */
#define PAIRS                                                                                      \
    "FROM fleet_sighting s JOIN fleet_numbers a ON a.fingerprint = s.was_fingerprint "             \
    "JOIN fleet_numbers b ON b.fingerprint = s.fingerprint "
#define OF_KIND                                                                                    \
    "WHERE s.survey = $1 AND +s.counted = 1 AND +s.kind = CAST($2 AS INTEGER) "                    \
    "AND s.fingerprint <> s.was_fingerprint "

/* ---- the fleet's changes ---- */

static void read_before(struct drift *d, const char *cells)
{
    struct number_cell cell;

    d->turn++;
    while (numbers_get(&cells, &cell)) {
        if (cell.known != MAYBE_KNOWN)
            continue;
        d->before[cell.id] = cell.v;
        d->stamp[cell.id] = d->turn;
    }
}

/* The change of a number in parts of what it was. False where one side does not know it. */
static bool change_of(const struct drift *d, const struct number_cell *cell, double *out)
{
    const double before = d->before[cell->id];

    if (cell->known != MAYBE_KNOWN || d->stamp[cell->id] != d->turn)
        return false;
    if (cell->v == before)
        *out = 0;
    else if (before == 0)
        *out = cell->v > 0 ? 1 : -1;
    else
        *out = (cell->v - before) / fabs(before);
    return isfinite(*out);
}

/* cells before, cells now */
static enum status gather_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct drift *const d = self;
    const char *at = values[1];
    struct number_cell cell;
    double change;

    (void)columns;
    (void)err;
    read_before(d, values[0]);
    while (numbers_get(&at, &cell)) {
        if (!change_of(d, &cell, &change))
            continue;
        gather_put(d->g, gather_slot(d->g, cell.id, number_names_get(d->names, cell.id)),
                   MAYBE_KNOWN, change, 1, 0);
    }
    return STATUS_OK;
}

/* ---- one GPU ---- */

/* What the second pass gives of each: the first five name it. */
enum {
    UUID = 0,
    HOST,
    SLOT,
    SINCE,
    BEFORE,
    NOW,
    LINES,
    NEW_LINES,
    MAP,
    NEW_MAP,
    DRIVER,
    NEW_DRIVER
};

static void put(struct drift *d, const char *const *values, const char *what, struct cell before,
                struct cell after, struct cell change, struct cell fleet)
{
    const struct cell cells[] = {cell_text(d->kind->model),
                                 cell_text(report_origin(d->kind->origin)),
                                 cell_text(values[UUID]),
                                 cell_text(values[HOST]),
                                 cell_count_text(values[SLOT]),
                                 cell_count_text(values[SINCE]),
                                 cell_text(what),
                                 before,
                                 after,
                                 change,
                                 fleet};

    if (report_rows_next(&d->rows))
        report_row(d->rows.r->to, cells);
}

static bool find_line(const char *text, const char *name, struct structure_line *out)
{
    while (numbers_structure_line(&text, out)) {
        if (strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}

static bool judge_structure(struct drift *d, const char *const *values)
{
    const char *at = values[NEW_LINES];
    struct structure_line now;
    struct structure_line was;
    bool any = false;

    if (!at || !values[LINES])
        return false;
    while (numbers_structure_line(&at, &now)) {
        if (now.known != MAYBE_KNOWN || !find_line(values[LINES], now.name, &was) ||
            was.known != MAYBE_KNOWN || strcmp(was.value, now.value) == 0)
            continue;
        put(d, values, now.name, cell_text(was.value), cell_text(now.value), cell_none, cell_none);
        any = true;
    }
    return any;
}

static bool judge_groups(struct drift *d, const char *const *values)
{
    if (!values[MAP][0] || !values[NEW_MAP][0] || strcmp(values[MAP], values[NEW_MAP]) == 0)
        return false;
    put(d, values, "other hardware: which SMs share a TLB", cell_text(values[MAP]),
        cell_text(values[NEW_MAP]), cell_none, cell_none);
    return true;
}

static bool judge_numbers(struct drift *d, const char *const *values)
{
    const char *at = values[NOW];
    struct number_cell cell;
    double change;
    bool any = false;

    read_before(d, values[BEFORE]);
    while (numbers_get(&at, &cell)) {
        const uint32_t slot = gather_find(d->g, cell.id);
        const struct gather_number *const n = slot < d->g->count ? &d->g->numbers[slot] : NULL;
        if (!change_of(d, &cell, &change) || !n || !n->judged || n->n < REPORT_MIN_FLEET ||
            !report_is_far(change, n->median, n->mad, 1))
            continue;
        put(d, values, n->name, cell_real(d->before[cell.id]), cell_real(cell.v),
            cell_percent(change, 1), cell_percent(n->median, 1));
        any = true;
    }
    return any;
}

static enum status judge_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct drift *const d = self;
    const bool structure = judge_structure(d, values);
    const bool groups = judge_groups(d, values);
    const bool numbers = judge_numbers(d, values);

    (void)columns;
    (void)err;
    d->counts.again++;
    d->counts.structure += structure;
    d->counts.groups += groups;
    d->counts.numbers += numbers;
    d->counts.changed += structure || groups || numbers;
    d->counts.driver += strcmp(values[DRIVER], values[NEW_DRIVER]) != 0;
    return STATUS_OK;
}

/* The same way: more than three quarters of them, and by more than chance would. */
static void put_fleet(struct drift *d)
{
    static const char *const nobody[] = {"(most of them)", NULL, NULL, NULL};

    for (uint32_t i = 0; i < d->g->count; i++) {
        const struct gather_number *const n = &d->g->numbers[i];
        if (n->judged && n->n >= REPORT_MIN_FLEET && fabs(n->median) > REPORT_FLEET_SHARE &&
            n->lower * n->upper > 0)
            put(d, nobody, n->name, cell_none, cell_none, cell_none, cell_percent(n->median, 1));
    }
}

static enum status many_pairs(struct report *r, struct drift *d, struct err *err)
{
    enum status s;

    gather_reset(d->g);
    s = fleet_run(r->db, "SELECT a.cells, b.cells " PAIRS OF_KIND,
                  FLEET_VALUES(r->survey, d->kind->id), gather_row, d, err);
    if (s == STATUS_OK)
        s = gather_finish(d->g, err);
    if (s != STATUS_OK)
        return s;
    put_fleet(d);
    return fleet_run(
        r->db,
        "SELECT g.uuid, h.name, s.slot, s.was_survey, a.cells, b.cells, ta.text, tb.text, ma.hash, "
        "mb.hash, fa.driver, fb.driver " PAIRS
        "JOIN fleet_fingerprint fa ON fa.id = s.was_fingerprint "
        "JOIN fleet_fingerprint fb ON fb.id = s.fingerprint "
        "LEFT JOIN fleet_structure ta ON ta.id = fa.structure AND fa.structure <> fb.structure "
        "LEFT JOIN fleet_structure tb ON tb.id = fb.structure AND fa.structure <> fb.structure "
        "JOIN fleet_map ma ON ma.id = fa.map JOIN fleet_map mb ON mb.id = fb.map "
        "JOIN fleet_gpu g ON g.id = s.gpu JOIN fleet_host h ON h.id = s.host " OF_KIND
        "ORDER BY s.host, s.slot",
        FLEET_VALUES(r->survey, d->kind->id), judge_row, d, err);
}

/* ---- too few to know their noise ---- */

struct pair {
    char texts[SINCE + 1][300]; /* what names it */
    char before[FLEET_NUMBER_BYTES];
    char now[FLEET_NUMBER_BYTES];
};

struct pairs {
    struct pair pairs[REPORT_MIN_FLEET];
    uint32_t count;
};

/* uuid, host, slot, since, fingerprint before, now */
static enum status pair_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct pairs *const p = self;
    struct pair *one;

    (void)columns;
    (void)err;
    if (p->count == REPORT_MIN_FLEET)
        return STATUS_OK;
    one = &p->pairs[p->count++];
    for (int i = 0; i <= SINCE; i++)
        (void)snprintf(one->texts[i], sizeof(one->texts[i]), "%s", values[i] ? values[i] : "");
    (void)snprintf(one->before, sizeof(one->before), "%s", values[4]);
    (void)snprintf(one->now, sizeof(one->now), "%s", values[5]);
    return STATUS_OK;
}

static enum status read_row(void *self, int columns, const char *const *values, struct err *err)
{
    json_error_t why;
    json_t *const json = json_loads(values[0], 0, &why);
    enum status s;

    (void)columns;
    if (!json)
        return err_set(err, STATUS_CORRUPT, "a kept fingerprint is no JSON: %.120s", why.text);
    s = fingerprint_from_json(json, self, err);
    json_decref(json);
    return s;
}

static enum status compare_pair(struct report *r, struct drift *d, const struct pair *p,
                                struct err *err)
{
    static const char sql[] = "SELECT document FROM fleet_document WHERE fingerprint = $1";
    const char *const named[] = {p->texts[UUID], p->texts[HOST], p->texts[SLOT], p->texts[SINCE]};
    struct fingerprint *const two = calloc(2, sizeof(*two));
    struct fingerprint_diff *const diff = calloc(1, sizeof(*diff));
    enum status s;

    if (!two || !diff) {
        free(diff);
        free(two);
        return err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    }
    s = fleet_run(r->db, sql, FLEET_VALUES(p->before), read_row, &two[0], err);
    if (s == STATUS_OK)
        s = fleet_run(r->db, sql, FLEET_VALUES(p->now), read_row, &two[1], err);
    if (s == STATUS_OK) {
        fingerprint_compare(&two[0], &two[1], diff);
        for (uint32_t i = 0; i < diff->count; i++)
            put(d, named, diff->sentences[i], cell_none, cell_none, cell_none, cell_none);
        d->counts.changed += diff->result != FINGERPRINT_SAME;
        d->counts.groups += diff->result == FINGERPRINT_OTHER_HARDWARE;
        d->counts.driver += strcmp(two[0].gpu.driver_version, two[1].gpu.driver_version) != 0;
    }
    free(diff);
    free(two);
    return s;
}

static enum status few_pairs(struct report *r, struct drift *d, struct err *err)
{
    struct pairs *const p = calloc(1, sizeof(*p));
    enum status s;

    if (!p)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    s = fleet_run(r->db,
                  "SELECT g.uuid, h.name, s.slot, s.was_survey, s.was_fingerprint, s.fingerprint "
                  "FROM fleet_sighting s JOIN fleet_gpu g ON g.id = s.gpu "
                  "JOIN fleet_host h ON h.id = s.host " OF_KIND "ORDER BY s.host, s.slot",
                  FLEET_VALUES(r->survey, d->kind->id), pair_row, p, err);
    d->counts.again = p->count;
    for (uint32_t i = 0; s == STATUS_OK && i < p->count; i++)
        s = compare_pair(r, d, &p->pairs[i], err);
    free(p);
    return s;
}

/* ---- all of it ---- */

static enum status one_kind(struct report *r, struct drift *d, struct err *err)
{
    int64_t pairs = 0;
    bool found = false;
    enum status s = fleet_run_number(
        r->db,
        "SELECT COUNT(*) FROM fleet_sighting s WHERE s.survey = $1 AND s.counted = 1 "
        "AND s.kind = $2 AND s.fingerprint <> s.was_fingerprint",
        FLEET_VALUES(r->survey, d->kind->id), &pairs, &found, err);

    memset(&d->counts, 0, sizeof(d->counts));
    if (s != STATUS_OK || pairs == 0)
        return s;
    return pairs < REPORT_MIN_FLEET ? few_pairs(r, d, err) : many_pairs(r, d, err);
}

static void put_counts(struct report *r, const struct report_kinds *kinds,
                       const struct drift_counts *counts)
{
    struct report_rows rows = {.r = r};

    report_table_begin(r->to, &counts_table);
    for (uint32_t i = 0; i < kinds->count; i++) {
        const struct drift_counts *const c = &counts[i];
        const bool many = c->again >= REPORT_MIN_FLEET;
        const struct cell cells[] = {cell_text(kinds->kinds[i].model),
                                     cell_text(report_origin(kinds->kinds[i].origin)),
                                     cell_count(c->again),
                                     cell_count(c->changed),
                                     many ? cell_count(c->structure) : cell_none,
                                     cell_count(c->groups),
                                     many ? cell_count(c->numbers) : cell_none,
                                     cell_count(c->driver)};
        if (report_rows_next(&rows))
            report_row(r->to, cells);
    }
    report_rows_end(&rows, "drift");
}

static enum status drift_new(struct drift *d, struct err *err)
{
    d->before = calloc(NUMBER_MAX_NAMES, sizeof(*d->before));
    d->stamp = calloc(NUMBER_MAX_NAMES, sizeof(*d->stamp));
    if (!d->before || !d->stamp)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    return gather_new(&d->g, err);
}

enum status report_drift(struct report *r, struct err *err)
{
    struct drift d = {.rows = {.r = r}};
    struct report_kinds kinds = {.count = 0};
    struct drift_counts *const counts = calloc(REPORT_MAX_KINDS, sizeof(*counts));
    enum status s;

    if (!counts)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    s = drift_new(&d, err);
    if (s == STATUS_OK)
        s = fleet_names(r->db, &d.names, err);
    if (s == STATUS_OK)
        s = report_kinds(r, &kinds, err);
    report_table_begin(r->to, &drift_table);
    for (uint32_t i = 0; s == STATUS_OK && i < kinds.count; i++) {
        d.kind = &kinds.kinds[i];
        s = one_kind(r, &d, err);
        counts[i] = d.counts;
    }
    report_note(r->to,
                "A change counts where it stands out of the fleet's own by more than %.0f "
                "deviations and by more than %.0f%%; with fewer than %d GPUs measured again, as "
                "\"reachctl fingerprint diff\" has it.",
                REPORT_DEVIATIONS, 100 * REPORT_SHARE, REPORT_MIN_FLEET);
    report_rows_end(&d.rows, "drift");
    if (s == STATUS_OK)
        put_counts(r, &kinds, counts);
    gather_free(d.g);
    free(d.stamp);
    free(d.before);
    free(counts);
    free(kinds.kinds);
    return s;
}
