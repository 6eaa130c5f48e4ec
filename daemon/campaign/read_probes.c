/* read_probes.c: see probes.h.
 *
 * Regions double up to the whole memory. More regions are around the reach of each level, where the
 * curve bends. There are as few windows as the reach allows. Each window has whole groups, and all
 * windows have about the same number of SMs. The control assigns the same number of windows along
 * the SMs in order of their groups, so that every group is spread over several windows. A job that
 * ignores groups would have such windows. The control must gain nothing (Walker 2024, figure 1).
 */
#include "campaign/probes.h"

#include "analysis/throughput/throughput.h"
#include "base/units.h"

#include <string.h>

enum {
    READ_US = 1000,
    READ_SEED = 20240,
    MAX_REGIONS = 30,
    MOST_BEYOND = 5 /* largest number of regions beyond the reach for other kinds of access */
};

/* Regions in ascending order, without duplicates; the last is the largest that can be probed. */
struct read_regions {
    uint32_t count;
    uint64_t bytes[MAX_REGIONS];
};

/* Adds a region and keeps the list ascending and without duplicates, within the memory and the
 * range. */
static void add_region(struct read_regions *r, uint64_t bytes, uint64_t most)
{
    uint32_t at = 0;
    bytes -= bytes % (2 * MIB);
    if (bytes == 0 || bytes > most || r->count == MAX_REGIONS)
        return;
    while (at < r->count && r->bytes[at] < bytes)
        at++;
    if (at < r->count && r->bytes[at] == bytes)
        return;
    memmove(&r->bytes[at + 1], &r->bytes[at], (r->count - at) * sizeof r->bytes[0]);
    r->bytes[at] = bytes;
    r->count += 1;
}

static void find_regions(const struct observation_set *set, const struct structure *s,
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

void read_probes_by_group(const struct sm_partition *partition, uint32_t windows, uint16_t *out)
{
    uint32_t sms_of_group[REACH_MAX_GROUPS] = {0};
    uint32_t sms_of_window[PROBE_MAX_WINDOWS] = {0};
    bool assigned[REACH_MAX_GROUPS] = {false};
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        if (partition->group_of_sm[id] != FINGERPRINT_NO_GROUP)
            sms_of_group[partition->group_of_sm[id]] += 1;
    for (uint32_t n = 0; n < partition->group_count; n++) {
        uint32_t g = 0;
        uint32_t w = 0;
        for (uint32_t i = 0; i < partition->group_count; i++)
            if (!assigned[i] && (assigned[g] || sms_of_group[i] > sms_of_group[g]))
                g = i;
        for (uint32_t i = 1; i < windows; i++)
            if (sms_of_window[i] < sms_of_window[w])
                w = i;
        assigned[g] = true;
        sms_of_window[w] += sms_of_group[g];
        for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
            if (partition->group_of_sm[id] == g)
                out[id] = (uint16_t)w;
    }
}

void read_probes_by_sm(const struct sm_partition *partition, uint32_t windows, uint16_t *out)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < partition->group_count; g++)
        for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
            if (partition->group_of_sm[id] == g)
                out[id] = (uint16_t)(n++ % windows);
}

/* Returns the observation of `spec` with the most repeats, or NULL if no observation has at least
 * the repeats of `spec`. */
static const struct observation *find_read(const struct observation_set *set,
                                           const struct probe_spec *spec)
{
    const struct observation *found = NULL;

    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_READ));) {
        const struct probe_spec *s = &o->spec;
        if (s->run_bytes == 0 && s->access == spec->access &&
            probe_access_bytes(s) == probe_access_bytes(spec) &&
            s->window_count == spec->window_count && s->point_count == spec->point_count &&
            s->repeats >= spec->repeats && (!found || s->repeats > found->spec.repeats) &&
            memcmp(s->points, spec->points, sizeof s->points) == 0 &&
            memcmp(s->window_of_sm, spec->window_of_sm, sizeof s->window_of_sm) == 0)
            found = o;
    }
    return found;
}

/* Returns a spec with more repeats for those points of `o` whose repeats disagree. */
static struct probe_spec read_again(const struct observation *o, const struct probe_spec *spec)
{
    struct probe_spec again = *spec;

    memset(again.points, 0, sizeof again.points);
    again.point_count = 0;
    again.repeats = THROUGHPUT_MORE_REPEATS;
    for (uint32_t p = 0; p < spec->point_count; p++)
        if (throughput_disagrees(o, p))
            again.points[again.point_count++] = spec->points[p];
    return again;
}

