/* rate_probes.h: which READ probe next: random accesses of other kinds than the curve's. Pure; a
 * part of campaign.c. */
#ifndef REACH_CAMPAIGN_RATE_PROBES_H
#define REACH_CAMPAIGN_RATE_PROBES_H

#include "analysis/sharing/window_level.h"
#include "campaign/campaign.h"

/* All that are missing: of each kind (analysis/throughput/rates.h) one region inside the reach of a
 * group and at most five beyond, naive, and the largest by group. None where the curve has none. */
void rate_probes_next(const struct observation_set *set, const struct structure *s,
                      struct campaign_step *out);

#endif
