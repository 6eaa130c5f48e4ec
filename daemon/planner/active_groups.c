/* active_groups.c: counts the SMs of each group, and weights the groups by their measured
 * throughput if it differs. */
#include "planner/active_groups.h"

#include <math.h>
#include <string.h>

/* Groups count as equally fast if their throughput per SM differs by less than this share. */
#define SPEED_TOLERANCE 0.05

enum { WEIGHT_OF_AN_SM = 64 };

/* Sets the weights to the measured reads, if groups that all work at once do not read in proportion
 * to their SMs. With these weights all groups finish their windows at the same time. If the
 * difference is within noise, the number of SMs stays the weight, because it is equal on every chip
 * of a model. */
static void score_groups(const struct fingerprint *fp, struct active_groups *active)
{
    const struct sm_partition *p = &fp->topology.partition;
    double per_sm[REACH_MAX_GROUPS] = {0};
    double low = INFINITY;
    double high = 0;

    for (uint32_t g = 0; g < p->group_count; g++) {
        const struct maybe_f64 gbps = fp->topology.groups[g].random_read_gbps;
        const uint32_t dense = active->dense_of[g];
        if (active->chosen && !active->in[g])
            continue;
        if (!IS_KNOWN(gbps) || !(gbps.v > 0) || dense >= active->count || active->sizes[dense] == 0)
            return;
        per_sm[dense] = gbps.v / active->sizes[dense];
        low = fmin(low, per_sm[dense]);
        high = fmax(high, per_sm[dense]);
    }
    if (active->count == 0 || low >= high * (1 - SPEED_TOLERANCE))
        return;
    active->weighted = true;
    for (uint32_t i = 0; i < active->count; i++)
        active->weights[i] =
            (uint32_t)lround(per_sm[i] * active->sizes[i] / high * WEIGHT_OF_AN_SM) + 1;
}

/* Returns an upper bound for the SM ids that have a group. The table is longer than any chip, so
 * unused ids are skipped four at a time. */
static uint32_t ids_end(const struct sm_partition *p)
{
    uint32_t end = REACH_MAX_SMS;
    uint64_t four;

    _Static_assert(REACH_MAX_SMS % 4 == 0 && FINGERPRINT_NO_GROUP == UINT16_MAX, "all ones: none");
    for (; end > 0; end -= 4) {
        memcpy(&four, &p->group_of_sm[end - 4], sizeof(four));
        if (four != UINT64_MAX)
            break;
    }
    return end;
}

void active_groups_count(const struct fingerprint *fp, const bool *groups,
                         struct active_groups *active)
{
    const struct sm_partition *p = &fp->topology.partition;
    const uint32_t groups_end =
        p->group_count < REACH_MAX_GROUPS ? p->group_count : REACH_MAX_GROUPS;
    const uint32_t end = ids_end(p);
    uint32_t sizes[REACH_MAX_GROUPS] = {0};

    memset(active, 0, sizeof(*active));
    active->chosen = groups != NULL;
    active->slots = fp->gpu.sm_count < REACH_MAX_SMS ? fp->gpu.sm_count : REACH_MAX_SMS;
    if (p->group_count == 0)
        return;
    for (uint32_t sm = 0; sm < end; sm++) {
        uint16_t group = p->group_of_sm[sm];
        if (group >= groups_end)
            continue;
        if (sm >= active->slots)
            active->slots = sm + 1;
        if (groups && !groups[group])
            continue;
        sizes[group]++;
        active->sms++;
    }
    for (uint32_t g = 0; g < groups_end; g++) {
        if (sizes[g] == 0)
            continue;
        active->in[g] = true;
        active->dense_of[g] = (uint16_t)active->count;
        active->weights[active->count] = sizes[g];
        active->sizes[active->count++] = sizes[g];
    }
    score_groups(fp, active);
}
