/* group_plan.h: which READ probe next, of each group alone and of every pair of groups. Pure; a
 * part of plan.c. */
#ifndef REACH_PLAN_GROUP_PLAN_H
#define REACH_PLAN_GROUP_PLAN_H

#include "analysis/window_level.h"
#include "plan/plan.h"

/* The probes that analysis/group_reads.h still misses; none where it has all. The fraction goes
 * from `from` to `to`. */
void group_plan_next(const struct observation_set *set, const struct structure *s, double from,
                     double to, struct plan_step *out);

#endif
