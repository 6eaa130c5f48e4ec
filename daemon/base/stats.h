/* stats.h: order statistics. There is no mean for cycles here, on purpose: one interrupted load
 * of 20 000 cycles moves a mean over a dozen and leaves a median alone.
 *
 * All functions need n >= 1 (asserted), may reorder `v` where it is not const, and do not
 * allocate unless they say so. */
#ifndef REACH_BASE_STATS_H
#define REACH_BASE_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Median of n values; the mean of the two middle ones where n is even (median of 1,2,3,4 is 2.5).
 * Reorders `v`. O(n) on average. */
double stats_median_u32(uint32_t *v, size_t n);
double stats_median_f64(double *v, size_t n);
/* The same on a copy: `v` stays as it is. Allocates for n > 512; aborts without memory. */
double stats_median_of_u32(const uint32_t *v, size_t n);
double stats_median_of_f64(const double *v, size_t n);
/* Quantile q in [0, 1], nearest rank (q = 0 is the minimum, 1 the maximum). Reorders `v`. */
uint32_t stats_quantile_u32(uint32_t *v, size_t n, double q);
double stats_quantile_f64(double *v, size_t n, double q);
/* Median absolute deviation from the median (unscaled). Allocates like stats_median_of. */
double stats_mad_of_f64(const double *v, size_t n);
double stats_mad_of_u32(const uint32_t *v, size_t n);

#endif
