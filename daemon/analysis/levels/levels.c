/* levels.c: see levels.h.
 *
 * For example, consider the sweeps of an H200 at a stride of 64 MiB (docs/measurements). They rise
 * by 10 cycles between 15 and 19 pages, and by 90 cycles between 2047 and 2435 pages. In the entry
 * tests of the second step, all loads miss with 3044 pages at strides of 64 and 32 MiB. At 16 MiB
 * the same number of pages hits. With twice the number of pages every other load misses, so an
 * entry covers 32 MiB. The refinement at 32 MiB shows that 2049 pages fit and 2050 do not. From
 * about 2304 pages on every load misses.
 *
 * There are two kinds of level on the way down from a long stride S to an entry E. A level that
 * chooses its sets by a hash holds the same number of *pages* at any stride S >= E. A level that
 * chooses its sets by the low bits of the page number holds the same number of *bytes*. Each
 * doubling of the stride halves the sets in use. So the test at half the stride uses the same
 * number of pages and, if those fit, the same number of bytes. E is reached when some loads hit in
 * both tests.
 *
 * The length of an entry is assumed to be a power of two. A level with a shorter reach than the
 * level before it leaves no step. A step below PLATEAU_TOLERANCE_CYCLES (sweep.c) is not detected.
 * A step of fewer than one load in 20 is not detected either; its entry is longer than 16 strides
 * of the sweep.
 */
#include "analysis/levels/levels.h"

#include "analysis/levels/refine.h"
#include "analysis/levels/sweep.h"
#include "analysis/structure/traces.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

enum {
    MOST_SWEEP_PAGES = 8192,
    FEWEST_TEST_PAGES = 4, /* fewest pages of a test */
    /* most doublings of the first stride, if the share of the sweep misled */
    MOST_DOUBLINGS = 4
};

/* All loads of the first test count as misses if more than ALL_SHARE of them miss. At the following
 * strides the limit is STILL_ALL_SHARE of the previous share of misses. Between LEAST_HALF and
 * MOST_HALF of that share, half of the loads count as misses, which half an entry causes. */
#define ALL_SHARE       0.75
#define STILL_ALL_SHARE 0.85
#define LEAST_HALF      0.35
#define MOST_HALF       0.65

#define MORE_OF_A_STEP 1.1

/* The largest share of hits that look like misses plus the share of misses that look like hits.
 * Beyond it, shares of misses are not known. */
#define MOST_OVERLAP 0.6

/* The largest share of the reference's loads that look like misses, less the share of loads that
 * lie equally far below. These loads are outliers, or their pages had not come back yet. */
#define MOST_UNCLEAN 0.04

/* Share of the entry test's loads that must miss, so that the median is a miss. */
#define TEST_ALL_MISS 0.96

/* Two sweeps may differ by SWEEPS_AGREE_CYCLES at a footprint, beyond the spread of its loads and
 * the distance of their lines (docs/disturbance.md). */
#define SWEEPS_AGREE_CYCLES 12.0
#define SWEEP_LOW           0.05
#define SWEEP_HIGH          0.95

/* Hits may become slower by this multiple of the cost of the nearer levels. */
#define EXPLAINED 1.1

/* Hits that differ by no more than this belong to one level. */
#define SAME_HITS_CYCLES 4.0

uint64_t levels_sweep_stride(const struct gpu_limits *limits)
{
    uint64_t stride = limits->granule_bytes;
    while (limits->range_bytes / stride > MOST_SWEEP_PAGES)
        stride *= 2;
    return stride;
}

bool levels_same_walk(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->kind == b->kind && a->stride_bytes == b->stride_bytes &&
           a->point_count == b->point_count &&
           memcmp(a->points, b->points, a->point_count * sizeof a->points[0]) == 0;
}

const struct observation *levels_find_chase(const struct observation_set *set,
                                            const struct probe_spec *spec)
{
    const struct observation *o = NULL;
    while ((o = observation_next(set, o, PROBE_CHASE)) && !levels_same_walk(&o->spec, spec))
        ;
    return o;
}

static bool is_sweep(const struct observation *o)
{
    return o->spec.point_count >= LEVELS_SWEEP_POINTS && !trace_is(&o->spec);
}

