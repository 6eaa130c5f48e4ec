/* floorplan.c: see floorplan.h.
 *
 * SMs with neighboring ids that always go together are one unit (a TPC). A regular die of G groups
 * has its units in rows. Row k has the k-th unit of each group, and the order of the groups is the
 * same in every row. The search covers two ways of numbering the remaining SMs.
 *
 *   in order   ids follow the rows, and a lost unit leaves a gap. Then cutting the ids into rows
 *              and finding the order of the groups gives the places of the gaps. All cuts are
 *              tried.
 *   assigned   ids are assigned to remaining SMs, so gaps have closed: the number of units that
 *              each group has lost is known, but not their places in the group.
 */
#include "analysis/sharing/floorplan.h"

#include "base/assert.h"
#include "base/divisor.h"

#include <stdio.h>
#include <string.h>

/* The search gives up after this number of steps, which take a few milliseconds. */
enum { WORK_LIMIT = 2000000 };

/* If there is more than one hypothetical SM for this number of real SMs, any pattern can be
 * explained, so the result means nothing. */
enum { BUDGET_DIVISOR = 4 };

/* A pattern counts if chance produces it less often than one time in 2^20. */
enum { CHANCE_BITS = 20 };

/* The measured groups. Places are positions in the order of the SM ids; gaps in the ids mean
 * nothing. */
struct chip {
    uint32_t sms;
    uint32_t groups;
    uint32_t largest;                 /* number of SMs of the largest group */
    uint32_t largest_count;           /* number of groups of that size */
    uint32_t runs;                    /* number of stretches of neighbors in one group */
    uint32_t run_gcd;                 /* greatest common divisor of the lengths of all stretches */
    uint32_t budget;                  /* largest number of hypothetical SMs */
    uint16_t group_at[REACH_MAX_SMS]; /* by place */
};

/* One way to cut the units into rows; the search visits all of them. */
struct search {
    uint32_t unit_sms;
    uint32_t units;
    uint32_t groups;
    uint32_t rows;
    uint16_t group_at[REACH_MAX_SMS];      /* by unit */
    uint16_t next_of_group[REACH_MAX_SMS]; /* next unit of the same group; `units` if none */
    uint16_t first_of_group[REACH_MAX_GROUPS];
    bool starts_row[REACH_MAX_SMS];
    bool placed[REACH_MAX_GROUPS];
    uint16_t column[REACH_MAX_GROUPS];
    uint32_t work;  /* steps left */
    uint32_t count; /* candidates found */
    struct disabled_sms *out;
};

static void read_chip(const struct topology *t, struct chip *out)
{
    uint32_t run = 0;

    *out = (struct chip){.groups = t->partition.group_count};
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const uint16_t g = t->partition.group_of_sm[sm];
        if (g == FINGERPRINT_NO_GROUP)
            continue;
        if (out->sms > 0 && out->group_at[out->sms - 1] != g) {
            out->run_gcd = (uint32_t)greatest_common_divisor(run, out->run_gcd);
            out->runs++;
            run = 0;
        }
        out->group_at[out->sms++] = g;
        run++;
    }
    out->run_gcd = (uint32_t)greatest_common_divisor(run, out->run_gcd);
    out->runs++;
    for (uint32_t g = 0; g < out->groups; g++) {
        if (t->groups[g].sm_count > out->largest) {
            out->largest = t->groups[g].sm_count;
            out->largest_count = 0;
        }
        out->largest_count += t->groups[g].sm_count == out->largest ? 1 : 0;
    }
    out->budget = out->sms / BUDGET_DIVISOR;
    if (out->budget > FINGERPRINT_MAX_DISABLED)
        out->budget = FINGERPRINT_MAX_DISABLED;
    if (out->budget > REACH_MAX_SMS - out->sms)
        out->budget = REACH_MAX_SMS - out->sms;
}

/* Subtracts steps from the remaining work. Returns false if the work is used up; then every loop
 * ends. */
static bool spend(struct search *s, uint32_t steps)
{
    s->work = s->work > steps ? s->work - steps : 0;
    return s->work > 0;
}

/* Returns whether there is an edge from unit i to the next unit: unit i is left of the next unit in
 * the same row. */
static bool has_edge(const struct search *s, uint32_t i, uint32_t end)
{
    return i + 1 < end && !s->starts_row[i + 1];
}

/* Returns whether every unit of group `g` is the first of its row, or follows a unit of a placed
 * group. */
