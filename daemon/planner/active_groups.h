/* active_groups.h: the SM groups that can get work, and the amount of work that each can do. The
 * functions are pure, allocate nothing, and may be called on any thread. */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "planner/placement.h"

/* The active groups, numbered from 0 without gaps. `sizes` and `weights` are indexed by this
 * number. */
struct active_groups {
    uint32_t count;
    uint32_t sizes[REACH_MAX_GROUPS];
    uint16_t dense_of[REACH_MAX_GROUPS]; /* index of a group of the fingerprint in `sizes` */
    bool in[REACH_MAX_GROUPS];           /* true if a group of the fingerprint is active */
    uint32_t weights[REACH_MAX_GROUPS];  /* relative amount of work for each group */
    bool weighted;                       /* weights come from throughput, not from numbers of SMs */
    bool chosen;                         /* the caller excluded some groups */
    uint32_t sms;                        /* number of SMs of all active groups */
    uint32_t slots;                      /* highest SM id + 1 */
};

/* Reads the groups that have SMs. If `groups` is not NULL, it has a value for each group of the
 * fingerprint, and only groups with the value true are active. */
void active_groups_count(const struct fingerprint *fp, const bool *groups,
                         struct active_groups *out);

/* Returns whether this group of the partition is active. Returns false for FINGERPRINT_NO_GROUP. */
static inline bool active_groups_has(const struct active_groups *active,
                                     const struct sm_partition *p, uint16_t group)
{
    return group < p->group_count && group < REACH_MAX_GROUPS &&
           (!active->chosen || active->in[group]);
}

/* Works like placement_plan, but places only these groups. SMs of other groups get window -1. The
 * function is defined in placement.c. */
enum status placement_plan_for(const struct fingerprint *fp,
                               const struct placement_request *request, const bool *groups,
                               struct placement_answer *out, struct err *err);
