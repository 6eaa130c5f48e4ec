/* campaign.h: chooses the next probes of a measurement. The function is pure: it takes the
 * observations so far and returns the next probes, from coarse to fine. The same observations give
 * the same probes, with or without a memo of earlier results. */
#pragma once

#include "analysis/sharing/window_level.h"
#include "base/status.h"
#include "campaign/campaign_step.h"
#include "fingerprint/fingerprint.h"

/* The results of the last call. The next call has the same observations and more, so it does not
 * compute these results again while the GPU waits. A memo starts as zeros and serves one
 * measurement at one depth. Three events make the results invalid: a new latency probe of device
 * memory, another process, and an excluded observation. */
struct campaign_memo {
    bool known;
    size_t walk_count;  /* number of CHASE probes of device memory */
    size_t round_count; /* number of ROUND and PAIRS probes */
    size_t excluded_count;
    bool shared;
    struct structure structure;
    uint32_t over; /* number of finished phases */
};

/* Chooses the next probes for a fingerprint at `depth`. `memo` may be NULL. Returns
 * STATUS_DISTURBED if contradictions between observations prevent further probes, for example if a
 * group map never closes. */
enum status campaign_next(const struct observation_set *set, enum depth depth,
                          struct campaign_memo *memo, struct campaign_step *out, struct err *err);
