/* levels.c: see levels.h.
 *
 * Worked example, an H200 (docs/measurements): the sweeps at a stride of 64 MiB step by 10 cycles
 * between 15 and 19 pages and by 90 between 2047 and 2435. Entry tests of the second step: at 64
 * and at 32 MiB all loads miss with 3044 pages; at 16 MiB the same number of pages hits, and twice
 * as many miss every other load: an entry covers 32 MiB. Refining there: 2049 pages fit, 2050 do
 * not, and from about 2304 on every load misses.
 *
 * Two kinds of level have to be told apart on the way down from a long stride S to an entry E. One
 * that picks its sets by a hash holds as many *pages* at any stride S >= E. One that picks them by
 * the low bits of the page number holds as many *bytes*: each doubling of the stride halves the
 * sets in use. So at half the stride the test is made with as many pages and, if those fit, with
 * as many bytes; E is reached when neither makes every load miss.
 *
 * Limits: entries are taken to cover a power of two of bytes. A level that the one before it
 * outreaches leaves no step. A step below PLATEAU_TOLERANCE_CYCLES (sweep.c) is not seen, nor one
 * that fewer than one load in 20 takes (an entry longer than 16 strides of the sweep).
 */
#include "analysis/levels.h"

#include "analysis/sweep.h"
#include "analysis/traces.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

enum {
    MOST_SWEEP_PAGES = 8192,
    FEWEST_TEST_PAGES = 4, /* fewer loads tell nothing about a cycle */
    MOST_DOUBLINGS = 4,    /* of the first stride, where the sweep's share misled */
    REFINE_WARM_LAPS = 1,
    REFINE_LAPS = 3, /* timed; a page that misses in all of them was evicted, not unlucky */
    REFINE_MIN_SAMPLES = 256,
    WIDE_BRACKET = 32,
    FINE_ONSET = 4096,    /* an onset is found to one page in this many, */
    FINE_SATURATION = 128 /* a saturation to one in this many */
};

/* Share of the test's loads that counts as all, and as some: half an entry makes half. */
#define ALL_SHARE  0.75
#define SOME_SHARE 0.2

uint64_t levels_sweep_stride(const struct gpu_limits *limits)
{
    uint64_t stride = limits->granule_bytes;
    while (limits->range_bytes / stride > MOST_SWEEP_PAGES)
        stride *= 2;
    return stride;
}

const struct observation *levels_find_chase(const struct observation_set *set,
                                            const struct probe_spec *spec)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct probe_spec *s = &set->items[i].spec;
        if (s->kind == PROBE_CHASE && s->stride_bytes == spec->stride_bytes &&
            s->point_count == spec->point_count &&
            memcmp(s->points, spec->points, spec->point_count * sizeof spec->points[0]) == 0)
            return &set->items[i];
    }
    return NULL;
}

/* Fits for certain, and is still far beyond the levels before this one. */
static uint64_t seven_eighths(uint64_t pages)
{
    const uint64_t eighth = pages / 8 > 1 ? pages / 8 : 1;
    return pages > eighth ? pages - eighth : 1;
}

/* A quarter more than it takes to overflow every set. */
static uint64_t well_beyond(uint64_t pages)
{
    return pages + pages / 4 + 1;
}

bool levels_entry_test(const struct level_bracket *bracket, const struct gpu_limits *limits,
                       uint16_t sm, struct probe_spec *out)
{
    *out = (struct probe_spec){
        .kind = PROBE_CHASE,
        .stride_bytes = bracket->stride_bytes,
        .point_count = 2,
        .points = {seven_eighths(bracket->clean_pages), well_beyond(bracket->full_pages)},
        .samples = LEVELS_ENTRY_SAMPLES,
        .warm_laps = 2,
        .sm_count = 1,
        .sms = {sm}};
    return bracket->stride_bytes >= LEVELS_MIN_STRIDE && out->points[1] >= FEWEST_TEST_PAGES &&
           out->points[1] > out->points[0] && probe_check(out, limits, NULL) == STATUS_OK;
}

static double median_of_point(const struct observation *o, uint32_t point)
{
    return stats_median_of_u32(observation_chase(o, point), o->spec.samples);
}

/* The same footprint seen at half the stride: as many pages, or as many bytes. */
static struct level_bracket halve(const struct level_bracket *b, bool same_bytes)
{
    const uint64_t times = same_bytes ? 2 : 1;
    return (struct level_bracket){.stride_bytes = b->stride_bytes / 2,
                                  .clean_pages = b->clean_pages * times,
                                  .dirty_pages = b->dirty_pages * times,
                                  .full_pages = b->full_pages * times};
}

