/* private_cache.c: one cache of an SM, step by step; see hierarchy.h. */
#include "analysis/caches/hierarchy.h"

#include "base/stats.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SATURATED_SHARE 0.5  /* of the loads miss: these are misses */
#define NOISE_SHARE     0.02 /* of the loads of a footprint that fits */
#define SECTOR_RIGHT    0.95 /* of the places where a miss should be */
#define SECTOR_WRONG    0.03 /* of all other places */
#define LRU_SHARE       0.97 /* of the loads of an overflowed set that miss */
#define OTHER_SHARE     0.90
#define SAME_ARRAY      0.1
#define FLIPPING_SHARE  0.2 /* of the lines that miss, which also hit: not LRU */
#define STEADY_SHARE    0.01
#define SPACED_LEAST    0.1 /* of the loads miss where every line is walked */
#define SPACED_SAME     0.5 /* of these, as long as more lines are walked than fit */
#define SPACED_NONE     0.1

enum {
    SHARED_BYTES = 32 << 10,
    FIRST_BYTES = 512,
    LAST_BYTES = 512 << 10,
    LAST_CONSTANT_BYTES = 48 << 10,
    SWEEP_SAMPLES = 512,
    CONTROL_BYTES = 2048,
    SECTOR_WORDS = 1024,
    EVICT_BYTES = 32 << 10,
    BISECT_POINTS = 6,
    BISECT_REPEATS = 3,
    BISECT_MORE = 8, /* if that is not clear */
    BISECT_MIN_SAMPLES = 1024,
    VOTES = 24, /* of every line, to know a set by */
    STEPS = 12,
    MOST_REPEATS = 8,
    MOST_SECTORS = 16, /* of a line */
    TAGS = 4,
    SAME_LOADS = FIRST_BYTES / WALKS_ELEMENT_BYTES,
    MOST_TRACED = 5,
    LEAST_MISSING = 4,
    LEAST_QUICK = 4, /* loads that hit, so that a policy is not LRU */
    SPACED_SAMPLES = 1024,
    SPACED_SECTOR = 32, /* 9/8 of it are whole words */
    SPACINGS = 6
};

static const uint64_t carveouts[] = {8 << 10, 64 << 10, 100 << 10, 132 << 10, 196 << 10};
enum {
    CARVEOUTS = sizeof carveouts / sizeof carveouts[0],
    MOST_CARVED_WAYS = 32,
    CARVED_POINTS = 32
};

struct chase {
    struct cache_walks *w;
    enum probe_path path;
    struct cache_facts *out;
    struct hit_or_miss how;
    uint64_t fits_bytes, misses_bytes; /* the size is between */
    uint64_t sector_bytes, line_bytes;
    uint64_t sectors; /* that fit */
    uint32_t lines, ways, sets, block;
};

void cache_unknown(struct cache_facts *c, enum cache_kind kind, enum reason reason)
{
    *c = (struct cache_facts){.kind = kind,
                              .size_bytes = UNKNOWN_U64(reason),
                              .fits_bytes = UNKNOWN_U64(reason),
                              .line_bytes = UNKNOWN_U64(reason),
                              .sector_bytes = UNKNOWN_U64(reason),
                              .fill_bytes = UNKNOWN_U64(reason),
                              .sets = UNKNOWN_U32(reason),
                              .ways = UNKNOWN_U32(reason),
                              .latency_cycles = UNKNOWN_F64(reason),
                              .miss_latency_cycles = UNKNOWN_F64(reason)};
    for (uint32_t k = 0; k < FINGERPRINT_MAX_CARVEOUTS; k++)
        c->carveouts[k].size_bytes = c->carveouts[k].fits_bytes = UNKNOWN_U64(REASON_NOT_MEASURED);
}

static struct probe_spec walk_spec(const struct chase *c, uint64_t stride_bytes, uint32_t samples)
{
    return (struct probe_spec){.stride_bytes = stride_bytes,
                               .path = c->path,
                               .warm_path = c->path,
                               .samples = samples,
                               .warm_laps = 2,
                               .shared_bytes = SHARED_BYTES};
}

/* As many points of n elements as give every one of them `votes`. */
static void add_points(struct probe_spec *spec, uint64_t n, uint32_t repeats)
{
    for (uint32_t r = 0; r < repeats && spec->point_count < PROBE_MAX_POINTS; r++)
        spec->points[spec->point_count++] = n;
}

static uint32_t repeats_for(uint64_t n, uint32_t samples)
{
    const uint64_t laps = samples / (n ? n : 1);
    const uint64_t repeats = (VOTES + laps - 1) / (laps ? laps : 1);

    return laps == 0 || repeats > MOST_REPEATS ? MOST_REPEATS : (uint32_t)repeats;
}

/* ---- is there a cache? ---- */

static struct probe_spec sweep_spec(const struct chase *c)
{
    struct probe_spec spec = walk_spec(c, WALKS_ELEMENT_BYTES, SWEEP_SAMPLES);
    const uint64_t last =
        c->path == PATH_CONSTANT ? (uint64_t)LAST_CONSTANT_BYTES : (uint64_t)LAST_BYTES;

