/* sweep.c: see sweep.h. */
#include "analysis/sweep.h"

#include "base/stats.h"

#include <math.h>

/* Two medians belong to one plateau when they differ by less than this. Medians of 256 loads with
 * five cycles of noise scatter by some 0.4; the smallest penalty published is 9. */
#define PLATEAU_TOLERANCE_CYCLES 3.0

/* Loads above the middle that count as none, and as all: one outlier in a hundred is normal. */
#define SHARE_NONE 0.04
#define SHARE_ALL  0.95

struct plateau {
    uint32_t first, last; /* points */
    double cycles;        /* median of the medians */
};

double sweep_share_above(const struct observation *o, uint32_t point, double threshold_cycles)
{
    const uint32_t *values = observation_chase(o, point);
    const uint32_t threshold = threshold_cycles > 0 ? (uint32_t)threshold_cycles : 0;
    uint32_t above = 0;
    for (uint32_t k = 0; k < o->spec.samples; k++)
        above += values[k] > threshold;
    return (double)above / o->spec.samples;
}

/* The run of points from `first` on that stay together; its length is at least 1. */
static struct plateau grow_plateau(const double *medians, uint32_t n, uint32_t first)
{
    struct plateau p = {.first = first, .last = first, .cycles = medians[first]};
    while (p.last + 1 < n && fabs(medians[p.last + 1] - p.cycles) <= PLATEAU_TOLERANCE_CYCLES) {
        p.last += 1;
        p.cycles = stats_median_of_f64(medians + first, p.last - first + 1);
    }
    return p;
}

/* Runs of at least two points. A run close to the one before it joins it: a lone point between
 * them was an outlier. */
static uint32_t find_plateaus(const double *medians, uint32_t n, struct plateau *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n;) {
        const struct plateau p = grow_plateau(medians, n, i);
        i = p.last + 1;
        if (p.last == p.first)
            continue;
        if (count > 0 && fabs(p.cycles - out[count - 1].cycles) <= PLATEAU_TOLERANCE_CYCLES)
            out[count - 1].last = p.last;
        else if (count <= SWEEP_MAX_STEPS)
            out[count++] = p;
    }
    return count;
}

static bool read_step(const struct observation *o, const struct plateau *from,
                      const struct plateau *to, struct sweep_step *out)
{
    const double middle = (from->cycles + to->cycles) / 2;
    uint32_t clean = from->first;

    if (to->cycles <= from->cycles)
        return false;
    *out = (struct sweep_step){.hit_cycles = from->cycles, .miss_cycles = to->cycles};
    for (uint32_t i = from->first; i <= to->first; i++) {
        if (sweep_share_above(o, i, middle) > SHARE_NONE)
            break;
        clean = i;
    }
    if (clean >= to->last)
        return false;
    out->clean_pages = o->spec.points[clean];
    out->dirty_pages = o->spec.points[clean + 1];
    for (uint32_t i = clean + 1; i <= to->last && out->full_pages == 0; i++)
        if (sweep_share_above(o, i, middle) >= SHARE_ALL)
            out->full_pages = o->spec.points[i];
    return true;
}

uint32_t sweep_find_steps(const struct observation *o, struct sweep_step *out)
{
    const uint32_t n = o->spec.point_count;
    double medians[PROBE_MAX_POINTS];
    struct plateau plateaus[SWEEP_MAX_STEPS + 1];
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        medians[i] = stats_median_of_u32(observation_chase(o, i), o->spec.samples);
    const uint32_t found = find_plateaus(medians, n, plateaus);
    for (uint32_t k = 0; k + 1 < found; k++)
        count += read_step(o, &plateaus[k], &plateaus[k + 1], &out[count]);
    return count;
}
