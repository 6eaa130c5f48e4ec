/* refine.h: finds the onset and the saturation of one level, to the page, from its refinements. The
 * functions are pure.
 *
 * refine_plan.h chooses the footprints that are walked.
 */
#pragma once

#include "analysis/levels/level_estimate.h"

/* Fills in lo_pages and all members after it. The entry must be known. */
void refine_derive(const struct observation_set *set, struct level_estimate *level);

/* Return whether the pages of this point of a CHASE observation fit, or whether some miss. Point 0
 * is the reference. A miss of the level costs `penalty_cycles`. Outliers are distinguished from
 * misses; if that is impossible, both return false. Point 0 itself fits unless it shows misses of
 * its own. */
bool refine_fits(const struct observation *o, uint32_t point, double penalty_cycles);
bool refine_misses(const struct observation *o, uint32_t point, double penalty_cycles);
