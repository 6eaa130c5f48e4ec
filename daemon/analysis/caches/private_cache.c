/* private_cache.c: finds one cache of an SM, step by step; see hierarchy.h. */
#include "analysis/caches/cache_carveouts.h"
#include "analysis/caches/cache_line.h"
#include "analysis/caches/cache_sets.h"
#include "analysis/caches/hierarchy.h"

#include "base/stats.h"
#include "fingerprint/members.h"

#include <math.h>
#include <stdlib.h>

#define SATURATED_SHARE 0.5  /* least share of slow loads if a footprint overflows the cache */
#define SECTOR_RIGHT    0.95 /* least share of the expected places that miss */
#define SECTOR_WRONG    0.03 /* largest share of all other places that miss */
#define SAME_ARRAY      0.1

enum {
    FIRST_BYTES = 512,
    LAST_BYTES = 512 << 10,
    LAST_CONSTANT_BYTES = 48 << 10,
    CONTROL_BYTES = 2048,
    SECTOR_WORDS = 1024,
    EVICT_BYTES = 32 << 10,
    BISECT_POINTS = 6,
    BISECT_MORE = 8, /* repeats of a cycle if CHASE_REPEATS do not show whether it fits */
    BISECT_MIN_SAMPLES = 1024,
    SAME_LOADS = FIRST_BYTES / WALKS_ELEMENT_BYTES
};

void cache_unknown(struct cache_facts *c, enum cache_kind kind, enum reason reason)
{
    *c = (struct cache_facts){.kind = kind};
    object_set_reason(&cache_object, c, reason);
    for (uint32_t k = 0; k < FINGERPRINT_MAX_CARVEOUTS; k++)
        c->carveouts[k].size_bytes = c->carveouts[k].fits_bytes = UNKNOWN_U64(REASON_NOT_MEASURED);
}

/* ---- existence of a cache ---- */

static struct probe_spec sweep_spec(const struct chase *c)
{
    struct probe_spec spec = chase_spec(c, WALKS_ELEMENT_BYTES, CHASE_SWEEP_SAMPLES);
    const uint64_t last =
        c->path == PATH_CONSTANT ? (uint64_t)LAST_CONSTANT_BYTES : (uint64_t)LAST_BYTES;

    spec.scattered = 1;
    for (uint64_t bytes = FIRST_BYTES; bytes <= last; bytes *= 2) {
        walks_add_points(&spec, bytes / WALKS_ELEMENT_BYTES, 1);
        if (bytes / 2 * 3 <= last)
            walks_add_points(&spec, bytes / 2 * 3 / WALKS_ELEMENT_BYTES, 1);
    }
    return spec;
}

/* Finds the first footprint with clearly more slow loads than the smallest footprint. Returns false
 * if there is none. */
static bool read_sweep(struct chase *c, const struct observation *o)
{
    uint32_t hit_count = 0;
    const uint32_t *const hits = walks_row(o, 0, &hit_count);
    const double hit = stats_median_u32(hits, hit_count);
    const double high = stats_quantile_u32(hits, hit_count, 0.95);
    const double rough = hit + fmax(fmax(4, 0.15 * hit), 2 * (high - hit));
    uint32_t slow[CHASE_SWEEP_SAMPLES];
    uint32_t count = 0;
    uint32_t p = 0;

    while (p < o->spec.point_count && chase_slow_share(o, p, rough) < SATURATED_SHARE)
        p++;
    if (p == o->spec.point_count)
        return false;
    for (uint32_t k = 0; k < o->spec.samples; k++) /* some loads of this footprint may still hit */
        if (observation_chase(o, p)[k] > rough)
            slow[count++] = observation_chase(o, p)[k];
    if (!walks_contrast(hits, hit_count, slow, count, &c->how))
        return false;
    const double noise = chase_slow_share(o, 0, c->how.threshold);
    for (p = 1; p < o->spec.point_count; p++)
        if (chase_slow_share(o, p, c->how.threshold) > noise + CHASE_NOISE_SHARE)
            break;
    if (p == o->spec.point_count || noise > CHASE_NOISE_SHARE)
        return false;
    /* Misses of a few more lines might be absent from the samples. */
    c->fits_bytes = o->spec.points[p >= 2 ? p - 2 : p - 1] * o->spec.stride_bytes;
    c->misses_bytes = o->spec.points[p] * o->spec.stride_bytes;
    return true;
}

