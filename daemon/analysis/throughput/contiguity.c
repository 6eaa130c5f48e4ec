/* contiguity.c: see contiguity.h.
 *
 * A region has R bytes, of which the first S are runs. If a miss costs k times as much there, and
 * translation limits the reads, their time grows by the factor 1 + (k - 1) S / R. So the search
 * needs a part of the region only: mapping every granule of it would take seconds on a real GPU.
 * The factor is exact only if all of the region is alike (docs/contiguity.md), as for the price. */
#include "analysis/throughput/contiguity.h"

#include "analysis/throughput/throughput.h"
#include "base/stats.h"

#include <math.h>

enum {
    READ_US = 1000,
    READ_REPEATS = 9,
    READ_SEED = 20260,
    LEAST_REGIONS = 2 /* a region holds at least so many parts in runs */
};

/* How much of the region is in runs: a part of it, and few of them: a map and an unmap take 50 us.
 */
struct extent {
    uint32_t part;
    uint32_t max_runs;
};
static const struct extent SEARCH = {8, 2560};
static const struct extent PRICE = {1, 8192};

/* Translation limits reads that are slower than this part of the plateau. */
static const double LIMITED = 0.7;
/* A price is higher if it is by this part of the contiguous one, and beyond the noise by: */
static const double LEAST_RISE = 0.15;
static const double NOISES = 4;
static const double LEAST_NOISE = 0.0005;
/* Of the way from the contiguous to the scattered price. */
static const double MIDDLE = 0.5;
static const double CLEAR = 1.0 / 6;
/* Two prices of scattered memory agree within (that over a small part of a region is lower): */
static const double AGREE = 1.0 / 3;
/* Standard error of the median of READ_REPEATS numbers over their range, if they are normal. */
static const double MEDIAN_ERROR = 1.2533 / 3 / 2.97;

struct search {
    const struct observation_set *set;
    struct contiguity_estimate *out;
    uint64_t reach_bytes;
    uint64_t region_bytes;
    uint64_t granule_bytes;
    uint64_t longest_bytes;
    double base_gbps; /* with a part of the region in runs of the longest length */
    double base_noise;
};

/* A price of a miss over that of contiguous memory. */
struct price {
    double factor;
    double noise;
    struct evidence evidence;
};

/* ---- the region ---- */

/* Naive reads over the smallest or largest region of the curve from `from` to `to` that is below or
 * above *out_bytes; 0: none. */
static double naive_gbps(const struct observation_set *set, uint64_t from, uint64_t to,
                         bool largest, uint64_t *out_bytes)
{
    struct evidence unused;
    double gbps = 0;

    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_READ));) {
        const struct probe_spec *const s = &o->spec;
        if (!probe_is_line_read(s) || s->run_bytes > 0 || s->window_count != 1 ||
            !throughput_all_sms_read(o))
            continue;
        for (uint32_t p = 0; p < s->point_count; p++) {
            const uint64_t bytes = s->points[p];
            const bool better = largest ? bytes > *out_bytes : bytes < *out_bytes;
            if (bytes < from || bytes > to || !better || !throughput_region_counts(set, bytes))
                continue;
            *out_bytes = bytes;
            gbps = throughput_median_gbps(o, p, EVIDENCE_RANDOM_READS, &unused);
        }
    }
    return gbps;
}

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

/* The bytes in runs: whole longest ones, so that all behind them stays aligned. */
static uint64_t extent_bytes(const struct search *c, uint64_t run_bytes, struct extent e)
{
    const uint64_t wanted = c->region_bytes / e.part;
    const uint64_t most = run_bytes * e.max_runs;
    const uint64_t bytes = round_up(wanted < most ? wanted : most, c->longest_bytes);

    return bytes <= c->region_bytes ? bytes : bytes - c->longest_bytes;
}

/* The smallest region beyond the reach that translation limits. */
static bool find_region(struct search *c)
{
    uint64_t plateau_bytes = 0;
    const double plateau = naive_gbps(c->set, 0, c->reach_bytes, true, &plateau_bytes);
    uint64_t after = c->reach_bytes;
    double gbps;

    while (plateau > 0) {
        c->region_bytes = UINT64_MAX;
        gbps = naive_gbps(c->set, after + 1, UINT64_MAX, false, &c->region_bytes);
        if (!(gbps > 0))
            break;
        if (gbps < LIMITED * plateau &&
            extent_bytes(c, c->longest_bytes, SEARCH) <= c->region_bytes / LEAST_REGIONS)
            return true;
        after = c->region_bytes;
    }
    return false;
}

