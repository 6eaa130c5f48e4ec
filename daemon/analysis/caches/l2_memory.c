/* l2_memory.c: the L2 and the latency of memory; see hierarchy.h.
 *
 * Memory answers in two modes where the L2 has two sides, and some loads take longer still (a bank
 * that is refreshed). The modes are the two highest peaks of the loads by their cycles, if there is
 * a valley between them.
 */
#include "analysis/caches/hierarchy.h"

#include "analysis/caches/page_tables.h"
#include "base/stats.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

#define BELOW_MEMORY                                                                               \
    0.97 /* of the way from a hit of the L2 to the quickest loads from memory: lines               \
             of the far side hit not far below those */
#define QUICKEST 0.01
#define CLEAN_SHARE                                                                                \
    0.001         /* of the loads of a footprint that fits are delayed at most, for a size */
#define SHARP 0.1 /* a size is one if all longer footprints miss as much as it lets them */
#define FITS_SHARE                                                                                 \
    0.004                 /* of the loads that miss in a footprint that fits, beside those delayed \
                           */
#define VALLEY_SHARE 0.6  /* of the lower peak */
#define LEAST_PEAK   0.02 /* of the loads, in a bin */
#define FILL_RIGHT   0.90
#define YOUNG        0.5 /* of what stays: a line loaded that long ago is young */
#define OLD          2.0
#define LONG         3    /* footprints of so many times what stays have old lines */
#define LONGEST      8    /* and in longer ones the translations may be missing too */
#define LRU_YOUNG    0.97 /* of the young lines are there at least, if the oldest go first */
#define LRU_OLD      0.03 /* of the old ones at most */
#define OTHER_YOUNG  0.90
#define MOST_VARIED  1.5  /* times the least that stays of a long footprint */
#define LINE_LEAST   0.05 /* of the loads miss where every line is loaded */
#define LINE_SAME    0.5  /* of these, as long as a line is not longer */
#define LINE_NONE    0.25
#define SURE_HIT     0.6 /* of the way from a hit to the threshold */
#define OTHER_OLD    0.08
#define FILL_WRONG   0.05

enum {
    HIT_LINES = 4096,
    HIT_SAMPLES = 2048,
    POINTS = 2,
    COLD_STRIDE = 4096 + 128, /* every granule of the sides, and many banks */
    COLD_LINES = 8192,
    COLD_SAMPLES = 4096,
    FILL_WORDS = 2048,
    FILL_STRIDE = 32,
    MOST_FILL = 16, /* of FILL_STRIDE */
    SIZE_SAMPLES = 1024,
    REFINE_SAMPLES = 2048,
    REFINE_POINTS = 15,
    REFINE_STRETCHES = 3, /* of the sweep, until footprints fit */
    LEAST_SURVIVORS = 128,
    LEAST_THERE = 32, /* loads that hit, of a footprint that counts */
    LINE_FIRST = 32,
    LINE_STRIDES = 6, /* doubled from LINE_FIRST */
    BINS = 256,
    PAGE_COUNT = 4096
};

#define COLD_BYTES  (256 * MIB) /* other memory that all SMs load */
#define TOUCH_BYTES (2 * MIB)
#define SIZE_FIRST  (256 * KIB)
#define SIZE_LAST   (256 * MIB)
#define SWEEP_TIMES 2 /* what is loaded to empty an L2 is so many times as long */

void latency_unknown(struct fingerprint_latency *l, enum reason reason)
{
    *l = (struct fingerprint_latency){.p1_cycles = UNKNOWN_F64(reason),
                                      .p2_cycles = UNKNOWN_F64(reason),
                                      .p3_cycles = UNKNOWN_F64(reason),
                                      .p4_cycles = UNKNOWN_F64(reason),
                                      .p5_cycles = UNKNOWN_F64(reason),
                                      .p6_cycles = UNKNOWN_F64(reason),
                                      .near_cycles = UNKNOWN_F64(reason),
                                      .far_cycles = UNKNOWN_F64(reason),
                                      .tail_cycles = UNKNOWN_F64(reason),
                                      .tail_share = UNKNOWN_F64(reason)};
}

/* The L2's own probes: past L1. */
static struct probe_spec spec_of(uint64_t stride_bytes, uint32_t samples)
{
    return (struct probe_spec){.stride_bytes = stride_bytes,
                               .samples = samples,
                               .scattered = 1,
                               .touch_bytes = TOUCH_BYTES};
}

