/* strategy_text.h: the sentences of the planner, with the numbers it compared. Pure; any thread.
 * Part of placement. Each writes `why` of an option, whose numbers are set. */
#ifndef REACH_PLANNER_STRATEGY_TEXT_H
#define REACH_PLANNER_STRATEGY_TEXT_H

#include "planner/strategy.h"
#include "planner/strategy_cost.h"

void strategy_text_naive(const struct costing *c, bool in_reach, struct strategy_option *o);
void strategy_text_scopes(const struct costing *c, struct strategy_option *o);
/* Any of the three that work in windows. */
void strategy_text_windows(const struct costing *c, const struct placement_answer *w,
                           struct strategy_option *o);

/* Why not. */
void strategy_text_not_needed(const struct costing *c, struct strategy_option *o);
void strategy_text_no_room(const struct costing *c, struct strategy_option *o);
void strategy_text_few_groups(const struct costing *c, struct strategy_option *o);
void strategy_text_no_windows(const struct err *why, struct strategy_option *o);
void strategy_text_no_sm_binding(struct strategy_option *o);
void strategy_text_single_pass(struct strategy_option *o);
void strategy_text_has_input(struct strategy_option *o);

/* The reason of the answer, whose options are ranked. */
void strategy_text_reason(const struct costing *c, bool in_reach, struct strategy_answer *out);

#endif
