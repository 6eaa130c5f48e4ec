/* curve_levels.h: finds TLB levels in mean curves at several strides. The functions are pure.
 *
 * The rule is Karnagel's (2017, section 3.1, figure 2). At a stride of one entry, X, every load of
 * a walk that is too long misses. At X/2 every second load misses. So the onset is at the same
 * number of bytes, and the rise is half as high. At 2X every load misses again, with the same
 * number of pages as at X. It is half of that number if plain address bits choose one of an even
 * number of sets. X is the entry only if all three curves agree.
 *
 *   stride   onset            rise
 *   X/2      a bytes          penalty / 2
 *   X        a bytes          penalty
 *   2X       2a or a bytes    penalty
 *
 * A step that fits no triple of this kind is reported and is not taken for a level. Two levels that
 * overflow together, with no plateau between them, look like one.
 */
#pragma once

#include "analysis/imported/mean_curve.h"
#include "fingerprint/fingerprint.h"

enum { CURVE_LEVELS_MAX_ODD = 4 };

/* One level. Its entry is stride_bytes long, and pages are counted at that stride. */
struct curve_level {
    uint64_t stride_bytes;
    struct mean_step step;
    uint64_t half_onset_pages; /* onset at half the stride, in pages of half the size */
    uint64_t twice_onset_pages;
    double tolerance_cycles;  /* tolerance of the curve that shows the level */
    double penalty_cycles;    /* penalty of the step and of the small rises after it */
    bool settled;             /* the later steps show the end of this step */
    bool saturation_known;    /* the scatter is small enough to show the end of the rise */
    double hit_cycles;        /* mean cycles of a load that hits this level */
    struct maybe_u32 entries; /* number of entries */
};

/* A step that no level explains. */
struct odd_step {
    uint64_t stride_bytes;
    struct mean_step step;
};

struct curve_levels {
    uint32_t count;
    struct curve_level levels[FINGERPRINT_MAX_LEVELS]; /* nearest to the SM first */
    uint32_t odd_count; /* number of all odd steps; at most CURVE_LEVELS_MAX_ODD are kept */
    struct odd_step odd[CURVE_LEVELS_MAX_ODD];
};

/* Finds the levels, and marks the steps that a level explains. */
void curve_levels_estimate(struct mean_curves *curves, struct curve_levels *out);