static void add_points(struct probe_spec *spec, uint64_t n, uint32_t repeats)
{
    for (uint32_t r = 0; r < repeats; r++)
        spec->points[spec->point_count++] = n;
}

/* All loads of an observation. */
static const uint32_t *all_loads(const struct observation *o, uint32_t *out_count)
{
    *out_count = o->spec.point_count * o->spec.samples;
    return observation_chase(o, 0);
}

static const struct observation *find_hits(struct cache_walks *w)
{
    struct probe_spec spec = spec_of(PROBE_LINE_BYTES, HIT_SAMPLES);

    spec.warm_laps = 1; /* a line of the other side has a copy then */
    add_points(&spec, HIT_LINES, POINTS);
    return walks_find(w, &spec);
}

static const struct observation *find_cold(struct cache_walks *w)
{
    struct probe_spec spec = spec_of(COLD_STRIDE, COLD_SAMPLES);
    const uint64_t l2 = w->set->gpu.l2_cache_bytes;

    spec.sweep_bytes = COLD_BYTES > SWEEP_TIMES * l2 ? COLD_BYTES : SWEEP_TIMES * l2;
    spec.sweep_bytes = (spec.sweep_bytes + MIB - 1) / MIB * MIB;
    add_points(&spec, COLD_LINES, POINTS);
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

/* Up to bin `last`, beyond which there is the tail. */
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
    /* As far above the last peak as its slowest half reaches below it, three times. */
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
    out->evidence[LATENCY_EVIDENCE_NEAR] =
        evidence_make(EVIDENCE_WALKS, count,
                      p.two ? 1 - smooth(bins, p.valley) /
                                      fmax(1, fmin(smooth(bins, p.first), smooth(bins, p.second)))
                            : 0);
    if (share > 0)
        out->evidence[LATENCY_EVIDENCE_TAIL] = evidence_make(EVIDENCE_WALKS, count, 0);
}

/* ---- what a miss brings ---- */

static enum reason find_fill(struct cache_walks *w, double threshold, struct cache_facts *l2)
{
    struct probe_spec spec = spec_of(FILL_STRIDE, FILL_WORDS);

    spec.scattered = 0;
    spec.sweep_bytes = COLD_BYTES;
    add_points(&spec, FILL_WORDS, 1);
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
        l2->evidence[CACHE_EVIDENCE_FILL_BYTES] =
            evidence_make(EVIDENCE_TRACES, FILL_WORDS / words, found - others);
        return REASON_NONE;
    }
    return REASON_IRREGULAR;
}

/* ---- size ---- */

/* Loads of point `p` that take longer than `threshold`. */
static uint32_t slow_of(const struct observation *o, uint32_t p, double threshold)
{
    const uint32_t *const row = observation_chase(o, p);
    uint32_t slow = 0;

    for (uint32_t k = 0; k < o->spec.samples; k++)
        slow += row[k] > threshold;
    return slow;
}

/* Footprints that all SMs have loaded: the place behind the longest that fits. In a shorter one a
 * few loads may be delayed more than usual, and by chance more than in the others. */
static uint32_t behind_longest(const struct observation *o, double threshold, double noise)
{
    uint32_t behind = 0;

    for (uint32_t p = 0; p < o->spec.point_count; p++)
        if (slow_of(o, p, threshold) <= (FITS_SHARE + noise) * o->spec.samples)
            behind = p + 1;
    return behind;
}

/* Loads of point `p` that hit. */
static uint32_t hits_of(const struct observation *o, uint32_t p, double threshold)
{
    return o->spec.samples - slow_of(o, p, threshold);
}

/* Of a footprint of F bytes C stay in a cache of C bytes, and the others miss. With copies of lines
 * in it, or of which a part is kept for others, what stays is another part in every footprint. */
static bool is_sharp(const struct observation *o, double threshold, uint64_t lines)
{
    bool sharp = true;
    double off = 0;
    double errors = 0;
    uint32_t count = 0;

    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        const double n = (double)o->spec.points[p];
        if (n <= 1.2 * (double)lines || n > 5 * (double)lines)
            continue;
        const uint32_t hits = hits_of(o, p, threshold);
        const double stays = n * hits / o->spec.samples;
        const double error = 4 * n * sqrt(hits + 1.0) / o->spec.samples;
        sharp = sharp && fabs(stays - (double)lines) <= SHARP * (double)lines + error;
        off += stays / (double)lines - 1;
        errors += error / (double)lines * (error / (double)lines);
        count++;
    }
    return sharp && fabs(off) <= SHARP / 2 * count + sqrt(errors); /* all of them tell more */
}

