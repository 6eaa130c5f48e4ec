/* campaign_step.h: the next probes of a measurement. */
#ifndef REACH_CAMPAIGN_CAMPAIGN_STEP_H
#define REACH_CAMPAIGN_CAMPAIGN_STEP_H

#include "observe/observe.h"

enum { CAMPAIGN_MAX_SPECS = 32 };

/* Fillers follow the specs, so that the GPU need not wait while the next step is chosen. They are
 * probes of later phases that depend on no open result. A filler that has not been run comes as a
 * spec later, so a caller may leave them all out. */
struct campaign_step {
    uint32_t spec_count;   /* 0 if no probe is missing */
    uint32_t filler_count; /* specs and fillers together are at most CAMPAIGN_MAX_SPECS */
    struct probe_spec specs[CAMPAIGN_MAX_SPECS];
    /* Share of the whole measurement that is done before this step, 0..1. It falls only if a
     * confirmation did not hold, so that a part is done again. */
    double progress;
    char message[96]; /* for example "SM groups: round 3 of about 8" */
};

/* All SMs read one MiB, which stays in L2. This raises the clocks and measures no TLB level. */
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
