/* rate_plan.h: which READ probe next: random accesses of other kinds than the curve's. Pure; a part
 * of plan.c. */
#ifndef REACH_PLAN_RATE_PLAN_H
#define REACH_PLAN_RATE_PLAN_H

#include "analysis/window_level.h"
#include "plan/plan.h"

/* All that are missing: of each kind (analysis/rates.h) one region inside the reach of a group and
 * at most five beyond, naive, and the largest by group. None where the curve has none. */
void rate_plan_next(const struct observation_set *set, const struct structure *s,
                    struct plan_step *out);

#endif
