/* stats.h: calculates order statistics. There is no mean for cycles, on purpose. One interrupted
 * load of 20 000 cycles changes the mean of a dozen loads but not the median.
 *
 * All functions need n >= 1 (asserted) and do not change `v`. They copy it, to the heap if n is
 * above 512. If memory runs out, the functions count instead, which takes longer and gives the same
 * result.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Return the median of n values, in O(n) on average. If n is even, it is the mean of the two middle
 * values (the median of 1,2,3,4 is 2.5). */
double stats_median_u32(const uint32_t *v, size_t n);
double stats_median_f64(const double *v, size_t n);
/* Return the quantile q in [0, 1] by nearest rank (0 is the minimum, 1 the maximum). */
uint32_t stats_quantile_u32(const uint32_t *v, size_t n, double q);
double stats_quantile_f64(const double *v, size_t n, double q);
/* The number of values above `threshold`; n may be 0. */
uint32_t stats_count_above_u32(const uint32_t *v, size_t n, double threshold);
/* Returns the median absolute deviation from the median, unscaled. */
double stats_mad_f64(const double *v, size_t n);
