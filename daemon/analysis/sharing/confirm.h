/* confirm.h: repeats the probes on which a result rests. Pure; shared by the campaign, which
 * schedules them, and the analysis, which reads them.
 *
 * A time slice of another process that begins and ends between two timed loads leaves no long load
 * behind, but an empty TLB: pages that fit miss once, and the onset comes out too low. What was
 * found about a refined level {the most pages that fit, somewhat more than the fewest that do not}
 * is therefore probed once more. An onset that was made by chance does not come back. Nothing
 * makes pages hit that do not fit.
 *
 * If those pages fit, the onset is searched for again beyond them (levels.c).
 *
 * A step of the sweep that led to no entry is walked again likewise: one that a change of the clock
 * has made does not come back.
 *
 * A quiet measurement confirms once; one in which some observation was disturbed, or a stretch of
 * it interrupted, needs two that agree, and a second vote of every row of pairs.
 */
#ifndef REACH_ANALYSIS_SHARING_CONFIRM_H
#define REACH_ANALYSIS_SHARING_CONFIRM_H

#include "analysis/sharing/window_level.h"

enum { CONFIRM_MOST_ASKED = 5 }; /* times for one level */

enum confirmation {
    CONFIRMATION_DONE = 0, /* agreed, or nothing to confirm */
    CONFIRMATION_OPEN,     /* probe (again) */
    CONFIRMATION_REFUTED   /* probed often enough, and it does not hold */
};

/* The confirmation of one level, on SM `sm`. False if there is none: an entry without a bracket, or
 * out of range. */
bool confirm_test(const struct observation_set *set, const struct level_estimate *level,
                  uint16_t sm, struct probe_spec *out);
/* What the answers so far amount to. */
enum confirmation confirm_level(const struct observation_set *set,
                                const struct level_estimate *level);

/* Is the saturation of this level certain? Beside other processes it must have been seen twice, and
 * nothing else. If it is open, `*out` is the probe that is wanted, if there is one. */
enum confirmation confirm_saturation(const struct observation_set *set,
                                     const struct level_estimate *level, uint16_t sm,
                                     struct probe_spec *out);

/* A row of pairs about level `k` that wants a second vote: its observation, or NULL. */
const struct observation *confirm_pairs(const struct observation_set *set,
                                        const struct structure *s, uint32_t k);

#endif
