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

/* ---- shared with rate_plan.c ---- */

enum { READ_PLAN_MAX_REGIONS = 30 };

/* Ascending, without doubles; the last is the largest that can be probed. */
struct read_regions {
    uint32_t count;
    uint64_t bytes[READ_PLAN_MAX_REGIONS];
};

/* Those of the curve. */
void read_plan_regions(const struct observation_set *set, const struct structure *s,
                       struct read_regions *out);
/* A READ of so many windows, with no points yet and all SMs idle. */
struct probe_spec read_plan_spec(uint32_t windows);
/* The window of each SM, by id: whole groups, so that each window has about as many SMs. `out` has
 * REACH_MAX_SMS slots; those of SMs without a group are not written. */
void read_plan_deal_groups(const struct sm_partition *partition, uint32_t windows, uint16_t *out);
/* Appends the spec, unless it has no points, there is no room or it has been answered. */
void read_plan_add(const struct observation_set *set, const struct probe_spec *spec,
                   struct plan_step *out);

#endif