    spec.scattered = 1;
    for (uint64_t bytes = FIRST_BYTES; bytes <= last; bytes *= 2) {
        add_points(&spec, bytes / WALKS_ELEMENT_BYTES, 1);
        if (bytes / 2 * 3 <= last)
            add_points(&spec, bytes / 2 * 3 / WALKS_ELEMENT_BYTES, 1);
    }
    return spec;
}

static double share_above(const uint32_t *row, uint32_t n, double threshold)
{
    uint32_t slow = 0;

    for (uint32_t i = 0; i < n; i++)
        slow += row[i] > threshold;
    return (double)slow / n;
}

static double slow_share(const struct observation *o, uint32_t p, double threshold)
{
    uint32_t count = 0;
    const uint32_t *const row = walks_row(o, p, &count);

    return share_above(row, count, threshold);
}

/* The first footprint of which clearly more loads are slow than of the smallest. */
static bool read_sweep(struct chase *c, const struct observation *o)
{
    uint32_t hit_count = 0;
    const uint32_t *const hits = walks_row(o, 0, &hit_count);
    const double hit = stats_median_u32(hits, hit_count);
    const double high = stats_quantile_u32(hits, hit_count, 0.95);
    const double rough = hit + fmax(fmax(4, 0.15 * hit), 2 * (high - hit));
    uint32_t slow[SWEEP_SAMPLES];
    uint32_t count = 0;
    uint32_t p = 0;

    while (p < o->spec.point_count && slow_share(o, p, rough) < SATURATED_SHARE)
        p++;
    if (p == o->spec.point_count)
        return false;
    for (uint32_t k = 0; k < o->spec.samples; k++) /* some loads may still hit there */
        if (observation_chase(o, p)[k] > rough)
            slow[count++] = observation_chase(o, p)[k];
    if (!walks_contrast(hits, hit_count, slow, count, &c->how))
        return false;
    const double noise = slow_share(o, 0, c->how.threshold);
    for (p = 1; p < o->spec.point_count; p++)
        if (slow_share(o, p, c->how.threshold) > noise + NOISE_SHARE)
            break;
    if (p == o->spec.point_count || noise > NOISE_SHARE)
        return false;
    /* A few lines more might miss in what the samples did not see. */
    c->fits_bytes = o->spec.points[p >= 2 ? p - 2 : p - 1] * o->spec.stride_bytes;
    c->misses_bytes = o->spec.points[p] * o->spec.stride_bytes;
    return true;
}

static void set_latency(struct chase *c, const struct hit_or_miss *how, bool miss_too)
{
    c->out->latency_cycles = KNOWN_F64(fmax(0, how->hit - c->w->clock_cycles));
    if (miss_too)
        c->out->miss_latency_cycles = KNOWN_F64(fmax(0, how->miss - c->w->clock_cycles));
    c->out->evidence[CACHE_EVIDENCE_LATENCY_CYCLES] =
        evidence_make(EVIDENCE_WALKS, SWEEP_SAMPLES, how->margin);
}

/* A path without a cache of its own takes as long as one past L1. */
static enum reason find_cache(struct chase *c)
{
    struct probe_spec spec = sweep_spec(c);
    struct probe_spec past = walk_spec(c, WALKS_ELEMENT_BYTES, SWEEP_SAMPLES);
    const struct observation *const o = walks_find(c->w, &spec);
    const struct observation *control = o;

    past.path = past.warm_path = PATH_L2;
    add_points(&past, CONTROL_BYTES / WALKS_ELEMENT_BYTES, 1);
    if (c->path != PATH_CONSTANT)
        control = walks_find(c->w, &past);
    if (!walks_clock(c->w) || !o || !control)
        return REASON_NOT_MEASURED;
    if (c->path != PATH_CONSTANT) {
        struct hit_or_miss how;
        if (!walks_contrast(observation_chase(o, 0), SWEEP_SAMPLES, observation_chase(control, 0),
                            SWEEP_SAMPLES, &how)) {
            cache_unknown(c->out, c->out->kind, REASON_NO_CONTRAST);
            c->out->size_bytes = c->out->fits_bytes = NOT_OBSERVABLE_U64(REASON_NO_CONTRAST);
            return REASON_NO_CONTRAST;
        }
        set_latency(c, &how, false);
    }
    if (!read_sweep(c, o))
        return REASON_NO_CONTRAST;
    set_latency(c, &c->how, true);
    return REASON_NONE;
}

/* ---- sector ---- */

/* Do the misses lie at the multiples of `words`, and nowhere else? 0..1: how clearly; 0: no. */
static double fits_distance(const struct chase *c, const uint32_t *row, uint32_t words)
{
    uint32_t right = 0;
    uint32_t wrong = 0;

    for (uint32_t k = 0; k < SECTOR_WORDS; k++) {
        const bool miss = row[k] > c->how.threshold;
        right += miss && k % words == 0;
        wrong += miss && k % words != 0;
    }
    const double found = (double)right * words / SECTOR_WORDS;
    const double others = (double)wrong / SECTOR_WORDS;
    return found >= SECTOR_RIGHT && others <= SECTOR_WRONG ? fmin(1, found - others) : 0;
}

static enum reason find_sector(struct chase *c)
{
    struct probe_spec spec = walk_spec(c, PROBE_WORD_BYTES, SECTOR_WORDS);
    spec.warm_laps = 0;
    spec.sweep_footprint = c->path != PATH_CONSTANT;
    spec.evict_bytes = c->path == PATH_CONSTANT ? (uint64_t)EVICT_BYTES : 0;
    add_points(&spec, SECTOR_WORDS, 1);
    const struct observation *const o = walks_find(c->w, &spec);