static void set_latency(struct chase *c, const struct hit_or_miss *how, bool miss_too)
{
    c->out->latency_cycles = KNOWN_F64(fmax(0, how->hit - c->w->clock_cycles));
    if (miss_too)
        c->out->miss_latency_cycles = KNOWN_F64(fmax(0, how->miss - c->w->clock_cycles));
    c->out->evidence.latency_cycles =
        evidence_make(EVIDENCE_WALKS, CHASE_SWEEP_SAMPLES, how->margin);
}

/* Finds whether the path has a cache. Loads by a path without a cache take as long as loads past
 * L1. */
static enum reason find_cache(struct chase *c)
{
    struct probe_spec spec = sweep_spec(c);
    struct probe_spec past = chase_spec(c, WALKS_ELEMENT_BYTES, CHASE_SWEEP_SAMPLES);
    const struct observation *const o = walks_find(c->w, &spec);
    const struct observation *control = o;

    past.path = past.warm_path = PATH_L2;
    walks_add_points(&past, CONTROL_BYTES / WALKS_ELEMENT_BYTES, 1);
    if (c->path != PATH_CONSTANT)
        control = walks_find(c->w, &past);
    if (!walks_clock(c->w) || !o || !control)
        return REASON_NOT_MEASURED;
    if (c->path != PATH_CONSTANT) {
        struct hit_or_miss how;
        if (!walks_contrast(observation_chase(o, 0), CHASE_SWEEP_SAMPLES,
                            observation_chase(control, 0), CHASE_SWEEP_SAMPLES, &how)) {
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

/* Returns how clearly the misses lie at the multiples of `words` and nowhere else, from 0 (not at
 * all) to 1. */
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
    struct probe_spec spec = chase_spec(c, PROBE_WORD_BYTES, SECTOR_WORDS);
    spec.warm_laps = 0;
    spec.sweep_footprint = c->path != PATH_CONSTANT;
    spec.evict_bytes = c->path == PATH_CONSTANT ? (uint64_t)EVICT_BYTES : 0;
    walks_add_points(&spec, SECTOR_WORDS, 1);
    const struct observation *const o = walks_find(c->w, &spec);

    if (!o)
        return REASON_NOT_MEASURED;
    for (uint32_t words = 2; words <= SECTOR_WORDS / 8; words *= 2) {
        const double margin = fits_distance(c, observation_chase(o, 0), words);
        if (margin <= 0)
            continue;
        c->sector_bytes = (uint64_t)words * PROBE_WORD_BYTES;
        c->out->sector_bytes = c->out->fill_bytes = KNOWN_U64(c->sector_bytes);
        c->out->evidence.sector_bytes = c->out->evidence.fill_bytes =
            evidence_make(EVIDENCE_TRACES, SECTOR_WORDS / words, margin);
        return REASON_NONE;
    }
    return REASON_IRREGULAR;
}

/* ---- size ---- */

/* Makes the probe of one round: cycles from `low` sectors, which fit, to just below `high` sectors,
 * which do not. */
static struct probe_spec bisect_spec(const struct chase *c, uint64_t low, uint64_t high,
                                     uint32_t repeats)
{
    const uint64_t step = (high - low + BISECT_POINTS) / (BISECT_POINTS + 1);
    const double wanted = 16.0 * (double)high / (double)step;
    const double most = fmin(PROBE_MAX_SAMPLES, 4.0 * (double)high);
    struct probe_spec spec =
        chase_spec(c, c->sector_bytes, (uint32_t)fmin(most, fmax(BISECT_MIN_SAMPLES, wanted)));

    spec.scattered = 1;
    for (uint64_t n = low; n < high; n += step)
        walks_add_points(&spec, n, repeats);
    return spec;
}

/* Narrows [low, high) by the result of the round. Returns false if the result is ambiguous. */
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
        *low = over == OVERFLOW_NO ? n : *low;
        *high = over == OVERFLOW_YES ? n : *high;
        if (over != OVERFLOW_NO)
            break;
    }
    free(v);
    return clear;
}

