/* set_cost.c: see set_cost.h. */
#include "planner/set_cost.h"

enum { L2_SURELY_DIVISOR = 4 }; /* a quarter of the L2 stays in the L2 for every SM */

static const double KEPT = 0.95;

static struct maybe_f64 gbps_of(const struct working_set *w, enum set_spread spread)
{
    return spread == SET_SAME ? w->same_gbps : spread == SET_OWN ? w->own_gbps : w->near_gbps;
}

static double ns_of(const struct working_set *w, enum set_spread spread)
{
    return w->transaction_bytes / gbps_of(w, spread).v;
}

static bool is_there(const struct working_set *w, enum set_spread spread,
                     uint32_t transaction_bytes)
{
    const struct maybe_f64 gbps = gbps_of(w, spread);

    return w->transaction_bytes == transaction_bytes && IS_KNOWN(gbps) && gbps.v > 0;
}

/* Returns the cost of one read if reads of this size were measured. The cost is interpolated
 * between two measured sets. */
static struct maybe_f64 measured_ns(const struct fingerprint *fp, enum set_spread spread,
                                    uint32_t transaction_bytes, uint64_t bytes)
{
    const struct working_set *below = NULL;
    const struct working_set *above = NULL;
    bool any = false;

    for (uint32_t i = 0; i < fp->working_set_count && !above; i++) {
        const struct working_set *const w = &fp->working_sets[i];
        if (!is_there(w, spread, transaction_bytes))
            continue;
        any = true;
        if (w->set_bytes < bytes)
            below = w;
        else
            above = w;
    }
    if (!above)
        return UNKNOWN_F64(any ? REASON_BEYOND_MEMORY : REASON_NOT_MEASURED);
    if (above->set_bytes == bytes)
        return KNOWN_F64(ns_of(above, spread));
    if (!below)
        return spread == SET_NEAR ? UNKNOWN_F64(REASON_NOT_MEASURED)
                                  : KNOWN_F64(ns_of(above, spread));
    const double from = 1 / (double)below->set_bytes;
    const double to = 1 / (double)above->set_bytes;
    const double low = ns_of(below, spread);

    return KNOWN_F64(low + (1 / (double)bytes - from) / (to - from) * (ns_of(above, spread) - low));
}

/* Finds the nearest measured sizes of a read: `*out_low` is at or below `want`, and `*out_high` is
 * above it. A size is 0 if there is no such measurement. */
static void find_sizes(const struct fingerprint *fp, uint32_t want, uint32_t *out_low,
                       uint32_t *out_high)
{
    *out_low = *out_high = 0;
    for (uint32_t i = 0; i < fp->working_set_count; i++) {
        const uint32_t have = fp->working_sets[i].transaction_bytes;
        if (have <= want)
            *out_low = have;
        else if (*out_high == 0)
            *out_high = have;
    }
}

struct maybe_f64 set_cost_ns(const struct fingerprint *fp, enum set_spread spread,
                             uint32_t transaction_bytes, uint64_t bytes)
{
    uint32_t low;
    uint32_t high;

    find_sizes(fp, transaction_bytes, &low, &high);
    if (low == 0)
        return UNKNOWN_F64(REASON_NOT_MEASURED);
    struct maybe_f64 ns = measured_ns(fp, spread, low, bytes);
    if (!IS_KNOWN(ns) || low == transaction_bytes)
        return ns;
    if (high == 0) {
        ns.v *= (double)transaction_bytes / low;
        return ns;
    }
    const struct maybe_f64 longer = measured_ns(fp, spread, high, bytes);
    if (!IS_KNOWN(longer))
        return longer;
    ns.v += (double)(transaction_bytes - low) / (high - low) * (longer.v - ns.v);
    return ns;
}

/* Returns the length of the longest set of this spread that is shorter than `than`, or 0 if there
 * is no such set. */
static uint64_t longest_below(const struct fingerprint *fp, enum set_spread spread, uint64_t than)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < fp->working_set_count; i++) {
        const struct working_set *const w = &fp->working_sets[i];
        if (IS_KNOWN(gbps_of(w, spread)) && w->set_bytes > most && w->set_bytes < than)
            most = w->set_bytes;
    }
    return most;
}

struct maybe_f64 set_cost_beyond_ns(const struct fingerprint *fp, enum set_spread spread,
                                    uint32_t transaction_bytes, uint64_t bytes)
{
    const uint64_t longest = set_cost_longest(fp, spread);
    const uint64_t before = longest_below(fp, spread, longest);
    const struct maybe_f64 low = set_cost_ns(fp, spread, transaction_bytes, before);
    const struct maybe_f64 high = set_cost_ns(fp, spread, transaction_bytes, longest);
    double further;

    if (bytes <= longest)
        return set_cost_ns(fp, spread, transaction_bytes, bytes);
    if (before == 0 || !IS_KNOWN(low) || !IS_KNOWN(high))
        return high;
    further =
        (1 / (double)longest - 1 / (double)bytes) / (1 / (double)before - 1 / (double)longest);
    return KNOWN_F64(high.v + further * (high.v > low.v ? high.v - low.v : 0));
}

struct maybe_u64 set_cost_l2_keeps(const struct fingerprint *fp)
{
    const struct maybe_f64 sure = set_cost_ns(fp, SET_SAME, FINGERPRINT_CURVE_BYTES,
                                              fp->gpu.l2_cache_bytes / L2_SURELY_DIVISOR);
    struct maybe_u64 most = UNKNOWN_U64(REASON_NOT_MEASURED);

    for (uint32_t i = 0; IS_KNOWN(sure) && i < fp->working_set_count; i++) {
        const struct working_set *const w = &fp->working_sets[i];
        if (is_there(w, SET_SAME, FINGERPRINT_CURVE_BYTES) && ns_of(w, SET_SAME) * KEPT <= sure.v &&
            (!IS_KNOWN(most) || w->set_bytes > most.v))
            most = KNOWN_U64(w->set_bytes);
    }
    return most;
}

uint64_t set_cost_longest(const struct fingerprint *fp, enum set_spread spread)
{
    return longest_below(fp, spread, UINT64_MAX);
}

uint64_t set_cost_shortest(const struct fingerprint *fp, enum set_spread spread)
{
    uint64_t least = 0;

    for (uint32_t i = 0; i < fp->working_set_count; i++)
        if (IS_KNOWN(gbps_of(&fp->working_sets[i], spread)) &&
            (least == 0 || fp->working_sets[i].set_bytes < least))
            least = fp->working_sets[i].set_bytes;
    return least;
}
