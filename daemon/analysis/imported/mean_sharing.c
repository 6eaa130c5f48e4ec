/* mean_sharing.c: see mean_sharing.h. */
#include "analysis/imported/mean_sharing.h"

#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row's values are told apart in shares of what a lost walk costs. */
#define CLEARLY_LOW      0.35
#define CLEARLY_HIGH     0.65
#define MOST_PAGES       1.06  /* of the onset: the pages of one SM fit, nearly */
#define MOST_FALSE_PAIRS 0.001 /* that may be expected */
#define LOSS_LEAST       0.5   /* of the level's penalty, or the diagonal has not evicted itself */
#define LOSS_MOST        1.6   /* or something else went slow */
#define FLAT_SHARE       0.25  /* a row without contrast spreads less, in shares of the penalty */
#define ABSOLUTE_SLACK   0.25  /* of the penalty: how near an absolute latency must come */

enum cell { CELL_LOW = 0, CELL_UNSURE, CELL_HIGH };

/* One matrix and what was made of it. */
struct matrix {
    const struct observation *o;
    uint32_t sms;
    double penalty_cycles; /* of the level that it asks about */
    double hit_cycles;     /* of the curve, below that level */
    double *low;           /* owned: lowest value of each row */
    unsigned char *cells;  /* owned: enum cell, [row][column] */
    double margin;         /* share of a loss that the worst clear cell is from the middle */
};

static double value_of(const struct matrix *m, uint32_t i, uint32_t k)
{
    return observation_mean_pair(m->o, i, k);
}

/* Entries of a level that `pages` touch. */
static double entries_touched(const struct probe_spec *spec, const struct curve_level *level,
                              double pages)
{
    if (spec->stride_bytes >= level->stride_bytes)
        return pages;
    return pages * (double)spec->stride_bytes / (double)level->stride_bytes;
}

int mean_sharing_level_of(const struct probe_spec *spec, const struct curve_levels *levels)
{
    int found = -1;

    for (uint32_t k = 0; k < levels->count; k++) {
        const struct curve_level *const level = &levels->levels[k];
        const double one = entries_touched(spec, level, spec->thrash_pages);
        const double first = (double)level->step.first_miss_pages;
        const double full = (double)level->step.full_pages;

        if (2 * one < first || one >= full)
            continue; /* never lost, or always */
        if (one > first * MOST_PAGES || 2 * one < full || found >= 0 || !level->settled)
            return -1; /* lost in part, or with a second level, or by one whose penalty is open */
        found = (int)k;
    }
    return found;
}

static double median_diagonal_loss(const struct matrix *m)
{
    double losses[REACH_MAX_SMS];
    for (uint32_t i = 0; i < m->sms; i++)
        losses[i] = value_of(m, i, i) - m->low[i];
    return stats_median_f64(losses, m->sms);
}

static void find_lows(struct matrix *m)
{
    for (uint32_t i = 0; i < m->sms; i++) {
        m->low[i] = value_of(m, i, 0);
        for (uint32_t k = 1; k < m->sms; k++)
            m->low[i] = fmin(m->low[i], value_of(m, i, k));
    }
}

static void classify_cells(struct matrix *m, double loss_cycles)
{
    m->margin = 1;
    for (uint32_t i = 0; i < m->sms; i++) {
        for (uint32_t k = 0; k < m->sms; k++) {
            const double share = (value_of(m, i, k) - m->low[i]) / loss_cycles;
            enum cell cell = CELL_UNSURE;
            if (share <= CLEARLY_LOW)
                cell = CELL_LOW;
            else if (share >= CLEARLY_HIGH)
                cell = CELL_HIGH;
            if (cell != CELL_UNSURE)
                m->margin = fmin(m->margin, fabs(share - 0.5) * 2);
            m->cells[(size_t)i * m->sms + k] = (unsigned char)cell;
        }
    }
}

/* What both SMs say: a clear no of either counts, a yes needs both. */
static enum cell pair_of(const struct matrix *m, uint32_t i, uint32_t k)
{
    const enum cell a = (enum cell)m->cells[(size_t)i * m->sms + k];
    const enum cell b = (enum cell)m->cells[(size_t)k * m->sms + i];
    if (a == CELL_LOW || b == CELL_LOW)
        return CELL_LOW;
    return a == CELL_HIGH && b == CELL_HIGH ? CELL_HIGH : CELL_UNSURE;
}

/* How many pairs of SMs that share nothing would look as if they did, by the share of values that
 * are high in one direction alone: something else went slow there. Only two SMs that seem to have
 * no other partner can be taken in by one such pair. */
