/* mean_curve.h: finds plateaus and steps in one curve of mean latencies. The functions are pure.
 *
 * A mean curve has one number per footprint: the mean of all loads of a walk. So there is no share
 * of slow loads to count, unlike in sweep.c. The curve shows only plateaus, the steps between them,
 * and the scatter of the numbers.
 *
 *   cycles
 *     305 |                 ________   to
 *         |               _/
 *     250 |  ____________/             from:  clean | dirty .. full
 *         +--------------------------> pages
 *
 * Two means count as equal within a tolerance that comes from the curve itself. It is four times
 * the scatter of neighboring points, and no less than two cycles. The reason is that the benchmarks
 * cut their means to whole cycles, in one or two places.
 */
#pragma once

#include "base/status.h"
#include "observe/observe.h"

enum { MEAN_CURVE_MAX_STEPS = 12, MEAN_CURVES_MAX = 64 };

struct mean_point {
    uint64_t pages;
    double cycles;
};

struct mean_step {
    uint64_t last_fit_pages;   /* pages of the last point on the lower plateau */
    uint64_t first_miss_pages; /* pages of the next point */
    uint64_t full_pages;       /* pages of the first point on the upper plateau */
    double from_cycles;        /* height of the lower plateau */
    double to_cycles;          /* height of the upper plateau */
    bool sharp;     /* the first dirty point rises so far that no smaller rise hides before it */
    bool gapped;    /* footprints within the step were not probed, and a plateau could hide there */
    bool explained; /* a level explains this step (curve_levels.h) */
    bool falls_back; /* a point after the first dirty one is as low as the lower plateau */
};

struct mean_curve {
    uint64_t stride_bytes;
    uint32_t count;
    struct mean_point *points; /* owned; in ascending order of pages, each number of pages once */
    double tolerance_cycles;
    double last_cycles; /* median of the last few points */
    uint32_t outliers;  /* number of single points that left a plateau */
    uint32_t step_count;
    struct mean_step steps[MEAN_CURVE_MAX_STEPS];
};

struct mean_curves {
    uint32_t count;
    struct mean_curve curves[MEAN_CURVES_MAX]; /* ascending strides */
};

/* Collects the MEANS observations of `set` into one curve per stride and finds the steps of each.
 * Points that were measured twice are averaged. Strides beyond MEAN_CURVES_MAX are left out. The
 * caller owns `*out` (mean_curves_free). May return STATUS_NO_MEMORY. */
enum status mean_curves_read(const struct observation_set *set, struct mean_curves *out,
                             struct err *err);
void mean_curves_free(struct mean_curves *take);

/* Returns the curve of this stride, or NULL. */
struct mean_curve *mean_curves_at(struct mean_curves *curves, uint64_t stride_bytes);
