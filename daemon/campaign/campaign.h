/* campaign.h: chooses the next probes of a measurement. Pure: observations so far in, next probes
 * out, coarse to fine. The same observations give the same probes, with or without a memo of what
 * earlier ones have said.
 */
#ifndef REACH_CAMPAIGN_CAMPAIGN_H
#define REACH_CAMPAIGN_CAMPAIGN_H

#include "analysis/sharing/window_level.h"
#include "base/status.h"
#include "campaign/campaign_step.h"
#include "fingerprint/fingerprint.h"

/* What the last call has found, so that the next one, with the same observations and more, need not
 * find it again: the GPU waits meanwhile. Zero it to start; of one measurement at one depth. The
 * phases that are over stay over, and the structure stays as it is, until there is a new latency
 * probe of the device's own memory, another process shows, or an observation is excluded. */
struct campaign_memo {
    bool known;
    size_t walk_count;  /* CHASE, of the device's own memory */
    size_t round_count; /* ROUND and PAIRS */
    size_t excluded_count;
    bool shared;
    struct structure structure;
    uint32_t over; /* phases */
};

/* What to run next for a fingerprint at `depth`. `memo` may be NULL. STATUS_DISTURBED if the
 * observations contradict each other so that the campaign cannot continue (a group map that never
 * closes, for example). */
enum status campaign_next(const struct observation_set *set, enum depth depth,
                          struct campaign_memo *memo, struct campaign_step *out, struct err *err);

#endif
