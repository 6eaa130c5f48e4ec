/* outlier.h: defines when a chip is odd among its kind. `reachctl compare` and surveys use the same
 * rule, and a test compares the survey statements (schema/fleet/outliers.sql, report_outliers.sql)
 * with these functions. The error rates, which tests/unit/daemon/compare/test_outlier.c counts, are
 * in docs/compare.md.
 *
 * A measured number is compared with all chips of the kind that have it, including the judged one.
 * The inner range excludes the least and the most of these numbers, or a tenth at each end if there
 * are twenty or more. A number is odd if its distance from the inner range exceeds both six robust
 * deviations and 5 % of the median. A robust deviation is 1.4826 times the median distance from the
 * median, which is the standard deviation of normally distributed numbers. The distance is measured
 * from the range and not from the median, because a kind of chips has variants. A variant of every
 * tenth chip, and of at least two chips, is inside the range. The limit of 5 % is needed because
 * measurements have steps: a penalty of ten cycles is precise to half a cycle. If most chips have
 * the same step, the deviation is 0.
 *
 * Fewer than eight chips do not show the spread of their kind. Kinds with three to seven chips
 * borrow the spread of the same number, relative to the median, from kinds with at least eight. If
 * there is no such kind, they are not judged. The median of few chips may belong to any variant, so
 * the width of a borrowed inner range counts on both sides of the median.
 *
 * A property that is fixed by the design of a model is odd if more than half of the chips have one
 * other value. Kinds with fewer than eight chips are not compared by properties.
 *
 * The functions are pure and may be called on any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTLIER_LEAST_CHIPS = 8, OUTLIER_LEAST_BORROWING = 3, OUTLIER_OUTSIDE = 10 };
#define OUTLIER_DEVIATIONS 6.0
#define OUTLIER_SCALE                                                                              \
    1.4826 /* standard deviation over median distance, for normally distributed numbers */
#define OUTLIER_SHARE   0.05   /* share of the median that a distance must exceed */
#define OUTLIER_NOTHING 1e-100 /* smallest median for which a relative spread is computed */

/* The spread of a number among the chips of a kind. */
struct outlier_spread {
    uint32_t chips;
    double median;
    double deviation;   /* median distance from the median */
    double inner_least; /* least number of the inner range */
    double inner_most;
};

/* The spread that is lent to kinds with few chips: the widest relative spread of all kinds with at
 * least OUTLIER_LEAST_CHIPS chips. `kinds` is the number of these kinds. */
struct outlier_lent {
    uint32_t kinds;
    double width; /* width of the inner range, relative to the median */
    double deviation;
};

/* Returns the rank of both ends of the inner range of `chips` numbers, counted from 1 at each end.
 * The rank is 2 for fewer than twenty numbers. */
static inline uint32_t outlier_rank(uint32_t chips)
{
    return chips < 2 * OUTLIER_OUTSIDE ? 2 : 1 + chips / OUTLIER_OUTSIDE;
}

/* Return the ends of the inner range of `n` numbers in any order, or the median if n < 3. */
double outlier_inner_least(const double *v, size_t n);
double outlier_inner_most(const double *v, size_t n);

/* Returns the spread of `n` numbers in any order, n >= 1. */
struct outlier_spread outlier_compute_spread(const double *v, size_t n);

/* Makes `lent` at least as wide as the spread of a kind. A kind with too few chips or with a median
 * near 0 is ignored. */
void outlier_lend(struct outlier_lent *lent, const struct outlier_spread *of);

/* Writes the range outside of which a number is odd. Returns false if the number cannot be
 * judged. */
bool outlier_bounds(const struct outlier_spread *of, const struct outlier_lent *lent,
                    double *out_low, double *out_high);

/* Returns whether a property is odd if it differs from the most frequent value, which `have` of
 * `chips` chips have. */
static inline bool outlier_is_odd_property(uint32_t have, uint32_t chips)
{
    return chips >= OUTLIER_LEAST_CHIPS && 2 * have > chips;
}