static bool is_next(const struct search *s, uint32_t g)
{
    for (uint32_t i = s->first_of_group[g]; i < s->units; i = s->next_of_group[i])
        if (i > 0 && !s->starts_row[i] && !s->placed[s->group_at[i - 1]])
            return false;
    return true;
}

/* Returns whether one order of the groups suits all rows up to unit `end`. */
static bool has_order(struct search *s, uint32_t end)
{
    uint16_t waits[REACH_MAX_GROUPS] = {0}; /* rows in which the preceding group is not ready yet */
    uint16_t ready[REACH_MAX_GROUPS];
    uint32_t count = 0;
    uint32_t done = 0;

    if (!spend(s, 2 * end + s->groups))
        return false;
    for (uint32_t i = 0; i < end; i++) {
        if (has_edge(s, i, end))
            waits[s->group_at[i + 1]]++;
    }
    for (uint32_t g = 0; g < s->groups; g++) {
        if (waits[g] == 0)
            ready[count++] = (uint16_t)g;
    }
    for (; done < count; done++) {
        for (uint32_t i = s->first_of_group[ready[done]]; i < end; i = s->next_of_group[i]) {
            if (has_edge(s, i, end) && --waits[s->group_at[i + 1]] == 0)
                ready[count++] = s->group_at[i + 1];
        }
    }
    return done == s->groups;
}

/* Keeps the list sorted, the latest first. If it is full, the latest candidates stay. Returns false
 * if the candidate is already in it. */
static bool keep_candidate(struct disabled_sms *d, uint32_t sms, const uint16_t *candidate)
{
    uint32_t at = 0;
    int order = 1;

    while (at < d->listed) {
        order = 0;
        for (uint32_t i = 0; i < sms && order == 0; i++)
            order = (int)d->candidates[at][i] - (int)candidate[i];
        if (order <= 0)
            break;
        at++;
    }
    if (at < d->listed && order == 0)
        return false;
    if (at == FINGERPRINT_MAX_CANDIDATES)
        return true;
    if (d->listed < FINGERPRINT_MAX_CANDIDATES)
        d->listed++;
    memmove(d->candidates[at + 1], d->candidates[at],
            (d->listed - 1 - at) * sizeof(d->candidates[0]));
    memset(d->candidates[at], 0, sizeof(d->candidates[at]));
    memcpy(d->candidates[at], candidate, sms * sizeof(candidate[0]));
    return true;
}

/* Adds the missing SMs of the die, from the known rows and columns. */
static void add_candidate(struct search *s)
{
    bool there[REACH_MAX_SMS] = {false};
    uint16_t candidate[FINGERPRINT_MAX_DISABLED];
    uint32_t sms = 0;
    uint32_t row = 0;

    for (uint32_t i = 0; i < s->units; i++) {
        row += i > 0 && s->starts_row[i] ? 1 : 0;
        there[row * s->groups + s->column[s->group_at[i]]] = true;
    }
    for (uint32_t p = 0; p < s->rows * s->groups; p++) {
        for (uint32_t i = 0; !there[p] && i < s->unit_sms; i++)
            candidate[sms++] = (uint16_t)(p * s->unit_sms + i);
    }
    s->count += keep_candidate(s->out, sms, candidate) ? 1 : 0;
}

/* Every order of the groups that suits all rows is a candidate. The recursion is as deep as the
 * number of groups. */
static void place_columns(struct search *s, uint32_t column)
{
    if (column == s->groups) {
        add_candidate(s);
        return;
    }
    for (uint32_t g = 0; g < s->groups && spend(s, 1); g++) {
        if (s->placed[g] || !is_next(s, g))
            continue;
        s->column[g] = (uint16_t)column;
        s->placed[g] = true;
        place_columns(s, column + 1);
        s->placed[g] = false;
    }
}

/* Cuts the units from `start` on into `rows` rows in every way. A row without units is never
 * needed, because the die without it is smaller. The recursion is as deep as the number of rows. */
static void cut_rows(struct search *s, uint32_t start, uint32_t rows)
{
    const uint32_t rest = s->units - start;
    const uint32_t room = (rows - 1) * s->groups;
    const uint32_t least = rest > room ? rest - room : 1;

    if (rest < rows)
        return;
    s->starts_row[start] = true;
    for (uint32_t n = least; n <= s->groups && n <= rest - (rows - 1) && s->work > 0; n++) {
        if (!has_order(s, start + n))
            break;
        if (rows > 1) {
            cut_rows(s, start + n, rows - 1);
        } else if (n == rest) {
            place_columns(s, 0);
        }
    }
    s->starts_row[start] = false;
}

