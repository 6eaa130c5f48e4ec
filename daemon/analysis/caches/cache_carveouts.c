/* cache_carveouts.c: see cache_carveouts.h. The hardware divides the array between L1 and shared
 * memory by ways. If the sets are known, the ways that fit are counted, otherwise the bytes that
 * fit. */
#include "analysis/caches/cache_carveouts.h"

#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t carveouts[] = {8 << 10, 64 << 10, 100 << 10, 132 << 10, 196 << 10};
enum {
    CARVEOUTS = sizeof carveouts / sizeof carveouts[0],
    MOST_CARVED_WAYS = 32,
    CARVED_POINTS = 32
};

/* Returns the longest probed cycle without a miss, in bytes. */
static struct maybe_u64 carved_fits(const struct chase *c, const struct observation *o)
{
    uint64_t fits = 0;

    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        if (chase_slow_share(o, p, c->how.threshold) > CHASE_NOISE_SHARE / 4)
            break;
        fits = o->spec.points[p] * o->spec.stride_bytes;
    }
    return KNOWN_U64(fits);
}

/* Returns the size of the L1, in bytes: the highest number of whole ways that fit. */
static struct maybe_u64 carved_size(const struct chase *c, const struct observation *o)
{
    struct walk_votes *const v = malloc(2 * sizeof *v);
    struct maybe_u64 found = UNKNOWN_U64(REASON_IRREGULAR);

    for (uint32_t p = 0; v && p + 1 < o->spec.point_count; p += 2) {
        walks_votes(o, o->spec.points[p], &c->how, &v[0]);
        walks_votes(o, o->spec.points[p + 1], &c->how, &v[1]);
        if (v[0].slow > CHASE_NOISE_SHARE / 4 * v[0].loads)
            break;
        if (walks_overflow(&v[1], &v[0]) == OVERFLOW_YES) {
            found = KNOWN_U64(o->spec.points[p] * o->spec.stride_bytes);
            break;
        }
    }
    free(v);
    return found;
}

/* Makes a probe of cycles of whole lines, or of sectors if the line is not known. */
static struct probe_spec fits_spec(const struct chase *c, uint64_t shared_bytes)
{
    const uint64_t stride = IS_KNOWN(c->out->line_bytes) ? c->line_bytes : c->sector_bytes;
    struct probe_spec spec = chase_spec(c, stride, CHASE_SWEEP_SAMPLES);
    const uint64_t most = c->misses_bytes + c->misses_bytes / 2;

    spec.shared_bytes = shared_bytes;
    spec.scattered = 1;
    for (uint32_t k = 1; k <= CARVED_POINTS; k++)
        walks_add_points(&spec, most * k / CARVED_POINTS / stride, 1);
    return spec;
}

/* Makes a probe of cycles of whole ways, each with one more line. If there is less shared memory
 * than in the chase, L1 may have one way more. */
static struct probe_spec ways_spec(const struct chase *c, uint64_t shared_bytes)
{
    const uint32_t most = c->ways + (shared_bytes < CHASE_SHARED_BYTES);
    const double samples = fmin(3.0 * (most * c->sets + 1), (double)(shared_bytes - KIB) / 2);
    struct probe_spec spec =
        chase_spec(c, c->line_bytes, (uint32_t)fmin(PROBE_MAX_SAMPLES, samples));

    spec.shared_bytes = shared_bytes;
    for (uint32_t ways = 1; ways <= most && ways <= MOST_CARVED_WAYS; ways++) {
        walks_add_points(&spec, (uint64_t)ways * c->sets, 1);
        walks_add_points(&spec, (uint64_t)ways * c->sets + 1, 1);
    }
    return spec;
}

/* Finds the size of L1 at other divisions of its array. */
bool cache_carveouts_find(struct chase *c)
{
    struct cache_carveout found[CARVEOUTS + 1];
    const bool regular = IS_KNOWN(c->out->size_bytes) && c->ways <= MOST_CARVED_WAYS;
    const uint64_t most = c->w->set->limits.shared_sm_bytes; /* 0 if it is not known */
    uint32_t n = 0;
    bool waiting = false;

    for (uint32_t k = 0; k < CARVEOUTS; k++) {
        if (most > 0 && carveouts[k] > most)
            break;
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
                (struct cache_carveout){CHASE_SHARED_BYTES, c->out->size_bytes, c->out->fits_bytes};
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

/* ---- against the working sets ---- */

/* A set is fast if it is read at this share of the speed of the shortest set, or faster. */
static const double FAST = 0.9;

/* Returns the longest set whose lines, and the lines of all shorter sets, are read about as fast as
 * the lines of the shortest set. Returns 0 if none was measured. `own` selects the reads in which
 * each SM has its own part of the set. Sets are sorted by length. */
static uint64_t longest_fast(const struct fingerprint *fp, bool own)
{
    double shortest = 0;
    uint64_t longest = 0;

    for (uint32_t i = 0; i < fp->working_set_count; i++) {
        const struct working_set *const s = &fp->working_sets[i];
        const struct maybe_f64 gbps = own ? s->own_gbps : s->same_gbps;
        if (s->transaction_bytes != PROBE_LINE_BYTES || !IS_KNOWN(gbps))
            continue;
        shortest = shortest > 0 ? shortest : gbps.v;
        if (gbps.v < FAST * shortest)
            break;
        longest = s->set_bytes;
    }
    return longest;
}

/* Returns the bytes of the working sets that the L1 of an SM kept, or 0 if they are not known. A
 * cache of each SM affects shared sets and divided sets at the same number of bytes per SM; no
 * other cache does. */
static uint64_t kept_of_sm(const struct fingerprint *fp)
{
    const uint64_t same = longest_fast(fp, false);
    const uint64_t own = fp->gpu.sm_count > 0 ? longest_fast(fp, true) / fp->gpu.sm_count : 0;

    if (same > 2 * own || own > 2 * same)
        return 0;
    return same < own ? same : own;
}

void cache_carveouts_check(struct fingerprint *out)
{
    struct cache_facts *const l1 = &out->caches[CACHE_L1];
    const struct maybe_u64 shared = working_set_shared_bytes(out);
    const struct cache_carveout *division = NULL;

    if (out->cache_count > 0 && IS_KNOWN(shared))
        division = cache_carveout_beside(l1, shared.v);
    if (!division)
        return;
    const struct maybe_u64 kept = cache_kept_bytes(division->fits_bytes, division->size_bytes);
    if (!IS_KNOWN(kept) || kept.v >= kept_of_sm(out) / 2)
        return;
    for (uint32_t k = 0; k < l1->carveout_count; k++)
        l1->carveouts[k].size_bytes = l1->carveouts[k].fits_bytes =
            (struct maybe_u64)UNKNOWN_U64(REASON_DISAGREEMENT);
}