/* As many bytes at `ratio` times the stride. */
static struct level_bracket lengthen(const struct level_bracket *b, uint64_t ratio)
{
    return (struct level_bracket){.stride_bytes = b->stride_bytes * ratio,
                                  .clean_pages =
                                      b->clean_pages > ratio ? b->clean_pages / ratio : 1,
                                  .dirty_pages = (b->dirty_pages + ratio - 1) / ratio,
                                  .full_pages = (b->full_pages + ratio - 1) / ratio};
}

/* Of the test's loads, how many missed: all, some, none. */
enum answer { ANSWER_ALL, ANSWER_SOME, ANSWER_NONE, ANSWER_MISSING, ANSWER_OUT_OF_RANGE };

/* What the entry test of this bracket said. Notes a test that has not been made. */
static enum answer ask_entry(const struct observation_set *set, struct level_estimate *level,
                             const struct level_bracket *bracket, const struct observation **out)
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
        sweep_share_above(*out, 1, median_of_point(*out, 0) + level->penalty_cycles / 2);
    return share > ALL_SHARE ? ANSWER_ALL : share > SOME_SHARE ? ANSWER_SOME : ANSWER_NONE;
}

/* The penalty as seen at a stride of one entry, and how cleanly hits and misses separate there. */
static void take_entry_test(const struct observation *o, struct level_estimate *level)
{
    const double hit = median_of_point(o, 0);
    const double miss = median_of_point(o, 1);
    const double hits_right = 1 - sweep_share_above(o, 0, (hit + miss) / 2);
    const double misses_right = sweep_share_above(o, 1, (hit + miss) / 2);
    level->penalty_cycles = miss - hit;
    level->separation = hits_right < misses_right ? hits_right : misses_right;
}

/* The first stride at which every load should miss: the sweep's, or as many times longer as the
 * sweep's share of misses says. */
static struct level_bracket first_bracket(const struct level_estimate *level)
{
    uint64_t ratio = 1;
    while (level->share * (double)ratio < 0.7 && ratio < 64)
        ratio *= 2;
    return ratio == 1 ? level->sweep : lengthen(&level->sweep, ratio);
}

/* From the first stride at which all miss, down to the last. The search ends where half the stride
 * makes only some loads miss, which is what half an entry does. */
static void conclude_entry(const struct observation_set *set, struct level_estimate *level)
{
    struct level_bracket at = first_bracket(level);
    const struct observation *o = NULL;
    const struct observation *last_all = NULL;
    enum answer answer = ask_entry(set, level, &at, &o);

    for (int up = 0; answer == ANSWER_SOME && up < MOST_DOUBLINGS; up++) {
        at = lengthen(&at, 2);
        answer = ask_entry(set, level, &at, &o);
    }
    while (answer == ANSWER_ALL) {
        struct level_bracket next = halve(&at, false);
        last_all = o;
        answer = ask_entry(set, level, &next, &o);
        if (answer == ANSWER_NONE || answer == ANSWER_SOME) {
            next = halve(&at, true);
            answer = ask_entry(set, level, &next, &o);
        }
        if (answer == ANSWER_ALL)
            at = next;
    }
    if (!last_all || answer != ANSWER_SOME)
        return;
    level->entry_known = true;
    level->entry_bytes = at.stride_bytes;
    level->at_entry = at;
    take_entry_test(last_all, level);
}

static uint64_t refine_reference(const struct level_estimate *level)
{
    return seven_eighths(level->at_entry.clean_pages);
}

/* Points ascend; one that would not is left out. */
static void add_point(struct probe_spec *spec, uint64_t pages)
{
    if (pages > spec->points[spec->point_count - 1])
        spec->points[spec->point_count++] = pages;
}

/* Up to three points evenly inside (lo, hi). */
static void add_between(struct probe_spec *spec, uint64_t lo, uint64_t hi)
{
    for (uint64_t q = 1; q <= 3; q++)
        if (lo + (hi - lo) * q / 4 < hi)
            add_point(spec, lo + (hi - lo) * q / 4);
}

/* Fine enough? Then the two numbers are neighbours, or as good as. */
static bool is_fine(uint64_t lo, uint64_t hi, uint64_t parts)
{
    const uint64_t step = lo / parts > 1 ? lo / parts : 1;
    return hi - lo <= step;
}

/* Chooses the points after the reference: first the bracket that the sweep gave and, if it did not
 * hold at this stride, all that is beyond; then ever closer to the onset; then to the saturation.
 */
