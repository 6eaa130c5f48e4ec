/* read_probes.c: see read_probes.h.
 *
 * Regions: doublings up to the whole memory, and around each level's reach, where the curve bends.
 * Windows: as few as the reach allows, dealt whole groups at a time so that each has about as many
 * SMs. The control deals the same number of windows along the SMs in order of their groups, so that
 * every group meets as many windows as it has SMs for: what a job would do that knows windows but
 * not groups. It must gain nothing (Walker 2024, figure 1).
 */
#include "campaign/read_probes.h"

#include "analysis/throughput/throughput.h"
#include "base/units.h"

#include <string.h>

enum { READ_US = 1000, READ_REPEATS = 3, READ_SEED = 20240 };

/* Keeps the list ascending and free of doubles, within the memory and the range. */
static void add_region(struct read_regions *r, uint64_t bytes, uint64_t most)
{
    uint32_t at = 0;
    bytes -= bytes % (2 * MIB);
    if (bytes == 0 || bytes > most || r->count == READ_PROBES_MAX_REGIONS)
        return;
    while (at < r->count && r->bytes[at] < bytes)
        at++;
    if (at < r->count && r->bytes[at] == bytes)
        return;
    memmove(&r->bytes[at + 1], &r->bytes[at], (r->count - at) * sizeof r->bytes[0]);
    r->bytes[at] = bytes;
    r->count += 1;
}

void read_probes_regions(const struct observation_set *set, const struct structure *s,
                         struct read_regions *out)
{
    static const uint32_t sixteenths[] = {16, 17, 18, 20, 24, 28, 32};
    const uint64_t range = set->limits.range_bytes;
    const uint64_t memory = set->gpu.memory_bytes < range ? set->gpu.memory_bytes : range;

    memset(out, 0, sizeof *out);
    add_region(out, memory, memory);
    for (uint32_t k = 0; k < s->level_count; k++) {
        const struct level_estimate *level = &s->levels[k];
        if (!level->entry_known || (int)k < s->window_level)
            continue;
        for (size_t i = 0; i < sizeof sixteenths / sizeof sixteenths[0]; i++)
            add_region(out, level->lo_pages * level->entry_bytes / 16 * sixteenths[i], memory);
    }
    for (uint64_t bytes = memory > 64 * GIB ? GIB : memory / 64; bytes < memory; bytes *= 2)
        add_region(out, bytes, memory);
}

void read_probes_partition_groups(const struct sm_partition *partition, uint32_t windows,
                                  uint16_t *out)
{
    uint32_t sms_of_group[REACH_MAX_GROUPS] = {0};
    uint32_t sms_of_window[PROBE_MAX_WINDOWS] = {0};
    bool dealt[REACH_MAX_GROUPS] = {false};
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        if (partition->group_of_sm[id] != FINGERPRINT_NO_GROUP)
            sms_of_group[partition->group_of_sm[id]] += 1;
    for (uint32_t n = 0; n < partition->group_count; n++) {
        uint32_t g = 0;
        uint32_t w = 0;
        for (uint32_t i = 0; i < partition->group_count; i++)
            if (!dealt[i] && (dealt[g] || sms_of_group[i] > sms_of_group[g]))
                g = i;
        for (uint32_t i = 1; i < windows; i++)
            if (sms_of_window[i] < sms_of_window[w])
                w = i;
        dealt[g] = true;
        sms_of_window[w] += sms_of_group[g];
        for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
            if (partition->group_of_sm[id] == g)
                out[id] = (uint16_t)w;
    }
}

static void partition_sms(const struct sm_partition *partition, uint32_t windows, uint16_t *out)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < partition->group_count; g++)
        for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
            if (partition->group_of_sm[id] == g)
                out[id] = (uint16_t)(n++ % windows);
}

static bool has_read(const struct observation_set *set, const struct probe_spec *spec)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct probe_spec *s = &set->items[i].spec;
        if (s->kind == PROBE_READ && s->access == spec->access &&
            probe_access_bytes(s) == probe_access_bytes(spec) &&
            s->window_count == spec->window_count && s->point_count == spec->point_count &&
            memcmp(s->points, spec->points, sizeof s->points) == 0 &&
            memcmp(s->window_of_sm, spec->window_of_sm, sizeof s->window_of_sm) == 0)
            return true;
    }
    return false;
}

void read_probes_add(const struct observation_set *set, const struct probe_spec *spec,
                     struct campaign_step *out)
{
    if (spec->point_count > 0 && out->spec_count < CAMPAIGN_MAX_SPECS && !has_read(set, spec))
        out->specs[out->spec_count++] = *spec;
}

struct probe_spec read_probes_spec(uint32_t windows)
{
    struct probe_spec spec = {.kind = PROBE_READ,
                              .repeats = READ_REPEATS,
                              .duration_us = READ_US,
                              .seed = READ_SEED,
                              .window_count = windows,
                              .window_sms = REACH_MAX_SMS};
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        spec.window_of_sm[id] = PROBE_SM_IDLE;
    return spec;
}

/* The regions that need just this number of windows, by group and by SM. */
static void schedule_windows(const struct observation_set *set, const struct read_regions *regions,
                             const struct sm_partition *partition, uint64_t window_bytes,
                             uint32_t windows, struct campaign_step *out)
{
    struct probe_spec spec = read_probes_spec(windows);
    for (uint32_t i = 0; i < regions->count; i++)
        if ((regions->bytes[i] + window_bytes - 1) / window_bytes == windows)
            spec.points[spec.point_count++] = regions->bytes[i];
    read_probes_partition_groups(partition, windows, spec.window_of_sm);
    read_probes_add(set, &spec, out);
    partition_sms(partition, windows, spec.window_of_sm);
    read_probes_add(set, &spec, out);
}

void read_probes_next(const struct observation_set *set, const struct structure *s,
                      struct campaign_step *out)
{
    const struct maybe_u64 window = structure_recommended_bytes(s);
    struct probe_spec naive = read_probes_spec(1);
    struct read_regions regions;

    if (!throughput_is_from_memory(set))
        return;
    read_probes_regions(set, s, &regions);
    naive.point_count = regions.count;
    memcpy(naive.points, regions.bytes, sizeof regions.bytes);
    memset(naive.window_of_sm, 0, sizeof naive.window_of_sm);
    read_probes_add(set, &naive, out);
    if (!IS_KNOWN(window) || s->shared_by[s->window_level] != SHARED_GROUP)
        return;
    const struct sm_partition *partition = &s->sharing[s->window_level].found;
    const uint32_t most =
        partition->group_count < PROBE_MAX_WINDOWS ? partition->group_count : PROBE_MAX_WINDOWS;
    for (uint32_t w = 2; w <= most; w++)
        schedule_windows(set, &regions, partition, window.v, w, out);
}
