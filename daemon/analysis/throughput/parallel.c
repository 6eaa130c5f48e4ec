/* parallel.c: see parallel.h. */
#include "analysis/throughput/parallel.h"

#include "analysis/sharing/sharing.h"
#include "analysis/throughput/throughput.h"
#include "base/little.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>

#define WINDOW_BYTES (128 * MIB) /* the longest window of an SM */
#define ENOUGH_SHARE 0.95        /* least share of the plateau that is enough */

enum {
    REPEATS = 2,
    DURATION_US = 400,
    SEED = 77,
    STEPS = 8,        /* number of the first shares of the SMs: 1/8, 2/8 and so on */
    FINEST_SHARE = 64 /* divisor of the SMs that gives the precision of the result */
};

static const uint32_t warp_counts[] = {4, 8, 16, 32};
static const uint32_t load_counts[] = {1, 2, 4, 8, 16, 32};
enum {
    WARP_COUNTS = sizeof warp_counts / sizeof warp_counts[0],
    LOAD_COUNTS = sizeof load_counts / sizeof load_counts[0],
    POINTS = WARP_COUNTS * LOAD_COUNTS
};
_Static_assert((int)POINTS <= (int)FINGERPRINT_MAX_CONCURRENCY, "all points are listed");

/* ---- the probes ---- */

/* Writes the SM ids, in turn from each group, so that the first n are spread over the groups.
 * Returns the number of SMs. */
static uint32_t spread_sms(const struct observation_set *set, const struct structure *s,
                           uint16_t *out)
{
    uint16_t ids[REACH_MAX_SMS];
    uint32_t place[REACH_MAX_SMS] = {0}; /* index of each SM in its group */
    uint32_t in_group[REACH_MAX_GROUPS] = {0};
    const uint32_t sms = sharing_sm_ids(set, ids);
    const struct sm_partition *const p =
        s->window_level >= 0 ? &s->sharing[s->window_level].found : NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; p && p->group_count > 0 && i < sms; i++)
        if (p->group_of_sm[ids[i]] < p->group_count)
            place[i] = in_group[p->group_of_sm[ids[i]]]++;
    for (uint32_t turn = 0; n < sms; turn++)
        for (uint32_t i = 0; i < sms; i++)
            if (place[i] == turn)
                out[n++] = ids[i];
    return sms;
}

/* Returns the bytes of a window: half of the reach of the nearest TLB level, short enough to leave
 * other memory behind each window. */
static uint64_t window_bytes(const struct observation_set *set, const struct structure *s,
                             uint32_t windows)
{
    const uint64_t most = set->limits.backing_bytes / windows;
    uint64_t bytes = WINDOW_BYTES;

    if (s->level_count > 0 && s->levels[0].entry_known && s->levels[0].lo_pages > 0) {
        const uint64_t half = s->levels[0].lo_pages * s->levels[0].entry_bytes / 2;
        bytes = half < bytes ? half : bytes;
    }
    bytes = bytes < most ? bytes : most;
    return bytes / PROBE_LINE_BYTES * PROBE_LINE_BYTES;
}

/* Returns the spec in which the first `n` of the spread SMs read, with the last `points` points of
 * the surface. The last point of the surface has the most warps and loads. */
static struct probe_spec spec_of(const struct observation_set *set, const struct structure *s,
                                 uint32_t n, uint32_t points)
{
    uint16_t sms[REACH_MAX_SMS];
    const uint32_t all = spread_sms(set, s, sms);
    struct probe_spec spec = {.kind = PROBE_CONCURRENCY,
                              .repeats = REPEATS,
                              .duration_us = DURATION_US,
                              .seed = SEED,
                              .window_count = n < PROBE_MAX_WINDOWS ? n : PROBE_MAX_WINDOWS};

    spec.region_bytes = spec.window_count * window_bytes(set, s, spec.window_count);
    for (uint32_t i = 0; i < all; i++)
        spec.window_sms = sms[i] >= spec.window_sms ? sms[i] + 1u : spec.window_sms;
    for (uint32_t i = 0; i < spec.window_sms; i++)
        spec.window_of_sm[i] = PROBE_SM_IDLE;
    for (uint32_t i = 0; i < n && i < all; i++)
        spec.window_of_sm[sms[i]] = (uint16_t)((uint64_t)i * spec.window_count / n);
    for (uint32_t i = POINTS - points; i < POINTS; i++)
        spec.points[spec.point_count++] =
            probe_concurrency(warp_counts[i / LOAD_COUNTS], load_counts[i % LOAD_COUNTS]);
    return spec;
}

