/* campaign.h: chooses the next probes of a measurement. Pure: observations so far in, next probes
 * out, coarse to fine. The same observations give the same probes, with or without a memo of what
 * earlier ones have said.
 */
#ifndef REACH_CAMPAIGN_CAMPAIGN_H
#define REACH_CAMPAIGN_CAMPAIGN_H

#include "analysis/sharing/window_level.h"
#include "fingerprint/fingerprint.h"
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
 * observations contradict each other so that the campaign cannot go on (a group map that never
 * closes, for example). */
enum status campaign_next(const struct observation_set *set, enum depth depth,
                          struct campaign_memo *memo, struct campaign_step *out, struct err *err);

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
