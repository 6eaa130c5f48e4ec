/* campaign_step.h: the next probes of a measurement. */
#pragma once

#include "observe/observe.h"

enum { CAMPAIGN_MAX_SPECS = 32 };

/* The probes of a step. Fillers follow the specs, so that the GPU does not wait while the next step
 * is chosen. Fillers are probes of later phases that depend on no open result. A filler that was
 * not run becomes a spec of a later step, so a caller may ignore all fillers. */
struct campaign_step {
    uint32_t spec_count;   /* number of specs; 0 if no probe is missing */
    uint32_t filler_count; /* number of fillers, at most CAMPAIGN_MAX_SPECS - spec_count */
    struct probe_spec specs[CAMPAIGN_MAX_SPECS];
    /* The share of the measurement that is done before this step, 0..1. It falls only if a
     * confirmation failed, so that a part is done again. */
    double progress;
    char message[96]; /* for example "SM groups: round 3 of about 8" */
};

/* Returns a probe in which all SMs read one MiB, which stays in the L2. The probe raises the clocks
 * and measures no TLB level. */
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
