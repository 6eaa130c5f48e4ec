/* walks.c: see walks.h. */
#include "analysis/caches/walks.h"

#include "base/stats.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

#define LOW          0.05 /* quantiles between which hits and misses must not overlap */
#define HIGH         0.95
#define LEAST_CYCLES 4.0
#define CUT_TIMES    3.0 /* a load that takes as long as this number of misses was delayed */
#define MISS_SHARE   0.1
#define SURE_SLOW    8.0
#define UNSURE_SLOW  4.0
#define TOUCH_BYTES  (2 * MIB) /* distance of the loads that warm the translations */

static bool same_points(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->point_count == b->point_count &&
           memcmp(a->points, b->points, a->point_count * sizeof a->points[0]) == 0;
}

static bool same_walk(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->path == b->path && a->warm_path == b->warm_path &&
           a->stride_bytes == b->stride_bytes && a->base_bytes == b->base_bytes &&
           a->samples == b->samples && a->warm_laps == b->warm_laps &&
           a->scattered == b->scattered && a->sweep_footprint == b->sweep_footprint &&
           a->sweep_bytes == b->sweep_bytes && a->touch_bytes == b->touch_bytes &&
           a->evict_bytes == b->evict_bytes && a->shared_bytes == b->shared_bytes &&
           same_points(a, b);
}

const struct observation *walks_find(struct cache_walks *w, struct probe_spec *spec)
{
    spec->kind = PROBE_CACHE;
    for (const struct observation *o = NULL; (o = observation_next(w->set, o, PROBE_CACHE));)
        if (same_walk(&o->spec, spec))
            return o;
    for (uint32_t i = 0; i < w->ask_count; i++)
        if (same_walk(&w->asks[i], spec))
            return NULL;
    spec->sm_count = spec->point_count < w->sm_count ? spec->point_count : w->sm_count;
    memcpy(spec->sms, w->sm_ids, spec->sm_count * sizeof spec->sms[0]);
    if (probe_check(spec, &w->set->limits, NULL) != STATUS_OK)
        w->refused = true;
    else if (w->ask_count < WALKS_MAX_ASKS)
        w->asks[w->ask_count++] = *spec;
    return NULL;
}

void walks_add_points(struct probe_spec *spec, uint64_t n, uint32_t repeats)
{
    for (uint32_t r = 0; r < repeats && spec->point_count < PROBE_MAX_POINTS; r++)
        spec->points[spec->point_count++] = n;
}

struct probe_spec walks_l2_spec(uint64_t stride_bytes, uint32_t samples)
{
    return (struct probe_spec){.stride_bytes = stride_bytes,
                               .samples = samples,
                               .scattered = 1,
                               .touch_bytes = TOUCH_BYTES};
}

bool walks_clock(struct cache_walks *w)
{
    enum { CLOCK_SAMPLES = 64 };
    struct probe_spec spec = {.path = PATH_NONE,
                              .warm_path = PATH_NONE,
                              .stride_bytes = PROBE_LINE_BYTES,
                              .point_count = 1,
                              .points = {1},
                              .samples = CLOCK_SAMPLES};
    const struct observation *const o = walks_find(w, &spec);

    if (o)
        w->clock_cycles = stats_median_u32(observation_chase(o, 0), CLOCK_SAMPLES);
    return o != NULL;
}

const uint32_t *walks_row(const struct observation *o, uint32_t p, uint32_t *out_count)
{
    const uint64_t n = o->spec.points[p];
    const uint32_t skipped = o->spec.samples >= 2 * n ? (uint32_t)n : 0;

    *out_count = o->spec.samples - skipped;
    return observation_chase(o, p) + skipped;
}

uint64_t walks_evenly_covered(uint64_t elements)
{
    while (elements > 2 && !probe_scatters_evenly(elements))
        elements--;
    return elements;
}

bool walks_contrast(const uint32_t *hits, uint32_t hit_count, const uint32_t *misses,
                    uint32_t miss_count, struct hit_or_miss *out)
{
    const double hit = stats_median_u32(hits, hit_count);
    const double miss = stats_median_u32(misses, miss_count);
    const double high = stats_quantile_u32(hits, hit_count, HIGH);
    const double low = stats_quantile_u32(misses, miss_count, LOW);
    const double needed = fmax(LEAST_CYCLES, high - hit);

    *out = (struct hit_or_miss){.hit = hit,
                                .miss = miss,
                                .threshold = (high + low) / 2,
                                .cut = CUT_TIMES * miss,
                                .margin = low - high > needed ? 1 - needed / (low - high) : 0};
    return low - high > needed;
}

void walks_votes(const struct observation *o, uint64_t n, const struct hit_or_miss *how,
                 struct walk_votes *out)
{
    out->elements = n < WALKS_MAX_ELEMENTS ? (uint32_t)n : WALKS_MAX_ELEMENTS;
    out->loads = out->slow = 0;
    memset(out->all, 0, out->elements * sizeof out->all[0]);
    memset(out->missed, 0, out->elements * sizeof out->missed[0]);
    walks_add_votes(o, n, how, out);
}

void walks_add_votes(const struct observation *o, uint64_t n, const struct hit_or_miss *how,
                     struct walk_votes *out)
{
    const uint64_t step = o->spec.scattered ? probe_scatter_step(n) : 1;

    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        uint32_t count = 0;
        uint64_t at = 0;
        if (o->spec.points[p] != n)
            continue;
        const uint32_t *const row = walks_row(o, p, &count); /* the row begins at element 0 */
        for (uint32_t k = 0; k < count; k++, at = at + step < n ? at + step : at + step - n) {
            if (row[k] > how->cut || at >= WALKS_MAX_ELEMENTS)
                continue;
            out->loads++;
            out->all[at]++;
            out->slow += row[k] > how->threshold;
            out->missed[at] += row[k] > how->threshold;
        }
    }
}

bool walks_misses(const struct walk_votes *v, uint32_t element)
{
    const double least = fmax(2, 1 + MISS_SHARE * v->all[element]);

    return v->missed[element] >= least;
}

uint32_t walks_missing(const struct walk_votes *v)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < v->elements; i++)
        n += walks_misses(v, i);
    return n;
}

enum overflow walks_overflow(const struct walk_votes *v, const struct walk_votes *fits)
{
    const double scale = fits->loads ? (double)v->loads / fits->loads : 1;
    const double expected = fits->slow * scale;
    const double error = sqrt(expected + 1);
    const uint32_t repeated = walks_missing(v);
    const double by_chance = walks_missing(fits) * scale;

    if (repeated >= 2 + 3 * by_chance)
        return OVERFLOW_YES;
    if (v->slow > expected + SURE_SLOW * error)
        return OVERFLOW_YES;
    if (v->slow > expected + UNSURE_SLOW * error || repeated > by_chance + 1)
        return OVERFLOW_UNSURE;
    return OVERFLOW_NO;
}
