/* curve_levels.c: see curve_levels.h. */
#include "analysis/imported/curve_levels.h"

#include <math.h>
#include <string.h>

#define PAGES_SLACK 0.06 /* largest distance of two equal onsets, as a share of their pages */
/* largest difference of two equal rises, as a share of the expected rise */
#define RISE_SLACK 0.15
#define TAIL_SHARE 0.1 /* a later rise below this share of a step belongs to it */
#define FULL_SHARE 0.1 /* a scatter below this share of the penalty shows where a rise ends */

static double rise_of(const struct mean_step *s)
{
    return s->to_cycles - s->from_cycles;
}

/* Returns whether two intervals (last fit, first miss] overlap within the slack, in one common
 * unit. */
static bool overlap(const struct mean_step *a, double unit_a, const struct mean_step *b,
                    double unit_b)
{
    return (double)a->last_fit_pages * unit_a * (1 - PAGES_SLACK) <
               (double)b->first_miss_pages * unit_b &&
           (double)b->last_fit_pages * unit_b * (1 - PAGES_SLACK) <
               (double)a->first_miss_pages * unit_a;
}

/* Returns whether `rise` is the share of `full` that is expected. Also returns false if the scatter
 * would let half a rise pass for a whole one. */
static bool rise_fits(double rise, double full, double share, double tolerance_cycles)
{
    const double slack = RISE_SLACK * share * full + tolerance_cycles / 4;
    return slack < share * full / 2 && fabs(rise - share * full) <= slack;
}

/* Returns whether both steps start from the same nearer levels. The nearer levels miss equally
 * often at longer strides, and no more often at shorter strides. */
static bool same_base(const struct mean_step *s, bool shorter, const struct mean_step *full,
                      double tolerance_cycles)
{
    const double above = s->from_cycles - full->from_cycles;

    return above <= tolerance_cycles && (shorter || above >= -tolerance_cycles);
}

/* Finds the step of curve `c` (may be NULL) that shows the same level as `full`, a step at
 * `stride_bytes`. Its onset, its base and its rise must fit. Returns NULL if no step fits. */
static struct mean_step *find_partner(struct mean_curve *c, const struct mean_step *full,
                                      uint64_t stride_bytes, double tolerance_cycles)
{
    if (!c)
        return NULL;
    const double own = (double)c->stride_bytes;
    const double other = (double)stride_bytes;
    const bool shorter = c->stride_bytes < stride_bytes;
    const double share = shorter ? own / other : 1.0;
    const double tolerance = fmax(tolerance_cycles, c->tolerance_cycles);

    for (struct mean_step *s = c->steps; s < c->steps + c->step_count; s++) {
        const bool onset_fits =
            overlap(s, own, full, other) || (!shorter && overlap(full, 1, s, 1));
        if (!s->explained && !s->gapped && onset_fits && same_base(s, shorter, full, tolerance) &&
            rise_fits(rise_of(s), rise_of(full), share, tolerance))
            return s;
    }
    return NULL;
}

/* Marks the steps at all strides that this level explains. */
static void explain(struct mean_curves *curves, const struct curve_level *level)
{
    for (uint32_t c = 0; c < curves->count; c++) {
        struct mean_step *const s = find_partner(&curves->curves[c], &level->step,
                                                 level->stride_bytes, level->tolerance_cycles);
        if (s)
            s->explained = true;
    }
}

/* Returns whether the step at this stride that begins at `onset_pages` directly follows a step that
 * no level explains. */
static bool is_later_stage(struct mean_curves *curves, uint64_t stride_bytes, uint64_t onset_pages)
{
    const struct mean_curve *const c = mean_curves_at(curves, stride_bytes);

    for (uint32_t k = 0; k + 1 < c->step_count; k++) {
        if (c->steps[k + 1].first_miss_pages == onset_pages)
            return !c->steps[k].explained && onset_pages < 2 * c->steps[k].full_pages;
    }
    return false;
}

/* Judges the steps that follow a level's step in its own curve. A small rise belongs to the same
 * level: some entries live longer than others. If no level explains a larger rise, the end of this
 * step stays open. */
static void settle(struct mean_curves *curves, struct mean_curve *curve, uint32_t i,
                   struct curve_level *level)
{
    const double most = TAIL_SHARE * rise_of(&curve->steps[i]);
    double tail = 0;

    if (is_later_stage(curves, level->stride_bytes, level->step.first_miss_pages) ||
        is_later_stage(curves, level->stride_bytes / 2, level->half_onset_pages) ||
        is_later_stage(curves, level->stride_bytes * 2, level->twice_onset_pages)) {
        level->settled = false; /* this step is a stage of an unknown level */
        level->entries = UNKNOWN_U32(REASON_DISAGREEMENT);
        return;
    }

    uint32_t k = i + 1;
    for (; k < curve->step_count && !curve->steps[k].explained; k++) {
        tail += rise_of(&curve->steps[k]);
        if (tail > most) {
            level->settled = false;
            return;
        }
        level->penalty_cycles = rise_of(&curve->steps[i]) + tail;
        curve->steps[k].explained = true;
    }
    /* A curve that creeps to its end without a step is judged in the same way. */
    const double rest = curve->last_cycles - curve->steps[curve->step_count - 1].to_cycles;
    if (k == curve->step_count && rest > 0 && tail + rest <= most)
        level->penalty_cycles += rest;
    else if (k == curve->step_count && rest > 0)
        level->settled = false;
}

