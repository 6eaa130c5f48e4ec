/* campaign_step.h: the next probes of a measurement. */
#ifndef REACH_CAMPAIGN_CAMPAIGN_STEP_H
#define REACH_CAMPAIGN_CAMPAIGN_STEP_H

#include "observe/observe.h"

enum { CAMPAIGN_MAX_SPECS = 32 };

/* Behind the specs come fillers, so that the GPU need not wait while the next step is chosen:
 * probes of later phases, which depend on nothing that is still open. A filler that has not been
 * run comes as a spec later, so a caller may leave them all out. */
struct campaign_step {
    uint32_t spec_count;   /* 0: no probe is missing */
    uint32_t filler_count; /* specs and fillers are CAMPAIGN_MAX_SPECS at most */
    struct probe_spec specs[CAMPAIGN_MAX_SPECS];
    /* Of the whole measurement done before this step, 0..1. Falls only if a confirmation did not
     * hold, so that a part is done again. */
    double progress;
    char message[96]; /* what this step does: "SM groups: round 3 of about 8" */
};

/* All SMs read one MiB, which stays in L2: this raises the clocks and measures no TLB level. */
static inline struct probe_spec campaign_warm_up(uint32_t duration_us, uint32_t repeats)
{
    return (struct probe_spec){.kind = PROBE_READ,
                               .point_count = 1,
                               .points = {1 << 20},
                               .repeats = repeats,
                               .duration_us = duration_us,
                               .seed = 1,
                               .window_count = 1,
                               .window_sms = REACH_MAX_SMS};
}

#endif
