/* l2_size.c: see l2_size.h. All SMs load a footprint, one SM walks it, and the misses show how much
 * of it stays. */
#include "analysis/caches/l2_size.h"

#include "base/stats.h"
#include "base/units.h"

#include <math.h>

/* The largest share of delayed loads in a footprint that fits. */
#define CLEAN_SHARE 0.001
/* The largest share of misses in a footprint that fits, besides the delayed loads. */
#define FITS_SHARE 0.004
/* share within which the misses of all longer footprints agree with the size */
#define SHARP 0.1
/* greatest age of young lines, as a multiple of the number of lines that stay */
#define YOUNG       0.5
#define OLD         2.0
#define LONG        3    /* shortest footprint with old lines, in multiples of what stays */
#define LONGEST     8    /* longer footprints, in the same multiples, may also miss translations */
#define LRU_YOUNG   0.97 /* least share of the young lines that stay, if the oldest go first */
#define LRU_OLD     0.03 /* largest share of the old lines that stay */
#define OTHER_YOUNG 0.90
#define MOST_VARIED 1.5  /* greatest part of long footprints that stays, relative to the least */
#define LINE_LEAST  0.05 /* least share of loads that miss if every line is loaded */
#define LINE_SAME   0.5  /* least share of the first stride's misses, up to the length of a line */
#define LINE_NONE   0.25
#define SURE_HIT    0.6 /* share of the way from a hit to the threshold that is surely a hit */
#define OTHER_OLD   0.08

enum {
    SIZE_SAMPLES = 1024,
    REFINE_SAMPLES = 2048,
    REFINE_POINTS = 15,
    REFINE_STRETCHES = 3, /* maximum number of stretches to search for a footprint that fits */
    LEAST_SURVIVORS = 128,
    LEAST_THERE = 32, /* least number of loads that hit in a footprint that counts */
    LINE_FIRST = 32,
    LINE_STRIDES = 6 /* number of strides, each twice the previous one, from LINE_FIRST bytes on */
};

#define SIZE_FIRST (256 * KIB)
#define SIZE_LAST  (256 * MIB)

/* Returns the number of loads of point `p` that take longer than `threshold`. */
static uint32_t slow_of(const struct observation *o, uint32_t p, double threshold)
{
    return stats_count_above_u32(observation_chase(o, p), o->spec.samples, threshold);
}

/* Returns the place behind the longest footprint that fits, among footprints that all SMs have
 * loaded. In a shorter footprint more loads than usual may be delayed by chance. */
static uint32_t behind_longest(const struct observation *o, double threshold, double noise)
{
    uint32_t behind = 0;

    for (uint32_t p = 0; p < o->spec.point_count; p++)
        if (slow_of(o, p, threshold) <= (FITS_SHARE + noise) * o->spec.samples)
            behind = p + 1;
    return behind;
}

/* Returns the number of loads of point `p` that hit. */
static uint32_t hits_of(const struct observation *o, uint32_t p, double threshold)
{
    return o->spec.samples - slow_of(o, p, threshold);
}

/* If a footprint of F bytes is walked, C bytes stay in a cache of C bytes, and the others miss. If
 * the cache also has copies of lines, or reserves a part for others, the share that stays differs
 * with the footprint. */
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
    return sharp && fabs(off) <= SHARP / 2 * count + sqrt(errors); /* the mean is more exact */
}

/* The number of lines in a range of ages, and how many of them still hit. */
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
            const double age = (double)(n - 1 - at); /* number of lines that were loaded later */
            s.all += age >= from * stays && age < to * stays;
            s.there += age >= from * stays && age < to * stays && row[k] <= threshold;
        }
    }
    return s;
}

/* Returns the number of lines that stay in the shortest footprint that is at least LONG times as
 * long as the part that stays. Returns 0 if there is none. */
static double what_stays(const struct observation *o, double threshold)
{
    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        const uint32_t there = hits_of(o, p, threshold);
        if (there > 0 && there * LONG <= o->spec.samples)
            return (double)o->spec.points[p] * there / o->spec.samples;
    }
    return 0;
}

/* Long footprints keep the same number of lines. If the numbers seem to differ, loads of memory by
 * a near SM were quicker than the threshold. In that case lines that count as young may be old. */
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

/* All SMs have loaded a footprint from its start to its end, once. If the oldest lines are evicted
 * first, the last lines hit and the earlier lines miss. Lines of the far side hit only slightly
 * faster than memory, and some loads of memory may be just as quick. So an old line counts only if
 * it surely hits. */
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
    l2->evidence.replacement = evidence_make(EVIDENCE_WALKS, fewest, margin);
}

static struct probe_spec size_spec(void)
{
    struct probe_spec spec = walks_l2_spec(PROBE_LINE_BYTES, SIZE_SAMPLES);

    spec.sweep_footprint = 1;
    return spec;
}

/* ---- line ---- */

/* Walks a footprint that overflows the L2 if every line of it is loaded, but not if every second
 * line is. One word is loaded in each 32, 64, .. bytes. Up to the length of a line, every line is
 * loaded and loads miss. */
static enum reason find_line(struct cache_walks *w, double threshold, uint64_t fits,
                             struct cache_facts *l2)
{
    const uint64_t footprint = fits * PROBE_LINE_BYTES / 8 * 15;
    double shares[LINE_STRIDES];
    uint32_t k = 0;
    bool waiting = false;

