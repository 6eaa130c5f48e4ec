/* active_groups.h: the SM groups that can get work, and how much work each can do. Pure; no
 * allocation; any thread. */
#ifndef REACH_PLANNER_ACTIVE_GROUPS_H
#define REACH_PLANNER_ACTIVE_GROUPS_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "planner/placement.h"

/* Densely numbered. */
struct active_groups {
    uint32_t count;
    uint32_t sizes[REACH_MAX_GROUPS];
    uint16_t dense_of[REACH_MAX_GROUPS]; /* by the fingerprint's group number */
    bool in[REACH_MAX_GROUPS];           /* likewise: is it one of these? */
    uint32_t weights[REACH_MAX_GROUPS];  /* what windows are balanced by */
    bool weighted;                       /* by throughput; otherwise by SMs */
    bool chosen;                         /* the caller excluded some groups */
    uint32_t sms;                        /* in all of them */
    uint32_t slots;                      /* highest SM id + 1 */
};

/* All groups with SMs, or those of them for which `groups`, by the fingerprint's number, is true
 * (NULL: all). */
void active_groups_count(const struct fingerprint *fp, const bool *groups,
                         struct active_groups *out);

/* Does this group of the partition work? False for FINGERPRINT_NO_GROUP. */
static inline bool active_groups_has(const struct active_groups *active,
                                     const struct sm_partition *p, uint16_t group)
{
    return group < p->group_count && group < REACH_MAX_GROUPS &&
           (!active->chosen || active->in[group]);
}

/* placement_plan for these groups alone; in placement.c. SMs of the others get -1. */
enum status placement_plan_for(const struct fingerprint *fp,
                               const struct placement_request *request, const bool *groups,
                               struct placement_answer *out, struct err *err);

#endif
