/* mean_sharing.c: see mean_sharing.h. */
#include "analysis/imported/mean_sharing.h"

#include "base/stats.h"

#include <math.h>
#include <string.h>

/* Values of a row are compared as shares of the cost of a lost walk. Values up to CLEARLY_LOW are
 * low, and values from CLEARLY_HIGH on are high. */
#define CLEARLY_LOW      0.35
#define CLEARLY_HIGH     0.65
#define MOST_PAGES       1.06  /* most pages of one SM that fit, as a share of the onset */
#define MOST_FALSE_PAIRS 0.001 /* largest expected number of false pairs */
/* least loss on the diagonal if it evicts, as a share of the penalty */
#define LOSS_LEAST 0.5
#define LOSS_MOST  1.6 /* largest loss on the diagonal; above it, something else became slow */
/* largest spread of a row without contrast, as a share of the penalty */
#define FLAT_SHARE     0.25
#define ABSOLUTE_SLACK 0.25 /* largest distance of a latency from a miss, in penalties */

enum cell { CELL_LOW = 0, CELL_UNSURE, CELL_HIGH };

/* One matrix and its results. */
struct matrix {
    const struct observation *o;
    uint32_t sms;
    double penalty_cycles;     /* penalty of the level under test */
    double hit_cycles;         /* cycles of a load that hits this level, from the curve */
    double low[REACH_MAX_SMS]; /* lowest value of each row */
    double loss_cycles;        /* cost of a lost walk: the median of the diagonal */
};

static double value_of(const struct matrix *m, uint32_t i, uint32_t k)
{
    return observation_mean_pair(m->o, i, k);
}

/* Returns the number of entries of a level that `pages` touch. */
static double entries_touched(const struct probe_spec *spec, const struct curve_level *level,
                              double pages)
{
    if (spec->stride_bytes >= level->stride_bytes)
        return pages;
    return pages * (double)spec->stride_bytes / (double)level->stride_bytes;
}

/* Returns the level that a matrix tests: the only one that holds the pages of one SM but not of
 * two. Every other level must hold both or not even one. Returns -1 if there is none. */
static int level_of(const struct probe_spec *spec, const struct curve_levels *levels)
{
    int found = -1;

    for (uint32_t k = 0; k < levels->count; k++) {
        const struct curve_level *const level = &levels->levels[k];
        const double one = entries_touched(spec, level, spec->thrash_pages);
        const double first = (double)level->step.first_miss_pages;
        const double full = (double)level->step.full_pages;

        if (2 * one < first || one >= full)
            continue; /* the entries are never lost, or always */
        if (one > first * MOST_PAGES || 2 * one < full || found >= 0 || !level->settled)
            return -1; /* partial loss, a second level, or an unknown penalty */
        found = (int)k;
    }
    return found;
}

static void read_matrix(const struct observation *o, const struct curve_level *level,
                        struct matrix *out)
{
    double losses[REACH_MAX_SMS];

    out->o = o;
    out->sms = o->result.sm_count;
    out->penalty_cycles = level->penalty_cycles;
    out->hit_cycles = level->hit_cycles;
    for (uint32_t i = 0; i < out->sms; i++) {
        out->low[i] = value_of(out, i, 0);
        for (uint32_t k = 1; k < out->sms; k++)
            out->low[i] = fmin(out->low[i], value_of(out, i, k));
        losses[i] = value_of(out, i, i) - out->low[i];
    }
    out->loss_cycles = stats_median_f64(losses, out->sms);
}

/* Returns the loss of SM i by the walk of SM k, as a share of a lost walk. */
static double share_of(const struct matrix *m, uint32_t i, uint32_t k)
{
    return (value_of(m, i, k) - m->low[i]) / m->loss_cycles;
}

static enum cell cell_of(const struct matrix *m, uint32_t i, uint32_t k)
{
    const double share = share_of(m, i, k);
    return share <= CLEARLY_LOW ? CELL_LOW : share >= CLEARLY_HIGH ? CELL_HIGH : CELL_UNSURE;
}