/* Returns the least excess of the loads of a point over `cycles`. The excess is below 0 if the
 * loads are shorter, and 0 if `cycles` lies among them. */
static double apart(const struct observation *o, uint32_t point, double cycles)
{
    const double above = sweep_quantile(o, point, SWEEP_LOW) - cycles;
    const double below = cycles - sweep_quantile(o, point, SWEEP_HIGH);

    return above > 0 ? above : below > 0 ? -below : 0;
}

/* Returns whether two sweeps agree about every common footprint. A line of the first sweep may be
 * nearer to the SM than all lines of the second, or farther. The difference must not exceed the
 * spread of the lines. The smallest common footprint gives the difference: it is walked several
 * times, so pages that were lost in one walk do not matter. */
static bool sweeps_agree(const struct observation *a, const struct observation *b,
                         uint32_t *out_common)
{
    double shift = 0;
    bool agree = true;

    *out_common = 0;
    for (uint32_t i = 0; i < a->spec.point_count; i++) {
        for (uint32_t k = 0; k < b->spec.point_count; k++) {
            if (a->spec.points[i] != b->spec.points[k])
                continue;
            const double median = sweep_median(a, i);
            if (*out_common == 0) {
                shift = apart(b, k, median);
                agree =
                    fabs(shift) <= sweep_spread(b, k, SWEEP_LOW, SWEEP_HIGH) + SWEEPS_AGREE_CYCLES;
            }
            *out_common += 1;
            agree = agree && fabs(apart(b, k, median + shift)) <= SWEEPS_AGREE_CYCLES;
        }
    }
    return agree;
}

/* Returns whether a sweep has a rise without a step, and other processes may be the cause. In a
 * plain allocation, lines at other distances cause such rises. */
static bool is_unexplained(const struct observation_set *set, const struct observation *sweep)
{
    struct sweep_step steps[SWEEP_MAX_STEPS];

    if (!observation_set_is_shared(set) || set->limits.arena == ARENA_PLAIN)
        return false;
    return !sweep_is_explained(sweep, steps, sweep_find_steps(sweep, false, steps));
}

/* Returns whether the steps of this sweep explain its rises, and another sweep of other footprints
 * agrees with this one. The other sweep is not required if no sweep could confirm this one. */
static bool is_borne_out(const struct observation_set *set, const struct observation *sweep)
{
    bool alone = true;

    if (is_unexplained(set, sweep))
        return false;
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));) {
        uint32_t common = 0;
        if (!is_sweep(o) || o->spec.stride_bytes != sweep->spec.stride_bytes ||
            levels_same_walk(&o->spec, &sweep->spec))
            continue;
        const bool near = o->spec.points[0] < sweep->spec.points[0];
        const bool agree = near ? sweeps_agree(o, sweep, &common) : sweeps_agree(sweep, o, &common);
        if (common > 0 && agree)
            return true;
        alone = alone && common == 0;
    }
    return alone;
}

uint32_t levels_count_sweeps(const struct observation_set *set, const struct probe_spec *spec,
                             uint32_t *asked)
{
    uint32_t count = 0;

    *asked = 0;
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));) {
        if (!levels_same_walk(&o->spec, spec))
            continue;
        *asked += 1;
        count += is_borne_out(set, o);
    }
    return count;
}

bool levels_entry_test(const struct level_bracket *bracket, const struct gpu_limits *limits,
                       uint16_t sm, struct probe_spec *out)
{
    *out = (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = bracket->stride_bytes,
                               .point_count = 2,
                               .points = {level_reference_pages(bracket->last_fit_pages),
                                          level_pages_beyond(bracket->full_pages)},
                               .samples = LEVELS_ENTRY_SAMPLES,
                               .warm_laps = 2,
                               .sm_count = 1,
                               .sms = {sm}};
    return bracket->stride_bytes >= LEVELS_MIN_STRIDE && out->points[1] >= FEWEST_TEST_PAGES &&
           out->points[1] > out->points[0] && probe_check(out, limits, NULL) == STATUS_OK;
}

/* Returns the bracket at half the stride, with the same number of pages or of bytes. */
static struct level_bracket halve(const struct level_bracket *b, bool same_bytes)
{
    const uint64_t times = same_bytes ? 2 : 1;
    return (struct level_bracket){.stride_bytes = b->stride_bytes / 2,
                                  .last_fit_pages = b->last_fit_pages * times,
                                  .first_miss_pages = b->first_miss_pages * times,
                                  .full_pages = b->full_pages * times};
}

