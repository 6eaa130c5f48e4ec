/* rate_probes.c: see rate_probes.h.
 *
 * The regions are some of the curve's, so that each number has a 128-byte read beside it: the
 * largest within the reach, and of those beyond it every so many. They lie closest around each
 * level's reach, where the curve bends, and so do these.
 */
#include "campaign/rate_probes.h"

#include "analysis/throughput/rates.h"
#include "analysis/throughput/throughput.h"
#include "campaign/read_probes.h"

enum { MOST_BEYOND = 5 };

static void choose_points(const struct read_regions *regions, struct maybe_u64 reach,
                          struct probe_spec *spec)
{
    uint32_t first = 0;

    while (first < regions->count && (!IS_KNOWN(reach) || regions->bytes[first] <= reach.v))
        first++;
    if (first > 0)
        spec->points[spec->point_count++] = regions->bytes[first - 1];
    const uint32_t beyond = regions->count - first;
    const uint32_t taken = beyond < MOST_BEYOND ? beyond : MOST_BEYOND;
    for (uint32_t k = 0; k < taken; k++) {
        /* The first and the last among them, the nearest whole places between. */
        const uint32_t place =
            taken > 1 ? (2 * k * (beyond - 1) + taken - 1) / (2 * (taken - 1)) : 0;
        spec->points[spec->point_count++] = regions->bytes[first + place];
    }
}

/* The largest region by group, where it takes windows at all. */
static void schedule_by_group(const struct observation_set *set, const struct structure *s,
                              const struct rate_kind *kind, uint64_t bytes,
                              struct campaign_step *out)
{
    const struct maybe_u64 window = structure_recommended_bytes(s);
    struct probe_spec spec;

    if (!IS_KNOWN(window) || s->shared_by[s->window_level] != SHARED_GROUP)
        return;
    const struct sm_partition *const partition = &s->sharing[s->window_level].found;
    const uint64_t windows = (bytes + window.v - 1) / window.v;
    if (windows < 2 || windows > partition->group_count || windows > PROBE_MAX_WINDOWS)
        return;
    spec = read_probes_spec((uint32_t)windows);
    spec.access = kind->access;
    spec.transaction_bytes = kind->transaction_bytes;
    spec.points[spec.point_count++] = bytes;
    read_probes_partition_groups(partition, (uint32_t)windows, spec.window_of_sm);
    read_probes_add(set, &spec, out);
}

void rate_probes_next(const struct observation_set *set, const struct structure *s,
                      struct campaign_step *out)
{
    struct read_regions regions;

    if (!throughput_is_from_memory(set))
        return;
    read_probes_regions(set, s, &regions);
    for (uint32_t k = 0; k < RATE_KINDS && regions.count > 0; k++) {
        struct probe_spec naive = read_probes_spec(1);
        naive.access = rate_kinds[k].access;
        naive.transaction_bytes = rate_kinds[k].transaction_bytes;
        choose_points(&regions, structure_reach_bytes(s), &naive);
        for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
            naive.window_of_sm[id] = 0;
        read_probes_add(set, &naive, out);
        schedule_by_group(set, s, &rate_kinds[k], regions.bytes[regions.count - 1], out);
    }
}
