/* group_probes.h: which READ probe next, of each group alone and of every pair of groups. Pure; a
 * part of campaign.c. */
#ifndef REACH_CAMPAIGN_GROUP_PROBES_H
#define REACH_CAMPAIGN_GROUP_PROBES_H

#include "analysis/sharing/window_level.h"
#include "campaign/campaign.h"

/* The probes that analysis/throughput/group_reads.h still misses; none where it has all. The
 * fraction goes from `from` to `to`. */
void group_probes_next(const struct observation_set *set, const struct structure *s, double from,
                       double to, struct campaign_step *out);

#endif
