/* structure_plan.h: which trace next, for sets, ways, replacement and fill. Pure; a part of plan.c.
 */
#ifndef REACH_PLAN_STRUCTURE_PLAN_H
#define REACH_PLAN_STRUCTURE_PLAN_H

#include "analysis/window_level.h"
#include "plan/plan.h"

/* The traces that analysis/sets.h and analysis/fill.h still ask for, walked by SM `sm`; none where
 * they know all that they can. */
void structure_plan_next(const struct observation_set *set, const struct structure *s, uint16_t sm,
                         double fraction, struct plan_step *out);

#endif