/* Lines whose age is between two: how many are there, of how many? */
struct survivors {
    uint32_t there, all;
};

static struct survivors survivors(const struct observation *o, double threshold, double stays,
                                  double from, double to)
{
    struct survivors s = {0, 0};

    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        const uint32_t *const row = observation_chase(o, p);
        const uint64_t n = o->spec.points[p];
        const uint64_t step = probe_scatter_step(n);
        uint64_t at = 0;
        if ((double)n < LONG * stays || (double)n > LONGEST * stays)
            continue;
        for (uint32_t k = 0; k < o->spec.samples; k++, at = (at + step) % n) {
            const double age = (double)(n - 1 - at); /* in lines that were loaded since */
            s.all += age >= from * stays && age < to * stays;
            s.there += age >= from * stays && age < to * stays && row[k] <= threshold;
        }
    }
    return s;
}

/* Lines that stay of the shortest footprint that is LONG times as long; 0: there is none. */
static double what_stays(const struct observation *o, double threshold)
{
    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        const uint32_t there = hits_of(o, p, threshold);
        if (there > 0 && there * LONG <= o->spec.samples)
            return (double)o->spec.points[p] * there / o->spec.samples;
    }
    return 0;
}

/* Long footprints keep the same number of lines. If they seem not to, loads of memory by a near SM
 * were quicker than the threshold, and young lines that seem to be gone may be older than that. */
static bool stays_vary(const struct observation *o, double threshold)
{
    double least = INFINITY;
    double most = 0;

    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        const uint32_t there = hits_of(o, p, threshold);
        if (there < LEAST_THERE || there * LONG > o->spec.samples)
            continue;
        least = fmin(least, (double)o->spec.points[p] * there);
        most = fmax(most, (double)o->spec.points[p] * there);
    }
    return most > MOST_VARIED * least;
}

/* All SMs have loaded a footprint from its start to its end, once. If the oldest lines go first,
 * the last lines are there and those before them are not. Lines of the far side hit only just below
 * memory, and some of memory may be just as quick, so an old line counts only if it surely hits. */
static void find_policy(const struct observation *o, double hit, double threshold,
                        struct cache_facts *l2)
{
    const double stays = what_stays(o, threshold);
    const struct survivors young = survivors(o, threshold, stays, 0, YOUNG);
    const struct survivors old =
        survivors(o, hit + SURE_HIT * (threshold - hit), stays, OLD, LONGEST);
    const uint32_t fewest = young.all < old.all ? young.all : old.all;
    double margin = 0;

    if (stays <= 0 || fewest < LEAST_SURVIVORS)
        return;
    const double early = (double)young.there / young.all;
    const double late = (double)old.there / old.all;
    const double error = 2 / sqrt(fewest);
    if (early >= LRU_YOUNG && late <= LRU_OLD) {
        l2->replacement = REPLACEMENT_LRU;
        margin = fmin((early - LRU_YOUNG) / (1 - LRU_YOUNG), 1 - late / LRU_OLD);
    } else if ((early + error < OTHER_YOUNG && !stays_vary(o, threshold)) ||
               late - error > OTHER_OLD) {
        l2->replacement = REPLACEMENT_NOT_LRU;
        margin = fmin(1, fmax(OTHER_YOUNG - early, late - OTHER_OLD));
    } else {
        return;
    }
    l2->evidence[CACHE_EVIDENCE_REPLACEMENT] = evidence_make(EVIDENCE_WALKS, fewest, margin);
}

static struct probe_spec size_spec(void)
{
    struct probe_spec spec = spec_of(PROBE_LINE_BYTES, SIZE_SAMPLES);

    spec.sweep_footprint = 1;
    return spec;
}

/* ---- line ---- */

/* Walks a footprint that overflows the L2 if every line of it is loaded, but not if every second
 * line is. One word is loaded in each 32, 64, .. bytes: as long as that distance is no longer than
 * a line, every line is loaded and loads miss. */
static enum reason find_line(struct cache_walks *w, double threshold, uint64_t fits,
                             struct cache_facts *l2)
{
    const uint64_t footprint = fits * PROBE_LINE_BYTES / 8 * 15;
    double shares[LINE_STRIDES];
    uint32_t k = 0;
    bool waiting = false;

