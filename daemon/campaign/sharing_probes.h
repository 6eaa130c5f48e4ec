/* sharing_probes.h: chooses the next sharing probes. Pure; a part of campaign.c. */
#ifndef REACH_CAMPAIGN_SHARING_PROBES_H
#define REACH_CAMPAIGN_SHARING_PROBES_H

#include "analysis/sharing/window_level.h"
#include "campaign/campaign.h"

/* The next round or pair rows of the first level whose sharing is not known; none where all are, or
 * if neither probe fits a level. STATUS_DISTURBED if a level contradicts itself, or if its
 * groups do not close after as many rounds as there are SMs. */
enum status sharing_probes_next(const struct observation_set *set, const struct structure *s,
                                double share, struct campaign_step *out, struct err *err);

/* The next rows of the full pair matrix of the window level; none where all are there. */
void sharing_probes_matrix(const struct observation_set *set, const struct structure *s,
                           double from_progress, struct campaign_step *out);

#endif
