/* confirm.h: repeats the probes on which a result rests. The functions are pure. The campaign,
 * which schedules these probes, and the analysis, which reads them, share the functions.
 *
 * A time slice of another process may begin and end between two timed loads. It then leaves no long
 * load behind, but an empty TLB. Pages that fit miss once, and the measured onset is too low. The
 * bracket of a refined level {the most pages that fit, somewhat more than the fewest that do not}
 * is therefore probed once more. An onset by chance does not come back. Nothing makes pages hit
 * that do not fit.
 *
 * If the pages at the upper end of the bracket now fit, the onset is searched for again beyond the
 * bracket (levels.c).
 *
 * A step of the sweep that led to no entry is also walked again. A step that was caused by a
 * change of the clock does not come back.
 *
 * A quiet measurement confirms once. If an observation was disturbed or interrupted, two
 * confirmations must agree, and every row of pairs needs a second vote.
 */
#pragma once

#include "analysis/sharing/window_level.h"

enum { CONFIRM_MOST_ASKED = 5 }; /* largest number of attempts for one level */

enum confirmation {
    CONFIRMATION_DONE = 0, /* the probes agreed, or there was nothing to confirm */
    CONFIRMATION_OPEN,     /* the probe must be made (again) */
    CONFIRMATION_REFUTED   /* the result does not hold after enough probes */
};

/* Makes the confirmation of one level, on SM `sm`. Returns false if there is no confirmation,
 * because the level has no bracket or the probe is out of range. */
bool confirm_test(const struct observation_set *set, const struct level_estimate *level,
                  uint16_t sm, struct probe_spec *out);
/* Returns the result of the confirmations so far. */
enum confirmation confirm_level(const struct observation_set *set,
                                const struct level_estimate *level);

/* Finds whether the saturation of this level is certain. Beside other processes the saturation must
 * have been seen twice, without a contradiction. If the result is CONFIRMATION_OPEN, `*out` is the
 * next probe. */
enum confirmation confirm_saturation(const struct observation_set *set,
                                     const struct level_estimate *level, uint16_t sm,
                                     struct probe_spec *out);

/* Finds whether the miss penalty of this level is certain. Beside other processes two observations
 * must have shown it. If the result is CONFIRMATION_OPEN, `*out` is the next probe. */
enum confirmation confirm_penalty(const struct observation_set *set,
                                  const struct level_estimate *level, uint16_t sm,
                                  struct probe_spec *out);

/* Returns the observation of a row of pairs about level `k` that needs a second vote, or NULL. */
const struct observation *confirm_pairs(const struct observation_set *set,
                                        const struct structure *s, uint32_t k);