/* Returns the number of entries, from the step at a stride of one entry. The steps at half and at
 * twice the stride must agree with it. n halves lie in ceil(n/2) entries or one more, with any
 * alignment. At twice the stride no more pages fit. */
static struct maybe_u32 entries_of(const struct mean_step *s, const struct mean_step *half,
                                   const struct mean_step *twice)
{
    if (s->falls_back)
        return UNKNOWN_U32(REASON_DISAGREEMENT);
    if (s->first_miss_pages != s->last_fit_pages + 1 || !s->sharp || s->last_fit_pages > UINT32_MAX)
        return UNKNOWN_U32(REASON_TOO_LITTLE_DATA);
    if (half->last_fit_pages > 2 * s->last_fit_pages ||
        half->first_miss_pages < 2 * s->last_fit_pages || twice->last_fit_pages > s->last_fit_pages)
        return UNKNOWN_U32(REASON_DISAGREEMENT);
    return KNOWN_U32((uint32_t)s->last_fit_pages);
}

/* Finds the levels whose entry is the stride of this curve. */
static void find_triples(struct mean_curves *curves, struct mean_curve *curve,
                         struct curve_levels *out)
{
    const uint64_t stride = curve->stride_bytes;
    const double tolerance = curve->tolerance_cycles;

    for (uint32_t i = 0; i < curve->step_count; i++) {
        const struct mean_step *const s = &curve->steps[i];
        const struct mean_step *const half =
            find_partner(mean_curves_at(curves, stride / 2), s, stride, tolerance);
        const struct mean_step *const twice =
            find_partner(mean_curves_at(curves, stride * 2), s, stride, tolerance);
        if (s->explained || s->gapped || !half || !twice)
            continue;
        const struct curve_level level = {
            .stride_bytes = stride,
            .settled = true,
            .step = *s,
            .tolerance_cycles = tolerance,
            .penalty_cycles = rise_of(s),
            .saturation_known = (curve->outliers == 0 && tolerance <= FULL_SHARE * rise_of(s)) ||
                                (s->sharp && s->full_pages == s->first_miss_pages),
            .hit_cycles = s->from_cycles,
            .half_onset_pages = half->first_miss_pages,
            .twice_onset_pages = twice->first_miss_pages,
            .entries = entries_of(s, half, twice)};
        if (out->count < FINGERPRINT_MAX_LEVELS)
            out->levels[out->count++] = level;
        explain(curves, &level);
    }
}

/* Examines the steps that follow each level's step, now that all levels are known. */
static void settle_all(struct mean_curves *curves, struct curve_levels *out)
{
    for (uint32_t k = 0; k < out->count; k++) {
        struct curve_level *const level = &out->levels[k];
        struct mean_curve *const curve = mean_curves_at(curves, level->stride_bytes);
        for (uint32_t i = 0; i < curve->step_count; i++) {
            if (curve->steps[i].first_miss_pages == level->step.first_miss_pages)
                settle(curves, curve, i, level);
        }
    }
}

static void sort_levels(struct curve_levels *out)
{
    for (uint32_t i = 1; i < out->count; i++) {
        const struct curve_level level = out->levels[i];
        uint32_t k = i;
        for (; k > 0 && out->levels[k - 1].hit_cycles > level.hit_cycles; k--)
            out->levels[k] = out->levels[k - 1];
        out->levels[k] = level;
    }
}

/* Joins two steps at one stride that lie less than a factor of two apart. They count as one level
 * that overflows in two stages, because its sets are unequal. The total cost of a miss stays
 * open. */
static void join_stages(struct curve_levels *out)
{
    for (uint32_t k = 0; k + 1 < out->count;) {
        struct curve_level *const a = &out->levels[k];
        const struct curve_level *const b = a + 1;
        if (a->stride_bytes != b->stride_bytes ||
            b->step.first_miss_pages >= 2 * a->step.full_pages) {
            k += 1;
            continue;
        }
        a->settled = false;
        out->count -= 1;
        for (uint32_t i = k + 1; i < out->count; i++)
            out->levels[i] = out->levels[i + 1];
    }
}

static void collect_odd(const struct mean_curves *curves, struct curve_levels *out)
{
    for (uint32_t c = 0; c < curves->count; c++) {
        const struct mean_curve *const curve = &curves->curves[c];
        for (uint32_t i = 0; i < curve->step_count; i++) {
            if (curve->steps[i].explained)
                continue;
            if (out->odd_count < CURVE_LEVELS_MAX_ODD)
                out->odd[out->odd_count] =
                    (struct odd_step){.stride_bytes = curve->stride_bytes, .step = curve->steps[i]};
            out->odd_count += 1;
        }
    }
}

void curve_levels_estimate(struct mean_curves *curves, struct curve_levels *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t c = 0; c < curves->count; c++)
        find_triples(curves, &curves->curves[c], out);
    settle_all(curves, out);
    sort_levels(out);
    join_stages(out);
    collect_odd(curves, out);
}
