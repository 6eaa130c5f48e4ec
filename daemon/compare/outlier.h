/* outlier.h: the rule by which a chip is odd among its kind, the same for `reachctl compare` and
 * for surveys, whose statements (schema/fleet/outliers.sql, report_outliers.sql) a test holds
 * against these functions. docs/compare.md has how often it is wrong,
 * tests/unit/daemon/compare/test_outlier.c counts that.
 *
 * Of a measured number, all chips of a kind that have it are considered, the one judged among them.
 * Without the least and the most of them there remains the inner range; of twenty and more chips, a
 * tenth is left out at each end. A number is odd if it is further outside that range than six
 * robust deviations (1.4826 times the median distance from the median: the standard deviation, if
 * the numbers are normal) and than 5 % of the median. Distances are not taken from the median,
 * because a kind of chips has variants: a variant of every tenth chip, and of two at least, is
 * inside the range. The share keeps out the steps of the measurement: a penalty of ten cycles is
 * known to half a cycle, and if most chips have the same step there is no deviation at all.
 *
 * Fewer than eight chips do not show how far they spread. Three to seven borrow the spread of the
 * same number, relative to the median, from the kinds that have eight; without one they are not
 * judged. Which variant their median is of is not known, so the width of a borrowed inner range
 * counts on both sides of it.
 *
 * A property that a model has by its design is odd if more than half of those with a value have
 * another. Fewer than eight chips are not compared by it.
 *
 * Pure; any thread.
 */
#ifndef REACH_COMPARE_OUTLIER_H
#define REACH_COMPARE_OUTLIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTLIER_LEAST_CHIPS = 8, OUTLIER_LEAST_BORROWING = 3, OUTLIER_OUTSIDE = 10 };
#define OUTLIER_DEVIATIONS 6.0
#define OUTLIER_SCALE      1.4826 /* of the median distance, to estimate a standard deviation */
#define OUTLIER_SHARE      0.05   /* of the median */
#define OUTLIER_NOTHING    1e-100 /* relative to a median like this nothing is said */

/* How the chips of a kind spread in a number. */
struct outlier_spread {
    uint32_t chips;
    double median;
    double deviation;   /* median distance from the median */
    double inner_least; /* the inner range */
    double inner_most;
};

/* A spread relative to the median, to be lent to kinds with few chips: the widest of the kinds with
 * OUTLIER_LEAST_CHIPS. `kinds` is 0 if there is no such kind. */
struct outlier_lent {
    uint32_t kinds;
    double width; /* of the inner range */
    double deviation;
};

/* The rank of the ends of the inner range of `chips` numbers, from 1: 2 of fewer than twenty. */
static inline uint32_t outlier_rank(uint32_t chips)
{
    return chips < 2 * OUTLIER_OUTSIDE ? 2 : 1 + chips / OUTLIER_OUTSIDE;
}

/* Ends of the inner range of `n` numbers in any order; the median of fewer than three. */
double outlier_inner_least(const double *v, size_t n);
double outlier_inner_most(const double *v, size_t n);

/* Of `n` numbers in any order, n >= 1. */
struct outlier_spread outlier_compute_spread(const double *v, size_t n);

/* Makes `lent` at least as wide as the spread of a kind; not by one of too few chips, nor by one
 * whose median is nothing. */
void outlier_lend(struct outlier_lent *lent, const struct outlier_spread *of);

/* The range outside of which a number is odd. False if it cannot be judged. */
bool outlier_bounds(const struct outlier_spread *of, const struct outlier_lent *lent,
                    double *out_low, double *out_high);

/* Is a property odd that differs from one which `have` of `chips` chips have? */
static inline bool outlier_is_odd_property(uint32_t have, uint32_t chips)
{
    return chips >= OUTLIER_LEAST_CHIPS && 2 * have > chips;
}

#endif
