/* outlier.h: the rule by which a chip is odd among its kind, the same for `reachctl compare` and
 * for surveys, whose statements (schema/fleet/outliers.sql, report_outliers.sql) a test holds
 * against these functions.
 *
 * A measured number is odd if it is further from the median than six robust deviations (1.4826
 * times the median distance from the median: the standard deviation, if the numbers are normal) and
 * than 5 % of the median. The second keeps out the steps of the measurement: a penalty of ten
 * cycles is known to half a cycle, and if most chips have the same step there is no deviation at
 * all. A property that a model has by its design is odd if more than half of those with a value
 * have another. Fewer than eight chips are not compared.
 *
 * Pure; any thread.
 */
#ifndef REACH_COMPARE_OUTLIER_H
#define REACH_COMPARE_OUTLIER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { OUTLIER_LEAST_CHIPS = 8 };
#define OUTLIER_DEVIATIONS 6.0
#define OUTLIER_SCALE      1.4826 /* of the median distance, to estimate a standard deviation */
#define OUTLIER_SHARE      0.05   /* of the median */

/* Is a number odd? `deviation` is the unscaled median distance (stats_mad_f64). */
static inline bool outlier_is_odd(double value, uint32_t chips, double median, double deviation)
{
    const double far = fabs(value - median);

    return chips >= OUTLIER_LEAST_CHIPS && far > OUTLIER_DEVIATIONS * OUTLIER_SCALE * deviation &&
           far > OUTLIER_SHARE * fabs(median);
}

/* Is a property odd that differs from one which `have` of `chips` chips have? */
static inline bool outlier_is_odd_property(uint32_t have, uint32_t chips)
{
    return chips >= OUTLIER_LEAST_CHIPS && 2 * have > chips;
}

#endif