static uint32_t active_sms(const struct probe_spec *spec)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < spec->window_sms; i++)
        n += spec->window_of_sm[i] != PROBE_SM_IDLE;
    return n;
}

static const struct observation *find(const struct observation_set *set, uint32_t sms,
                                      uint32_t points)
{
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CONCURRENCY));)
        if (o->spec.point_count == points && active_sms(&o->spec) == sms)
            return o;
    return NULL;
}

/* ---- speeds ---- */

static int by_sms(const void *left, const void *right)
{
    const struct sms_point *const a = left;
    const struct sms_point *const b = right;
    return (a->sms > b->sms) - (a->sms < b->sms);
}

/* Reads the results by number of SMs, ascending; at most FINGERPRINT_MAX_BY_SMS. */
static uint32_t read_by_sms(const struct observation_set *set, struct sms_point *out)
{
    struct evidence unused;
    uint32_t n = 0;

    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CONCURRENCY));)
        if (o->spec.point_count == 1 && n < FINGERPRINT_MAX_BY_SMS)
            out[n++] = (struct sms_point){
                active_sms(&o->spec),
                KNOWN_F64(throughput_median_gbps(o, 0, EVIDENCE_IN_FLIGHT, &unused))};
    qsort(out, n, sizeof out[0], by_sms);
    return n;
}

/* Returns the index of the first point after which all points reach ENOUGH_SHARE of the plateau.
 * Returns `count` if the last one does not. */
static uint32_t first_enough(const struct sms_point *points, uint32_t count, double *plateau)
{
    uint32_t first = count;

    *plateau = 0;
    for (uint32_t i = 0; i < count; i++)
        *plateau = fmax(*plateau, points[i].gbps.v);
    while (first > 0 && points[first - 1].gbps.v >= ENOUGH_SHARE * *plateau)
        first--;
    return first;
}

/* Returns the next number of SMs to probe. Returns 0 if there is none. */
static uint32_t next_sms(const struct observation_set *set, uint32_t sms)
{
    struct sms_point points[FINGERPRINT_MAX_BY_SMS];
    double plateau;

    for (uint32_t k = 1; k <= STEPS; k++) {
        const uint32_t n = (sms * k + STEPS - 1) / STEPS;
        if (!find(set, n, 1))
            return n;
    }
    const uint32_t count = read_by_sms(set, points);
    const uint32_t first = first_enough(points, count, &plateau);
    const uint32_t below = first > 0 ? points[first - 1].sms : 0;
    const uint32_t finest = sms / FINEST_SHARE > 0 ? sms / FINEST_SHARE : 1;
    if (count == FINGERPRINT_MAX_BY_SMS || first == count || points[first].sms - below <= finest)
        return 0;
    return (points[first].sms + below) / 2;
}

bool parallel_missing(const struct observation_set *set, const struct structure *s,
                      struct probe_spec *out)
{
    uint16_t ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, ids);
    uint32_t n;

    if (sms == 0)
        return false;
    if (!find(set, sms, POINTS)) {
        *out = spec_of(set, s, sms, POINTS);
    } else {
        n = next_sms(set, sms);
        if (n == 0)
            return false;
        *out = spec_of(set, s, n, 1);
    }
    return probe_check(out, &set->limits, NULL) == STATUS_OK;
}

/* ---- the fewest that are enough ---- */

/* The points on both sides of a number of loads in flight per SM. `above` is the lowest share of
 * the plateau at points with at least this number. `fewer` is the largest smaller number that was
 * probed, or 0, and `below` is the highest share at points with it. */
struct cut {
    double above, below;
    uint32_t fewer;
};

static struct cut cut_at(const struct fingerprint_parallelism *p, uint32_t loads)
{
    struct cut c = {.above = 1};

    for (uint32_t i = 0; i < p->surface_count; i++) {
        const struct concurrency_point *const k = &p->surface[i];
        const double share = k->gbps.v / p->plateau_gbps.v;
        if (k->warps * k->loads >= loads) {
            c.above = fmin(c.above, share);
        } else {
            c.fewer = k->warps * k->loads > c.fewer ? k->warps * k->loads : c.fewer;
        }
    }
    for (uint32_t i = 0; i < p->surface_count; i++)
        if (p->surface[i].warps * p->surface[i].loads == c.fewer)
            c.below = fmax(c.below, p->surface[i].gbps.v / p->plateau_gbps.v);
    return c;
}

