/* levels.c: see levels.h.
 *
 * Worked example, an H100 (docs/measurements): the sweep at a stride of 32 MiB steps by 10 cycles
 * between 16 and 19 pages and by 150 between 2048 and 2435. Entry tests of the second step: at
 * 32 MiB 3044 pages miss, at 16 MiB the same number of pages hits, at 64 MiB half of them hit, so
 * an entry covers 32 MiB. Refining at 32 MiB: 2048 pages fit, 2049 do not, at 2304 every load
 * misses.
 *
 * Limits: entries are taken to cover a power of two of bytes. A level that the one before it
 * outreaches leaves no step. A step below PLATEAU_TOLERANCE (sweep.c) is not seen.
 */
#include "analysis/levels.h"

#include "analysis/sweep.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

enum {
    MOST_SWEEP_PAGES = 8192,
    FEWEST_TEST_PAGES = 4, /* fewer loads tell nothing about a cycle */
    REFINE_WARM_LAPS = 1,
    REFINE_LAPS = 3, /* timed; a page that misses in all of them was evicted, not unlucky */
    REFINE_MIN_SAMPLES = 256,
    FINE_ONSET = 4096,    /* an onset is found to one page in this many, */
    FINE_SATURATION = 128 /* a saturation to one in this many */
};

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

bool levels_entry_test(const struct level_estimate *level, const struct gpu_limits *limits,
                       uint64_t stride_bytes, uint16_t sm, struct probe_spec *out)
{
    uint64_t reference = seven_eighths(level->clean_pages);
    uint64_t test = well_beyond(level->full_pages);

    /* Upward the bytes stay the same, downward the pages do. */
    if (stride_bytes > level->stride_bytes) {
        const uint64_t ratio = stride_bytes / level->stride_bytes;
        reference = reference / ratio > 0 ? reference / ratio : 1;
        test = (test + ratio - 1) / ratio;
    }
    *out = (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = stride_bytes,
                               .point_count = 2,
                               .points = {reference, test},
                               .samples = LEVELS_ENTRY_SAMPLES,
                               .warm_laps = 2,
                               .sm_count = 1,
                               .sms = {sm}};
    return test >= FEWEST_TEST_PAGES && test > reference &&
           probe_check(out, limits, NULL) == STATUS_OK;
}

static double median_of_point(const struct observation *o, uint32_t point)
{
    return stats_median_of_u32(observation_chase(o, point), o->spec.samples);
}

/* Did the test point miss? */
static bool entry_test_missed(const struct observation *o, double penalty_cycles)
{
    return sweep_share_above(o, 1, median_of_point(o, 0) + penalty_cycles / 2) > 0.75;
}

enum answer { ANSWER_HITS, ANSWER_MISSES, ANSWER_MISSING, ANSWER_OUT_OF_RANGE };

