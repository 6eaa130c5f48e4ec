/* predict.c: straight lines between measured points.
 *
 * Between two points of the curve GB/s are interpolated linearly in bytes. Below the first point
 * the first one holds: that is inside the reach, where the curve is flat. Beyond the last point
 * nothing is promised, but for a last eighth: an allocation of "all memory" is a little larger than
 * the largest region that a probe could use, and out there the curve falls slowly.
 *
 * Points without a number in the asked column are skipped.
 */
#include "planner/predict.h"

#include <stddef.h>

/* How far beyond the last point it still speaks: 1/8 of its size. */
enum { BEYOND_DIVISOR = 8 };

static struct maybe_f64 value_of(const struct curve_point *p, enum predict_column column)
{
    return column == PREDICT_NAIVE ? p->naive_gbps : p->by_group_gbps;
}

struct maybe_f64 predict_gbps(const struct throughput *t, enum predict_column column,
                              uint64_t bytes)
{
    const struct curve_point *below = NULL;
    const struct curve_point *above = NULL;
    enum reason why = REASON_NOT_MEASURED;
    double at_below;
    double at_above;
    double along;

    for (uint32_t i = 0; i < t->curve_count; i++) {
        const struct curve_point *p = &t->curve[i];
        struct maybe_f64 v = value_of(p, column);
        if (!IS_KNOWN(v)) {
            why = v.reason;
            continue;
        }
        if (p->region_bytes <= bytes && (!below || p->region_bytes > below->region_bytes))
            below = p;
        if (p->region_bytes >= bytes && (!above || p->region_bytes < above->region_bytes))
            above = p;
    }
    if (!below && !above)
        return UNKNOWN_F64(why);
    if (!below)
        return value_of(above, column);
    at_below = value_of(below, column).v;
    if (!above) {
        if (bytes - below->region_bytes > below->region_bytes / BEYOND_DIVISOR)
            return UNKNOWN_F64(REASON_BEYOND_MEMORY);
        return KNOWN_F64(at_below);
    }
    if (above->region_bytes == below->region_bytes)
        return KNOWN_F64(at_below);
    at_above = value_of(above, column).v;
    along =
        (double)(bytes - below->region_bytes) / (double)(above->region_bytes - below->region_bytes);
    return KNOWN_F64(at_below + along * (at_above - at_below));
}
