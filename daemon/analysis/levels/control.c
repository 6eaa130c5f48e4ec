/* control.c: see control.h. */
#include "analysis/levels/control.h"

#include "analysis/levels/levels.h"
#include "analysis/levels/sweep.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

/* Footprints in which no page alternates between hits and misses, unless a level replaces at
 * random. */
static const uint64_t control_points[] = {4, 16, 64, 192};
enum {
    CONTROL_POINTS = sizeof control_points / sizeof control_points[0],
    CONTROL_SAMPLES = PROBE_MAX_SAMPLES,
    FEWEST_LAPS = 3, /* fewest laps that give a usual value */
    SHORTEST_RUN = 4
};

/* A load is slow if it takes longer than usual for its page by SLOW_CYCLES, or by SLOW_DEVIATIONS
 * standard deviations. */
#define SLOW_CYCLES     6.0
#define SLOW_DEVIATIONS 5.0
#define DEVIATION       1.4826 /* sigma of a normal distribution, per median of its residuals */

/* If a larger share of loads is slow, the level replaces at random, and there is no result. */
#define MOST_SLOW 0.3
/* If a footprint loses its entries, at least this share of its pages are slow in a row. */
#define RUN_SHARE 0.75

bool control_test(const struct gpu_limits *limits, uint16_t sm, struct probe_spec *out)
{
    *out = (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = levels_sweep_stride(limits),
                               .point_count = CONTROL_POINTS,
                               .samples = CONTROL_SAMPLES,
                               .warm_laps = 2,
                               .sm_count = 1,
                               .sms = {sm}};
    memcpy(out->points, control_points, sizeof control_points);
    return probe_check(out, limits, NULL) == STATUS_OK;
}

bool control_is(const struct probe_spec *spec)
{
    return spec->kind == PROBE_CHASE && spec->point_count == CONTROL_POINTS &&
           spec->samples == CONTROL_SAMPLES &&
           memcmp(spec->points, control_points, sizeof control_points) == 0;
}

static double slow_cycles(const uint32_t *values, uint32_t samples, const double *usual,
                          uint32_t pages)
{
    double residuals[PROBE_MAX_SAMPLES];

    for (uint32_t k = 0; k < samples; k++)
        residuals[k] = fabs(values[k] - usual[k % pages]);
    return fmax(SLOW_CYCLES, SLOW_DEVIATIONS * DEVIATION * stats_median_f64(residuals, samples));
}

uint32_t control_runs(const struct observation *o, uint32_t point)
{
    const uint32_t *values = observation_chase(o, point);
    const uint32_t samples = o->spec.samples;
    double usual[PROBE_MAX_SAMPLES / FEWEST_LAPS]; /* usual cycles of each page */
    uint32_t runs = 0;
    uint32_t length = 0;
    uint32_t slow = 0;

    if (o->spec.points[point] < SHORTEST_RUN || o->spec.points[point] > samples / FEWEST_LAPS)
        return 0;
    const uint32_t pages = (uint32_t)o->spec.points[point];
    const uint32_t shortest =
        RUN_SHARE * pages > SHORTEST_RUN ? (uint32_t)(RUN_SHARE * pages) : SHORTEST_RUN;
    for (uint32_t page = 0; page < pages; page++)
        usual[page] = sweep_page_median(values, samples, pages, page);
    const double more = slow_cycles(values, samples, usual, pages);
    for (uint32_t k = 0; k < samples; k++) {
        const bool is_slow = values[k] > usual[k % pages] + more;
        length = is_slow ? length + 1 : 0;
        slow += is_slow;
        runs += length == shortest;
    }
    return slow < MOST_SLOW * samples ? runs : 0;
}

uint32_t control_flushes(const struct observation *o)
{
    uint32_t flushes = 0;

    for (uint32_t p = 0; p < o->spec.point_count; p++)
        flushes += control_runs(o, p);
    return flushes;
}

uint32_t control_count(const struct observation_set *set)
{
    uint32_t count = 0;

    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));)
        count += control_is(&o->spec);
    return count;
}

/* Returns whether a larger footprint takes longer than the previous one, by more than the spread of
 * its loads. */
static bool climbs(const struct observation *o, uint32_t point)
{
    const double rise = sweep_median(o, point) - sweep_median(o, point - 1);
    return rise > fmax(SLOW_CYCLES, sweep_spread(o, point - 1, 0.25, 0.75));
}

/* Returns whether the loads of a footprint between a smaller and a larger one lie apart from the
 * loads of both. A level that overflows in part leaves some loads fast and makes others slow. */
static bool is_plateau(const struct observation *o, uint32_t point)
{
    return sweep_quantile(o, point, 0.25) > sweep_quantile(o, point - 1, 0.75) &&
           sweep_quantile(o, point, 0.75) < sweep_quantile(o, point + 1, 0.25);
}

/* Returns the first level, starting at `from`, that overflows between these numbers of pages in a
 * sweep. Returns `count` if no level does. */
static uint32_t find_overflow(const struct level_estimate *levels, uint32_t from, uint32_t count,
                              uint64_t few, uint64_t many)
{
    uint32_t k = from;
    while (k < count &&
           (levels[k].sweep.last_fit_pages >= many || levels[k].sweep.full_pages <= few))
        k++;
    return k;
}

bool control_is_explained(const struct observation_set *set, const struct level_estimate *levels,
                          uint32_t count)
{
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));) {
        uint32_t next = 0;
        bool climbing = false;

        if (!control_is(&o->spec))
            continue;
        for (uint32_t p = 1; p < o->spec.point_count; p++) {
            const bool goes_on = climbing;
            climbing = climbs(o, p);
            if (!climbing || (goes_on && !is_plateau(o, p - 1)))
                continue;
            next = find_overflow(levels, next, count, o->spec.points[p - 1], o->spec.points[p]);
            if (next++ == count)
                return false;
        }
    }
    return true;
}
