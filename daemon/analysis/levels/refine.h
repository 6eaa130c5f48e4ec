/* refine.h: onset and saturation of one level, to the page. Pure; a part of levels.c.
 *
 *   refine_plan.c  which footprints to walk next
 *   refine.c      what they said
 */
#ifndef REACH_ANALYSIS_LEVELS_REFINE_H
#define REACH_ANALYSIS_LEVELS_REFINE_H

#include "analysis/levels/levels.h"

enum { REFINE_MOST_LAPS = 64 };

#define REFINE_PAGE_ODDS     100.0 /* a page is beyond doubt at this many times the number of pages */
#define REFINE_MOST_CONFUSED 0.45

/* Fills what the refinements of this level say (lo_pages and all that follows). The entry must be
 * known. levels_refine_test (levels.h) says what to ask next. */
void refine_derive(const struct observation_set *set, struct level_estimate *level);

/* The reference of a level's refinements: a footprint that fits, in pages of its entry. */
uint64_t refine_reference(const struct level_estimate *level);
/* Are lo_pages and hi_pages there, and neighbours or as good as? */
bool refine_onset_is_fine(const struct level_estimate *level);

#endif
