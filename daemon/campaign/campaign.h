/* campaign.h: chooses the next probes of a measurement. Pure: observations so far in, next probes
 * out, coarse to fine. No state is kept between calls: the same observations give the same probes.
 */
#ifndef REACH_CAMPAIGN_CAMPAIGN_H
#define REACH_CAMPAIGN_CAMPAIGN_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum { CAMPAIGN_MAX_SPECS = 32 };

struct campaign_step {
    uint32_t spec_count; /* 0: no probe is missing */
    struct probe_spec specs[CAMPAIGN_MAX_SPECS];
    /* Of the whole measurement done before this step, 0..1. Falls only if a confirmation did not
     * hold, so that a part is done again. */
    double progress;
    char message[96]; /* what this step does: "SM groups: round 3 of about 8" */
};

/* What to run next for a fingerprint at `depth`. STATUS_DISTURBED if the observations contradict
 * each other so that the campaign cannot go on (a group map that never closes, for example). */
enum status campaign_next(const struct observation_set *set, enum depth depth,
                          struct campaign_step *out, struct err *err);

/* Appends a read that brings the clocks up before the probes that count. */
void campaign_warm_up(uint32_t duration_us, uint32_t repeats, struct campaign_step *out);

/* Sets the progress and the message of a step. */
void campaign_describe(struct campaign_step *out, double progress, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
