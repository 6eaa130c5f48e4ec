/* campaign.h: which probe next. Pure: observations so far in, next probes out; coarse to fine. The
 * plan keeps no state between calls: asked again with the same observations it answers the same. */
#ifndef REACH_CAMPAIGN_CAMPAIGN_H
#define REACH_CAMPAIGN_CAMPAIGN_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum { CAMPAIGN_MAX_SPECS = 32 };

struct campaign_step {
    uint32_t spec_count; /* 0: nothing left to ask */
    struct probe_spec specs[CAMPAIGN_MAX_SPECS];
    /* Of the whole measurement done before this step, 0..1. Falls only where a confirmation did not
     * hold, so that a part is done again. */
    double progress;
    char message[96]; /* what this step does: "SM groups: round 3 of about 8" */
};

/* What to run next for a fingerprint at `depth`. STATUS_DISTURBED where the plan cannot go on
 * because the observations contradict each other (a group map that never closes, say). */
enum status campaign_next(const struct observation_set *set, enum depth depth,
                          struct campaign_step *out, struct err *err);

#endif