    if (!o)
        return REASON_NOT_MEASURED;
    for (uint32_t words = 2; words <= SECTOR_WORDS / 8; words *= 2) {
        const double margin = fits_distance(c, observation_chase(o, 0), words);
        if (margin <= 0)
            continue;
        c->sector_bytes = (uint64_t)words * PROBE_WORD_BYTES;
        c->out->sector_bytes = c->out->fill_bytes = KNOWN_U64(c->sector_bytes);
        c->out->evidence[CACHE_EVIDENCE_SECTOR_BYTES] =
            c->out->evidence[CACHE_EVIDENCE_FILL_BYTES] =
                evidence_make(EVIDENCE_TRACES, SECTOR_WORDS / words, margin);
        return REASON_NONE;
    }
    return REASON_IRREGULAR;
}

/* ---- size ---- */

/* One round: points between `low`, which fits, and `high`, which does not, in sectors. */
static struct probe_spec bisect_spec(const struct chase *c, uint64_t low, uint64_t high,
                                     uint32_t repeats)
{
    const uint64_t step = (high - low + BISECT_POINTS) / (BISECT_POINTS + 1);
    const double wanted = 16.0 * (double)high / (double)step;
    const double most = fmin(PROBE_MAX_SAMPLES, 4.0 * (double)high);
    struct probe_spec spec =
        walk_spec(c, c->sector_bytes, (uint32_t)fmin(most, fmax(BISECT_MIN_SAMPLES, wanted)));

    spec.scattered = 1;
    for (uint64_t n = low; n < high; n += step)
        add_points(&spec, n, repeats);
    return spec;
}

/* Narrows [low, high) by what the round says; false: it says nothing clear. */
static bool narrow(const struct chase *c, const struct observation *o, uint64_t *low,
                   uint64_t *high)
{
    struct walk_votes *const v = malloc(2 * sizeof *v);
    bool clear = v != NULL;

    if (v)
        walks_votes(o, *low, &c->how, &v[0]);
    for (uint32_t p = 1; clear && p < o->spec.point_count; p++) {
        const uint64_t n = o->spec.points[p];
        if (n == o->spec.points[p - 1])
            continue;
        walks_votes(o, n, &c->how, &v[1]);
        const enum overflow over = walks_overflow(&v[1], &v[0]);
        clear = over != OVERFLOW_UNSURE;
        if (over == OVERFLOW_YES) {
            *high = n;
            break;
        }
        *low = n;
    }
    free(v);
    return clear;
}

static enum reason find_size(struct chase *c)
{
    uint64_t low = c->fits_bytes / c->sector_bytes;
    uint64_t high = c->misses_bytes / c->sector_bytes;
    uint32_t repeats = BISECT_REPEATS;
    enum reason reason = REASON_NONE;

    if (high > WALKS_MAX_ELEMENTS || low == 0)
        return REASON_TOO_LITTLE_DATA;
    while (low + 1 < high) {
        struct probe_spec spec = bisect_spec(c, low, high, repeats);
        const struct observation *const o = walks_find(c->w, &spec);
        if (!o)
            return REASON_NOT_MEASURED;
        const bool clear = narrow(c, o, &low, &high);
        if (!clear && repeats == BISECT_MORE) {
            reason = REASON_NO_CONTRAST;
            break;
        }
        repeats = clear ? BISECT_REPEATS : BISECT_MORE;
    }
    c->sectors = low;
    c->out->fits_bytes = KNOWN_U64(low * c->sector_bytes);
    c->out->evidence[CACHE_EVIDENCE_FITS_BYTES] =
        evidence_make(EVIDENCE_TRACES, BISECT_REPEATS, (double)low / (double)high);
    return reason;
}

/* ---- line ---- */

/* The share of misses of a walk, in a footprint of 7/4 of what fits, of one word every 9/8 of 2^k
 * sectors. This distance is no multiple of two lines, so that the words lie in all sets evenly, and
 * sets that are chosen for blocks of lines are no longer than others. -1: it is to be walked first.
 */
static double spaced_share(struct chase *c, uint32_t k)
{
    const uint64_t footprint = c->sectors * c->sector_bytes / 4 * 7;
    struct probe_spec spec = walk_spec(c, (c->sector_bytes << k) / 8 * 9, SPACED_SAMPLES);
    const uint64_t n = footprint / spec.stride_bytes;

    spec.scattered = 1;
    add_points(&spec, walks_evenly_covered(n > 1 ? n : 2), 1);
    const struct observation *const o = walks_find(c->w, &spec);
    return o ? slow_share(o, 0, c->how.threshold) : -1;
}

/* As long as the distance is no longer than 9/8 of a line, all or 8/9 of the lines of the footprint
 * are walked, more than fit, and many loads miss: of LRU all, and with a random victim, of 14/9 of
 * the lines that fit, the share m = 1 - exp(-14/9 m), which is 0.62. At twice that distance 4/9 of
 * the lines are walked: they fit. So misses vanish between 9/8 and 9/4 of a line, wherever the
 * lines that miss are. */
static enum reason line_by_spacing(struct chase *c, uint64_t *out)
{
    double shares[SPACINGS];
    bool waiting = false;
    uint32_t k = 0;

