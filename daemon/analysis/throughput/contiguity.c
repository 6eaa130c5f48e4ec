/* contiguity.c: see contiguity.h.
 *
 * A region has R bytes, and its first S bytes are runs. A miss in the runs may cost k times the
 * price of contiguous memory. If translation limits the reads, their time then grows by the factor
 * 1 + (k - 1) S / R. So the search needs only a part of the region: mapping every granule of it
 * would take seconds on a real GPU. The factor is exact only if the whole region is alike
 * (docs/contiguity.md), which is true of PRICE. */
#include "analysis/throughput/contiguity.h"

#include "analysis/throughput/throughput.h"
#include "base/stats.h"

#include <math.h>

enum {
    READ_US = 1000,
    READ_REPEATS = 9,
    READ_SEED = 20260,
    LEAST_REGIONS = 2 /* shortest region, in longest runs */
};

/* The part of the region that is in runs, as a divisor, and the largest number of runs. SEARCH has
 * few runs, because a map and an unmap take 40 us. If noise hides the result of SEARCH, PRICE
 * measures the whole region. */
struct extent {
    uint32_t part;
    uint32_t max_runs;
};
static const struct extent SEARCH = {16, 1280};
static const struct extent PRICE = {1, 8192};

/* Translation limits reads that are slower than this share of the plateau. */
static const double LIMITED = 0.7;
/* A price is higher if it exceeds the contiguous price by the share LEAST_RISE, and by NOISES times
 * the noise. */
static const double LEAST_RISE = 0.15;
static const double NOISES = 4;
static const double LEAST_NOISE = 0.0005;
/* MIDDLE is half way from the contiguous price (0) to the scattered price (1). A price is clear if
 * its distance from MIDDLE is at least CLEAR. */
static const double MIDDLE = 0.5;
static const double CLEAR = 1.0 / 6;
/* Two prices of scattered memory agree within this share. (The price over a small part of a region
 * is lower.) */
static const double AGREE = 1.0 / 3;
/* Standard error of the median of READ_REPEATS normal numbers, relative to their range. */
static const double MEDIAN_ERROR = 1.2533 / 3 / 2.97;

struct search {
    const struct observation_set *set;
    struct contiguity_estimate *out;
    uint64_t reach_bytes;
    uint64_t region_bytes;
    uint64_t granule_bytes;
    uint64_t longest_bytes;
    double base_gbps; /* GB/s of the region with a part of it in the longest runs */
    double base_noise;
};

/* The price of a miss relative to contiguous memory. */
struct price {
    double factor;
    double noise;
    struct evidence evidence;
};

/* ---- the region ---- */

/* Returns the speed of naive reads over the largest region of the curve within the reach. Returns 0
 * if there is none. */
static double plateau_gbps(const struct observation_set *set, uint64_t reach_bytes)
{
    struct evidence unused;
    uint64_t largest = 0;
    double gbps = 0;

    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_READ));) {
        const struct probe_spec *const s = &o->spec;
        if (!probe_is_line_read(s) || s->run_bytes > 0 || s->window_count != 1 ||
            !throughput_all_sms_read(o))
            continue;
        for (uint32_t p = 0; p < s->point_count; p++) {
            if (s->points[p] > reach_bytes || s->points[p] < largest ||
                !throughput_region_counts(set, s->points[p]))
                continue;
            largest = s->points[p];
            gbps = throughput_median_gbps(o, p, EVIDENCE_RANDOM_READS, &unused);
        }
    }
    return gbps;
}

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

/* Returns the number of bytes in runs: whole longest runs, so that all memory behind them stays
 * aligned. */
static uint64_t extent_bytes(const struct search *c, uint64_t run_bytes, struct extent e)
{
    const uint64_t wanted = c->region_bytes / e.part;
    const uint64_t most = run_bytes * e.max_runs;

    return round_up(wanted < most ? wanted : most, c->longest_bytes);
}

/* ---- probes ---- */

/* Finds the observation with this number of bytes in runs. Recordings of campaigns that mapped more
 * may have the next larger number. */
static const struct observation *find(const struct search *c, uint64_t run_bytes,
                                      uint64_t scattered_bytes)
{
    const struct observation *found = NULL;

    for (const struct observation *o = NULL; (o = observation_next(c->set, o, PROBE_READ));) {
        const struct probe_spec *const s = &o->spec;
        if (s->run_bytes == run_bytes && s->scattered_bytes >= scattered_bytes &&
            s->points[0] == c->region_bytes &&
            (!found || s->scattered_bytes < found->spec.scattered_bytes))
            found = o;
    }
    return found;
}

