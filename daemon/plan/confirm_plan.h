/* confirm_plan.h: what was found is asked for once more (analysis/confirm.h). Pure; a part of
 * plan.c. */
#ifndef REACH_PLAN_CONFIRM_PLAN_H
#define REACH_PLAN_CONFIRM_PLAN_H

#include "analysis/window_level.h"
#include "plan/plan.h"

/* The confirmations that are missing. STATUS_DISTURBED where one was asked for often enough and
 * does not come. */
enum status confirm_plan_next(const struct observation_set *set, const struct structure *s,
                              uint16_t sm, struct plan_step *out, struct err *err);

#endif