    if (c->sector_bytes % SPACED_SECTOR != 0)
        return REASON_NO_CONTRAST;
    for (uint32_t i = 0; i < SPACINGS; i++) {
        shares[i] = spaced_share(c, i);
        waiting = waiting || shares[i] < 0;
    }
    if (waiting)
        return REASON_NOT_MEASURED;
    while (k + 1 < SPACINGS && shares[k + 1] >= SPACED_SAME * shares[0])
        k++;
    if (shares[0] < SPACED_LEAST || k + 1 == SPACINGS)
        return REASON_NO_CONTRAST;
    for (uint32_t i = k + 1; i < SPACINGS; i++)
        if (shares[i] > SPACED_NONE * shares[0])
            return REASON_IRREGULAR;
    *out = c->sector_bytes << k;
    return REASON_NONE;
}

/* Most of the sectors that miss have this many neighbors in a row that do. 0: none misses. */
static uint32_t usual_run(const struct walk_votes *v)
{
    uint32_t weights[MOST_SECTORS + 1] = {0};
    uint32_t run = 0;
    uint32_t best = 0;

    for (uint32_t i = 0; i <= v->elements; i++) {
        if (i < v->elements && walks_misses(v, i)) {
            run++;
            continue;
        }
        const uint32_t capped = run < MOST_SECTORS ? run : (uint32_t)MOST_SECTORS;
        weights[capped] += capped;
        run = 0;
    }
    for (uint32_t k = 1; k <= MOST_SECTORS; k++)
        best = weights[k] > weights[best] ? k : best;
    return weights[best] > 0 ? best : 0;
}

/* A footprint that overflows when all of its sectors are walked: does it with one of every `bytes`
 * too? Where it does not, as many lines as sectors fit. */
static enum reason tags_overflow(struct chase *c, uint64_t bytes, bool *out)
{
    const uint64_t n = c->misses_bytes / bytes;
    const uint64_t fits = c->sectors * c->sector_bytes / 2 / bytes;
    struct walk_votes *const v = malloc(2 * sizeof *v);
    struct probe_spec spec =
        walk_spec(c, bytes, (uint32_t)fmin(PROBE_MAX_SAMPLES, 4.0 * (double)n));
    const struct observation *o = NULL;
    enum reason reason = REASON_NOT_MEASURED;

    add_points(&spec, fits ? fits : 1, BISECT_REPEATS);
    add_points(&spec, n, BISECT_REPEATS);
    o = v ? walks_find(c->w, &spec) : NULL;
    if (o) {
        walks_votes(o, spec.points[0], &c->how, &v[0]);
        walks_votes(o, n, &c->how, &v[1]);
        const enum overflow over = walks_overflow(&v[1], &v[0]);
        reason = over == OVERFLOW_UNSURE ? REASON_NO_CONTRAST : REASON_NONE;
        *out = over == OVERFLOW_YES;
    }
    free(v);
    return reason;
}

static void set_line(struct chase *c)
{
    c->out->line_bytes = KNOWN_U64(c->line_bytes);
    c->out->evidence[CACHE_EVIDENCE_LINE_BYTES] =
        evidence_make(EVIDENCE_TRACES, VOTES, c->how.margin);
}

/* The usual run of a cycle of n sectors; false: it must be walked first. */
static bool run_of(struct chase *c, uint64_t n, uint32_t *out)
{
    struct probe_spec spec =
        walk_spec(c, c->sector_bytes, (uint32_t)fmin(PROBE_MAX_SAMPLES, 4.0 * (double)n));
    struct walk_votes *const v = malloc(sizeof *v);

    add_points(&spec, n, repeats_for(n, spec.samples));
    const struct observation *const o = v ? walks_find(c->w, &spec) : NULL;
    if (o) {
        walks_votes(o, n, &c->how, v);
        *out = usual_run(v);
    }
    free(v);
    return o != NULL;
}

/* `*bounded`: a longer line was ruled out; otherwise spacing or the sets must confirm it. */
static enum reason line_by_neighbors(struct chase *c, bool *bounded)
{
    uint32_t run = 0;
    enum reason reason = REASON_NONE;

    *bounded = false;
    if (!run_of(c, c->sectors + 1, &run))
        return REASON_NOT_MEASURED;
    /* A set that overflows by one may miss too seldom to be seen. But neighboring sets that
     * overflow together look like one line, and so they do to walks of every second line where the
     * number of sets is even: then only a line of one sector is certain. */
    const bool several = run == 0;
    if (several && !run_of(c, c->sectors + c->sectors / 16 + 1, &run))
        return REASON_NOT_MEASURED;
    if (run == 0)
        return REASON_IRREGULAR;
    c->line_bytes = c->sector_bytes;
    for (uint32_t k = 2; k <= run && reason == REASON_NONE; k *= 2) {
        const uint64_t bytes = k * c->sector_bytes;
        bool over = false;
        reason = tags_overflow(c, bytes, &over);
        *bounded = reason == REASON_NONE && !over;
        if (reason != REASON_NONE || !over)
            break;
        c->line_bytes = bytes;
    }
    if (reason == REASON_NONE && several && (!*bounded || c->line_bytes > c->sector_bytes))
        reason = REASON_IRREGULAR;
    return reason;
}