/* ---- probes ---- */

static const struct observation *find(const struct search *c, uint64_t run_bytes,
                                      uint64_t scattered_bytes)
{
    for (const struct observation *o = NULL; (o = observation_next(c->set, o, PROBE_READ));)
        if (o->spec.run_bytes == run_bytes && o->spec.scattered_bytes == scattered_bytes &&
            o->spec.points[0] == c->region_bytes)
            return o;
    return NULL;
}

static void ask(const struct search *c, uint64_t run_bytes, uint64_t scattered_bytes)
{
    c->out->asks[c->out->ask_count++] = (struct probe_spec){.kind = PROBE_READ,
                                                            .point_count = 1,
                                                            .points = {c->region_bytes},
                                                            .repeats = READ_REPEATS,
                                                            .duration_us = READ_US,
                                                            .seed = READ_SEED,
                                                            .run_bytes = run_bytes,
                                                            .scattered_bytes = scattered_bytes,
                                                            .window_count = 1,
                                                            .window_sms = REACH_MAX_SMS};
}

/* GB/s, and the standard error as a part of it. */
static double gbps_of(const struct observation *o, double *noise, struct evidence *evidence)
{
    double gbps[PROBE_MAX_REPEATS];
    const double median = throughput_median_gbps(o, 0, EVIDENCE_RUN_LENGTHS, evidence);

    for (uint32_t r = 0; r < o->spec.repeats; r++)
        gbps[r] = observation_read_gbps(o, 0, r);
    *noise = MEDIAN_ERROR * (stats_quantile_f64(gbps, o->spec.repeats, 1) -
                             stats_quantile_f64(gbps, o->spec.repeats, 0));
    *noise = median > 0 ? fmax(*noise / median, LEAST_NOISE) : 1;
    return median;
}

/* False, and the probe is asked for, if it is missing. */
static bool price_of(const struct search *c, uint64_t run_bytes, struct extent extent,
                     struct price *out)
{
    const uint64_t scattered = extent_bytes(c, run_bytes, extent);
    const struct observation *const o = find(c, run_bytes, scattered);
    const double share = (double)scattered / (double)c->region_bytes;
    double noise;
    double gbps;

    if (!o) {
        ask(c, run_bytes, scattered);
        return false;
    }
    gbps = gbps_of(o, &noise, &out->evidence);
    out->factor = gbps > 0 ? 1 + (c->base_gbps / gbps - 1) / share : 1;
    out->noise = hypot(noise, c->base_noise) / share;
    return true;
}

/* ---- the search ---- */

static void unknown(struct contiguity_estimate *out, enum reason why)
{
    out->found = (struct fingerprint_contiguity){.frame_bytes = UNKNOWN_U64(why),
                                                 .contiguous_miss_ns = UNKNOWN_F64(why),
                                                 .scattered_miss_ns = UNKNOWN_F64(why)};
}

/* A random access to R bytes misses with probability 1 - reach / R. */
static void set_contiguous(const struct search *c, struct evidence evidence)
{
    struct fingerprint_contiguity *const f = &c->out->found;
    const double missed = 1 - (double)c->reach_bytes / (double)c->region_bytes;

    f->contiguous_miss_ns = KNOWN_F64(PROBE_LINE_BYTES / c->base_gbps / missed);
    f->evidence[CONTIGUITY_EVIDENCE_CONTIGUOUS_MISS_NS] = evidence;
}

static void set_scattered(const struct search *c, double factor, struct evidence evidence)
{
    struct fingerprint_contiguity *const f = &c->out->found;

    f->scattered_miss_ns = KNOWN_F64(f->contiguous_miss_ns.v * fmax(factor, 1));
    f->evidence[CONTIGUITY_EVIDENCE_SCATTERED_MISS_NS] = evidence;
}

/* Runs of one granule cost as much as the longest: no length matters, or a frame is longer than any
 * run. Then the whole region in the longest runs is slower than a part of it; it is faster if the
 * memory behind the rest is scattered itself. */