/* What the entry test at this stride said. Notes a test that has not been made. */
static enum answer ask_entry(const struct observation_set *set, struct level_estimate *level,
                             uint64_t stride_bytes, const struct observation **out)
{
    struct probe_spec spec;
    if (stride_bytes < LEVELS_MIN_STRIDE ||
        !levels_entry_test(level, &set->limits, stride_bytes, 0, &spec))
        return ANSWER_OUT_OF_RANGE;
    *out = levels_find_chase(set, &spec);
    if (!*out) {
        level->wanted_stride_bytes = stride_bytes;
        return ANSWER_MISSING;
    }
    return entry_test_missed(*out, level->penalty_cycles) ? ANSWER_MISSES : ANSWER_HITS;
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

/* The largest stride at which the level still misses, searched upward from the sweep's with a
 * footprint of as many bytes; where already the first doubling hits, downward with as many pages,
 * to the smallest. The search is over when a stride beyond has hit; without that, nothing is
 * known: an entry may be larger, or smaller, than what could be tried. */
static void conclude_entry(const struct observation_set *set, struct level_estimate *level)
{
    const struct observation *o = NULL;
    const struct observation *last_miss = NULL;
    enum answer answer = ask_entry(set, level, level->stride_bytes, &o);
    uint64_t stride = level->stride_bytes;

    for (int up = 0; answer == ANSWER_MISSES && up <= LEVELS_MAX_UPWARD; up++) {
        last_miss = o;
        stride = level->stride_bytes << up;
        answer = ask_entry(set, level, stride * 2, &o);
    }
    if (last_miss && stride == level->stride_bytes && answer != ANSWER_MISSING) {
        /* Doubling the stride halved the entries: one entry is no longer than this stride. */
        answer = ask_entry(set, level, stride / 2, &o);
        while (answer == ANSWER_MISSES) {
            last_miss = o;
            stride /= 2;
            answer = ask_entry(set, level, stride / 2, &o);
        }
    }
    if (!last_miss || answer != ANSWER_HITS)
        return;
    level->entry_known = true;
    level->entry_bytes = stride;
    take_entry_test(last_miss, level);
}

/* The sweep's counts of pages, in strides of one entry. */
static uint64_t in_entries(const struct level_estimate *level, uint64_t pages)
{
    if (level->entry_bytes <= level->stride_bytes)
        return pages;
    return pages * level->stride_bytes / level->entry_bytes;
}

static uint64_t refine_reference(const struct level_estimate *level)
{
    return seven_eighths(in_entries(level, level->clean_pages));
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
    const uint64_t clean = in_entries(level, level->clean_pages);
    const uint64_t dirty = in_entries(level, level->dirty_pages) + 1;
    const uint64_t beyond = well_beyond(in_entries(level, level->full_pages));

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
    samples = out->points[out->point_count - 1] * REFINE_LAPS;
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

static void take_refinement(const struct observation *o, struct level_estimate *level)
{
    const double threshold = median_of_point(o, 0) + level->penalty_cycles / 2;
    for (uint32_t p = 1; p < o->spec.point_count; p++) {
        const uint64_t n = o->spec.points[p];
        const bool dirty = has_misses(o, p, threshold);
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
    for (size_t i = 0; i < set->count; i++) {
        const struct probe_spec *spec = &set->items[i].spec;
        if (spec->kind == PROBE_CHASE && spec->stride_bytes == level->entry_bytes &&
            spec->point_count < LEVELS_SWEEP_POINTS && spec->points[0] == reference)
            take_refinement(&set->items[i], level);
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
        if (step->clean_pages < levels[k].full_pages && levels[k].clean_pages < step->full_pages)
            return true;
    return false;
}

static void take_sweep(const struct observation *o, struct level_estimate *levels, uint32_t *count)
{
    struct sweep_step steps[SWEEP_MAX_STEPS];
    const uint32_t n = sweep_find_steps(o, steps);
    for (uint32_t i = 0; i < n && *count < LEVELS_MAX; i++) {
        if (steps[i].full_pages == 0 || is_known(levels, *count, &steps[i]))
            continue;
        levels[*count] = (struct level_estimate){
            .stride_bytes = o->spec.stride_bytes,
            .clean_pages = steps[i].clean_pages,
            .dirty_pages = steps[i].dirty_pages,
            .full_pages = steps[i].full_pages,
            .penalty_cycles = steps[i].miss_cycles - steps[i].hit_cycles,
        };
        *count += 1;
    }
}

static void sort_by_pages(struct level_estimate *levels, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0 && levels[k].clean_pages < levels[k - 1].clean_pages; k--) {
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
            set->items[i].spec.point_count >= LEVELS_SWEEP_POINTS)
            take_sweep(&set->items[i], out, &count);
    sort_by_pages(out, count);
    for (uint32_t k = 0; k < count; k++) {
        conclude_entry(set, &out[k]);
        if (out[k].entry_known)
            conclude_refinement(set, &out[k]);
    }
    return count;
}
