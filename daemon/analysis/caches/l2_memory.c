/* l2_memory.c: finds the latencies of the L2 and of memory, and the bytes that a miss of the L2
 * loads; see hierarchy.h.
 *
 * Memory answers in two modes if the L2 has two sides, and some loads take longer still (a bank
 * that is refreshed). The modes are the two highest peaks in the distribution of the cycles of the
 * loads, if there is a valley between the peaks.
 */
#include "analysis/caches/hierarchy.h"

#include "analysis/caches/l2_size.h"
#include "analysis/caches/page_tables.h"
#include "base/stats.h"
#include "base/units.h"
#include "fingerprint/members.h"

#include <math.h>

/* The share of the way from an L2 hit to the quickest loads of memory, above which a load misses.
 * Lines of the far side hit slightly below the quickest loads of memory. */
#define BELOW_MEMORY 0.97
#define QUICKEST     0.01
#define VALLEY_SHARE 0.6  /* highest valley between two modes, as a share of the lower peak */
#define LEAST_PEAK   0.02 /* least share of the loads in one bin of a peak */
#define FILL_RIGHT   0.90
#define FILL_WRONG   0.05

enum {
    HIT_LINES = 4096,
    HIT_SAMPLES = 2048,
    POINTS = 2,
    COLD_STRIDE = 4096 + 128, /* bytes; the walk meets every granule of the sides, and many banks */
    COLD_LINES = 8192,
    COLD_SAMPLES = 4096,
    FILL_WORDS = 2048,
    FILL_STRIDE = 32,
    MOST_FILL = 16, /* of FILL_STRIDE */
    BINS = 256,
    PAGE_COUNT = 4096
};

#define COLD_BYTES  (256 * MIB) /* other memory that all SMs load to empty the L2 */
#define SWEEP_TIMES 2           /* length of the sweep that empties an L2, in lengths of the L2 */

void latency_unknown(struct fingerprint_latency *l, enum reason reason)
{
    memset(l, 0, sizeof *l);
    object_set_reason(&latency_object, l, reason);
}

/* Returns all loads of an observation. */
static const uint32_t *all_loads(const struct observation *o, uint32_t *out_count)
{
    *out_count = o->spec.point_count * o->spec.samples;
    return observation_chase(o, 0);
}

static const struct observation *find_hits(struct cache_walks *w)
{
    struct probe_spec spec = walks_l2_spec(PROBE_LINE_BYTES, HIT_SAMPLES);

    spec.warm_laps = 1; /* after one lap, a line of the other side has a copy */
    walks_add_points(&spec, HIT_LINES, POINTS);
    return walks_find(w, &spec);
}

static const struct observation *find_cold(struct cache_walks *w)
{
    struct probe_spec spec = walks_l2_spec(COLD_STRIDE, COLD_SAMPLES);
    const uint64_t l2 = w->set->gpu.l2_cache_bytes;

    spec.sweep_bytes = COLD_BYTES > SWEEP_TIMES * l2 ? COLD_BYTES : SWEEP_TIMES * l2;
    spec.sweep_bytes = (spec.sweep_bytes + MIB - 1) / MIB * MIB;
    walks_add_points(&spec, COLD_LINES, POINTS);
    return walks_find(w, &spec);
}

/* ---- modes ---- */

struct peaks {
    uint32_t first, second; /* bins */
    uint32_t valley;
    bool two;
};

static uint32_t smooth(const uint32_t *bins, uint32_t i)
{
    return bins[i > 0 ? i - 1 : 0] + bins[i] + bins[i + 1 < BINS ? i + 1 : BINS - 1];
}

/* Finds the peaks up to bin `last`; the tail is beyond it. */
static struct peaks find_peaks(const uint32_t *bins, uint32_t last, uint32_t total)
{
    struct peaks best = {0, 0, 0, false};
    uint32_t highest = 0;
    double deepest = VALLEY_SHARE;

    for (uint32_t i = 0; i <= last; i++)
        if (smooth(bins, i) > smooth(bins, highest))
            highest = i;
    best.first = highest;
    for (uint32_t i = 0; i <= last; i++) {
        const uint32_t low = i < highest ? i : highest;
        const uint32_t high = i < highest ? highest : i;
        uint32_t valley = low;
        if (smooth(bins, i) < LEAST_PEAK * 3 * total)
            continue;
        for (uint32_t k = low; k <= high; k++)
            if (smooth(bins, k) < smooth(bins, valley))
                valley = k;
        const uint32_t lower =
            smooth(bins, low) < smooth(bins, high) ? smooth(bins, low) : smooth(bins, high);
        if (valley > low && valley < high && smooth(bins, valley) < deepest * lower) {
            deepest = (double)smooth(bins, valley) / lower;
            best = (struct peaks){low, high, valley, true};
        }
    }
    return best;
}

static double median_between(const uint32_t *loads, uint32_t count, double low, double high,
                             double *out_share)
{
    uint32_t kept[POINTS * COLD_SAMPLES];
    uint32_t n = 0;

    for (uint32_t i = 0; i < count && n < POINTS * COLD_SAMPLES; i++)
        if (loads[i] >= low && loads[i] < high)
            kept[n++] = loads[i];
    *out_share = (double)n / count;
    return n > 0 ? stats_median_u32(kept, n) : 0;
}

