/* working_sets.c: see working_sets.h. */
#include "analysis/caches/working_sets.h"

#include "analysis/caches/sides.h"
#include "analysis/sharing/sharing.h"
#include "analysis/throughput/throughput.h"
#include "base/units.h"

#include <string.h>

enum {
    READ_US = 300,
    READ_REPEATS = 2,
    READ_SEED = 31250,
    QUARTERS = 4,
    ANY_GRANULE_BYTES = 4096, /* stride of the probes whose sets have no granules */
    LEAST_OF_SM_BYTES = 4096, /* least bytes of each SM, if a set is divided among the SMs */
    NEAR_DIVISOR = 8          /* sets below this part of the L2 fit either side of it */
};
#define SMALLEST_SET (64 * KIB)
#define L1_SETS      (256 * KIB)
#define LARGEST_SET  GIB

static const uint32_t transactions[] = {PROBE_LINE_BYTES, PROBE_BLOCK_BYTES};
enum { TRANSACTIONS = sizeof transactions / sizeof transactions[0] };

/* Returns the number of set lengths from `base` to its double: more if a set of this length may
 * fill a cache. */
static uint32_t steps_from(uint64_t base, uint64_t l2_bytes)
{
    if (base * 2 > l2_bytes / 2 && base < l2_bytes * 2)
        return QUARTERS;
    if (base < L1_SETS || (base * 2 > l2_bytes / 8 && base <= l2_bytes * 4))
        return QUARTERS / 2;
    return 1;
}

/* Adds the lengths of sets of `least_bytes` or more that caches of `l2_bytes` may keep and that fit
 * this much memory. */
static void add_sets(uint64_t l2_bytes, uint64_t least_bytes, uint64_t memory_bytes,
                     struct probe_spec *spec)
{
    for (uint64_t base = SMALLEST_SET; base <= LARGEST_SET; base *= 2) {
        const uint32_t steps = steps_from(base, l2_bytes);
        for (uint32_t k = 0; k < steps; k++) {
            const uint64_t bytes = base / QUARTERS * (QUARTERS + k * QUARTERS / steps);
            if (bytes >= least_bytes && bytes <= memory_bytes && bytes <= LARGEST_SET &&
                spec->point_count < FINGERPRINT_MAX_WORKING_SETS / TRANSACTIONS)
                spec->points[spec->point_count++] = bytes;
        }
    }
}

/* Adds the SMs on the side of the first SM. Returns false if the sides are not known. */
static bool set_sides(const struct fingerprint_l2 *l2, struct probe_spec *spec)
{
    if (!IS_KNOWN(l2->sides))
        return false;
    spec->stride_bytes = l2->granule_bytes.v;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        if (l2->side_of_sm.group_of_sm[sm] == 0)
            spec->sms[spec->sm_count++] = (uint16_t)sm;
    return true;
}

/* Makes the spec of one part of sets. Returns false if this GPU does not have this part. */
static bool make_spec(const struct observation_set *set, const struct fingerprint_l2 *l2,
                      uint32_t sms, enum set_read part, uint32_t transaction_bytes,
                      struct probe_spec *out)
{
    const uint64_t least_bytes = part == SET_READ_OWN    ? (uint64_t)sms * LEAST_OF_SM_BYTES
                                 : part == SET_READ_NEAR ? set->gpu.l2_cache_bytes / NEAR_DIVISOR
                                                         : 0;

    *out = (struct probe_spec){.kind = PROBE_WORKING_SET_READ,
                               .stride_bytes = ANY_GRANULE_BYTES,
                               .repeats = READ_REPEATS,
                               .duration_us = READ_US,
                               .seed = READ_SEED,
                               .transaction_bytes = transaction_bytes,
                               .set_read = part};
    add_sets(set->gpu.l2_cache_bytes, least_bytes, set->limits.backing_bytes, out);
    return (part != SET_READ_NEAR || set_sides(l2, out)) &&
           probe_check(out, &set->limits, NULL) == STATUS_OK;
}

static const struct observation *find(const struct observation_set *set,
                                      const struct probe_spec *spec)
{
    for (const struct observation *o = NULL;
         (o = observation_next(set, o, PROBE_WORKING_SET_READ));)
        if (o->spec.set_read == spec->set_read &&
            probe_access_bytes(&o->spec) == spec->transaction_bytes &&
            o->spec.point_count == spec->point_count &&
            memcmp(o->spec.points, spec->points, sizeof spec->points) == 0)
            return o;
    return NULL;
}

uint32_t working_sets_missing(const struct observation_set *set, struct probe_spec *out,
                              uint32_t most)
{
    uint16_t sm_ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, sm_ids);
    struct sides_estimate sides;
    uint32_t count = 0;

    if (set->gpu.l2_cache_bytes == 0 || sms == 0)
        return 0;
    sides_estimate(set, &sides);
    for (uint32_t t = 0; t < TRANSACTIONS; t++)
        for (uint32_t k = 0; k < SET_READ_COUNT && count < most; k++)
            count +=
                make_spec(set, &sides.found, sms, (enum set_read)k, transactions[t], &out[count]) &&
                !find(set, &out[count]);
    return count;
}

/* ---- results ---- */

/* Finds the set of this length, or makes room for it in ascending order. Returns NULL if there is
 * no room for another set. */
static struct working_set *set_for(struct fingerprint *out, uint32_t transaction_bytes,
                                   uint64_t set_bytes)
{
    struct working_set *const sets = out->working_sets;
    uint32_t at = 0;

    while (at < out->working_set_count &&
           (sets[at].transaction_bytes < transaction_bytes ||
            (sets[at].transaction_bytes == transaction_bytes && sets[at].set_bytes < set_bytes)))
        at++;
    if (at < out->working_set_count && sets[at].transaction_bytes == transaction_bytes &&
        sets[at].set_bytes == set_bytes)
        return &sets[at];
    if (out->working_set_count == FINGERPRINT_MAX_WORKING_SETS)
        return NULL;
    for (uint32_t i = out->working_set_count++; i > at; i--)
        sets[i] = sets[i - 1];
    sets[at] = (struct working_set){.transaction_bytes = transaction_bytes,
                                    .set_bytes = set_bytes,
                                    .same_gbps = UNKNOWN_F64(REASON_NOT_MEASURED),
                                    .own_gbps = UNKNOWN_F64(REASON_NOT_MEASURED),
                                    .near_gbps = UNKNOWN_F64(REASON_NOT_MEASURED)};
    return &sets[at];
}

static void derive_one(const struct observation *o, struct fingerprint *out)
{
    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        struct working_set *const w = set_for(out, probe_access_bytes(&o->spec), o->spec.points[p]);
        if (!w)
            continue;
        const struct {
            struct maybe_f64 *gbps;
            struct evidence *evidence;
        } columns[SET_READ_COUNT] = {[SET_READ_SAME] = {&w->same_gbps, &w->evidence.same_gbps},
                                     [SET_READ_OWN] = {&w->own_gbps, &w->evidence.own_gbps},
                                     [SET_READ_NEAR] = {&w->near_gbps, &w->evidence.near_gbps}};
        *columns[o->spec.set_read].gbps = KNOWN_F64(throughput_median_gbps(
            o, p, EVIDENCE_WORKING_SETS, columns[o->spec.set_read].evidence));
    }
}

void working_sets_derive(const struct observation_set *set, struct fingerprint *out)
{
    for (const struct observation *o = NULL;
         (o = observation_next(set, o, PROBE_WORKING_SET_READ));)
        derive_one(o, out);
}
