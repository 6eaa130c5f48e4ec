/* campaign.h: chooses the next probes of a measurement. Pure: observations so far in, next probes
 * out, coarse to fine. The same observations give the same probes, with or without a memo of
 * earlier results. */
#ifndef REACH_CAMPAIGN_CAMPAIGN_H
#define REACH_CAMPAIGN_CAMPAIGN_H

#include "analysis/sharing/window_level.h"
#include "base/status.h"
#include "campaign/campaign_step.h"
#include "fingerprint/fingerprint.h"

/* The results of the last call, so that the next one, with the same observations and more, need not
 * compute them again while the GPU waits. Zero it to start; use it for one measurement at one
 * depth. Finished phases stay finished, and the structure stays as it is, until one of three
 * events: a new latency probe of the device's own memory, another process, or an excluded
 * observation. */
struct campaign_memo {
    bool known;
    size_t walk_count;  /* CHASE, of the device's own memory */
    size_t round_count; /* ROUND and PAIRS */
    size_t excluded_count;
    bool shared;
    struct structure structure;
    uint32_t over; /* phases */
};

/* Chooses the next probes for a fingerprint at `depth`. `memo` may be NULL. Returns
 * STATUS_DISTURBED if the observations contradict each other so that the campaign cannot continue
 * (a group map that never closes, for example). */
enum status campaign_next(const struct observation_set *set, enum depth depth,
                          struct campaign_memo *memo, struct campaign_step *out, struct err *err);

#endif
