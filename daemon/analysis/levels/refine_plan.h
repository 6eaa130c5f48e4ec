/* refine_plan.h: chooses the footprints to walk next, for the onset and the saturation of a level
 * whose entry is known. The functions are pure.
 *
 * A refinement is a CHASE at a stride of one entry. It has a reference and up to three points
 * between the most pages known to fit and the fewest known not to fit.
 */
#pragma once

#include "analysis/levels/level_estimate.h"

enum { REFINE_MOST_LAPS = 64 };

#define REFINE_PAGE_ODDS     100.0 /* least odds of a certain page, times the number of pages */
#define REFINE_MOST_CONFUSED 0.45

/* Makes the next refinement. Returns false if the level cannot be refined further. */
bool refine_plan_next(const struct level_estimate *level, const struct gpu_limits *limits,
                      uint16_t sm, struct probe_spec *out);
/* Makes a walk that shows the cost of a miss once more. Returns false if it is out of range. */
bool refine_plan_penalty(const struct level_estimate *level, const struct gpu_limits *limits,
                         uint16_t sm, struct probe_spec *out);
/* Makes a second walk of the two footprints around the saturation. Returns false if the saturation
 * is not known. */
bool refine_plan_saturation(const struct level_estimate *level, const struct gpu_limits *limits,
                            uint16_t sm, struct probe_spec *out);

/* Returns the reference of a level's refinements: a footprint that fits, in pages of its entry. */
uint64_t refine_plan_reference(const struct level_estimate *level);
/* Returns the number of timed laps that decide about `pages` pages. It is three on a quiet chip. */
uint64_t refine_plan_laps(const struct level_estimate *level, uint64_t pages);

/* Returns whether lo_pages and hi_pages are known, and are neighbors or nearly neighbors. */
bool refine_plan_onset_is_fine(const struct level_estimate *level);
/* Returns whether the saturation is known to one page in 128. It stays wider if further probes do
 * not help. */
bool refine_plan_saturation_is_fine(const struct level_estimate *level);
