/* disturbance.h: had something else a hand in this observation? Pure: one observation in, a verdict
 * and a sentence out. What it looks at, and why, is told in docs/disturbance.md.
 *
 *   conditions   memory errors, the driver's Xid events, the SM clock before and after, throttling
 *   values       loads during which the SM was taken away; a footprint curve that falls; repeats
 *                that disagree
 *
 * A process that holds memory is no disturbance, nor is a clock that rises during the warm-up, a
 * power cap or an idle GPU: only what can change a result counts. Judging looks at one observation
 * alone; that observations contradict each other is found where they are put together
 * (analysis.h, confirm.h).
 */
#ifndef REACH_ANALYSIS_DISTURBANCE_H
#define REACH_ANALYSIS_DISTURBANCE_H

#include "observe/observe.h"

/* Longest that a load can take while its SM stays ours, in cycles. A load that waits for memory
 * behind a full queue takes some thousand; a time slice of another process is at least hundreds of
 * microseconds long. */
#define DISTURBANCE_AWAY_CYCLES 100000u

/* Judges by what the observation itself shows; its own assessment is not read. */
void disturbance_classify(const struct observation *o, struct assessment *out);

#endif
