/* refine.h: onset and saturation of one level, to the page. Pure; a part of levels.c. */
#ifndef REACH_ANALYSIS_REFINE_H
#define REACH_ANALYSIS_REFINE_H

#include "analysis/levels.h"

/* Fills what the refinements of this level say (lo_pages and all that follows). The entry must be
 * known. levels_refine_test (levels.h) says what to ask next. */
void refine_conclude(const struct observation_set *set, struct level_estimate *level);

#endif