static void ask(const struct search *c, uint64_t run_bytes, uint64_t scattered_bytes)
{
    c->out->asks = true;
    c->out->ask = (struct probe_spec){.kind = PROBE_READ,
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

/* Returns the median GB/s of an observation. `*noise` is its standard error, as a share of the
 * median. */
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

/* Computes the price. If the probe is missing, requests it and returns false. */
static bool price_of(const struct search *c, uint64_t run_bytes, struct extent extent,
                     struct price *out)
{
    const uint64_t scattered = extent_bytes(c, run_bytes, extent);
    const struct observation *const o = find(c, run_bytes, scattered);
    double share;
    double noise;
    double gbps;

    if (!o) {
        ask(c, run_bytes, scattered);
        return false;
    }
    share = (double)o->spec.scattered_bytes / (double)c->region_bytes;
    gbps = gbps_of(o, &noise, &out->evidence);
    out->factor = gbps > 0 ? 1 + (c->base_gbps / gbps - 1) / share : 1;
    out->noise = hypot(noise, c->base_noise) / share;
    return true;
}

/* ---- the search ---- */

static bool is_higher(const struct price *p)
{
    return p->factor - 1 > fmax(LEAST_RISE, NOISES * p->noise);
}

static void unknown(struct contiguity_estimate *out, enum reason why)
{
    out->found = (struct fingerprint_contiguity){.frame_bytes = UNKNOWN_U64(why),
                                                 .contiguous_miss_ns = UNKNOWN_F64(why),
                                                 .scattered_miss_ns = UNKNOWN_F64(why)};
}

/* Sets the price of contiguous memory. A random access to R bytes misses with probability 1 - reach
 * / R. */
static void set_contiguous(const struct search *c, struct evidence evidence)
{
    struct fingerprint_contiguity *const f = &c->out->found;
    const double missed = 1 - (double)c->reach_bytes / (double)c->region_bytes;

    f->contiguous_miss_ns = KNOWN_F64(PROBE_LINE_BYTES / c->base_gbps / missed);
    f->evidence.contiguous_miss_ns = evidence;
}

static void set_scattered(const struct search *c, double factor, struct evidence evidence)
{
    struct fingerprint_contiguity *const f = &c->out->found;

    f->scattered_miss_ns = KNOWN_F64(f->contiguous_miss_ns.v * fmax(factor, 1));
    f->evidence.scattered_miss_ns = evidence;
}

/* Returns whether the longest runs are contiguous. If a frame is longer than these runs, the whole
 * region in runs is slower than a part of it. The whole region is faster if the memory behind the
 * runs is scattered itself. Also returns false if the probe is missing. */
static bool longest_is_contiguous(const struct search *c)
{
    struct price whole;

    if (!price_of(c, c->longest_bytes, PRICE, &whole))
        return false;
    if (fabs(whole.factor - 1) > LEAST_RISE / 2)
        unknown(c->out, whole.factor > 1 ? REASON_NO_DEVICE_MEMORY : REASON_DISAGREEMENT);
    return fabs(whole.factor - 1) <= LEAST_RISE / 2;
}

/* Records that runs of one granule cost as much as the longest. */
static void no_difference(const struct search *c, const struct price *fine)
{
    if (fine->factor - 1 + NOISES * fine->noise > 2 * LEAST_RISE) {
        unknown(c->out, REASON_NO_CONTRAST); /* noise may hide a rise */
        return;
    }
    c->out->found.frame_bytes = NOT_OBSERVABLE_U64(REASON_NO_TRACE);
    set_scattered(c, 1, fine->evidence);
}

static void disagree(const struct search *c)
{
    c->out->found.frame_bytes = UNKNOWN_U64(REASON_DISAGREEMENT);
    c->out->found.scattered_miss_ns = UNKNOWN_F64(REASON_DISAGREEMENT);
}

/* Sets the frame to twice the length of these runs. They are the longest runs that do not fill a
 * frame, so they must have the higher price over the whole region. If they do not, the price of
 * short runs was noise. */
static void set_frame(const struct search *c, uint64_t run_bytes, double margin,
                      const struct price *fine)
{
    struct fingerprint_contiguity *const f = &c->out->found;
    struct price half;

    if (!price_of(c, run_bytes, PRICE, &half))
        return;
    if (!is_higher(&half)) {
        disagree(c);
        return;
    }
    f->frame_bytes = KNOWN_U64(2 * run_bytes);
    f->evidence.frame_bytes = evidence_make(EVIDENCE_RUN_LENGTHS, READ_REPEATS, margin);
    if (fabs(half.factor - fine->factor) > AGREE * fine->factor)
        f->scattered_miss_ns = UNKNOWN_F64(REASON_DISAGREEMENT);
    else
        set_scattered(c, half.factor, half.evidence);
}

/* Computes how far the price of runs of this length is above the middle between the two prices. If
 * noise hides the distance over a part, more memory is measured. `*out` is NAN if noise hides it
 * there too. Returns false if a probe is missing. */
static bool from_middle(const struct search *c, uint64_t run_bytes, double rise, double *out)
{
    static const struct extent *const extents[] = {&SEARCH, &PRICE};
    struct price p;

    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        if (!price_of(c, run_bytes, *extents[i], &p))
            return false;
        *out = (p.factor - 1) / rise - MIDDLE;
        if (fabs(*out) >= CLEAR && fabs(*out) * rise >= p.noise * NOISES)
            return true;
    }
    *out = NAN;
    return true;
}

/* Finds the frame by a bisection between a scattered length and a contiguous length. */
static void find_frame(const struct search *c, const struct price *fine)
{
    double margin = 1;
    uint32_t low = 0;
    uint32_t high = 0;

    while (c->granule_bytes << high < c->longest_bytes)
        high++;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        double from = 0;
        if (!from_middle(c, c->granule_bytes << middle, fine->factor - 1, &from))
            return;
        if (isnan(from)) {
            disagree(c);
            return;
        }
        margin = fmin(margin, fabs(from) / MIDDLE);
        low = from > 0 ? middle : low;
        high = from > 0 ? high : middle;
    }
    set_frame(c, c->granule_bytes << low, margin, fine);
}

