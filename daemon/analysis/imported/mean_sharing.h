/* mean_sharing.h: finds the SMs that share a level, from a matrix of mean latencies. The functions
 * are pure.
 *
 * The matrix is Karnagel's sharing test (2017, sections 3.3 and 4.2): SM i walks t pages, SM k
 * walks t other pages, and SM i walks its own pages again. The value in row i, column k is the mean
 * of the last walk.
 *
 *   high   SM k evicted the pages of SM i: the two share the level, or something else was slow
 *   low    nothing was evicted: the two certainly share nothing
 *
 * So two SMs share a level if both rows are high, and do not share it if either row is clearly low.
 * On the diagonal an SM evicts itself: the loss there is the cost of a lost walk, and it must be
 * the level's penalty. Each row is judged by itself, because SMs lie at different distances from
 * memory.
 *
 * If all SMs share one level, no row has a low value. Then only the absolute latency shows whether
 * all was lost or nothing. It is compared with a matrix that has contrast, and with the hit and
 * miss latency of the curve. These give the ratio of latencies in the sharing test and on the
 * curve.
 */
#pragma once

#include "analysis/imported/curve_levels.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

struct mean_sharing {
    enum shared_by shared_by;
    struct maybe_f64 confidence;       /* 0..1: distance of the worst value from the threshold */
    struct sm_partition found;         /* valid if shared_by is SHARED_GROUP or SHARED_SM */
    double loss_cycles[REACH_MAX_SMS]; /* loss of an SM by itself, by SM id; 0 if unknown */
    uint32_t matrices;                 /* number of matrices that gave this result */
    enum reason reason;                /* why shared_by is SHARED_UNKNOWN */
};

/* Derives the sharing of each of `levels` from the matrices in `set` about it; `out` has
 * levels->count elements. Several matrices about one level must agree, otherwise the reason is
 * REASON_DISAGREEMENT. */
void mean_sharing_estimate(const struct observation_set *set, const struct curve_levels *levels,
                           struct mean_sharing *out);