/* Neighbors that miss tell most: of them the sets follow too. If they tell nothing certain, because
 * sets follow no rule or other lines miss in each run, the spacing does. If the two contradict each
 * other, only the sets can tell. */
static enum reason find_line(struct chase *c)
{
    bool bounded = false;
    uint64_t spaced = 0;
    const enum reason reason = line_by_neighbors(c, &bounded);

    if (reason == REASON_NOT_MEASURED)
        return reason;
    const enum reason other = line_by_spacing(c, &spaced);
    if (other == REASON_NOT_MEASURED)
        return other;
    if (other == REASON_NONE && reason != REASON_NONE)
        c->line_bytes = spaced;
    if (other == REASON_NONE ? spaced == c->line_bytes : reason == REASON_NONE && bounded)
        set_line(c);
    return other == REASON_NONE ? REASON_NONE : reason;
}

/* ---- sets, ways, policy ---- */

struct set_walks {
    const struct observation *o;
    struct walk_votes before, at;
};

/* Lines that begin to miss when the cycle gets one longer; -1: some no longer miss. */
static int joined(const struct walk_votes *before, const struct walk_votes *after)
{
    int n = 0;

    for (uint32_t i = 0; i < after->elements; i++) {
        const bool was = i < before->elements && walks_misses(before, i);
        if (was && !walks_misses(after, i))
            return -1;
        n += walks_misses(after, i) && !was;
    }
    return n;
}

/* The ways, and how many lines in a row choose the same set. */
static enum reason read_steps(struct chase *c, struct set_walks *s)
{
    int first = 0;
    uint32_t since = 0;

    walks_votes(s->o, c->lines, &c->how, &s->before);
    if (walks_missing(&s->before) > 0)
        return REASON_DISAGREEMENT;
    for (uint32_t k = 1; k <= STEPS; k++) {
        walks_votes(s->o, c->lines + k, &c->how, &s->at);
        const int more = joined(&s->before, &s->at);
        if (k == 1) {
            first = more;
            since = 1;
            if (more < 2)
                return REASON_IRREGULAR;
        } else if (more == 1) {
            since++;
        } else if (more == first) {
            if (c->block > 0 && since != c->block)
                return REASON_IRREGULAR;
            c->block = since;
            since = 1;
        } else {
            return REASON_IRREGULAR;
        }
        s->before = s->at;
    }
    c->ways = (uint32_t)first - 1;
    if (c->block == 0)
        c->block = since == STEPS ? 1 : 0; /* one set: all join at once, then one by one */
    if (c->lines % c->ways != 0 || c->block == 0)
        return REASON_IRREGULAR;
    c->sets = c->lines / c->ways;
    return c->sets == 1 || since < STEPS || c->block == 1 ? REASON_NONE : REASON_IRREGULAR;
}

/* The loads of the lines that miss, in their order. */
static void write_trace(const struct chase *c, const struct observation *o,
                        const struct walk_votes *v)
{
    uint32_t n = 0;
    uint32_t p = 0;

    while (o->spec.points[p] != c->lines + 1)
        p++;
    const uint32_t *const row = observation_chase(o, p);
    for (uint32_t k = 0; k < o->spec.samples && n + 1 < FINGERPRINT_TRACE_BYTES; k++) {
        if (!walks_misses(v, k % (c->lines + 1)))
            continue;
        c->out->trace[n++] = row[k] > c->how.threshold ? 'M' : 'H';
    }
    c->out->trace[n] = '\0';
}

static void read_policy(const struct chase *c, struct set_walks *s)
{
    uint32_t votes = 0;
    uint32_t slow = 0;

    walks_votes(s->o, c->lines + 1, &c->how, &s->at);
    for (uint32_t i = 0; i < s->at.elements; i++) {
        if (!walks_misses(&s->at, i))
            continue;
        votes += s->at.all[i];
        slow += s->at.missed[i];
    }
    const double share = votes ? (double)slow / votes : 0;
    if (share >= LRU_SHARE)
        c->out->replacement = REPLACEMENT_LRU;
    else if (share < OTHER_SHARE && votes - slow >= LEAST_QUICK)
        c->out->replacement = REPLACEMENT_NOT_LRU;
    else
        return;
    c->out->evidence[CACHE_EVIDENCE_REPLACEMENT] =
        evidence_make(EVIDENCE_TRACES, votes,
                      c->out->replacement == REPLACEMENT_LRU ? (share - LRU_SHARE) / (1 - LRU_SHARE)
                                                             : 1 - share / OTHER_SHARE);
    write_trace(c, s->o, &s->at);
}

/* Of the lines of a cycle that miss, those that now hit and now miss. A few of them are kept in
 * `shown`, as votes that they are to be shown. */
static uint32_t count_flipping(const struct walk_votes *v, uint32_t *out_missing,
                               struct walk_votes *shown)
{
    uint32_t flipping = 0;

    *out_missing = 0;
    memset(shown, 0, sizeof *shown);
    for (uint32_t i = 0; i < v->elements; i++) {
        const uint32_t hits = (uint32_t)(v->all[i] - v->missed[i]);
        const bool misses = walks_misses(v, i);
        const bool flips = misses && hits >= 2 && hits >= v->all[i] / 10;
        *out_missing += misses;
        flipping += flips;
        if (flips && flipping <= MOST_TRACED) {
            shown->all[i] = v->all[i];
            shown->missed[i] = v->missed[i];
        }
    }
    return flipping;
}

