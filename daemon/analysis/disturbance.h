/* disturbance.h: decides whether other work on the GPU affected an observation. The function is
 * pure: it derives a verdict and a sentence from one observation. docs/disturbance.md has the rules
 * and their reasons.
 *
 *   conditions   memory errors, the driver's Xid events, the SM clock before and after, throttling
 *   values       loads during which another process had the SM; a footprint curve that falls;
 *                repeats that disagree
 *
 * Only conditions that can change a result count. A process that only holds memory is no
 * disturbance. A clock that rises during the warm-up, a power cap and an idle GPU are no
 * disturbances either. Each observation is classified alone; the code that combines observations
 * finds contradictions between them (analysis.h, confirm.h).
 */
#pragma once

#include "observe/observe.h"

/* Longest time of a load whose SM was not taken away, in cycles. A load that waits for memory
 * behind a full queue takes some thousand cycles. A time slice of another process is at least
 * hundreds of microseconds long. */
#define DISTURBANCE_AWAY_CYCLES 100000u

/* Classifies by the values and conditions; the assessment in `o` is not read. */
void disturbance_classify(const struct observation *o, struct assessment *out);
