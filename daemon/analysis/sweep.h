/* sweep.h: steps in one footprint sweep. Pure.
 *
 *   cycles
 *     458 |                         ______   plateau
 *         |                        /
 *     294 |        ________________        plateau: clean | dirty .. full
 *     284 | _______/
 *         +--------------------------------> pages
 *            16 17             2048 2304
 *
 * A median is either a hit's or a miss's latency unless about half of the loads miss, so medians
 * form plateaus even where the share of misses rises slowly. A step is the way from one plateau to
 * a higher one; where it begins and ends is then read off the share of loads above the middle.
 */
#ifndef REACH_ANALYSIS_SWEEP_H
#define REACH_ANALYSIS_SWEEP_H

#include "observe/observe.h"

enum { SWEEP_MAX_STEPS = 8 };

struct sweep_step {
    uint64_t clean_pages; /* last point before, as good as no load above the middle */
    uint64_t dirty_pages; /* the point after it */
    uint64_t full_pages;  /* first point with nearly all loads above; 0: none in this sweep */
    double hit_cycles;    /* the plateau before */
    double miss_cycles;   /* the plateau after */
};

/* Finds the steps of a CHASE observation whose points ascend. Returns their number. */
uint32_t sweep_find_steps(const struct observation *o, struct sweep_step *out);

/* Share (0..1) of the loads of one point that took longer than `threshold_cycles`. */
double sweep_share_above(const struct observation *o, uint32_t point, double threshold_cycles);

#endif