static void choose_points(const struct level_estimate *level, struct probe_spec *out)
{
    const uint64_t clean = level->at_entry.clean_pages;
    const uint64_t dirty = level->at_entry.dirty_pages;
    const uint64_t beyond = well_beyond(level->at_entry.full_pages);

    if (level->lo_pages == 0 && (level->hi_pages == 0 || level->hi_pages > dirty)) {
        add_point(out, clean);
        add_between(out, clean, dirty);
        add_point(out, dirty);
    } else if (level->hi_pages == 0) {
        add_between(out, level->lo_pages, beyond);
        add_point(out, beyond);
    } else if (level->lo_pages == 0) {
        add_between(out, out->points[0], level->hi_pages);
    } else if (!is_fine(level->lo_pages, level->hi_pages, FINE_ONSET)) {
        add_between(out, level->lo_pages, level->hi_pages);
    } else if (level->sat_hi_pages == 0) {
        add_between(out, level->sat_lo_pages, beyond);
        add_point(out, beyond);
    } else if (!is_fine(level->sat_lo_pages, level->sat_hi_pages, FINE_SATURATION)) {
        add_between(out, level->sat_lo_pages, level->sat_hi_pages);
    }
}

/* A lap of each point is enough while the bracket is wide: many sets overflow in it. Near the onset
 * the few pages of one set must be told from outliers. A saturation is a matter of shares. */
static uint64_t refine_laps(const struct level_estimate *level)
{
    if (level->hi_pages == 0 || level->lo_pages == 0)
        return 1;
    if (is_fine(level->lo_pages, level->hi_pages, FINE_ONSET))
        return 0;
    return level->hi_pages - level->lo_pages > WIDE_BRACKET ? 1 : REFINE_LAPS;
}

bool levels_refine_test(const struct level_estimate *level, const struct gpu_limits *limits,
                        uint16_t sm, struct probe_spec *out)
{
    uint64_t samples;

    *out = (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = level->entry_bytes,
                               .point_count = 1,
                               .points = {refine_reference(level)},
                               .warm_laps = REFINE_WARM_LAPS,
                               .sm_count = 1,
                               .sms = {sm}};
    choose_points(level, out);
    samples = out->points[out->point_count - 1] * refine_laps(level);
    samples = samples < REFINE_MIN_SAMPLES ? REFINE_MIN_SAMPLES : samples;
    out->samples = (uint32_t)(samples < PROBE_MAX_SAMPLES ? samples : PROBE_MAX_SAMPLES);
    return out->point_count > 1 && probe_check(out, limits, NULL) == STATUS_OK;
}

/* Pages whose every timed load was slow. Where there are laps enough, this tells an evicted page
 * from an unlucky load. */
static uint32_t pages_always_above(const struct observation *o, uint32_t point, double threshold)
{
    const uint64_t n = o->spec.points[point];
    const uint32_t *values = observation_chase(o, point);
    uint32_t count = 0;
    for (uint64_t page = 0; page < n && page < o->spec.samples; page++) {
        bool always = true;
        for (uint64_t k = page; k < o->spec.samples && always; k += n)
            always = values[k] > threshold;
        count += always;
    }
    return count;
}

/* Does this footprint miss at all? Either some pages miss in every one of at least three laps, or
 * more loads are slow than the reference's outliers explain (four standard deviations). */
static bool has_misses(const struct observation *o, uint32_t point, double threshold)
{
    const double expected = sweep_share_above(o, 0, threshold) * o->spec.samples;
    const double slow = sweep_share_above(o, point, threshold) * o->spec.samples;
    if (slow > expected + 4 * sqrt(expected + 1) + 2)
        return true;
    return o->spec.samples >= o->spec.points[point] * REFINE_LAPS &&
           pages_always_above(o, point, threshold) >= 2;
}

bool levels_fit(const struct observation *o, uint32_t point, double penalty_cycles)
{
    const double threshold = median_of_point(o, 0) + penalty_cycles / 2;
    if (point > 0)
        return !has_misses(o, point, threshold);
    return o->spec.samples < o->spec.points[0] * REFINE_LAPS ||
           pages_always_above(o, 0, threshold) < 2;
}

/* Is this a confirmation (confirm.h) of this level's onset: two points of it, behind the reference?
 */
static bool is_confirmation(const struct observation *o, const struct level_estimate *level)
{
    const struct probe_spec *s = &o->spec;
    return s->kind == PROBE_CHASE && s->stride_bytes == level->entry_bytes && s->point_count == 2 &&
           s->points[0] > refine_reference(level) && s->points[1] <= level->at_entry.full_pages;
}

