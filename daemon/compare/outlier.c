/* outlier.c: computes the spread and the bounds of a number among the chips of a kind. */
#include "compare/outlier.h"

#include "base/stats.h"

#include <math.h>

/* Returns the value of a rank, from 1. Rank k of n is the quantile (k - 0.5) / n, which needs no
 * rounding. */
static double of_rank(const double *v, size_t n, uint32_t rank)
{
    return stats_quantile_f64(v, n, ((double)rank - 0.5) / (double)n);
}

double outlier_inner_least(const double *v, size_t n)
{
    return n < 3 ? stats_median_f64(v, n) : of_rank(v, n, outlier_rank((uint32_t)n));
}

double outlier_inner_most(const double *v, size_t n)
{
    const uint32_t rank = outlier_rank((uint32_t)n);

    return n < 3 ? stats_median_f64(v, n) : of_rank(v, n, (uint32_t)n + 1 - rank);
}

struct outlier_spread outlier_compute_spread(const double *v, size_t n)
{
    return (struct outlier_spread){.chips = (uint32_t)n,
                                   .median = stats_median_f64(v, n),
                                   .deviation = stats_mad_f64(v, n),
                                   .inner_least = outlier_inner_least(v, n),
                                   .inner_most = outlier_inner_most(v, n)};
}

void outlier_lend(struct outlier_lent *lent, const struct outlier_spread *of)
{
    const double median = fabs(of->median);

    if (of->chips < OUTLIER_LEAST_CHIPS || median <= OUTLIER_NOTHING)
        return;
    lent->kinds++;
    lent->width = fmax(lent->width, (of->inner_most - of->inner_least) / median);
    lent->deviation = fmax(lent->deviation, of->deviation / median);
}

bool outlier_bounds(const struct outlier_spread *of, const struct outlier_lent *lent,
                    double *out_low, double *out_high)
{
    const double median = fabs(of->median);
    double low = of->inner_least;
    double high = of->inner_most;
    double deviation = of->deviation;
    double beyond;

    if (of->chips < OUTLIER_LEAST_CHIPS) {
        if (of->chips < OUTLIER_LEAST_BORROWING || lent->kinds == 0)
            return false;
        low = fmin(low, of->median - lent->width * median);
        high = fmax(high, of->median + lent->width * median);
        deviation = fmax(deviation, lent->deviation * median);
    }
    beyond = fmax(OUTLIER_DEVIATIONS * OUTLIER_SCALE * deviation, OUTLIER_SHARE * median);
    *out_low = low - beyond;
    *out_high = high + beyond;
    return true;
}