/* Finds the smallest region beyond the reach in which translation limits reads, with a part of it
 * in the longest runs. Returns false if there is none, or if the probe of the next region is
 * missing and requested. */
static bool find_region(struct search *c, double plateau, struct evidence *evidence)
{
    static const uint32_t quarters[] = {5, 6, 8, 12};

    unknown(c->out, REASON_BEYOND_MEMORY);
    for (size_t i = 0; i < sizeof quarters / sizeof quarters[0]; i++) {
        const uint64_t bytes = c->reach_bytes / 4 * quarters[i];
        const struct observation *base;
        c->region_bytes = round_up(bytes, c->longest_bytes);
        if (c->region_bytes > c->set->limits.range_bytes)
            return false;
        unknown(c->out, REASON_NO_CONTRAST);
        if (c->region_bytes < LEAST_REGIONS * c->longest_bytes)
            continue;
        base = find(c, c->longest_bytes, extent_bytes(c, c->longest_bytes, SEARCH));
        if (!base) {
            ask(c, c->longest_bytes, extent_bytes(c, c->longest_bytes, SEARCH));
            return false;
        }
        c->base_gbps = gbps_of(base, &c->base_noise, evidence);
        if (c->base_gbps > 0 && c->base_gbps < LIMITED * plateau)
            return true;
    }
    return false;
}

static void search(struct search *c)
{
    const double plateau = plateau_gbps(c->set, c->reach_bytes);
    struct evidence evidence;
    struct price fine;

    if (!(plateau > 0)) {
        unknown(c->out, REASON_TOO_LITTLE_DATA);
        return;
    }
    if (!find_region(c, plateau, &evidence) || !price_of(c, c->granule_bytes, SEARCH, &fine))
        return;
    if (!longest_is_contiguous(c) ||
        (!is_higher(&fine) && !price_of(c, c->granule_bytes, PRICE, &fine)))
        return;
    set_contiguous(c, evidence);
    if (is_higher(&fine))
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

    out->asks = false;
    unknown(out, REASON_NOT_MEASURED);
    if (!IS_KNOWN(reach_bytes))
        unknown(out, reach_bytes.reason);
    else if (!throughput_is_from_memory(set) || c.longest_bytes <= c.granule_bytes)
        unknown(out,
                set->limits.arena == ARENA_PLAIN ? REASON_NOT_REPORTED : REASON_NO_DEVICE_MEMORY);
    else
        search(&c);
}

void contiguity_derive(const struct observation_set *set, struct maybe_u64 reach_bytes,
                       struct fingerprint *out)
{
    struct contiguity_estimate estimate;

    contiguity_estimate(set, reach_bytes, &estimate);
    if (!estimate.asks)
        out->contiguity = estimate.found;
}