/* Returns the bracket at `ratio` times the stride, with the same number of bytes. */
static struct level_bracket lengthen(const struct level_bracket *b, uint64_t ratio)
{
    return (struct level_bracket){.stride_bytes = b->stride_bytes * ratio,
                                  .last_fit_pages =
                                      b->last_fit_pages > ratio ? b->last_fit_pages / ratio : 1,
                                  .first_miss_pages = (b->first_miss_pages + ratio - 1) / ratio,
                                  .full_pages = (b->full_pages + ratio - 1) / ratio};
}

/* The share of the test's loads that missed: all, half, or any other number. */
enum answer { ANSWER_ALL, ANSWER_HALF, ANSWER_OTHER, ANSWER_MISSING, ANSWER_OUT_OF_RANGE };

/* Returns the answer of the entry test of this bracket. `*all` is the share of misses in the last
 * test in which all loads missed, or 0. Requests the test if it has not been made. */
static enum answer ask_entry(const struct observation_set *set, struct level_estimate *level,
                             const struct level_bracket *bracket, double *all,
                             const struct observation **out)
{
    struct probe_spec spec;
    if (!levels_entry_test(bracket, &set->limits, 0, &spec))
        return ANSWER_OUT_OF_RANGE;
    *out = levels_find_chase(set, &spec);
    if (!*out) {
        level->test_wanted = true;
        level->wanted = *bracket;
        return ANSWER_MISSING;
    }
    const double share =
        sweep_share_above(*out, 1, sweep_median(*out, 0) + level->penalty_cycles / 2);
    if (share > (*all > 0 ? STILL_ALL_SHARE * *all : ALL_SHARE)) {
        *all = share;
        return ANSWER_ALL;
    }
    if (*all > 0)
        return share > LEAST_HALF * *all && share < MOST_HALF * *all ? ANSWER_HALF : ANSWER_OTHER;
    return share > LEAST_HALF ? ANSWER_HALF : ANSWER_OTHER;
}

/* Reads the penalty at a stride of one entry, and the separation of hits and misses there. */
static void read_entry_test(const struct observation *o, struct level_estimate *level)
{
    const double hit = sweep_median(o, 0);
    const double miss = sweep_median(o, 1);
    const double misses_right = sweep_share_above(o, 1, (hit + miss) / 2);
    const double slow = sweep_share_above(o, 0, (hit + miss) / 2);
    const double fast = 1 - sweep_share_above(o, 0, hit - (miss - hit) / 2);
    level->penalty_cycles = miss - hit;
    level->test_clean = slow - fast < MOST_UNCLEAN;
    level->test_misses = slow + fast < MOST_OVERLAP ? (misses_right - slow) / (1 - slow - fast) : 0;
    level->separation = fmin(1 - slow, misses_right);
}

/* Returns whether the hits at `b` are slower than the hits at `a`. Lines of memory at other
 * distances move a median by less than the spread of their loads. */
static bool slower_hits(double a, double b, const struct observation *o)
{
    return b - a > fmax(SAME_HITS_CYCLES, sweep_spread(o, 0, 0.25, 0.75) / 2);
}

/* Returns the median of the loads of point 1 that hit, in cycles. */
static double median_of_hits(const struct observation *o, double threshold)
{
    uint32_t row[PROBE_MAX_SAMPLES];
    const uint32_t *values = observation_chase(o, 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->spec.samples; i++)
        if (values[i] <= threshold)
            row[n++] = values[i];
    return n > 0 ? stats_median_u32(row, n) : threshold;
}

/* At a stride of one entry all loads of the test miss, and at half of this stride some loads still
 * hit. If those hits, or the hits of the reference there, are slower than the reference at the
 * first stride, a nearer level overflows in between. The step then consists of two levels. */
static bool is_merged(const struct level_estimate *level, const struct observation *all,
                      const struct observation *some)
{
    const double hit = sweep_median(all, 0);
    const double hit_at_half = sweep_median(some, 0);
    return slower_hits(hit, hit_at_half, all) ||
           slower_hits(hit_at_half, median_of_hits(some, hit_at_half + level->penalty_cycles / 2),
                       some);
}

