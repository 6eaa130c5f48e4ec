/* structure_probes.h: which trace next, for sets, ways, replacement and fill. Pure; a part of
 * campaign.c.
 */
#ifndef REACH_CAMPAIGN_STRUCTURE_PROBES_H
#define REACH_CAMPAIGN_STRUCTURE_PROBES_H

#include "analysis/sharing/window_level.h"
#include "campaign/campaign.h"

/* The traces that analysis/structure/sets.h and analysis/structure/sectored.h still ask for, walked
 * by SM `sm`; none where they know all that they can. */
void structure_probes_next(const struct observation_set *set, const struct structure *s,
                           uint16_t sm, double progress, struct campaign_step *out);

#endif