    for (uint32_t i = 0; i < LINE_STRIDES; i++) {
        struct probe_spec spec = spec_of((uint64_t)LINE_FIRST << i, SIZE_SAMPLES);
        spec.sweep_footprint = PROBE_SWEEP_ELEMENTS;
        add_points(&spec, walks_evenly_covered(footprint / spec.stride_bytes), 1);
        const struct observation *const o = walks_find(w, &spec);
        uint32_t slow = 0;
        for (uint32_t j = 0; o && j < SIZE_SAMPLES; j++)
            slow += observation_chase(o, 0)[j] > threshold;
        waiting = waiting || !o;
        shares[i] = (double)slow / SIZE_SAMPLES;
    }
    if (waiting)
        return REASON_NOT_MEASURED;
    while (k + 1 < LINE_STRIDES && shares[k + 1] >= LINE_SAME * shares[0])
        k++;
    if (shares[0] < LINE_LEAST || k + 1 == LINE_STRIDES)
        return REASON_NO_CONTRAST;
    for (uint32_t i = k + 1; i < LINE_STRIDES; i++)
        if (shares[i] > LINE_NONE * shares[0])
            return REASON_IRREGULAR;
    l2->line_bytes = KNOWN_U64((uint64_t)LINE_FIRST << k);
    l2->evidence[CACHE_EVIDENCE_LINE_BYTES] =
        evidence_make(EVIDENCE_WALKS, SIZE_SAMPLES, 1 - shares[k + 1] / (LINE_NONE * shares[0]));
    return REASON_NONE;
}

/* The step between footprints in which the stretch up to place `p` of the sweep is searched. */
static uint64_t refine_step(const struct observation *all, uint32_t p)
{
    return (all->spec.points[p] - all->spec.points[p - 1]) / (REFINE_POINTS + 1);
}

/* The place behind the longest footprint that fits, of those from place `p` - 1 of the sweep to
 * just below place `p`. Returns their walk; NULL: they must be walked first. */
static const struct observation *search_stretch(struct cache_walks *w,
                                                const struct observation *all, uint32_t p,
                                                double threshold, double noise,
                                                uint32_t *out_fitting)
{
    struct probe_spec spec = size_spec();

    spec.samples = REFINE_SAMPLES;
    for (uint32_t k = 0; k <= REFINE_POINTS; k++)
        add_points(&spec, walks_evenly_covered(all->spec.points[p - 1] + k * refine_step(all, p)),
                   1);
    const struct observation *const o = walks_find(w, &spec);
    *out_fitting = o ? behind_longest(o, threshold, noise) : 0;
    return o;
}

/* Does the footprint of place `p` of the sweep fit, by its loads there and in the stretch above it,
 * whose first it is? Two walks that each may say so by chance must not count as two chances. */
static bool border_fits(const struct observation *all, uint32_t p, const struct observation *above,
                        double threshold, double noise)
{
    const uint32_t slow = slow_of(all, p, threshold) + slow_of(above, 0, threshold);

    return slow <= (FITS_SHARE + noise) * (all->spec.samples + above->spec.samples);
}

/* The longest footprint of `all` that fits, in lines, and the steps in which it was searched.
 * Near that size it is chance whether a footprint counts as one that fits. So if none between the
 * longest of the sweep and the next does, those below it are walked too; if all of them do, the
 * next itself is uncertain, and it is walked again with those above it. */
static enum reason refine_size(struct cache_walks *w, const struct observation *all,
                               double threshold, double noise, uint64_t *out_lines,
                               uint64_t *out_step)
{
    const uint32_t behind = behind_longest(all, threshold, noise);
    uint32_t p = behind;
    uint32_t fitting = 0;
    uint32_t above = 0;

    for (; p > 0 && p + REFINE_STRETCHES > behind; p--) {
        if (!search_stretch(w, all, p, threshold, noise, &fitting))
            return REASON_NOT_MEASURED;
        if (fitting > 0)
            break;
    }
    if (fitting == 0)
        return REASON_DISAGREEMENT;
    for (; fitting > REFINE_POINTS && p + 1 < all->spec.point_count; p++, fitting = above) {
        const struct observation *const o = search_stretch(w, all, p + 1, threshold, noise, &above);
        if (!o)
            return REASON_NOT_MEASURED;
        if (above == 0 || (above == 1 && !border_fits(all, p, o, threshold, noise)))
            break;
    }
    *out_step = refine_step(all, p);
    *out_lines = all->spec.points[p - 1] + (fitting - 1) * *out_step;
    return REASON_NONE;
}

