/* group_probes.c: see group_probes.h. */
#include "campaign/group_probes.h"

#include "analysis/throughput/group_reads.h"

#include <stdio.h>

#define FIRST_PART 0.9

void group_probes_next(const struct observation_set *set, const struct structure *s, double from,
                       double to, struct campaign_step *out)
{
    struct group_asks asks;

    group_reads_missing(set, s, &asks);
    for (uint32_t i = 0; i < asks.count && out->spec_count < CAMPAIGN_MAX_SPECS; i++)
        if (probe_check(&asks.specs[i], &set->limits, NULL) == STATUS_OK)
            out->specs[out->spec_count++] = asks.specs[i];
    if (out->spec_count == 0)
        return;
    /* How many pairs are slow is known for certain only once all of them are there. */
    double done = FIRST_PART * (asks.total - asks.missing) / asks.total;
    if (asks.missing == 0)
        done += (1 - FIRST_PART) * (asks.closer - asks.closer_missing) / asks.closer;
    out->progress = from + (to - from) * done;
    snprintf(out->message, sizeof out->message,
             "random reads of each group and of pairs of groups, %u of %u",
             asks.total - asks.missing, asks.total);
}
