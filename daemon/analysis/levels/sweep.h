/* sweep.h: finds the steps in one footprint sweep. The functions are pure.
 *
 *   cycles (95th percentile)
 *     473 |                         ______   plateau
 *         |                        /
 *     297 |        ________________        plateau: clean | dirty .. full
 *     287 | _______/
 *         +--------------------------------> pages
 *            16 17             2048 2304
 *
 * A level that overflows lifts some loads by its miss penalty: all of them if the stride is an
 * entry or longer, one in E / S if an entry covers E bytes and the stride is S < E (Karnagel 2017,
 * figure 2: X/2 has the same onset and a lower plateau). The 95th percentile shows one slow load in
 * 16, and outliers of one load in a hundred do not move it. Percentiles form plateaus, and a step
 * leads from one plateau to a higher one. The share of slow loads shows the beginning and the end
 * of a step.
 */
#pragma once

#include "observe/observe.h"

enum { SWEEP_MAX_STEPS = 8 };

struct sweep_step {
    uint64_t last_fit_pages;   /* pages of the last point before the step; almost no load is slow */
    uint64_t first_miss_pages; /* pages of the next point */
    uint64_t full_pages;       /* pages of the first point with the highest share of slow loads */
    double penalty_cycles;     /* distance of the two plateaus */
    double share;              /* share of loads that miss on the upper plateau, 0..1 */
};

/* Finds the steps of a CHASE observation whose points ascend. Returns their number. `own_lines`
 * means that every page was probed on its own line (a plain allocation), at its own distance. A
 * step then counts only if pages that were probed before it have become slower themselves. An
 * overflow evicts these pages too, and lines further away do not affect them. If pages share near
 * lines, slower pages are not required, because a disturbance of the smaller footprint could hide a
 * level. */
uint32_t sweep_find_steps(const struct observation *o, bool own_lines, struct sweep_step *out);

/* Returns whether the steps that sweep_find_steps found in `o` explain all its rises. A step needs
 * a plateau behind it. If the SM clock changes from point to point, the points behind a step differ
 * from one another, and no step is found. A rise is three points in a row above all points before
 * it. Fewer points at the end of the range show no plateau on a quiet GPU either. */
bool sweep_is_explained(const struct observation *o, const struct sweep_step *steps,
                        uint32_t count);

/* Return the median of the loads of one point, their quantile `q`, and the distance of two of their
 * quantiles. All are in cycles. */
double sweep_median(const struct observation *o, uint32_t point);
double sweep_quantile(const struct observation *o, uint32_t point, double q);
double sweep_spread(const struct observation *o, uint32_t point, double low, double high);

/* Returns the median of the loads of one page in a walk of `pages` pages. Load k reads page k
 * modulo `pages`. */
double sweep_page_median(const uint32_t *loads, uint64_t samples, uint64_t pages, uint64_t page);

/* Returns the share (0..1) of the loads of one point that took longer than `threshold_cycles`. */
double sweep_share_above(const struct observation *o, uint32_t point, double threshold_cycles);