static struct evidence evidence_of_cut(enum evidence_method method, double above, double below)
{
    return evidence_make(method, REPEATS,
                         fmin(above - ENOUGH_SHARE, ENOUGH_SHARE - below) / (1 - ENOUGH_SHARE));
}

static void find_loads(struct fingerprint_parallelism *p)
{
    const uint32_t most = warp_counts[WARP_COUNTS - 1] * load_counts[LOAD_COUNTS - 1];
    uint32_t loads = most;
    struct cut c = cut_at(p, loads);

    if (c.below < ENOUGH_SHARE) { /* only the most loads in flight reach it, so it may still grow */
        p->loads_enough = p->loads_short = UNKNOWN_U32(REASON_TOO_LITTLE_DATA);
        return;
    }
    while (c.fewer > 0 && cut_at(p, c.fewer).above >= ENOUGH_SHARE) {
        loads = c.fewer;
        c = cut_at(p, loads);
    }
    if (c.fewer == 0) {
        p->loads_enough = p->loads_short = NOT_OBSERVABLE_U32(REASON_NO_CONTRAST);
        p->latency_ns = NOT_OBSERVABLE_F64(REASON_NO_CONTRAST);
        return;
    }
    p->loads_enough = KNOWN_U32(loads);
    p->loads_short = KNOWN_U32(c.fewer);
    p->evidence.loads_enough =
        evidence_of_cut(EVIDENCE_IN_FLIGHT, c.above, fmin(c.below, ENOUGH_SHARE));
}

static void read_surface(const struct observation *o, struct fingerprint_parallelism *p)
{
    struct evidence evidence[POINTS];
    uint32_t best = 0;

    for (uint32_t i = 0; i < POINTS; i++) {
        const double gbps = throughput_median_gbps(o, i, EVIDENCE_IN_FLIGHT, &evidence[i]);
        p->surface[p->surface_count++] =
            (struct concurrency_point){.warps = probe_concurrency_warps(o->spec.points[i]),
                                       .loads = probe_concurrency_loads(o->spec.points[i]),
                                       .gbps = KNOWN_F64(gbps)};
        best = gbps > p->surface[best].gbps.v ? i : best;
    }
    p->plateau_gbps = p->surface[best].gbps;
    p->evidence.plateau_gbps = evidence[best];
    find_loads(p);
    if (p->latency_ns.known == MAYBE_NOT_OBSERVABLE)
        return;
    if (p->surface[0].gbps.v <= 0) { /* too few reads in this short time */
        p->latency_ns = UNKNOWN_F64(REASON_TOO_LITTLE_DATA);
        return;
    }
    p->latency_ns = KNOWN_F64(
        little_latency_ns((double)p->surface[0].warps * p->surface[0].loads * active_sms(&o->spec),
                          PROBE_LINE_BYTES, p->surface[0].gbps.v));
    p->evidence.latency_ns = evidence[0];
}

static void find_sms(const struct observation_set *set, struct fingerprint_parallelism *p)
{
    double plateau;

    p->by_sms_count = read_by_sms(set, p->by_sms);
    const uint32_t first = first_enough(p->by_sms, p->by_sms_count, &plateau);

    if (first == p->by_sms_count)
        return;
    if (first == 0) {
        p->sms_enough = p->sms_short = NOT_OBSERVABLE_U32(REASON_NO_CONTRAST);
        return;
    }
    p->sms_enough = KNOWN_U32(p->by_sms[first].sms);
    p->sms_short = KNOWN_U32(p->by_sms[first - 1].sms);
    p->evidence.sms_enough = evidence_of_cut(EVIDENCE_SM_COUNTS, p->by_sms[first].gbps.v / plateau,
                                             p->by_sms[first - 1].gbps.v / plateau);
}

void parallel_derive(const struct observation_set *set, const struct structure *s,
                     struct fingerprint *out)
{
    struct fingerprint_parallelism *const p = &out->parallelism;
    uint16_t ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, ids);
    const struct observation *const o = sms > 0 ? find(set, sms, POINTS) : NULL;
    struct probe_spec next;

    if (!o)
        return;
    read_surface(o, p);
    if (!parallel_missing(set, s, &next))
        find_sms(set, p);
}
