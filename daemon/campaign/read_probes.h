/* read_probes.h: chooses the next READ probes: the throughput curve, and random accesses of other
 * kinds. Pure; a part of campaign.c. */
#ifndef REACH_CAMPAIGN_READ_PROBES_H
#define REACH_CAMPAIGN_READ_PROBES_H

#include "analysis/sharing/window_level.h"
#include "campaign/campaign.h"

/* All READ probes of the curve that are missing: naive over every region, and beyond the reach by
 * group and, as the control that must show no gain, by SM. None if the memory behind the range
 * is too small for throughput to mean anything. */
void read_probes_next(const struct observation_set *set, const struct structure *s,
                      struct campaign_step *out);

/* All that are missing of each other kind (analysis/throughput/throughput.h): one region within the
 * reach of a group and at most five beyond it, naive, and the largest by group. None if the curve
 * has none. */
void read_probes_rates(const struct observation_set *set, const struct structure *s,
                       struct campaign_step *out);

#endif