static void set_policy(struct chase *c, enum replacement policy, uint32_t missing, double margin,
                       const struct observation *o, const struct walk_votes *shown)
{
    c->out->replacement = policy;
    c->out->evidence[CACHE_EVIDENCE_REPLACEMENT] = evidence_make(EVIDENCE_TRACES, missing, margin);
    write_trace(c, o, shown);
}

/* Where sets follow no rule: in a cycle somewhat longer than what fits, LRU misses the same lines
 * in every lap and in every run, whatever set they are in. What now hits and now misses is not LRU.
 * A cycle that is only just longer may miss too seldom, and one that is much longer all the time,
 * so there are several. */
static enum reason policy_without_sets(struct chase *c, struct set_walks *s)
{
    static const uint32_t sixteenths[] = {17, 19, 21};
    enum { LENGTHS = sizeof sixteenths / sizeof sixteenths[0] };
    struct probe_spec spec = walk_spec(c, c->line_bytes, PROBE_MAX_SAMPLES);
    uint32_t steady = 0;
    uint32_t missing = 0;
    double worst = 0;

    for (uint32_t k = 0; k < LENGTHS; k++) {
        const uint64_t n = c->out->fits_bytes.v / 16 * sixteenths[k] / c->line_bytes + 1;
        add_points(&spec, n, (repeats_for(n, spec.samples) + 1) / 2);
    }
    s->o = walks_find(c->w, &spec);
    if (!s->o)
        return REASON_NOT_MEASURED;
    for (uint32_t p = 0; p < spec.point_count; p++) {
        if (p > 0 && spec.points[p] == spec.points[p - 1])
            continue;
        c->lines = (uint32_t)(spec.points[p] - 1);
        walks_votes(s->o, spec.points[p], &c->how, &s->at);
        const uint32_t flipping = count_flipping(&s->at, &missing, &s->before);
        const double share = missing > 0 ? (double)flipping / missing : 0;
        if (missing >= LEAST_MISSING && share >= FLIPPING_SHARE) {
            set_policy(c, REPLACEMENT_NOT_LRU, missing, 1 - FLIPPING_SHARE / share, s->o,
                       &s->before);
            return REASON_NONE;
        }
        steady += missing >= LEAST_MISSING;
        worst = fmax(worst, share);
    }
    if (steady > 0 && worst <= STEADY_SHARE)
        set_policy(c, REPLACEMENT_LRU, missing, 1 - worst / FLIPPING_SHARE, s->o, &s->at);
    return REASON_NONE;
}

/* All lines miss in the first cycle that overflows every set, and one set still hits before. */
static enum reason check_last_set(struct chase *c, struct set_walks *s)
{
    const uint32_t full = c->lines + (c->sets - 1) * c->block + 1;
    struct probe_spec spec =
        walk_spec(c, c->line_bytes, (uint32_t)fmin(PROBE_MAX_SAMPLES, (double)(VOTES + 2) * full));
    const uint32_t repeats = repeats_for(full, spec.samples);

    if (full > WALKS_MAX_ELEMENTS)
        return REASON_TOO_LITTLE_DATA;
    if (c->sets == 1)
        return REASON_NONE;
    add_points(&spec, full - 1, repeats);
    add_points(&spec, full, repeats);
    s->o = walks_find(c->w, &spec);
    if (!s->o)
        return REASON_NOT_MEASURED;
    walks_votes(s->o, full - 1, &c->how, &s->before);
    walks_votes(s->o, full, &c->how, &s->at);
    const uint32_t missing = walks_missing(&s->before);
    const bool right = walks_missing(&s->at) == full && missing == full - 1 - c->ways;
    return right ? REASON_NONE : REASON_IRREGULAR;
}

/* Cycles of `c->lines` lines and up to `steps` more. */
static struct probe_spec steps_spec(const struct chase *c, uint32_t steps, uint32_t most_repeats)
{
    struct probe_spec spec =
        walk_spec(c, c->line_bytes,
                  (uint32_t)fmin(PROBE_MAX_SAMPLES, (double)(VOTES + 2) * (c->lines + STEPS)));
    const uint32_t repeats = repeats_for(c->lines + STEPS, spec.samples);

    for (uint32_t k = 0; k <= steps; k++)
        add_points(&spec, c->lines + k, repeats < most_repeats ? repeats : most_repeats);
    return spec;
}

/* The probe of all steps has up to a million loads. Where it is long, a few of its first steps tell
 * whether sets that follow a rule are likely. */
static enum reason look_at_steps(struct chase *c, struct set_walks *s)
{
    enum { FEW_STEPS = 3, FEW_REPEATS = 3, LONG_LOADS = 1 << 18 };
    struct probe_spec spec = steps_spec(c, STEPS, MOST_REPEATS);
    int first = 0;

    if (spec.point_count * spec.samples < LONG_LOADS)
        return REASON_NONE;
    spec = steps_spec(c, FEW_STEPS, FEW_REPEATS);
    s->o = walks_find(c->w, &spec);
    if (!s->o)
        return REASON_NOT_MEASURED;
    walks_votes(s->o, c->lines, &c->how, &s->before);
    if (walks_missing(&s->before) > 0)
        return REASON_DISAGREEMENT;
    for (uint32_t k = 1; k <= FEW_STEPS; k++) {
        walks_votes(s->o, c->lines + k, &c->how, &s->at);
        const int more = joined(&s->before, &s->at);
        first = k == 1 ? more : first;
        if (first < 2 || (more != 1 && more != first))
            return REASON_IRREGULAR;
        s->before = s->at;
    }
    return REASON_NONE;
}