static double false_pairs(const struct matrix *m, const uint32_t *sizes, uint32_t groups)
{
    double odd = 0.5;
    double pairs = 0;
    double alone = 2;

    for (uint32_t i = 0; i < m->sms; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const unsigned char a = m->cells[(size_t)i * m->sms + k];
            const unsigned char b = m->cells[(size_t)k * m->sms + i];
            odd += (a == CELL_LOW) != (b == CELL_LOW);
            pairs += 1;
        }
    }
    for (uint32_t g = 0; g < groups; g++)
        alone += sizes[g] == 1;
    const double chance = odd / (2 * pairs);
    return chance * chance * alone * (alone - 1) / 2;
}

/* Is there a group that rests on one pair, where chance makes pairs? */
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

/* Makes groups of the pairs. False where they are no groups: sharing must hold for every two of a
 * group and for nobody else. */
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

static void derive_contrast(struct matrix *m, double loss_cycles, struct mean_sharing *out)
{
    classify_cells(m, loss_cycles);
    if (!make_groups(m, out) || is_doubtful(m, &out->found)) {
        start(REASON_DISAGREEMENT, out);
        return;
    }
    /* One group of all would have left no low value to judge by. */
    out->shared_by = out->found.group_count == m->sms ? SHARED_SM : SHARED_GROUP;
    out->confidence = KNOWN_F64(m->margin);
    for (uint32_t i = 0; i < m->sms; i++)
        out->loss_cycles[m->o->result.sm_ids[i]] = value_of(m, i, i) - m->low[i];
}

/* How much slower SM i reads in this test than the curve says, for rows with contrast. */
static void find_offsets(const struct matrix *m, double *offset, bool *known)
{
    for (uint32_t i = 0; i < m->sms; i++) {
        offset[m->o->result.sm_ids[i]] = m->low[i] - m->hit_cycles;
        known[m->o->result.sm_ids[i]] = true;
    }
}

/* Does every value of the matrix lie where a miss of the level does, and none where a hit does? */
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

static enum status matrix_make(const struct observation *o, const struct curve_level *level,
                               struct matrix *out, struct err *err)
{
    const uint32_t sms = o->result.sm_count;

    *out = (struct matrix){.o = o, .sms = sms};
    out->penalty_cycles = level->penalty_cycles;
    out->hit_cycles = level->hit_cycles;
    out->low = calloc(sms, sizeof *out->low);
    out->cells = calloc((size_t)sms * sms, sizeof *out->cells);
    if (!out->low || !out->cells)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a matrix");
    find_lows(out);
    return STATUS_OK;
}

static void matrix_free(struct matrix *read_matrices)
{
    free(read_matrices->low);
    free(read_matrices->cells);
}

/* Joins what one matrix says about a level to what others have said. */
static void read_matrices(const struct mean_sharing *one, bool first, struct mean_sharing *all)
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

/* The two passes: rows with contrast tell the offsets, by which those without are judged. */
static void classify(struct matrix *m, bool flat_ones, double *offset, bool *known,
                     struct mean_sharing *out)
{
    const double loss = median_diagonal_loss(m);
    double margin = 0;

    start(REASON_NO_CONTRAST, out);
    if (!flat_ones && loss >= LOSS_LEAST * m->penalty_cycles &&
        loss <= LOSS_MOST * m->penalty_cycles) {
        derive_contrast(m, loss, out);
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

enum status mean_sharing_estimate(const struct observation_set *set,
                                  const struct curve_levels *levels, struct mean_sharing *out,
                                  struct err *err)
{
    double offset[REACH_MAX_SMS] = {0};
    bool known[REACH_MAX_SMS] = {false};
    bool seen[FINGERPRINT_MAX_LEVELS] = {false};
    enum status s = STATUS_OK;

    for (uint32_t k = 0; k < levels->count; k++)
        start(REASON_NOT_MEASURED, &out[k]);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < set->count && s == STATUS_OK; i++) {
            const struct observation *const o = &set->items[i];
            struct mean_sharing one;
            struct matrix m;
            if (o->spec.kind != PROBE_MEAN_PAIRS)
                continue;
            const int k = mean_sharing_level_of(&o->spec, levels);
            if (k < 0)
                continue;
            s = matrix_make(o, &levels->levels[k], &m, err);
            if (s == STATUS_OK) {
                classify(&m, pass == 1, offset, known, &one);
                read_matrices(&one, !seen[k], &out[k]);
                seen[k] = true;
            }
            matrix_free(&m);
        }
    }
    return s;
}
