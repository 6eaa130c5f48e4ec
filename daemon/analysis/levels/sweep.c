/* sweep.c: see sweep.h.
 *
 * In a plain allocation every page is probed on its own line, and lines lie at different distances
 * from the SM (H200: 265 to 325 cycles, all hits). A larger footprint then meets slower lines, and
 * its percentiles step as if a level had overflowed.
 */
#include "analysis/levels/sweep.h"

#include "base/stats.h"

#include <math.h>

/* Two percentiles belong to one plateau if they differ by less than this. Percentiles of 256 loads
 * with five cycles of noise scatter by some 0.5 cycles; the smallest published penalty is 9
 * cycles. */
#define PLATEAU_TOLERANCE_CYCLES 3.0

#define STEP_QUANTILE 0.95

/* Share of loads above the middle that counts as zero: one outlier in a hundred is normal. */
#define SHARE_NONE 0.04
/* A point is saturated if its share of slow loads is at least this part of the share of the upper
 * plateau. */
#define SHARE_FULL 0.9
/* At least this part of the share of the upper plateau must come from pages that fitted before. */
#define SHARE_OWN 0.25

/* Points in a row that show a rise without a plateau, and its least height in cycles. The SM clock
 * moves hits by up to one part in 128 (kernels/abi.h). */
enum { POINTS_OF_A_RISE = 3 };
#define RISE_CYCLES 6.0

struct plateau {
    uint32_t first, last; /* points */
    double cycles;        /* median of the points' percentiles */
};

double sweep_share_above(const struct observation *o, uint32_t point, double threshold_cycles)
{
    const uint32_t above = stats_count_above_u32(observation_chase(o, point), o->spec.samples,
                                                 fmax(threshold_cycles, 0));
    return (double)above / o->spec.samples;
}

double sweep_median(const struct observation *o, uint32_t point)
{
    return stats_median_u32(observation_chase(o, point), o->spec.samples);
}

double sweep_quantile(const struct observation *o, uint32_t point, double q)
{
    return stats_quantile_u32(observation_chase(o, point), o->spec.samples, q);
}

double sweep_spread(const struct observation *o, uint32_t point, double low, double high)
{
    return sweep_quantile(o, point, high) - sweep_quantile(o, point, low);
}

double sweep_page_median(const uint32_t *loads, uint64_t samples, uint64_t pages, uint64_t page)
{
    uint32_t laps[PROBE_MAX_SAMPLES];
    uint32_t n = 0;

    for (uint64_t k = page; k < samples; k += pages)
        laps[n++] = loads[k];
    return stats_median_u32(laps, n);
}

/* Returns the run of points, starting at `first`, that stay together; its length is at least 1. */
static struct plateau grow_plateau(const double *cycles, uint32_t n, uint32_t first)
{
    struct plateau p = {.first = first, .last = first, .cycles = cycles[first]};
    while (p.last + 1 < n && fabs(cycles[p.last + 1] - p.cycles) <= PLATEAU_TOLERANCE_CYCLES) {
        p.last += 1;
        p.cycles = stats_median_f64(cycles + first, p.last - first + 1);
    }
    return p;
}

/* Finds runs of at least two points. A run close to the previous run joins it: a lone point between
 * them was an outlier. The first point may stand alone, because no other point shows a level that
 * holds one or two pages at a stride this long. */
static uint32_t find_plateaus(const double *cycles, uint32_t n, struct plateau *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n;) {
        const struct plateau p = grow_plateau(cycles, n, i);
        i = p.last + 1;
        if (p.last == p.first && p.first > 0)
            continue;
        if (count > 0 && fabs(p.cycles - out[count - 1].cycles) <= PLATEAU_TOLERANCE_CYCLES)
            out[count - 1].last = p.last;
        else if (count <= SWEEP_MAX_STEPS)
            out[count++] = p;
    }
    return count;
}

static double median_of_medians(const struct observation *o, const struct plateau *p)
{
    double medians[PROBE_MAX_POINTS];
    for (uint32_t i = p->first; i <= p->last; i++)
        medians[i - p->first] = sweep_median(o, i);
    return stats_median_f64(medians, p->last - p->first + 1);
}

/* Returns the median of the shares of slow loads in the second half of a plateau. Percentiles reach
 * their height when one load in 20 is slow, and the share of slow loads still grows then. */
static double median_share(const struct observation *o, const struct plateau *p, double threshold)
{
    double shares[PROBE_MAX_POINTS];
    const uint32_t first = p->first + (p->last - p->first + 1) / 2;
    for (uint32_t i = first; i <= p->last; i++)
        shares[i - first] = sweep_share_above(o, i, threshold);
    return stats_median_f64(shares, p->last - first + 1);
}

/* Returns the middle between hits and misses. If most loads miss, medians distinguish the two
 * better than percentiles, which lie at the upper edge of the noise. */
static double middle_of(const struct observation *o, const struct plateau *from,
                        const struct plateau *to, double *penalty_cycles)
{
    const double hit = median_of_medians(o, from);
    const double miss = median_of_medians(o, to);
    *penalty_cycles = to->cycles - from->cycles;
    if (miss - hit > *penalty_cycles / 2) {
        *penalty_cycles = miss - hit;
        return (hit + miss) / 2;
    }
    return (from->cycles + to->cycles) / 2;
}

/* Returns the width of the middle nine tenths of a point's loads. Lines of memory at different
 * distances from the SM spread them by tens of cycles, and each footprint meets other lines. */
static double spread_of(const struct observation *o, uint32_t point)
{
    return sweep_spread(o, point, 1 - STEP_QUANTILE, STEP_QUANTILE);
}

/* Returns the share of loads of point `to` that took longer, by more than `cycles`, than the same
 * page at point `from`. */