/* The sets by their steps, confirmed by the last one, and their policy. */
static enum reason regular_sets(struct chase *c, struct set_walks *s)
{
    struct probe_spec spec = steps_spec(c, STEPS, MOST_REPEATS);
    enum reason reason = look_at_steps(c, s);

    if (reason != REASON_NONE)
        return reason;
    s->o = walks_find(c->w, &spec);
    if (!s->o)
        return REASON_NOT_MEASURED;
    const struct observation *const steps = s->o;
    reason = read_steps(c, s);
    if (reason == REASON_NONE)
        reason = check_last_set(c, s);
    s->o = steps;
    if (reason == REASON_NONE)
        read_policy(c, s);
    return reason;
}

static enum reason find_sets(struct chase *c)
{
    struct set_walks *const s = malloc(sizeof *s);
    enum reason reason = REASON_IRREGULAR;

    if (!s)
        return REASON_NOT_MEASURED;
    c->lines = (uint32_t)(c->sectors * c->sector_bytes / c->line_bytes);
    if (c->lines * c->line_bytes == c->sectors * c->sector_bytes)
        reason = regular_sets(c, s);
    if (reason == REASON_IRREGULAR || reason == REASON_DISAGREEMENT) {
        const enum reason policy = policy_without_sets(c, s);
        reason = policy == REASON_NOT_MEASURED ? policy : reason;
    }
    free(s);
    return reason;
}

/* ---- division of the array ---- */

/* The longest of the probed cycles without a miss. */
static struct maybe_u64 carved_fits(const struct chase *c, const struct observation *o)
{
    uint64_t fits = 0;

    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        if (slow_share(o, p, c->how.threshold) > NOISE_SHARE / 4)
            break;
        fits = o->spec.points[p] * o->spec.stride_bytes;
    }
    return KNOWN_U64(fits);
}

/* The most ways of which every set is still whole. */
static struct maybe_u64 carved_size(const struct chase *c, const struct observation *o)
{
    struct walk_votes *const v = malloc(2 * sizeof *v);
    struct maybe_u64 found = UNKNOWN_U64(REASON_IRREGULAR);

    for (uint32_t p = 0; v && p + 1 < o->spec.point_count; p += 2) {
        walks_votes(o, o->spec.points[p], &c->how, &v[0]);
        walks_votes(o, o->spec.points[p + 1], &c->how, &v[1]);
        if (v[0].slow > NOISE_SHARE / 4 * v[0].loads)
            break;
        if (walks_overflow(&v[1], &v[0]) == OVERFLOW_YES) {
            found = KNOWN_U64(o->spec.points[p] * o->spec.stride_bytes);
            break;
        }
    }
    free(v);
    return found;
}

static uint32_t carved_samples(uint64_t shared_bytes, double wanted)
{
    const double most = fmin(PROBE_MAX_SAMPLES, (double)(shared_bytes - KIB) / 2);

    return (uint32_t)fmin(most, wanted);
}

static struct probe_spec fits_spec(const struct chase *c, uint64_t shared_bytes)
{
    struct probe_spec spec = walk_spec(c, c->line_bytes, SWEEP_SAMPLES);
    const uint64_t most = c->misses_bytes + c->misses_bytes / 2;

    spec.shared_bytes = shared_bytes;
    spec.scattered = 1;
    for (uint32_t k = 1; k <= CARVED_POINTS; k++)
        add_points(&spec, most * k / CARVED_POINTS / c->line_bytes, 1);
    return spec;
}

/* Whole ways, which come and go with shared memory; `more` of them may be there than now. */
static struct probe_spec ways_spec(const struct chase *c, uint64_t shared_bytes)
{
    const uint32_t most = c->ways + (shared_bytes < SHARED_BYTES);
    struct probe_spec spec =
        walk_spec(c, c->line_bytes, carved_samples(shared_bytes, 3.0 * (most * c->sets + 1)));

    spec.shared_bytes = shared_bytes;
    for (uint32_t ways = 1; ways <= most && ways <= MOST_CARVED_WAYS; ways++) {
        add_points(&spec, (uint64_t)ways * c->sets, 1);
        add_points(&spec, (uint64_t)ways * c->sets + 1, 1);
    }
    return spec;
}

/* L1 at other divisions of its array. */
static bool find_carveouts(struct chase *c)
{
    struct cache_carveout found[CARVEOUTS + 1];
    const bool regular = IS_KNOWN(c->out->size_bytes) && c->ways <= MOST_CARVED_WAYS;
    uint32_t n = 0;
    bool waiting = false;

    for (uint32_t k = 0; k < CARVEOUTS; k++) {
        struct probe_spec spec = fits_spec(c, carveouts[k]);
        const struct observation *const fits = walks_find(c->w, &spec);
        const struct observation *size = NULL;
        if (regular) {
            spec = ways_spec(c, carveouts[k]);
            size = walks_find(c->w, &spec);
        }
        waiting = waiting || !fits || (regular && !size);
        if (n == 1)
            found[n++] =
                (struct cache_carveout){SHARED_BYTES, c->out->size_bytes, c->out->fits_bytes};
        found[n++] = (struct cache_carveout){
            carveouts[k], size ? carved_size(c, size) : UNKNOWN_U64(REASON_IRREGULAR),
            fits ? carved_fits(c, fits) : UNKNOWN_U64(REASON_NOT_MEASURED)};
    }
    if (waiting)
        return false;
    c->out->carveout_count = n;
    memcpy(c->out->carveouts, found, n * sizeof found[0]);
    return true;
}