static enum reason find_size(struct cache_walks *w, double threshold, double noise,
                             struct cache_facts *l2)
{
    struct probe_spec spec = size_spec();
    uint64_t lines = 0;
    uint64_t step = 0;

    for (uint64_t bytes = SIZE_FIRST; bytes <= SIZE_LAST; bytes *= 2) {
        add_points(&spec, bytes / PROBE_LINE_BYTES, 1);
        if (bytes < SIZE_LAST)
            add_points(&spec, bytes / 2 * 3 / PROBE_LINE_BYTES, 1);
    }
    const struct observation *const all = walks_find(w, &spec);
    if (!all)
        return REASON_NOT_MEASURED;
    find_policy(all, l2->latency_cycles.v + w->clock_cycles, threshold, l2);
    const uint32_t behind = behind_longest(all, threshold, noise);
    if (behind == all->spec.point_count)
        return REASON_BEYOND_MEMORY;
    if (behind == 0)
        return REASON_NO_CONTRAST;
    const enum reason reason = refine_size(w, all, threshold, noise, &lines, &step);
    if (reason != REASON_NONE)
        return reason;
    const struct evidence e =
        evidence_make(EVIDENCE_WALKS, SIZE_SAMPLES, 1 - (double)step / (double)lines);
    l2->fits_bytes = KNOWN_U64(lines * PROBE_LINE_BYTES);
    l2->evidence[CACHE_EVIDENCE_FITS_BYTES] = e;
    const enum reason line = find_line(w, threshold, lines, l2);
    if (line != REASON_NONE)
        l2->line_bytes = UNKNOWN_U64(line);
    if (noise > CLEAN_SHARE)
        return REASON_NO_CONTRAST;
    if (!is_sharp(all, threshold, lines))
        return REASON_IRREGULAR;
    l2->size_bytes = l2->fits_bytes;
    l2->evidence[CACHE_EVIDENCE_SIZE_BYTES] = e;
    return REASON_NONE;
}

/* ---- pages that no TLB level holds ---- */

/* The first lap: later loads come to the same pages in another place. */
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
    out->evidence[LATENCY_EVIDENCE_P6] = evidence_make(EVIDENCE_WALKS, t.loads, t.margin);
}

/* A cycle of so many pages that each is gone from every level when it comes again, and its data
 * from the L2. */
static enum reason find_p5(struct cache_walks *w, double threshold, struct fingerprint_latency *out)
{
    const uint64_t granule = w->set->limits.granule_bytes ? w->set->limits.granule_bytes : 2 * MIB;
    const uint64_t room = w->set->limits.range_bytes > 2 * COLD_BYTES
                              ? w->set->limits.range_bytes - 2 * COLD_BYTES
                              : 0;
    const uint64_t pages = room / PAGE_COUNT / granule;
    struct probe_spec spec = spec_of(pages * granule + PROBE_LINE_BYTES * 33, PAGE_COUNT);
    uint32_t count;

    if (pages == 0)
        return REASON_BEYOND_MEMORY;
    spec.touch_bytes = 0;
    spec.scattered = 0;
    spec.warm_laps = 1;
    spec.sweep_bytes = COLD_BYTES;
    add_points(&spec, PAGE_COUNT * 15 / 16, 1);
    const struct observation *const o = walks_find(w, &spec);
    if (!o)
        return REASON_NOT_MEASURED;
    const uint32_t *const loads = all_loads(o, &count);
    /* The pages are mapped to less memory than they are, some of which the sweep has loaded. */
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
    out->evidence[LATENCY_EVIDENCE_P5] = evidence_make(EVIDENCE_WALKS, count, 0);
    if (w->ask_count == 0) /* otherwise it is not the last time, and this takes a millisecond */
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
    l2->evidence[CACHE_EVIDENCE_LATENCY_CYCLES] =
        evidence_make(EVIDENCE_WALKS, hits, agreement(warm));
    if (!walks_contrast(hit_loads, hits, miss_loads, misses, &how)) {
        latency_unknown(out, REASON_NO_CONTRAST);
        return;
    }
    l2->miss_latency_cycles = KNOWN_F64(how.miss - w->clock_cycles);
    out->evidence[LATENCY_EVIDENCE_P4] = evidence_make(EVIDENCE_WALKS, misses, agreement(cold));
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
    uint32_t delayed = 0;
    for (uint32_t i = 0; i < hits; i++)
        delayed += hit_loads[i] > threshold;
    reason = find_size(w, threshold, (double)delayed / hits, l2);
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