/* Returns the bracket at the first stride at which every load should miss. It is the stride of the
 * sweep, lengthened by the inverse of the sweep's share of misses. */
static struct level_bracket first_bracket(const struct level_estimate *level)
{
    uint64_t ratio = 1;
    while (level->share * (double)ratio < 0.7 && ratio < 64)
        ratio *= 2;
    return ratio == 1 ? level->sweep : lengthen(&level->sweep, ratio);
}

/* Returns the evidence of an entry: the distance of its two answers from their thresholds. */
static struct evidence score_entry(const struct level_estimate *level,
                                   const struct observation *all, const struct observation *half)
{
    const double penalty = level->penalty_cycles;
    const double full = sweep_share_above(all, 1, sweep_median(all, 0) + penalty / 2);
    const double some = sweep_share_above(half, 1, sweep_median(half, 0) + penalty / 2);
    const double off = fabs(some / full - 0.5);
    const uint64_t pages =
        half->spec.points[1] > all->spec.points[1] ? half->spec.points[1] : all->spec.points[1];
    return evidence_make(EVIDENCE_ENTRY_SEARCH, all->spec.samples / pages,
                         fmin((full - ALL_SHARE) / (1 - ALL_SHARE), 1 - off / (MOST_HALF - 0.5)));
}

/* Searches from the first stride at which all loads miss down to the last one. The search ends if
 * the same number of bytes at half the stride makes half of the loads miss. That stride is half an
 * entry. */
static void derive_entry(const struct observation_set *set, struct level_estimate *level)
{
    struct level_bracket at = first_bracket(level);
    const struct observation *o = NULL;
    const struct observation *last_all = NULL;
    double all = 0;
    enum answer answer = ask_entry(set, level, &at, &all, &o);
    const struct observation *first_all = answer == ANSWER_ALL ? o : NULL;

    for (int up = 0; answer == ANSWER_HALF && up < MOST_DOUBLINGS; up++) {
        at = lengthen(&at, 2);
        answer = ask_entry(set, level, &at, &all, &o);
        first_all = answer == ANSWER_ALL ? o : NULL;
    }
    while (answer == ANSWER_ALL) {
        struct level_bracket next = halve(&at, false);
        last_all = o;
        answer = ask_entry(set, level, &next, &all, &o);
        if (answer == ANSWER_HALF || answer == ANSWER_OTHER) {
            next = halve(&at, true);
            answer = ask_entry(set, level, &next, &all, &o);
        }
        if (answer == ANSWER_ALL)
            at = next;
    }
    if (!last_all || answer != ANSWER_HALF)
        return;
    level->merged = is_merged(level, last_all, o);
    if (level->merged)
        return;
    level->slower_hits_cycles = sweep_median(last_all, 0) - sweep_median(first_all, 0);
    level->entry_known = true;
    level->entry_bytes = at.stride_bytes;
    level->at_entry = at;
    level->entry_evidence = score_entry(level, last_all, o);
    read_entry_test(last_all, level);
}

/* Returns the level that another sweep has shown by this step already, or NULL. */
static struct level_estimate *find_step(struct level_estimate *levels, uint32_t count,
                                        const struct sweep_step *step)
{
    for (uint32_t k = 0; k < count; k++)
        if (step->last_fit_pages < levels[k].sweep.full_pages &&
            levels[k].sweep.last_fit_pages < step->full_pages)
            return &levels[k];
    return NULL;
}

/* If two sweeps show a step, the sweep with the larger share of misses counts, because the other
 * sweep ended within the step. The new level replaces all levels that it overlaps. */
static void read_step(const struct observation_set *set, const struct observation *o,
                      const struct sweep_step *step, struct level_estimate *levels, uint32_t *count)
{
    struct level_estimate *known;
    while ((known = find_step(levels, *count, step))) {
        if (step->share <= known->share * MORE_OF_A_STEP)
            return;
        *known = levels[--*count];
    }
    if (*count == LEVELS_MAX)
        return;
    levels[(*count)++] = (struct level_estimate){
        .seen_by = (size_t)(o - set->items),
        .sweep = {.stride_bytes = o->spec.stride_bytes,
                  .last_fit_pages = step->last_fit_pages,
                  .first_miss_pages = step->first_miss_pages,
                  .full_pages = step->full_pages},
        .share = step->share,
        .penalty_cycles = step->penalty_cycles,
    };
}

