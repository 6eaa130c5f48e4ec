/* confirm_probes.h: what was found is asked for once more (analysis/sharing/confirm.h). Pure; a
 * part of campaign.c. */
#ifndef REACH_CAMPAIGN_CONFIRM_PROBES_H
#define REACH_CAMPAIGN_CONFIRM_PROBES_H

#include "analysis/sharing/window_level.h"
#include "campaign/campaign.h"

/* The confirmations that are missing. STATUS_DISTURBED where one was asked for often enough and
 * does not come. */
enum status confirm_probes_next(const struct observation_set *set, const struct structure *s,
                                uint16_t sm, struct campaign_step *out, struct err *err);

#endif
