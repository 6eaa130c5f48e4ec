/* read_plan.h: which READ probe next: the throughput curve. Pure; a part of plan.c. */
#ifndef REACH_PLAN_READ_PLAN_H
#define REACH_PLAN_READ_PLAN_H

#include "analysis/window_level.h"
#include "plan/plan.h"

/* All READ probes of the curve that are missing: naive over every region, and beyond the reach by
 * group and, as the control that must show no gain, by SM. None where the memory behind the range
 * is too small for throughput to mean anything. */
void read_plan_next(const struct observation_set *set, const struct structure *s,
                    struct plan_step *out);

#endif
