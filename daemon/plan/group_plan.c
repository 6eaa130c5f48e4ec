/* group_plan.c: see group_plan.h. */
#include "plan/group_plan.h"

#include "analysis/group_reads.h"

#include <stdio.h>

#define FIRST_PART 0.9

void group_plan_next(const struct observation_set *set, const struct structure *s, double from,
                     double to, struct plan_step *out)
{
    struct group_asks asks;

    group_reads_missing(set, s, &asks);
    for (uint32_t i = 0; i < asks.count && out->spec_count < PLAN_MAX_SPECS; i++)
        if (probe_check(&asks.specs[i], &set->limits, NULL) == STATUS_OK)
            out->specs[out->spec_count++] = asks.specs[i];
    if (out->spec_count == 0)
        return;
    /* How many pairs are slow is known for certain only once all of them are there. */
    double done = FIRST_PART * (asks.total - asks.missing) / asks.total;
    if (asks.missing == 0)
        done += (1 - FIRST_PART) * (asks.closer - asks.closer_missing) / asks.closer;
    out->fraction = from + (to - from) * done;
    snprintf(out->sentence, sizeof out->sentence,
             "random reads of each group and of pairs of groups, %u of %u",
             asks.total - asks.missing, asks.total);
}