/* Returns the distance of the worst clear cell from the middle, as a share (0..1). */
static double margin_of(const struct matrix *m)
{
    double margin = 1;
    for (uint32_t i = 0; i < m->sms; i++)
        for (uint32_t k = 0; k < m->sms; k++)
            if (cell_of(m, i, k) != CELL_UNSURE)
                margin = fmin(margin, fabs(share_of(m, i, k) - 0.5) * 2);
    return margin;
}

/* Combines the cells of two SMs. The pair is low if one cell is clearly low, and high if both cells
 * are clearly high. */
static enum cell pair_of(const struct matrix *m, uint32_t i, uint32_t k)
{
    const enum cell a = cell_of(m, i, k);
    const enum cell b = cell_of(m, k, i);
    if (a == CELL_LOW || b == CELL_LOW)
        return CELL_LOW;
    return a == CELL_HIGH && b == CELL_HIGH ? CELL_HIGH : CELL_UNSURE;
}

/* Returns the expected number of pairs that share nothing but look like pairs that share the level.
 * It follows from the share of values that are high in one direction alone, because something else
 * became slow there. Only two SMs that seem to have no other partner can be misjudged by one false
 * pair. */
static double false_pairs(const struct matrix *m, const uint32_t *sizes, uint32_t groups)
{
    double odd = 0.5;
    double pairs = 0;
    double alone = 2;

    for (uint32_t i = 0; i < m->sms; i++) {
        for (uint32_t k = 0; k < i; k++) {
            odd += (cell_of(m, i, k) == CELL_LOW) != (cell_of(m, k, i) == CELL_LOW);
            pairs += 1;
        }
    }
    for (uint32_t g = 0; g < groups; g++)
        alone += sizes[g] == 1;
    const double chance = odd / (2 * pairs);
    return chance * chance * alone * (alone - 1) / 2;
}

/* Returns whether a group rests on a single pair while pairs occur by chance. */
static bool is_doubtful(const struct matrix *m, const struct sm_partition *p)
{
    uint32_t sizes[REACH_MAX_GROUPS] = {0};
    bool any_of_two = false;

    for (uint32_t i = 0; i < m->sms; i++)
        sizes[p->group_of_sm[m->o->result.sm_ids[i]]] += 1;
    for (uint32_t g = 0; g < p->group_count; g++)
        any_of_two = any_of_two || sizes[g] == 2;
    return any_of_two && false_pairs(m, sizes, p->group_count) > MOST_FALSE_PAIRS;
}

/* Makes groups of the pairs. Returns false if they form no groups: sharing must hold for every two
 * SMs of a group and for no others. */
static bool make_groups(const struct matrix *m, struct mean_sharing *out)
{
    uint16_t group[REACH_MAX_SMS];

    for (uint32_t i = 0; i < m->sms; i++) {
        group[i] = FINGERPRINT_NO_GROUP;
        if (pair_of(m, i, i) != CELL_HIGH)
            return false;
        for (uint32_t k = 0; k < i && group[i] == FINGERPRINT_NO_GROUP; k++) {
            if (pair_of(m, i, k) == CELL_HIGH)
                group[i] = group[k];
        }
        if (group[i] == FINGERPRINT_NO_GROUP) {
            if (out->found.group_count == REACH_MAX_GROUPS)
                return false;
            group[i] = (uint16_t)out->found.group_count++;
        }
    }
    for (uint32_t i = 0; i < m->sms; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (pair_of(m, i, k) != (group[i] == group[k] ? CELL_HIGH : CELL_LOW))
                return false;
        }
        out->found.group_of_sm[m->o->result.sm_ids[i]] = group[i];
    }
    return true;
}

static void start(enum reason reason, struct mean_sharing *out)
{
    *out = (struct mean_sharing){.reason = reason, .confidence = UNKNOWN_F64(reason)};
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        out->found.group_of_sm[id] = FINGERPRINT_NO_GROUP;
}

static void derive_contrast(const struct matrix *m, struct mean_sharing *out)
{
    if (!make_groups(m, out) || is_doubtful(m, &out->found)) {
        start(REASON_DISAGREEMENT, out);
        return;
    }
    /* A single group of all SMs would have no low value, so it cannot occur here. */
    out->shared_by = out->found.group_count == m->sms ? SHARED_SM : SHARED_GROUP;
    out->confidence = KNOWN_F64(margin_of(m));
    for (uint32_t i = 0; i < m->sms; i++)
        out->loss_cycles[m->o->result.sm_ids[i]] = value_of(m, i, i) - m->low[i];
}