/* Adds the spec if it has points and the step has room. If the set has an observation of the spec,
 * adds only the points that need more repeats. */
static void add_spec(const struct observation_set *set, const struct probe_spec *spec,
                     struct campaign_step *out)
{
    const struct observation *const o = find_read(set, spec);
    const struct probe_spec wanted = o ? read_again(o, spec) : *spec;

    if (wanted.point_count > 0 && out->spec_count < CAMPAIGN_MAX_SPECS &&
        (!o || !find_read(set, &wanted)))
        out->specs[out->spec_count++] = wanted;
}

/* Returns a READ with this number of windows, without points and with all SMs idle. */
static struct probe_spec base_spec(uint32_t windows)
{
    struct probe_spec spec = {.kind = PROBE_READ,
                              .repeats = THROUGHPUT_REPEATS,
                              .duration_us = READ_US,
                              .seed = READ_SEED,
                              .window_count = windows,
                              .window_sms = REACH_MAX_SMS};
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        spec.window_of_sm[id] = PROBE_SM_IDLE;
    return spec;
}

/* Schedules the regions that need exactly this number of windows, by group and by SM. */
static void schedule_windows(const struct observation_set *set, const struct read_regions *regions,
                             const struct sm_partition *partition, uint64_t window_bytes,
                             uint32_t windows, struct campaign_step *out)
{
    struct probe_spec spec = base_spec(windows);
    for (uint32_t i = 0; i < regions->count; i++)
        if ((regions->bytes[i] + window_bytes - 1) / window_bytes == windows)
            spec.points[spec.point_count++] = regions->bytes[i];
    read_probes_by_group(partition, windows, spec.window_of_sm);
    add_spec(set, &spec, out);
    read_probes_by_sm(partition, windows, spec.window_of_sm);
    add_spec(set, &spec, out);
}

void read_probes_next(const struct observation_set *set, const struct structure *s,
                      struct campaign_step *out)
{
    const struct maybe_u64 window = structure_recommended_bytes(s);
    struct probe_spec naive = base_spec(1);
    struct read_regions regions;

    if (!throughput_is_from_memory(set))
        return;
    find_regions(set, s, &regions);
    naive.point_count = regions.count;
    memcpy(naive.points, regions.bytes, sizeof regions.bytes);
    memset(naive.window_of_sm, 0, sizeof naive.window_of_sm);
    add_spec(set, &naive, out);
    if (!IS_KNOWN(window) || s->shared_by[s->window_level] != SHARED_GROUP)
        return;
    const struct sm_partition *partition = &s->sharing[s->window_level].found;
    const uint32_t most =
        partition->group_count < PROBE_MAX_WINDOWS ? partition->group_count : PROBE_MAX_WINDOWS;
    for (uint32_t w = 2; w <= most; w++)
        schedule_windows(set, &regions, partition, window.v, w, out);
}

/* ---- other kinds of access ---- */

/* Chooses regions of the curve, so that each number can be compared with a 128-byte read. The
 * choice is the largest region within the reach, and a regular selection of the regions beyond the
 * reach. */
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
        /* the places of the first and the last region, and rounded places at equal distances
         * between them */
        const uint32_t place =
            taken > 1 ? (2 * k * (beyond - 1) + taken - 1) / (2 * (taken - 1)) : 0;
        spec->points[spec->point_count++] = regions->bytes[first + place];
    }
}

/* Schedules the largest region by group, if it needs windows. */
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
    spec = base_spec((uint32_t)windows);
    spec.access = kind->access;
    spec.transaction_bytes = kind->transaction_bytes;
    spec.points[spec.point_count++] = bytes;
    read_probes_by_group(partition, (uint32_t)windows, spec.window_of_sm);
    add_spec(set, &spec, out);
}

void read_probes_rates(const struct observation_set *set, const struct structure *s,
                       struct campaign_step *out)
{
    struct read_regions regions;

    if (!throughput_is_from_memory(set))
        return;
    find_regions(set, s, &regions);
    for (uint32_t k = 0; k < RATE_KINDS && regions.count > 0; k++) {
        struct probe_spec naive = base_spec(1);
        naive.access = rate_kinds[k].access;
        naive.transaction_bytes = rate_kinds[k].transaction_bytes;
        choose_points(&regions, structure_reach_bytes(s), &naive);
        for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
            naive.window_of_sm[id] = 0;
        add_spec(set, &naive, out);
        schedule_by_group(set, s, &rate_kinds[k], regions.bytes[regions.count - 1], out);
    }
}
