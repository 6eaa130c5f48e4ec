/* outlier.h: the rule by which a chip is odd among its kind. `reachctl compare` and surveys use the
 * same rule: a test compares the survey statements (schema/fleet/outliers.sql, report_outliers.sql)
 * with these functions. docs/compare.md has the error rates, which
 * tests/unit/daemon/compare/test_outlier.c counts.
 *
 * A measured number is compared with all chips of the kind that have it, including the judged one.
 * The inner range leaves out the least and the most of them, or a tenth at each end for twenty and
 * more chips. A number is odd if its distance from that range exceeds both six robust deviations
 * and 5 % of the median. A robust deviation is 1.4826 times the median distance from the median,
 * which is the standard deviation of normally distributed numbers. The distance is measured from
 * the range and not from the median, because a kind of chips has variants. A variant of every tenth
 * chip, and of at least two chips, is inside the range. The 5 % exclude the steps of the
 * measurement: a penalty of ten cycles is precise to half a cycle. If most chips have the same
 * step, the deviation is 0.
 *
 * Fewer than eight chips do not show their spread. Three to seven chips borrow the spread of the
 * same number, relative to the median, from the kinds that have eight. Without such a kind they are
 * not judged. Their median may belong to any variant, so the width of a borrowed inner range counts
 * on both sides of it.
 *
 * A property that a model has by its design is odd if more than half of the chips with a value have
 * another one. Kinds with fewer than eight chips are not compared by properties.
 *
 * The functions are pure and may be called on any thread.
 */
#ifndef REACH_COMPARE_OUTLIER_H
#define REACH_COMPARE_OUTLIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTLIER_LEAST_CHIPS = 8, OUTLIER_LEAST_BORROWING = 3, OUTLIER_OUTSIDE = 10 };
#define OUTLIER_DEVIATIONS 6.0
#define OUTLIER_SCALE      1.4826 /* times the median distance: the standard deviation */
#define OUTLIER_SHARE      0.05   /* part of the median */
#define OUTLIER_NOTHING    1e-100 /* a median below this has no relative spread */

/* The spread of a number among the chips of a kind. */
struct outlier_spread {
    uint32_t chips;
    double median;
    double deviation;   /* median distance from the median */
    double inner_least; /* the inner range */
    double inner_most;
};

/* A spread relative to the median, which is lent to kinds with few chips: the widest of the kinds
 * with OUTLIER_LEAST_CHIPS. `kinds` is 0 if there is no such kind. */
struct outlier_lent {
    uint32_t kinds;
    double width; /* width of the inner range */
    double deviation;
};

/* The rank of the ends of the inner range of `chips` numbers, counted from 1. It is 2 for fewer
 * than twenty. */
static inline uint32_t outlier_rank(uint32_t chips)
{
    return chips < 2 * OUTLIER_OUTSIDE ? 2 : 1 + chips / OUTLIER_OUTSIDE;
}

/* The ends of the inner range of `n` numbers in any order, or the median of fewer than three. */
double outlier_inner_least(const double *v, size_t n);
double outlier_inner_most(const double *v, size_t n);

/* The spread of `n` numbers in any order, n >= 1. */
struct outlier_spread outlier_compute_spread(const double *v, size_t n);

/* Makes `lent` at least as wide as the spread of a kind. A kind with too few chips or with a median
 * near 0 is ignored. */
void outlier_lend(struct outlier_lent *lent, const struct outlier_spread *of);

/* The range outside of which a number is odd. Returns false if the number cannot be judged. */
bool outlier_bounds(const struct outlier_spread *of, const struct outlier_lent *lent,
                    double *out_low, double *out_high);

/* Returns whether a property is odd that differs from the value that `have` of `chips` chips
 * have. */
static inline bool outlier_is_odd_property(uint32_t have, uint32_t chips)
{
    return chips >= OUTLIER_LEAST_CHIPS && 2 * have > chips;
}

#endif