static void read_modes(const uint32_t *loads, uint32_t count, struct fingerprint_latency *out)
{
    const double low = stats_quantile_u32(loads, count, 0.005);
    const double high = stats_quantile_u32(loads, count, 0.9);
    const double width = fmax(4, (high - low) * 1.5 / BINS * 4);
    uint32_t bins[BINS] = {0};
    double share = 0;

    for (uint32_t i = 0; i < count; i++) {
        const double at = (loads[i] - low) / width;
        if (at >= 0)
            bins[at < BINS ? (uint32_t)at : BINS - 1]++;
    }
    const struct peaks p = find_peaks(bins, (uint32_t)((high - low) / width), count);
    const double border = p.two ? low + (p.valley + 0.5) * width : INFINITY;
    const double top = p.two ? p.second : p.first;
    /* With two modes, the last mode ends 1.5 times as far above its peak as the valley lies below
     * the peak. With one mode, the mode ends three times as far above its peak as the quickest
     * loads lie below the peak. */
    const double reach = p.two ? (p.second - p.valley) * width
                               : fmax(4 * width, low + (p.first + 0.5) * width - low);
    const double end = low + (top + 0.5) * width + (p.two ? 1.5 : 3) * reach;

    out->near_cycles = KNOWN_F64(median_between(loads, count, 0, fmin(border, end), &share));
    out->far_cycles = NOT_OBSERVABLE_F64(REASON_NO_CONTRAST);
    if (p.two)
        out->far_cycles = KNOWN_F64(median_between(loads, count, border, end, &share));
    const double tail = median_between(loads, count, end, INFINITY, &share);
    out->tail_share = KNOWN_F64(share);
    out->tail_cycles = share > 0 ? KNOWN_F64(tail) : NOT_OBSERVABLE_F64(REASON_NO_CONTRAST);
    out->evidence.near_cycles =
        evidence_make(EVIDENCE_WALKS, count,
                      p.two ? 1 - smooth(bins, p.valley) /
                                      fmax(1, fmin(smooth(bins, p.first), smooth(bins, p.second)))
                            : 0);
    if (share > 0)
        out->evidence.tail_cycles = evidence_make(EVIDENCE_WALKS, count, 0);
}

/* ---- bytes that a miss loads ---- */

static enum reason find_fill(struct cache_walks *w, double threshold, struct cache_facts *l2)
{
    struct probe_spec spec = walks_l2_spec(FILL_STRIDE, FILL_WORDS);

    spec.scattered = 0;
    spec.sweep_bytes = COLD_BYTES;
    walks_add_points(&spec, FILL_WORDS, 1);
    const struct observation *const o = walks_find(w, &spec);
    if (!o)
        return REASON_NOT_MEASURED;
    const uint32_t *const row = observation_chase(o, 0);
    for (uint32_t words = 1; words <= MOST_FILL; words *= 2) {
        uint32_t right = 0;
        uint32_t wrong = 0;
        for (uint32_t k = 0; k < FILL_WORDS; k++) {
            right += row[k] > threshold && k % words == 0;
            wrong += row[k] > threshold && k % words != 0;
        }
        const double found = (double)right * words / FILL_WORDS;
        const double others = (double)wrong / FILL_WORDS;
        if (found < FILL_RIGHT || others > FILL_WRONG)
            continue;
        l2->fill_bytes = KNOWN_U64((uint64_t)words * FILL_STRIDE);
        l2->evidence.fill_bytes =
            evidence_make(EVIDENCE_TRACES, FILL_WORDS / words, found - others);
        return REASON_NONE;
    }
    return REASON_IRREGULAR;
}

/* ---- pages that no TLB level holds ---- */

/* Finds P6 from the first lap, because later laps visit the same pages at other places. */
static void read_p6(const uint32_t *loads, uint32_t count, uint64_t stride_bytes, double threshold,
                    struct fingerprint_latency *out)
{
    struct page_tables t;

    page_tables_find(loads, count, stride_bytes, threshold, &t);
    out->p6_cycles = UNKNOWN_F64(REASON_NO_CONTRAST);
    if (t.finding == PAGE_TABLES_NONE)
        out->p6_cycles = NOT_OBSERVABLE_F64(REASON_NO_CONTRAST);
    if (t.finding != PAGE_TABLES_FOUND)
        return;
    out->p6_cycles = KNOWN_F64(out->p5_cycles.v + t.cycles);
    out->evidence.p6_cycles = evidence_make(EVIDENCE_WALKS, t.loads, t.margin);
}

/* Finds P5 with a walk of many pages. The cycle is so long that each page has left every level, and
 * its data the L2, before it comes again. */