static double share_grown(const struct observation *o, uint32_t from, uint32_t to, double cycles)
{
    const uint32_t *before = observation_chase(o, from);
    const uint32_t *now = observation_chase(o, to);
    const uint64_t fewer =
        o->spec.points[from] < o->spec.points[to] ? o->spec.points[from] : o->spec.points[to];
    uint32_t grown = 0;
    uint32_t loads = 0;

    for (uint64_t page = 0; page < fewer && page < o->spec.samples; page++) {
        const double own = sweep_page_median(before, o->spec.samples, o->spec.points[from], page);
        for (uint64_t k = page; k < o->spec.samples; k += o->spec.points[to], loads++)
            grown += now[k] > own + cycles;
    }
    return (double)grown / loads;
}

/* Returns the median of share_grown over the second half of the upper plateau (median_share). */
static double median_grown(const struct observation *o, const struct plateau *from,
                           const struct plateau *to, double cycles)
{
    double shares[PROBE_MAX_POINTS];
    const uint32_t first = to->first + (to->last - to->first + 1) / 2;
    for (uint32_t i = first; i <= to->last; i++)
        shares[i - first] = share_grown(o, from->last, i, cycles);
    return stats_median_f64(shares, to->last - first + 1);
}

static bool read_step(const struct observation *o, bool own_lines, const struct plateau *from,
                      const struct plateau *to, struct sweep_step *out)
{
    const double middle = middle_of(o, from, to, &out->penalty_cycles);
    uint32_t clean = from->first;

    if (to->cycles <= from->cycles || out->penalty_cycles < spread_of(o, from->last) / 2)
        return false;
    out->share = median_share(o, to, middle);
    const double none = fmin(median_share(o, from, middle), out->share / 4) + SHARE_NONE;
    for (uint32_t i = from->first; i <= to->first; i++) {
        if (sweep_share_above(o, i, middle) > none)
            break;
        clean = i;
    }
    if (clean >= to->last || out->share <= SHARE_NONE)
        return false;
    if (own_lines && median_grown(o, from, to, out->penalty_cycles / 2) < SHARE_OWN * out->share)
        return false;
    out->last_fit_pages = o->spec.points[clean];
    out->first_miss_pages = o->spec.points[clean + 1];
    for (uint32_t i = clean + 1; i <= to->last; i++) {
        out->full_pages = o->spec.points[i];
        if (sweep_share_above(o, i, middle) >= SHARE_FULL * out->share)
            break;
    }
    return true;
}

/* If few loads miss, the percentile is one of the lowest misses, and climbs by the noise when
 * misses become more frequent. Either of two signs shows that nothing else happened, and the
 * plateaus are joined. The medians rise by the whole penalty when half of the loads miss, while the
 * percentiles hardly rise. Or the spread of the loads is as wide as hits and misses together. */
static uint32_t join_climbing(const struct observation *o, struct plateau *plateaus, uint32_t count)
{
    uint32_t kept = count > 0;
    for (uint32_t k = 1; k < count; k++) {
        struct plateau *last = &plateaus[kept - 1];
        const double rise = plateaus[k].cycles - last->cycles;
        const bool same =
            kept > 1 && rise > 0 &&
            (rise < spread_of(o, last->last) / 2 ||
             median_of_medians(o, &plateaus[k]) - median_of_medians(o, last) > 2 * rise);
        if (same) {
            last->last = plateaus[k].last;
            last->cycles = plateaus[k].cycles;
        } else {
            plateaus[kept++] = plateaus[k];
        }
    }
    return kept;
}

uint32_t sweep_find_steps(const struct observation *o, bool own_lines, struct sweep_step *out)
{
    const uint32_t n = o->spec.point_count;
    double cycles[PROBE_MAX_POINTS];
    struct plateau plateaus[SWEEP_MAX_STEPS + 1] = {{0}};
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        cycles[i] = sweep_quantile(o, i, STEP_QUANTILE);
    uint32_t found = find_plateaus(cycles, n, plateaus);
    found = join_climbing(o, plateaus, found);
    for (uint32_t k = 0; k + 1 < found; k++)
        count += read_step(o, own_lines, &plateaus[k], &plateaus[k + 1], &out[count]);
    return count;
}

/* Returns whether the percentiles of POINTS_OF_A_RISE points from `at` on exceed those of the
 * points from `first` to `at`. A lower rise than half of the spread of the loads is no step either.
 */
static bool rises_at(const struct observation *o, uint32_t first, uint32_t at)
{
    double cycles[PROBE_MAX_POINTS];
    bool rises = true;

    if (at == first || at + POINTS_OF_A_RISE > o->spec.point_count)
        return false;
    for (uint32_t i = first; i < at; i++)
        cycles[i - first] = sweep_quantile(o, i, STEP_QUANTILE);
    const double limit =
        stats_median_f64(cycles, at - first) + fmax(RISE_CYCLES, spread_of(o, at - 1) / 2);

    for (uint32_t i = at; i < at + POINTS_OF_A_RISE; i++)
        rises = rises && sweep_quantile(o, i, STEP_QUANTILE) > limit;
    return rises;
}

bool sweep_is_explained(const struct observation *o, const struct sweep_step *steps, uint32_t count)
{
    uint32_t first = 0;
    uint32_t next = 0;

    for (uint32_t i = 0; i < o->spec.point_count; i++) {
        const uint64_t pages = o->spec.points[i];

        while (next < count && pages >= steps[next].full_pages) {
            first = i;
            next++;
        }
        if (next < count && pages > steps[next].last_fit_pages)
            continue;
        if (rises_at(o, first, i))
            return false;
    }
    return true;
}