static enum reason find_size(struct chase *c)
{
    uint64_t low = c->fits_bytes / c->sector_bytes;
    uint64_t high = c->misses_bytes / c->sector_bytes;
    uint32_t repeats = CHASE_REPEATS;
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
        repeats = clear ? CHASE_REPEATS : BISECT_MORE;
    }
    c->sectors = low;
    c->out->fits_bytes = KNOWN_U64(low * c->sector_bytes);
    c->out->evidence.fits_bytes =
        evidence_make(EVIDENCE_TRACES, CHASE_REPEATS, (double)low / (double)high);
    return reason;
}

/* ---- the whole ---- */

/* Finds whether the read-only path hits lines that loads through L1 have filled. If it does, it has
 * no array of its own. */
static enum reason find_same(struct chase *c)
{
    struct probe_spec spec = chase_spec(c, WALKS_ELEMENT_BYTES, SAME_LOADS);
    spec.warm_path = PATH_L1;
    spec.warm_laps = 1;
    walks_add_points(&spec, SAME_LOADS, 1);
    const struct observation *const o = walks_find(c->w, &spec);

    if (!o)
        return REASON_NOT_MEASURED;
    const double slow =
        stats_count_above_u32(observation_chase(o, 0), SAME_LOADS, c->how.threshold) /
        (double)SAME_LOADS;
    if (slow < SAME_ARRAY)
        c->out->same_as_l1 = FINDING_YES;
    else if (slow > 1 - SAME_ARRAY)
        c->out->same_as_l1 = FINDING_NO;
    else
        return REASON_NONE;
    c->out->evidence.same_as_l1 =
        evidence_make(EVIDENCE_WALKS, 64,
                      slow < SAME_ARRAY ? 1 - slow / SAME_ARRAY : 1 - (1 - slow) / SAME_ARRAY);
    return REASON_NONE;
}

/* Copies the facts of L1, which hold for the read-only path too. */
static void copy_l1(const struct cache_facts *l1, struct cache_facts *out)
{
    const struct cache_facts own = *out;

    *out = *l1;
    out->kind = own.kind;
    out->latency_cycles = own.latency_cycles;
    out->miss_latency_cycles = own.miss_latency_cycles;
    out->same_as_l1 = own.same_as_l1;
    out->evidence.same_as_l1 = own.evidence.same_as_l1;
    out->evidence.latency_cycles = own.evidence.latency_cycles;
}

/* Accepts the size, the line and the sets. A size alone is weak evidence, and counts only if the
 * sets confirm it. */
static void accept(struct chase *c)
{
    struct cache_facts *const f = c->out;
    const struct evidence e = evidence_make(EVIDENCE_TRACES, CHASE_VOTES, c->how.margin);

    chase_set_line(c);
    f->size_bytes = KNOWN_U64(c->lines * c->line_bytes);
    f->sets = KNOWN_U32(c->sets);
    f->ways = KNOWN_U32(c->ways);
    f->evidence.size_bytes = f->evidence.sets = e;
}

/* Finds sector, size, line and sets. A hash may overfill a few sets by one line long before
 * the cache is full. If the sector at which the cache ends is not clear, only the line and the
 * policy are found. */
static enum reason find_structure(struct chase *c)
{
    enum reason reason = find_sector(c);

    if (reason == REASON_NONE)
        reason = find_size(c);
    const bool blurred = reason == REASON_NO_CONTRAST && IS_KNOWN(c->out->fits_bytes);
    if (reason != REASON_NONE && !blurred)
        return reason;
    const enum reason line = cache_line_find(c);
    if (line != REASON_NONE)
        return blurred && line != REASON_NOT_MEASURED ? reason : line;
    if (!blurred)
        return cache_sets_find(c);
    return cache_policy_find(c) == REASON_NOT_MEASURED ? REASON_NOT_MEASURED : reason;
}

void private_cache(struct cache_walks *w, enum cache_kind kind, const struct cache_facts *l1,
                   struct cache_facts *out)
{
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
    if (reason == REASON_NONE)
        reason = find_structure(&c);
    if (reason == REASON_NONE)
        accept(&c);
    else if (reason == REASON_NOT_MEASURED && w->refused)
        reason = REASON_NO_DEVICE_MEMORY;
    if (kind == CACHE_L1 && IS_KNOWN(out->fits_bytes) && reason != REASON_NOT_MEASURED)
        (void)cache_carveouts_find(&c);
    if (reason != REASON_NONE)
        object_set_reason(&cache_object, out, reason);
}