/* ---- the whole ---- */

/* The read-only path finds what loads of L1 have brought: it has no array of its own. */
static enum reason find_same(struct chase *c)
{
    struct probe_spec spec = walk_spec(c, WALKS_ELEMENT_BYTES, SAME_LOADS);
    spec.warm_path = PATH_L1;
    spec.warm_laps = 1;
    add_points(&spec, SAME_LOADS, 1);
    const struct observation *const o = walks_find(c->w, &spec);

    if (!o)
        return REASON_NOT_MEASURED;
    const double slow = share_above(observation_chase(o, 0), SAME_LOADS, c->how.threshold);
    if (slow < SAME_ARRAY)
        c->out->same_as_l1 = FINDING_YES;
    else if (slow > 1 - SAME_ARRAY)
        c->out->same_as_l1 = FINDING_NO;
    else
        return REASON_NONE;
    c->out->evidence[CACHE_EVIDENCE_SAME_AS_L1] =
        evidence_make(EVIDENCE_WALKS, 64,
                      slow < SAME_ARRAY ? 1 - slow / SAME_ARRAY : 1 - (1 - slow) / SAME_ARRAY);
    return REASON_NONE;
}

/* What is known of L1 holds for the read-only path too. */
static void copy_l1(const struct cache_facts *l1, struct cache_facts *out)
{
    const struct cache_facts own = *out;

    *out = *l1;
    out->kind = own.kind;
    out->latency_cycles = own.latency_cycles;
    out->miss_latency_cycles = own.miss_latency_cycles;
    out->same_as_l1 = own.same_as_l1;
    out->evidence[CACHE_EVIDENCE_SAME_AS_L1] = own.evidence[CACHE_EVIDENCE_SAME_AS_L1];
    out->evidence[CACHE_EVIDENCE_LATENCY_CYCLES] = own.evidence[CACHE_EVIDENCE_LATENCY_CYCLES];
}

static void unknown_rest(struct cache_facts *c, enum reason reason)
{
    struct maybe_u64 *const sizes[] = {&c->size_bytes, &c->fits_bytes, &c->line_bytes,
                                       &c->sector_bytes, &c->fill_bytes};
    struct maybe_u32 *const counts[] = {&c->sets, &c->ways};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (!IS_KNOWN(*sizes[i]) && sizes[i]->known != MAYBE_NOT_OBSERVABLE)
            *sizes[i] = UNKNOWN_U64(reason);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (!IS_KNOWN(*counts[i]))
            *counts[i] = UNKNOWN_U32(reason);
    if (!IS_KNOWN(c->latency_cycles))
        c->latency_cycles = UNKNOWN_F64(reason);
    if (!IS_KNOWN(c->miss_latency_cycles))
        c->miss_latency_cycles = UNKNOWN_F64(reason);
}

/* A size alone says little: it counts once the sets confirm it. */
static void accept(struct chase *c)
{
    struct cache_facts *const f = c->out;
    const struct evidence e = evidence_make(EVIDENCE_TRACES, VOTES, c->how.margin);

    set_line(c);
    f->size_bytes = KNOWN_U64(c->lines * c->line_bytes);
    f->sets = KNOWN_U32(c->sets);
    f->ways = KNOWN_U32(c->ways);
    f->evidence[CACHE_EVIDENCE_SIZE_BYTES] = f->evidence[CACHE_EVIDENCE_SETS] = e;
}

void private_cache(struct cache_walks *w, enum cache_kind kind, const struct cache_facts *l1,
                   struct cache_facts *out)
{
    static enum reason (*const steps[])(struct chase * c) = {find_sector, find_size, find_line,
                                                             find_sets};
    struct chase c = {.w = w,
                      .out = out,
                      .path = kind == CACHE_L1          ? PATH_L1
                              : kind == CACHE_READ_ONLY ? PATH_READ_ONLY
                                                        : PATH_CONSTANT};
    enum reason reason;

    cache_unknown(out, kind, REASON_NOT_MEASURED);
    reason = find_cache(&c);
    if (reason == REASON_NONE && kind == CACHE_READ_ONLY)
        reason = find_same(&c);
    if (reason == REASON_NONE && out->same_as_l1 == FINDING_YES && l1) {
        copy_l1(l1, out);
        return;
    }
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && reason == REASON_NONE; i++)
        reason = steps[i](&c);
    if (reason == REASON_NONE)
        accept(&c);
    else if (reason == REASON_NOT_MEASURED && w->refused)
        reason = REASON_NO_DEVICE_MEMORY;
    if (kind == CACHE_L1 && IS_KNOWN(out->line_bytes) && reason != REASON_NOT_MEASURED)
        (void)find_carveouts(&c);
    if (reason != REASON_NONE)
        unknown_rest(out, reason);
}