    for (uint32_t i = 0; i < LINE_STRIDES; i++) {
        struct probe_spec spec = walks_l2_spec((uint64_t)LINE_FIRST << i, SIZE_SAMPLES);
        spec.sweep_footprint = PROBE_SWEEP_ELEMENTS;
        walks_add_points(&spec, walks_evenly_covered(footprint / spec.stride_bytes), 1);
        const struct observation *const o = walks_find(w, &spec);
        waiting = waiting || !o;
        shares[i] = o ? slow_of(o, 0, threshold) / (double)SIZE_SAMPLES : 0;
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
    l2->evidence.line_bytes =
        evidence_make(EVIDENCE_WALKS, SIZE_SAMPLES, 1 - shares[k + 1] / (LINE_NONE * shares[0]));
    return REASON_NONE;
}

/* Returns the distance, in lines, of the footprints that are walked between places `p` - 1 and `p`
 * of the sweep. */
static uint64_t refine_step(const struct observation *all, uint32_t p)
{
    return (all->spec.points[p] - all->spec.points[p - 1]) / (REFINE_POINTS + 1);
}

/* Finds the place behind the longest footprint that fits, from place `p` - 1 of the sweep to just
 * below place `p`. Returns the walk of these footprints, or NULL if they must be walked first. */
static const struct observation *search_stretch(struct cache_walks *w,
                                                const struct observation *all, uint32_t p,
                                                double threshold, double noise,
                                                uint32_t *out_fitting)
{
    struct probe_spec spec = size_spec();

    spec.samples = REFINE_SAMPLES;
    for (uint32_t k = 0; k <= REFINE_POINTS; k++)
        walks_add_points(
            &spec, walks_evenly_covered(all->spec.points[p - 1] + k * refine_step(all, p)), 1);
    const struct observation *const o = walks_find(w, &spec);
    *out_fitting = o ? behind_longest(o, threshold, noise) : 0;
    return o;
}

/* Returns whether the footprint at place `p` of the sweep fits. Counts its loads in the sweep and
 * in the stretch above, which begins with the same footprint. One walk alone may fit by chance. */
static bool border_fits(const struct observation *all, uint32_t p, const struct observation *above,
                        double threshold, double noise)
{
    const uint32_t slow = slow_of(all, p, threshold) + slow_of(above, 0, threshold);

    return slow <= (FITS_SHARE + noise) * (all->spec.samples + above->spec.samples);
}

/* Finds the longest footprint of `all` that fits, in lines, and the steps of the search. Near that
 * size a footprint fits or overflows by chance. If no footprint between the longest of the sweep
 * and the next one fits, those below it are walked too. If all of them fit, the next one is
 * uncertain, and it is walked again with those above it. */
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

/* Returns the share of delayed loads in the footprints up to half of the longest that fits. */
static double delayed_share(const struct observation *all, uint32_t behind, double threshold)
{
    uint32_t points = 0;
    uint32_t slow = 0;

    while (points < behind && 2 * all->spec.points[points] <= all->spec.points[behind - 1])
        slow += slow_of(all, points++, threshold);
    return points > 0 ? (double)slow / ((double)points * all->spec.samples) : 0;
}

enum reason l2_size_find(struct cache_walks *w, double threshold, double noise,
                         struct cache_facts *l2)
{
    struct probe_spec spec = size_spec();
    uint64_t lines = 0;
    uint64_t step = 0;

    for (uint64_t bytes = SIZE_FIRST; bytes <= SIZE_LAST; bytes *= 2) {
        walks_add_points(&spec, bytes / PROBE_LINE_BYTES, 1);
        if (bytes < SIZE_LAST)
            walks_add_points(&spec, bytes / 2 * 3 / PROBE_LINE_BYTES, 1);
    }
    const struct observation *const all = walks_find(w, &spec);
    if (!all)
        return REASON_NOT_MEASURED;
    find_policy(all, l2->latency_cycles.v + w->clock_cycles, threshold, l2);
    uint32_t behind = behind_longest(all, threshold, noise);
    const double delayed = fmax(noise, delayed_share(all, behind, threshold));
    behind = behind_longest(all, threshold, delayed);
    if (behind == all->spec.point_count)
        return REASON_BEYOND_MEMORY;
    if (behind == 0)
        return REASON_NO_CONTRAST;
    const enum reason reason = refine_size(w, all, threshold, delayed, &lines, &step);
    if (reason != REASON_NONE)
        return reason;
    const struct evidence e =
        evidence_make(EVIDENCE_WALKS, SIZE_SAMPLES, 1 - (double)step / (double)lines);
    l2->fits_bytes = KNOWN_U64(lines * PROBE_LINE_BYTES);
    l2->evidence.fits_bytes = e;
    const enum reason line = find_line(w, threshold, lines, l2);
    if (line != REASON_NONE)
        l2->line_bytes = UNKNOWN_U64(line);
    if (noise > CLEAN_SHARE)
        return REASON_NO_CONTRAST;
    if (!is_sharp(all, threshold, lines))
        return REASON_IRREGULAR;
    l2->size_bytes = l2->fits_bytes;
    l2->evidence.size_bytes = e;
    return REASON_NONE;
}