static void no_difference(const struct search *c, const struct price *fine)
{
    struct price whole;

    if (!price_of(c, c->longest_bytes, PRICE, &whole))
        return;
    if (fine->factor - 1 + (NOISES - 1) * fine->noise > 2 * LEAST_RISE) {
        unknown(c->out, REASON_NO_CONTRAST); /* there may be a rise that noise hides */
    } else if (fabs(whole.factor - 1) > LEAST_RISE / 2) {
        unknown(c->out, whole.factor > 1 ? REASON_NO_DEVICE_MEMORY : REASON_DISAGREEMENT);
    } else {
        c->out->found.frame_bytes = NOT_OBSERVABLE_U64(REASON_NO_TRACE);
        set_scattered(c, 1, fine->evidence);
    }
}

/* The price of the longest runs that do not fill a frame, all over the region. */
static void find_price(const struct search *c, uint64_t run_bytes, const struct price *fine)
{
    struct price half;

    if (!price_of(c, run_bytes, PRICE, &half))
        return;
    if (fabs(half.factor - fine->factor) > AGREE * fine->factor)
        c->out->found.scattered_miss_ns = UNKNOWN_F64(REASON_DISAGREEMENT);
    else
        set_scattered(c, half.factor, half.evidence);
}

/* Halves the number of lengths between one that is scattered and one that is contiguous. */
static void find_frame(const struct search *c, const struct price *fine)
{
    struct fingerprint_contiguity *const f = &c->out->found;
    const double rise = fine->factor - 1;
    double margin = 1;
    uint32_t low = 0;
    uint32_t high = 0;

    while (c->granule_bytes << high < c->longest_bytes)
        high++;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        struct price p;
        if (!price_of(c, c->granule_bytes << middle, SEARCH, &p))
            return;
        const double from_middle = (p.factor - 1) / rise - MIDDLE;
        if (fabs(from_middle) < CLEAR || fabs(from_middle) * rise < p.noise * (NOISES - 1)) {
            f->frame_bytes = UNKNOWN_U64(REASON_DISAGREEMENT);
            f->scattered_miss_ns = UNKNOWN_F64(REASON_DISAGREEMENT);
            return;
        }
        margin = fmin(margin, fabs(from_middle) / MIDDLE);
        if (from_middle < 0)
            high = middle;
        else
            low = middle;
    }
    f->frame_bytes = KNOWN_U64(c->granule_bytes << high);
    f->evidence[CONTIGUITY_EVIDENCE_FRAME_BYTES] =
        evidence_make(EVIDENCE_RUN_LENGTHS, READ_REPEATS, margin);
    find_price(c, c->granule_bytes << low, fine);
}

static void search(struct search *c)
{
    const uint64_t scattered = extent_bytes(c, c->longest_bytes, SEARCH);
    const struct observation *const base = find(c, c->longest_bytes, scattered);
    struct evidence evidence;
    struct price fine;

    if (!base)
        ask(c, c->longest_bytes, scattered);
    else
        c->base_gbps = gbps_of(base, &c->base_noise, &evidence);
    if (!price_of(c, c->granule_bytes, SEARCH, &fine) || !base)
        return;
    if (!(c->base_gbps > 0)) {
        unknown(c->out, REASON_TOO_LITTLE_DATA);
        return;
    }
    set_contiguous(c, evidence);
    if (fine.factor - 1 > fmax(LEAST_RISE, NOISES * fine.noise))
        find_frame(c, &fine);
    else
        no_difference(c, &fine);
}

void contiguity_estimate(const struct observation_set *set, struct maybe_u64 reach_bytes,
                         struct contiguity_estimate *out)
{
    struct search c = {.set = set,
                       .out = out,
                       .reach_bytes = reach_bytes.v,
                       .granule_bytes = set->limits.granule_bytes,
                       .longest_bytes = probe_longest_run(&set->limits)};

    out->ask_count = 0;
    unknown(out, REASON_NOT_MEASURED);
    if (!IS_KNOWN(reach_bytes))
        unknown(out, reach_bytes.reason);
    else if (!throughput_is_from_memory(set) || c.longest_bytes <= c.granule_bytes)
        unknown(out, set->limits.arena == ARENA_PLAIN ? REASON_NOT_REPORTED
                                                      : REASON_NO_DEVICE_MEMORY);
    else if (!find_region(&c))
        unknown(out, REASON_NO_CONTRAST);
    else
        search(&c);
}

void contiguity_derive(const struct observation_set *set, struct maybe_u64 reach_bytes,
                       struct fingerprint *out)
{
    struct contiguity_estimate estimate;

    contiguity_estimate(set, reach_bytes, &estimate);
    if (estimate.ask_count == 0)
        out->contiguity = estimate.found;
}