static enum reason find_p5(struct cache_walks *w, double threshold, struct fingerprint_latency *out)
{
    const uint64_t granule = w->set->limits.granule_bytes ? w->set->limits.granule_bytes : 2 * MIB;
    const uint64_t room = w->set->limits.range_bytes > 2 * COLD_BYTES
                              ? w->set->limits.range_bytes - 2 * COLD_BYTES
                              : 0;
    const uint64_t pages = room / PAGE_COUNT / granule;
    struct probe_spec spec = walks_l2_spec(pages * granule + PROBE_LINE_BYTES * 33, PAGE_COUNT);
    uint32_t count;

    if (pages == 0)
        return REASON_BEYOND_MEMORY;
    spec.touch_bytes = 0;
    spec.scattered = 0;
    spec.warm_laps = 1;
    spec.sweep_bytes = COLD_BYTES;
    walks_add_points(&spec, PAGE_COUNT * 15 / 16, 1);
    const struct observation *const o = walks_find(w, &spec);
    if (!o)
        return REASON_NOT_MEASURED;
    const uint32_t *const loads = all_loads(o, &count);
    /* The pages are mapped to less memory than their number needs, so the sweep has loaded some of
     * it. */
    uint32_t kept[PAGE_COUNT];
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (loads[i] > threshold)
            kept[kept_count++] = loads[i];
    if (kept_count < PAGE_COUNT / 2)
        return REASON_NO_CONTRAST;
    struct fingerprint_latency modes;
    latency_unknown(&modes, REASON_NOT_MEASURED);
    read_modes(kept, kept_count, &modes);
    out->p5_cycles = KNOWN_F64(modes.near_cycles.v - w->clock_cycles);
    out->evidence.p5_cycles = evidence_make(EVIDENCE_WALKS, count, 0);
    if (w->ask_count == 0) /* only on the last call, because the search takes a millisecond */
        read_p6(loads, (uint32_t)o->spec.points[0], o->spec.stride_bytes, threshold, out);
    return REASON_NONE;
}

static double agreement(const struct observation *o)
{
    double medians[POINTS];

    for (uint32_t p = 0; p < POINTS; p++)
        medians[p] = stats_median_u32(observation_chase(o, p), o->spec.samples);
    return evidence_of_repeats(EVIDENCE_WALKS, medians, POINTS).margin;
}

void l2_and_memory(struct cache_walks *w, struct cache_facts *l2, struct fingerprint_latency *out)
{
    struct hit_or_miss how;
    uint32_t hits = 0;
    uint32_t misses = 0;

    cache_unknown(l2, CACHE_L2, REASON_NOT_MEASURED);
    latency_unknown(out, REASON_NOT_MEASURED);
    const struct observation *const warm = find_hits(w);
    const struct observation *const cold = find_cold(w);
    if (!walks_clock(w) || !warm || !cold) {
        if (w->refused)
            cache_unknown(l2, CACHE_L2, REASON_NO_DEVICE_MEMORY);
        return;
    }
    const uint32_t *const hit_loads = all_loads(warm, &hits);
    const uint32_t *const miss_loads = all_loads(cold, &misses);
    cache_unknown(l2, CACHE_L2, REASON_NO_CONTRAST);
    l2->latency_cycles = KNOWN_F64(fmax(0, stats_median_u32(hit_loads, hits) - w->clock_cycles));
    l2->evidence.latency_cycles = evidence_make(EVIDENCE_WALKS, hits, agreement(warm));
    if (!walks_contrast(hit_loads, hits, miss_loads, misses, &how)) {
        latency_unknown(out, REASON_NO_CONTRAST);
        return;
    }
    l2->miss_latency_cycles = KNOWN_F64(how.miss - w->clock_cycles);
    out->evidence.p4_cycles = evidence_make(EVIDENCE_WALKS, misses, agreement(cold));
    read_modes(miss_loads, misses, out);
    out->p4_cycles = KNOWN_F64(fmax(0, out->near_cycles.v - w->clock_cycles));
    out->near_cycles.v -= IS_KNOWN(out->near_cycles) ? w->clock_cycles : 0;
    out->far_cycles.v -= IS_KNOWN(out->far_cycles) ? w->clock_cycles : 0;
    out->tail_cycles.v -= IS_KNOWN(out->tail_cycles) ? w->clock_cycles : 0;
    const double threshold =
        how.hit + BELOW_MEMORY * (stats_quantile_u32(miss_loads, misses, QUICKEST) - how.hit);
    enum reason reason = find_fill(w, threshold, l2);
    if (reason != REASON_NONE)
        l2->fill_bytes = UNKNOWN_U64(reason);
    const uint32_t delayed = stats_count_above_u32(hit_loads, hits, threshold);
    reason = l2_size_find(w, threshold, (double)delayed / hits, l2);
    if (reason == REASON_BEYOND_MEMORY)
        l2->size_bytes = l2->fits_bytes = NOT_OBSERVABLE_U64(reason);
    else if (reason != REASON_NONE)
        l2->size_bytes = UNKNOWN_U64(reason);
    if (!IS_KNOWN(l2->fits_bytes) && reason != REASON_BEYOND_MEMORY)
        l2->fits_bytes = UNKNOWN_U64(reason);
    reason = find_p5(w, threshold, out);
    if (reason != REASON_NONE)
        out->p5_cycles = out->p6_cycles = UNKNOWN_F64(reason);
}