/* Finds the additional cycles of each SM in this test, compared with the curve. The matrix must
 * have contrast. */
static void find_offsets(const struct matrix *m, double *offset, bool *known)
{
    for (uint32_t i = 0; i < m->sms; i++) {
        offset[m->o->result.sm_ids[i]] = m->low[i] - m->hit_cycles;
        known[m->o->result.sm_ids[i]] = true;
    }
}

/* Returns whether every value of the matrix lies near a miss of the level, and no value near
 * a hit. */
static bool all_missed(const struct matrix *m, const double *offset, const bool *known,
                       double *margin)
{
    *margin = 1;
    for (uint32_t i = 0; i < m->sms; i++) {
        const uint16_t id = m->o->result.sm_ids[i];
        for (uint32_t k = 0; k < m->sms; k++) {
            const double above = value_of(m, i, k) - offset[id] - m->hit_cycles;
            const double off = fabs(above / m->penalty_cycles - 1);
            if (!known[id] || off > ABSOLUTE_SLACK)
                return false;
            *margin = fmin(*margin, 1 - 2 * off);
        }
    }
    return true;
}

static bool is_flat(const struct matrix *m)
{
    for (uint32_t i = 0; i < m->sms; i++) {
        double row[REACH_MAX_SMS];
        for (uint32_t k = 0; k < m->sms; k++)
            row[k] = value_of(m, i, k);
        if (stats_quantile_f64(row, m->sms, 0.95) - m->low[i] > FLAT_SHARE * m->penalty_cycles)
            return false;
    }
    return true;
}

/* Joins the result of one matrix for a level with earlier results. */
static void join(const struct mean_sharing *one, bool first, struct mean_sharing *all)
{
    if (first || all->reason == REASON_NO_CONTRAST) {
        *all = *one;
        return;
    }
    if (one->reason == REASON_NO_CONTRAST)
        return;
    if (one->shared_by != all->shared_by ||
        memcmp(&one->found, &all->found, sizeof one->found) != 0)
        start(REASON_DISAGREEMENT, all);
    else
        all->matrices += one->matrices;
}

/* There are two passes: rows with contrast give the offsets, and the offsets then judge the rows
 * without contrast. */
static void classify(const struct matrix *m, bool flat_ones, double *offset, bool *known,
                     struct mean_sharing *out)
{
    double margin = 0;

    start(REASON_NO_CONTRAST, out);
    if (!flat_ones && m->loss_cycles >= LOSS_LEAST * m->penalty_cycles &&
        m->loss_cycles <= LOSS_MOST * m->penalty_cycles) {
        derive_contrast(m, out);
        if (out->shared_by != SHARED_UNKNOWN)
            find_offsets(m, offset, known);
    } else if (flat_ones && is_flat(m) && m->sms > 1 && all_missed(m, offset, known, &margin)) {
        out->shared_by = SHARED_GPU;
        out->confidence = KNOWN_F64(fmax(0, margin));
        out->reason = REASON_NONE;
    }
    if (out->shared_by == SHARED_UNKNOWN)
        return;
    out->reason = REASON_NONE;
    out->matrices = 1;
}

void mean_sharing_estimate(const struct observation_set *set, const struct curve_levels *levels,
                           struct mean_sharing *out)
{
    double offset[REACH_MAX_SMS] = {0};
    bool known[REACH_MAX_SMS] = {false};
    bool seen[FINGERPRINT_MAX_LEVELS] = {false};

    for (uint32_t k = 0; k < levels->count; k++)
        start(REASON_NOT_MEASURED, &out[k]);
    for (int pass = 0; pass < 2; pass++) {
        for (const struct observation *o = NULL;
             (o = observation_next(set, o, PROBE_MEAN_PAIRS));) {
            const int k = level_of(&o->spec, levels);
            struct mean_sharing one;
            struct matrix m;
            if (k < 0)
                continue;
            read_matrix(o, &levels->levels[k], &m);
            classify(&m, pass == 1, offset, known, &one);
            join(&one, !seen[k], &out[k]);
            seen[k] = true;
        }
    }
}
