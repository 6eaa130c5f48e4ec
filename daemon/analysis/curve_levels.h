/* curve_levels.h: TLB levels from mean curves at several strides. Pure.
 *
 * The rule is Karnagel's (2017, section 3.1, figure 2). At a stride of one entry, X, every load of
 * a walk that is too long misses. At X/2 every second one does: the same onset in bytes, half the
 * rise. At 2X every load misses again, with as many pages as at X or, where the sets are indexed by
 * plain address bits, with fewer, down to half. Only where all three curves say so, X is the entry.
 *
 *   stride   onset            rise
 *   X/2      a bytes          penalty / 2
 *   X        a bytes          penalty
 *   2X       up to 2a bytes   penalty
 *
 * A step that fits no such triple, but is there at two strides with the same number of pages and
 * the same rise, is a level whose entry is shorter than both: its penalty is known, its size is
 * not. Any other step is told and not taken for a level.
 */
#ifndef REACH_ANALYSIS_CURVE_LEVELS_H
#define REACH_ANALYSIS_CURVE_LEVELS_H

#include "analysis/mean_curve.h"
#include "fingerprint/fingerprint.h"

enum { CURVE_LEVELS_MAX_ODD = 4 };

/* One level. Pages are counted at a stride of `stride_bytes`. */
struct curve_level {
    uint64_t stride_bytes;
    bool entry_known; /* then an entry is stride_bytes long, else shorter */
    struct mean_step step;
    double tolerance_cycles;  /* of the curve it was read from */
    double penalty_cycles;    /* of the step, and of the small rises that follow it */
    double hit_cycles;        /* the mean below it */
    struct maybe_u32 entries; /* most that fit */
};

/* A step that no level explains. */
struct odd_step {
    uint64_t stride_bytes;
    struct mean_step step;
};

struct curve_levels {
    uint32_t count;
    struct curve_level levels[FINGERPRINT_MAX_LEVELS]; /* nearest to the SM first */
    uint32_t odd_count; /* all of them; at most CURVE_LEVELS_MAX_ODD are kept */
    struct odd_step odd[CURVE_LEVELS_MAX_ODD];
};

void curve_levels_estimate(const struct mean_curves *curves, struct curve_levels *out);

#endif