static void search_rows(struct search *s, const struct chip *c, uint32_t unit_sms)
{
    s->unit_sms = unit_sms;
    s->units = c->sms / unit_sms;
    s->groups = c->groups;
    s->rows = c->largest / unit_sms;
    memset(s->starts_row, 0, sizeof(s->starts_row));
    for (uint32_t g = 0; g < s->groups; g++)
        s->first_of_group[g] = (uint16_t)s->units;
    for (uint32_t i = s->units; i-- > 0;) {
        const uint16_t g = c->group_at[i * unit_sms];
        s->group_at[i] = g;
        s->next_of_group[i] = s->first_of_group[g];
        s->first_of_group[g] = (uint16_t)i;
    }
    cut_rows(s, 0, s->rows);
}

/* Returns whether the ids can lie in the order of a die whose groups are all as large as the
 * largest one. Fills in unit, count and candidates of `out`. Larger groups are not tried: every
 * group would have lost SMs, and with this number of insertions, patterns of another kind find an
 * explanation too. */
static bool find_in_order(const struct chip *c, struct disabled_sms *out)
{
    struct search s = {.work = WORK_LIMIT, .out = out};

    if (c->largest * c->groups > c->sms + c->budget)
        return false;
    for (uint32_t u = c->run_gcd; u > 0 && s.work > 0; u--) {
        const uint32_t before = s.count;
        if (c->run_gcd % u != 0 || c->largest % u != 0)
            continue;
        search_rows(&s, c, u);
        if (before == 0 && s.count > 0)
            out->unit_sms = KNOWN_U32(u);
    }
    out->candidate_count = s.work > 0 ? KNOWN_U32(s.count) : UNKNOWN_U32(REASON_TOO_LITTLE_DATA);
    return s.count > 0;
}

/* Returns the number of units from the start that go round `columns` columns, while the groups of a
 * column take turns. `*out_die` is the number of groups of a die in which every column has the
 * number of groups of the longest column. */
static uint32_t dealt_head(const struct chip *c, uint32_t columns, uint32_t *out_die)
{
    uint16_t column_of[REACH_MAX_GROUPS];
    /* number of groups of the column, and number of its units so far */
    uint16_t turns[REACH_MAX_GROUPS][2] = {{0}};
    uint16_t rank[REACH_MAX_GROUPS] = {0}; /* index of the group in its column */
    uint32_t most = 0;
    uint32_t i;

    memset(column_of, 0xff, sizeof(column_of));
    for (i = 0; i < c->sms / c->run_gcd; i++) {
        const uint16_t g = c->group_at[i * c->run_gcd];
        const uint32_t at = i % columns;
        uint16_t *const groups = &turns[at][0];
        uint16_t *const units = &turns[at][1];
        if (column_of[g] == UINT16_MAX && *groups == *units) {
            column_of[g] = (uint16_t)at;
            rank[g] = (*groups)++;
            most = *groups > most ? *groups : most;
        } else if (column_of[g] != at || *groups == 0 || *units % *groups != rank[g]) {
            break;
        }
        (*units)++;
    }
    *out_die = columns * most;
    return i;
}

/* Returns the number of units that must follow the turns to rule out chance. With G groups, each
 * unit follows the turns by chance once in G times, and G numbers of columns are tried. The total
 * chance is at most once in a million. */
static uint32_t proof_units(uint32_t groups)
{
    uint32_t bits = 0;

    REACH_ASSERT(groups > 1); /* one group is one stretch and is not tested */
    while (groups >> (bits + 1) > 0)
        bits++;
    return 1 + (CHANCE_BITS + bits - 1) / (bits > 0 ? bits : 1);
}

/* Returns the number of groups of the full die, if the order of the ids shows how the ids were
 * assigned. It is 0 if it is not certain. `*out_margin` is the excess of the units that follow the
 * turns over the required number, as a share of these units. */
static uint32_t find_assigned(const struct chip *c, double *out_margin)
{
    uint32_t best = 0;
    uint32_t die = 0;
    uint32_t all = 0; /* number of units until every group has had one */

    *out_margin = 1;
    if (c->runs == c->groups) /* groups that follow one another show no turns */
        return c->groups;
    for (uint32_t seen = 0; seen < c->groups; all++)
        seen += c->group_at[all * c->run_gcd] == seen ? 1 : 0;
    for (uint32_t columns = 1; columns <= c->groups; columns++) {
        uint32_t this_die;
        const uint32_t head = dealt_head(c, columns, &this_die);
        if (head < best)
            continue;
        die = head == best && die != this_die ? 0 : this_die;
        best = head;
    }
    const uint32_t proof = all + proof_units(c->groups);
    *out_margin = best > proof ? 1 - (double)proof / best : 0;
    return best >= proof ? die : 0;
}