/* Most pages that a confirmation saw fit. Outliers and disturbances make pages miss that fit, and
 * nothing makes pages hit that do not: an onset seen below this was none. */
static uint64_t refuted_pages(const struct observation_set *set, const struct level_estimate *level)
{
    uint64_t most = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct observation *o = &set->items[i];
        if (is_confirmation(o, level) && o->spec.points[1] > most &&
            levels_fit(o, 0, level->penalty_cycles) && levels_fit(o, 1, level->penalty_cycles))
            most = o->spec.points[1];
    }
    return most;
}

static void take_refinement(const struct observation *o, uint64_t refuted,
                            struct level_estimate *level)
{
    const double threshold = median_of_point(o, 0) + level->penalty_cycles / 2;
    for (uint32_t p = 1; p < o->spec.point_count; p++) {
        const uint64_t n = o->spec.points[p];
        const bool dirty = n > refuted && has_misses(o, p, threshold);
        const bool full = sweep_share_above(o, p, threshold) >= 0.95;
        if (dirty && (level->hi_pages == 0 || n < level->hi_pages))
            level->hi_pages = n;
        if (!dirty && n > level->lo_pages)
            level->lo_pages = n;
        if (full && (level->sat_hi_pages == 0 || n < level->sat_hi_pages))
            level->sat_hi_pages = n;
        if (!full && n > level->sat_lo_pages)
            level->sat_lo_pages = n;
    }
}

/* Refinements of this level: at a stride of its entry, from its reference on. */
static void conclude_refinement(const struct observation_set *set, struct level_estimate *level)
{
    const uint64_t reference = refine_reference(level);
    const uint64_t refuted = refuted_pages(set, level);

    level->lo_pages = refuted;
    for (size_t i = 0; i < set->count; i++) {
        const struct probe_spec *spec = &set->items[i].spec;
        if (spec->kind == PROBE_CHASE && spec->stride_bytes == level->entry_bytes &&
            spec->point_count < LEVELS_SWEEP_POINTS && spec->points[0] == reference &&
            !trace_is(spec))
            take_refinement(&set->items[i], refuted, level);
    }
    /* Below the first miss nothing fits "again", and below saturation nothing saturates. */
    if (level->hi_pages && level->lo_pages >= level->hi_pages)
        level->lo_pages = level->hi_pages - 1;
    if (level->sat_hi_pages && level->sat_lo_pages >= level->sat_hi_pages)
        level->sat_lo_pages = level->sat_hi_pages - 1;
}

/* Two sweeps overlap; a step that both show is taken from the first. */
static bool is_known(const struct level_estimate *levels, uint32_t count,
                     const struct sweep_step *step)
{
    for (uint32_t k = 0; k < count; k++)
        if (step->clean_pages < levels[k].sweep.full_pages &&
            levels[k].sweep.clean_pages < step->full_pages)
            return true;
    return false;
}

static void take_sweep(const struct observation *o, struct level_estimate *levels, uint32_t *count)
{
    struct sweep_step steps[SWEEP_MAX_STEPS];
    const uint32_t n = sweep_find_steps(o, steps);
    for (uint32_t i = 0; i < n && *count < LEVELS_MAX; i++) {
        if (is_known(levels, *count, &steps[i]))
            continue;
        levels[*count] = (struct level_estimate){
            .sweep = {.stride_bytes = o->spec.stride_bytes,
                      .clean_pages = steps[i].clean_pages,
                      .dirty_pages = steps[i].dirty_pages,
                      .full_pages = steps[i].full_pages},
            .share = steps[i].share,
            .penalty_cycles = steps[i].penalty_cycles,
        };
        *count += 1;
    }
}

static void sort_by_pages(struct level_estimate *levels, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0 && levels[k].sweep.clean_pages < levels[k - 1].sweep.clean_pages;
             k--) {
            const struct level_estimate swap = levels[k];
            levels[k] = levels[k - 1];
            levels[k - 1] = swap;
        }
}

uint32_t levels_estimate(const struct observation_set *set, struct level_estimate *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].spec.kind == PROBE_CHASE &&
            set->items[i].spec.point_count >= LEVELS_SWEEP_POINTS && !trace_is(&set->items[i].spec))
            take_sweep(&set->items[i], out, &count);
    sort_by_pages(out, count);
    for (uint32_t k = 0; k < count; k++) {
        conclude_entry(set, &out[k]);
        if (out[k].entry_known)
            conclude_refinement(set, &out[k]);
    }
    return count;
}
