/* evidence_repeats.c: computes the margin of repeats of one number. The file is separate from
 * evidence.c, because libreach links evidence.c and needs no statistics. */
#include "fingerprint/evidence.h"

#include "base/stats.h"

#include <math.h>

struct evidence evidence_of_repeats(enum evidence_method method, const double *values,
                                    uint32_t count)
{
    double low = INFINITY;
    double high = 0;

    for (uint32_t i = 0; i < count; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    if (count < 2 || !(high > 0))
        return evidence_make(method, count, 0);
    return evidence_make(method, count, 1 - (high - low) / stats_median_f64(values, count));
}