/* Writes "5x3/10,11" (5 groups of 3 SMs; SMs 10 and 11 are missing), or "24x6/4:2,13:2" (group 4
 * has lost 2 SMs). Writes "" if the text does not fit. */
static void write_signature(const struct topology *t, uint32_t die_groups, struct disabled_sms *d)
{
    const uint32_t k = t->nominal_group_sms.v;
    const size_t size = sizeof(d->signature);
    int n = snprintf(d->signature, size, "%ux%u/", die_groups, k);
    const char *comma = "";

    for (uint32_t i = 0; d->listed > 0 && i < d->sm_count.v && (size_t)n < size; i++) {
        n += snprintf(d->signature + n, size - (size_t)n, "%s%u", comma, d->candidates[0][i]);
        comma = ",";
    }
    for (uint32_t g = 0; d->listed == 0 && g < t->partition.group_count && (size_t)n < size; g++) {
        if (t->groups[g].sm_count == k)
            continue;
        n += snprintf(d->signature + n, size - (size_t)n, "%s%u:%u", comma, g,
                      k - t->groups[g].sm_count);
        comma = ",";
    }
    if ((size_t)n >= size)
        d->signature[0] = '\0';
}

/* Fills in the full die. `margin` is the margin of the pattern. The margin of the result also
 * depends on the distance of the lost SMs from the largest allowed number. */
static void set_die(struct topology *t, const struct chip *c, uint32_t groups, double margin)
{
    struct disabled_sms *const d = &t->disabled;
    const double room = 1 - (double)(groups * c->largest - c->sms) / (c->budget + 1);

    t->nominal_group_sms = KNOWN_U32(c->largest);
    t->full_sm_count = KNOWN_U32(groups * c->largest);
    d->sm_count = KNOWN_U32(groups * c->largest - c->sms);
    d->lost_groups = KNOWN_U32(groups - c->groups);
    write_signature(t, groups, d);
    t->evidence.disabled = evidence_make(EVIDENCE_FLOOR_PLAN, 1, room < margin ? room : margin);
}

static void set_absent(struct topology *t, struct maybe_u32 why)
{
    struct disabled_sms *const d = &t->disabled;

    memset(d, 0, sizeof(*d));
    t->nominal_group_sms = t->full_sm_count = why;
    d->sm_count = d->unit_sms = d->lost_groups = d->candidate_count = why;
    t->evidence.disabled = (struct evidence){.method = EVIDENCE_NONE};
}

void floorplan_derive(uint32_t sm_count, struct topology *topology)
{
    struct chip c;
    bool in_order;
    uint32_t assigned;
    double margin = 0;

    if (topology->partition.group_count == 0) {
        set_absent(topology, UNKNOWN_U32(REASON_NOT_MEASURED));
        return;
    }
    read_chip(topology, &c);
    if (c.sms == 0 || c.sms != sm_count) {
        set_absent(topology, UNKNOWN_U32(REASON_TOO_LITTLE_DATA));
        return;
    }
    if (c.runs == c.groups && c.largest_count == c.groups) {
        set_absent(topology, NOT_OBSERVABLE_U32(REASON_NO_TRACE));
        return;
    }
    set_absent(topology, UNKNOWN_U32(REASON_IRREGULAR));
    in_order = find_in_order(&c, &topology->disabled);
    assigned = c.largest_count > 1 ? find_assigned(&c, &margin) : 0;
    if (assigned * c.largest > c.sms + c.budget)
        assigned = 0;
    if (in_order && assigned > c.groups) {
        set_absent(topology, UNKNOWN_U32(REASON_DISAGREEMENT));
    } else if (in_order) {
        set_die(topology, &c, c.groups, 1);
    } else if (assigned > 0) {
        topology->disabled.unit_sms = KNOWN_U32(c.run_gcd);
        topology->disabled.candidate_count = NOT_OBSERVABLE_U32(REASON_NO_TRACE);
        set_die(topology, &c, assigned, margin);
    } else {
        set_absent(topology, UNKNOWN_U32(REASON_IRREGULAR));
    }
}
