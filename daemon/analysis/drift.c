/* drift.c: see drift.h. */
#include "analysis/drift.h"

#include "analysis/throughput/throughput.h"

#include <stdio.h>

enum { SPEED_US = 1000, SPEED_SEED = 20242 };

bool drift_speed_test(const struct fingerprint *fp, const struct gpu_limits *limits,
                      struct probe_spec *out)
{
    const struct throughput *const t = &fp->throughput;
    const struct maybe_u64 reach = fp->windows.reach_bytes;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < t->curve_count; i++) {
        const uint64_t region = t->curve[i].region_bytes;

        if (IS_KNOWN(t->curve[i].naive_gbps) && region > bytes &&
            (!IS_KNOWN(reach) || region <= reach.v))
            bytes = region;
    }
    *out = (struct probe_spec){.kind = PROBE_READ,
                               .repeats = THROUGHPUT_REPEATS,
                               .duration_us = SPEED_US,
                               .seed = SPEED_SEED,
                               .window_count = 1,
                               .window_sms = REACH_MAX_SMS,
                               .point_count = 1,
                               .points = {bytes}};
    return bytes > 0 && IS_KNOWN(t->plateau_gbps) && probe_check(out, limits, NULL) == STATUS_OK;
}

/* Collects the highest clock and the highest generation of the link. */
static void note_conditions(const struct observation *items, size_t count,
                            struct fingerprint_conditions *io)
{
    for (size_t i = 0; i < count; i++) {
        maybe_u32_raise(&io->sm_clock_khz, items[i].result.conditions.sm_clock_khz);
        maybe_u32_raise(&io->pcie_generation_used, items[i].result.conditions.pcie_generation);
    }
}

static void find_clock(const struct maybe_u32 *before, const struct maybe_u32 *now,
                       struct drift *out)
{
    if (IS_KNOWN(*before) && IS_KNOWN(*now) && now->v < (1 - DRIFT_SHARE) * before->v)
        snprintf(out->speed, sizeof out->speed, "the SM clock was %u MHz and is %u MHz",
                 before->v / 1000, now->v / 1000);
}

static void find_speed(const struct fingerprint *fp, const struct observation_set *set,
                       struct drift *out)
{
    const double before = fp->throughput.plateau_gbps.v;
    struct probe_spec test;
    struct evidence evidence;

    if (!drift_speed_test(fp, &set->limits, &test))
        return;
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_READ));) {
        const double now = probe_same(&o->spec, &test)
                               ? throughput_median_gbps(o, 0, EVIDENCE_RANDOM_READS, &evidence)
                               : before;

        if (now < (1 - DRIFT_SHARE) * before)
            snprintf(out->speed, sizeof out->speed,
                     "random reads of device memory had %.0f GB/s and have %.0f GB/s", before, now);
    }
}

bool drift_is_any(const struct drift *d)
{
    return d->speed[0] || d->link[0];
}

void drift_confirm(const struct drift *before, struct drift *io)
{
    if (!before->speed[0])
        io->speed[0] = '\0';
    if (!before->link[0])
        io->link[0] = '\0';
}

void drift_find(const struct fingerprint *fp, const struct observation_set *set, struct drift *out)
{
    struct fingerprint_conditions now = {
        .pcie_generation = set->limits.pcie_generation,
        .pcie_lanes = set->limits.pcie_lanes,
        .pcie_lanes_supported = set->limits.pcie_lanes_supported,
    };

    *out = (struct drift){.speed = ""};
    note_conditions(set->items, set->count, &now);
    note_conditions(set->excluded.items, set->excluded.count, &now);
    find_speed(fp, set, out);
    find_clock(&fp->conditions.sm_clock_khz, &now.sm_clock_khz, out);
    if (!link_is_slow(&now, out->link))
        (void)link_has_slowed(&fp->conditions, &now, out->link);
}
