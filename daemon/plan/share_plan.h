/* share_plan.h: which sharing probe next. Pure; a part of plan.c. */
#ifndef REACH_PLAN_SHARE_PLAN_H
#define REACH_PLAN_SHARE_PLAN_H

#include "analysis/window_level.h"
#include "plan/plan.h"

/* The next round or pair rows of the first level whose sharing is not known; none where all are, or
 * where neither probe fits a level. STATUS_DISTURBED where a level contradicts itself, or where its
 * groups do not close after as many rounds as there are SMs. */
enum status share_plan_next(const struct observation_set *set, const struct structure *s,
                            double share, struct plan_step *out, struct err *err);

/* The next rows of the full pair matrix of the window level; none where all are there. */
void share_plan_matrix(const struct observation_set *set, const struct structure *s,
                       double from_fraction, struct plan_step *out);

#endif