static void read_sweep(const struct observation_set *set, const struct observation *o,
                       struct level_estimate *levels, uint32_t *count)
{
    struct sweep_step steps[SWEEP_MAX_STEPS];
    const uint32_t n = sweep_find_steps(o, set->limits.arena == ARENA_PLAIN, steps);
    for (uint32_t i = 0; i < n; i++)
        read_step(set, o, &steps[i], levels, count);
}

static void sort_by_pages(struct level_estimate *levels, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i;
             k > 0 && levels[k].sweep.last_fit_pages < levels[k - 1].sweep.last_fit_pages; k--) {
            const struct level_estimate swap = levels[k];
            levels[k] = levels[k - 1];
            levels[k - 1] = swap;
        }
}

/* Two steps that led to the same entry and the same pages are one level in two sweeps. */
static bool is_same_level(const struct level_estimate *a, const struct level_estimate *b)
{
    return a->entry_known && b->entry_known && a->entry_bytes == b->entry_bytes &&
           ((a->at_entry.last_fit_pages < b->at_entry.full_pages &&
             b->at_entry.last_fit_pages < a->at_entry.full_pages) ||
            (a->lo_pages > 0 && a->lo_pages == b->lo_pages && a->hi_pages == b->hi_pages));
}

static uint32_t drop_doubles(struct level_estimate *levels, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < count; k++) {
        const bool same = kept > 0 && is_same_level(&levels[kept - 1], &levels[k]);
        /* Two steps of one sweep are two levels; the search for the second ended at the first. */
        if (same && levels[kept - 1].seen_by == levels[k].seen_by)
            levels[k].merged = true;
        if (!same || levels[k].merged)
            levels[kept++] = levels[k];
        else if (levels[k].share > levels[kept - 1].share)
            levels[kept - 1] = levels[k];
    }
    return kept;
}

/* The reference of the entry tests covers more pages at shorter strides, and so it leaves the
 * nearer levels on the way. The cost of their misses is known; any other cost comes from a level
 * that was not found. Lines of memory at other distances may add the spread of the loads. */
static void find_masked(const struct observation_set *set, struct level_estimate *levels,
                        uint32_t count)
{
    double nearer = 0;
    for (uint32_t k = 0; k < count; k++) {
        struct probe_spec spec;
        const struct observation *o = NULL;
        if (levels[k].entry_known && levels_entry_test(&levels[k].at_entry, &set->limits, 0, &spec))
            o = levels_find_chase(set, &spec);
        levels[k].masked = o && slower_hits(EXPLAINED * nearer, levels[k].slower_hits_cycles, o);
        nearer += levels[k].penalty_cycles;
    }
}

uint32_t levels_estimate(const struct observation_set *set, struct level_estimate *out)
{
    uint32_t count = 0;
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));)
        if (is_sweep(o) && is_borne_out(set, o))
            read_sweep(set, o, out, &count);
    sort_by_pages(out, count);
    for (uint32_t k = 0; k < count; k++) {
        derive_entry(set, &out[k]);
        if (out[k].entry_known)
            refine_derive(set, &out[k]);
    }
    count = drop_doubles(out, count);
    find_masked(set, out, count);
    return count;
}

struct maybe_f64 levels_penalty(const struct level_estimate *level)
{
    if (!level->entry_known || level->merged)
        return UNKNOWN_F64(REASON_NO_CONTRAST);
    if (level->onset_penalty_cycles > 0)
        return KNOWN_F64(level->onset_penalty_cycles);
    if (level->penalty_cycles > 0 && level->test_clean && level->test_misses >= TEST_ALL_MISS)
        return KNOWN_F64(level->penalty_cycles);
    return UNKNOWN_F64(REASON_NO_CONTRAST);
}

struct evidence levels_penalty_evidence(const struct level_estimate *level)
{
    if (level->onset_penalty_cycles > 0)
        return level->onset_penalty_evidence;
    return evidence_make(EVIDENCE_ENTRY_TEST, LEVELS_ENTRY_SAMPLES,
                         (level->test_misses - TEST_ALL_MISS) / (1 - TEST_ALL_MISS));
}
