/* detail.c: see detail.h. */
#include "analysis/detail.h"

#include "analysis/fill.h"
#include "analysis/sets.h"

#include <string.h>

static void take_sets(const struct sets_estimate *sets, struct tlb_level *out)
{
    out->sets = sets->sets;
    out->ways = sets->ways;
    out->victim_entries = sets->victim_entries;
    out->replacement = sets->replacement;
    out->run_count = sets->run_count;
    memcpy(out->runs, sets->runs, sizeof out->runs);
}

/* Whose size the driver tells is known. A plain allocation's is not told, and managed memory is
 * not probed on hardware: asked for carelessly it can take the whole GPU down. */
static void take_pages(const struct observation_set *set, struct fingerprint *out)
{
    const struct maybe_u64 granule = KNOWN_U64(set->limits.granule_bytes);

    out->page_bytes[ALLOCATION_VIRTUAL] = UNKNOWN_U64(REASON_NOT_MEASURED);
    out->page_bytes[ALLOCATION_PLAIN] = NOT_OBSERVABLE_U64(REASON_NOT_REPORTED);
    out->page_bytes[ALLOCATION_MANAGED] = UNKNOWN_U64(REASON_NOT_MEASURED);
    if (set->limits.granule_bytes == 0)
        return;
    if (set->limits.arena != ARENA_PLAIN)
        out->page_bytes[ALLOCATION_VIRTUAL] = granule;
    if (set->limits.arena == ARENA_SIMULATED)
        out->page_bytes[ALLOCATION_PLAIN] = out->page_bytes[ALLOCATION_MANAGED] = granule;
}

/* The largest footprint of any sweep showed no step more. So what answers the last level's misses
 * is one level with a longer reach, or page walks: from here the two look the same. */
static void take_beyond(const struct observation_set *set, struct fingerprint *out)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct probe_spec *spec = &set->items[i].spec;
        if (spec->kind != PROBE_CHASE || spec->point_count < LEVELS_SWEEP_POINTS)
            continue;
        for (uint32_t p = 0; p < spec->point_count; p++)
            if (spec->points[p] * spec->stride_bytes > out->beyond.probed_bytes)
                out->beyond.probed_bytes = spec->points[p] * spec->stride_bytes;
    }
    out->beyond.reach_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    out->beyond.walk_cycles = NOT_OBSERVABLE_F64(REASON_BEYOND_MEMORY);
}

void detail_conclude(const struct observation_set *set, const struct structure *s,
                     struct fingerprint *out)
{
    struct sets_estimate sets[LEVELS_MAX];
    struct fill_estimate fill;

    sets_estimate_all(set, s, sets);
    for (uint32_t k = 0; k < s->level_count; k++) {
        take_sets(&sets[k], &out->levels[k]);
        fill_estimate(set, s, k, &fill);
        out->levels[k].fill = fill.fill;
        out->levels[k].tag_bytes = fill.tag_bytes;
        if (set->limits.arena != ARENA_PLAIN)
            out->levels[k].entry_pages = fill.entry_pages;
        else
            out->levels[k].entry_pages = UNKNOWN_U32(REASON_NOT_REPORTED);
    }
    take_pages(set, out);
    take_beyond(set, out);
}
