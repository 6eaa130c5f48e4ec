/* refine_plan.c: see refine_plan.h.
 *
 * The bracket of the sweep is cut in four again and again. On a quiet chip one lap of each point is
 * enough while the bracket is wide. If noise confuses loads, each point has enough laps to make a
 * missing page certain.
 */
#include "analysis/levels/refine_plan.h"

#include <math.h>

enum {
    REFINE_WARM_LAPS = 1,
    FEWEST_LAPS = 3, /* fewest timed laps near the onset */
    MIN_SAMPLES = 256,
    WIDE_BRACKET = 32,
    FINE_ONSET = 4096,     /* an onset is found to one page in this number */
    FINE_SATURATION = 128, /* a saturation is found to one page in this number */
    SATURATION_SAMPLES = 1536
};

#define QUIET 0.01 /* share of loads on the wrong side, below which one lap is enough */

uint64_t refine_plan_reference(const struct level_estimate *level)
{
    return level_reference_pages(level->at_entry.last_fit_pages);
}

/* Adds a point; points that do not ascend are left out. */
static void add_point(struct probe_spec *spec, uint64_t pages)
{
    if (pages > spec->points[spec->point_count - 1])
        spec->points[spec->point_count++] = pages;
}

/* Adds up to three points evenly inside (lo, hi). */
static void add_between(struct probe_spec *spec, uint64_t lo, uint64_t hi)
{
    for (uint64_t q = 1; q <= 3; q++)
        if (lo + (hi - lo) * q / 4 < hi)
            add_point(spec, lo + (hi - lo) * q / 4);
}

/* Returns whether the two numbers are neighbors, or differ by at most one part in `parts`. */
static bool is_fine(uint64_t lo, uint64_t hi, uint64_t parts)
{
    const uint64_t step = lo / parts > 1 ? lo / parts : 1;
    return hi - lo <= step;
}

bool refine_plan_onset_is_fine(const struct level_estimate *level)
{
    return level->lo_pages && level->hi_pages &&
           is_fine(level->lo_pages, level->hi_pages, FINE_ONSET);
}

bool refine_plan_saturation_is_fine(const struct level_estimate *level)
{
    const uint64_t lo =
        level->sat_lo_pages > level->lo_pages ? level->sat_lo_pages : level->lo_pages;

    return lo && level->sat_hi_pages && is_fine(lo, level->sat_hi_pages, FINE_SATURATION);
}

/* Chooses the points after the reference: first the bracket of the sweep and, if it does not hold
 * at this stride, the range beyond it. Then come points closer to the onset, then points closer to
 * the saturation. */
static void choose_points(const struct level_estimate *level, struct probe_spec *out)
{
    const uint64_t clean = level->at_entry.last_fit_pages;
    const uint64_t dirty = level->at_entry.first_miss_pages;
    const uint64_t beyond = level_pages_beyond(level->at_entry.full_pages);

    if (level->undecided_pages) {
        add_point(out, level->undecided_pages);
    } else if (level->lo_pages == 0 && (level->hi_pages == 0 || level->hi_pages > dirty)) {
        add_point(out, clean);
        add_between(out, clean, dirty);
        add_point(out, dirty);
    } else if (level->hi_pages == 0) {
        add_between(out, level->lo_pages, beyond);
        add_point(out, beyond);
    } else if (level->lo_pages == 0) {
        add_between(out, out->points[0], level->hi_pages);
    } else if (!refine_plan_onset_is_fine(level) && !level->non_lru) {
        add_between(out, level->lo_pages, level->hi_pages);
    } else if (level->sat_hi_pages == 0) {
        add_between(out, level->sat_lo_pages, beyond);
        add_point(out, beyond);
    } else if (!is_fine(level->sat_lo_pages, level->sat_hi_pages, FINE_SATURATION)) {
        add_between(out, level->sat_lo_pages, level->sat_hi_pages);
    }
}

/* Returns the number of laps after which a missing page is certain among `pages` pages. */
static uint64_t laps_for(uint64_t pages, double confused)
{
    const double p = fmin(fmax(confused, QUIET / 4), REFINE_MOST_CONFUSED);
    const double each = (1 - 2 * p) * log((1 - p) / p);
    const double laps = ceil(1.3 * log(REFINE_PAGE_ODDS * (double)pages) / each);
    return laps < FEWEST_LAPS        ? FEWEST_LAPS
           : laps > REFINE_MOST_LAPS ? REFINE_MOST_LAPS
                                     : (uint64_t)laps;
}

/* On a quiet chip one lap of each point is enough while the bracket is wide, because many sets
 * overflow in it. A saturation is found from shares of all pages; some pages are walked twice. */
static uint64_t samples_for(const struct level_estimate *level, uint64_t pages)
{
    const double confused = 1 - level->separation;
    const bool wide = level->hi_pages == 0 || level->lo_pages == 0 ||
                      level->hi_pages - level->lo_pages > WIDE_BRACKET;
    uint64_t samples = pages * laps_for(pages, confused);
    if (level->undecided_pages)
        samples = pages * REFINE_MOST_LAPS;
    else if (level->non_lru || refine_plan_onset_is_fine(level))
        samples = pages * 3 < SATURATION_SAMPLES ? pages * 3 : pages + pages / 4;
    else if (wide && confused < QUIET)
        samples = pages;
    samples = samples < MIN_SAMPLES ? MIN_SAMPLES : samples;
    return samples < PROBE_MAX_SAMPLES ? samples : PROBE_MAX_SAMPLES;
}

/* Makes a refinement of the reference alone. */
static struct probe_spec refinement_of(const struct level_estimate *level, uint16_t sm)
{
    return (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = level->entry_bytes,
                               .point_count = 1,
                               .points = {refine_plan_reference(level)},
                               .warm_laps = REFINE_WARM_LAPS,
                               .sm_count = 1,
                               .sms = {sm}};
}

bool refine_plan_next(const struct level_estimate *level, const struct gpu_limits *limits,
                      uint16_t sm, struct probe_spec *out)
{
    *out = refinement_of(level, sm);
    choose_points(level, out);
    out->samples = (uint32_t)samples_for(level, out->points[out->point_count - 1]);
    return out->point_count > 1 && probe_check(out, limits, NULL) == STATUS_OK;
}

uint64_t refine_plan_laps(const struct level_estimate *level, uint64_t pages)
{
    return laps_for(pages, 1 - level->separation);
}

bool refine_plan_penalty(const struct level_estimate *level, const struct gpu_limits *limits,
                         uint16_t sm, struct probe_spec *out)
{
    *out = refinement_of(level, sm);
    add_point(out, level->sat_hi_pages ? level->sat_hi_pages
                                       : level_pages_beyond(level->at_entry.full_pages));
    out->samples = (uint32_t)samples_for(level, out->points[out->point_count - 1]);
    return out->point_count > 1 && probe_check(out, limits, NULL) == STATUS_OK;
}

bool refine_plan_saturation(const struct level_estimate *level, const struct gpu_limits *limits,
                            uint16_t sm, struct probe_spec *out)
{
    *out = refinement_of(level, sm);
    if (level->sat_hi_pages == 0)
        return false;
    if (level->sat_lo_pages > level->lo_pages)
        add_point(out, level->sat_lo_pages);
    add_point(out, level->sat_hi_pages);
    out->samples = (uint32_t)samples_for(level, level->sat_hi_pages);
    return out->point_count > 1 && probe_check(out, limits, NULL) == STATUS_OK;
}
