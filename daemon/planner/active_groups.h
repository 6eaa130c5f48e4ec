/* active_groups.h: the SM groups that can get work, and the amount of work that each can do. The
 * functions are pure, allocate nothing, and may be called on any thread. */
#ifndef REACH_PLANNER_ACTIVE_GROUPS_H
#define REACH_PLANNER_ACTIVE_GROUPS_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "planner/placement.h"

/* Densely numbered. */
struct active_groups {
    uint32_t count;
    uint32_t sizes[REACH_MAX_GROUPS];
    uint16_t dense_of[REACH_MAX_GROUPS]; /* weight, by the fingerprint's group number */
    bool in[REACH_MAX_GROUPS];           /* whether the group is active, by the same number */
    uint32_t weights[REACH_MAX_GROUPS];  /* the weights that windows balance */
    bool weighted;                       /* weights are throughput, not numbers of SMs */
    bool chosen;                         /* the caller excluded some groups */
    uint32_t sms;                        /* sum over all of them */
    uint32_t slots;                      /* highest SM id + 1 */
};

/* Reads the groups with SMs. If `groups` is not NULL, only those with `groups` true, by the
 * fingerprint's group number. */
void active_groups_count(const struct fingerprint *fp, const bool *groups,
                         struct active_groups *out);

/* Returns whether this group of the partition works. Returns false for FINGERPRINT_NO_GROUP. */
static inline bool active_groups_has(const struct active_groups *active,
                                     const struct sm_partition *p, uint16_t group)
{
    return group < p->group_count && group < REACH_MAX_GROUPS &&
           (!active->chosen || active->in[group]);
}

/* placement_plan for these groups alone; defined in placement.c. SMs of other groups get -1. */
enum status placement_plan_for(const struct fingerprint *fp,
                               const struct placement_request *request, const bool *groups,
                               struct placement_answer *out, struct err *err);

#endif
