/* machine.c: see machine.h. The speed of memory and noise are left out, because counts do not
 * depend on them. */
#include "clients/lab/whatif/machine.h"

#include <math.h>

static bool is_power_of_two(uint32_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

static void set_sms(const struct fingerprint *fp, struct sim_desc *out)
{
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++) {
        if (fp->topology.partition.group_of_sm[id] != FINGERPRINT_NO_GROUP)
            out->sm_ids[out->sm_count++] = (uint16_t)id;
    }
}

/* Returns the number of recent misses that the level keeps, from the entries that a cyclic walk
 * finds beyond the sets. A set has w ways. The walk finds v more entries if the recent misses hold
 * w + 1 pages of v sets, but not of v + 1 sets. The function returns the power of two in that
 * range, or the least number if there is no power of two. One entry beyond sets of 8 gives 16. The
 * latency traces of all H100s and H200s confirm this number load by load. */
static uint32_t recent_misses(uint32_t victims, uint32_t ways)
{
    const uint32_t least = victims * (ways + 1);
    uint32_t power = 1;
    while (power < least)
        power *= 2;
    const uint32_t count = power < least + ways + 1 ? power : least;
    return count <= SIM_MAX_RECENT && ways <= SIM_MAX_SHORT_WAYS ? count : 0;
}

/* Sets the entries that were measured in sets. Entries beyond the sets are not included. */
static bool set_sets(const struct tlb_level *from, struct sim_level *out)
{
    uint32_t in_sets = 0;
    for (uint32_t i = 0; i < from->run_count && i < SIM_MAX_RUNS; i++) {
        out->runs[i] = (struct sim_run){from->runs[i].ways, from->runs[i].sets};
        in_sets += from->runs[i].ways * from->runs[i].sets;
    }
    out->run_count = from->run_count;
    out->entries = in_sets;
    out->recent = from->victim_entries.v > 0 && out->policy == SIM_LRU
                      ? recent_misses(from->victim_entries.v, from->runs[0].ways)
                      : 0;
    if (from->run_count == 1 && from->runs[0].sets > 1 && is_power_of_two(from->runs[0].sets))
        out->hash = SIM_HASH_XOR;
    if (from->run_count == 0 && from->entries.known == MAYBE_KNOWN) {
        out->runs[0] = (struct sim_run){from->entries.v, 1};
        out->run_count = 1;
        out->entries = from->entries.v;
        out->recent = 0;
    }
    return from->run_count <= SIM_MAX_RUNS && out->entries > 0 && out->entries <= SIM_MAX_ENTRIES;
}

static bool set_level(const struct tlb_level *from, const struct sim_desc *machine,
                      const struct sm_partition *groups, struct sim_level *out)
{
    *out = (struct sim_level){.entry_bytes = from->entry_bytes.v, .walkers = 1, .sectors = 1};
    out->policy = from->replacement == REPLACEMENT_NOT_LRU ? SIM_RANDOM : SIM_LRU;
    out->miss_cycles = (uint32_t)lround(from->miss_penalty_cycles.v);
    for (uint32_t i = 0; i < machine->sm_count; i++) {
        const uint16_t group = from->shared_by == SHARED_SM ? (uint16_t)i
                               : from->shared_by == SHARED_GPU
                                   ? 0
                                   : groups->group_of_sm[machine->sm_ids[i]];
        out->instance_of_sm[i] = group;
        out->instance_count = group >= out->instance_count ? group + 1u : out->instance_count;
    }
    return from->shared_by != SHARED_UNKNOWN && out->entry_bytes > 0 && set_sets(from, out);
}

enum status machine_from_fingerprint(const struct fingerprint *fp, struct sim_desc *out,
                                     struct err *err)
{
    bool has_window_level = false;
    *out = (struct sim_desc){.memory_bytes = fp->gpu.memory_bytes, .seed = 1};
    set_sms(fp, out);
    if (out->sm_count == 0)
        return err_set(err, STATUS_INCONCLUSIVE, "the groups of the SMs are unknown");
    for (uint32_t i = 0; i < fp->level_count && out->level_count < SIM_MAX_LEVELS; i++) {
        if (!set_level(&fp->levels[i], out, &fp->topology.partition,
                       &out->levels[out->level_count]))
            continue;
        out->level_count++;
        has_window_level = has_window_level || fp->levels[i].level == fp->topology.level.v;
    }
    if (!has_window_level)
        return err_set(err, STATUS_INCONCLUSIVE, "the entries of the window level are unknown");
    return STATUS_OK;
}

bool machine_data_cache(const struct fingerprint *fp, const struct sim_desc *machine,
                        struct sim_desc *out)
{
    const struct cache_facts *l1 = &fp->caches[CACHE_L1];
    struct sim_level *level = &out->levels[0];
    *out = (struct sim_desc){.seed = 1, .sm_count = machine->sm_count, .level_count = 1};
    if (!IS_KNOWN(l1->fits_bytes) || !IS_KNOWN(l1->line_bytes) || l1->line_bytes.v == 0 ||
        l1->fits_bytes.v < l1->line_bytes.v ||
        l1->fits_bytes.v / l1->line_bytes.v > SIM_MAX_ENTRIES)
        return false;
    level->entry_bytes = l1->line_bytes.v;
    level->entries = (uint32_t)(l1->fits_bytes.v / l1->line_bytes.v);
    level->walkers = 1;
    level->sectors = 1;
    level->run_count = 1;
    level->runs[0] = (struct sim_run){level->entries, 1};
    level->policy = l1->replacement == REPLACEMENT_NOT_LRU ? SIM_RANDOM : SIM_LRU;
    level->instance_count = machine->sm_count;
    for (uint32_t i = 0; i < machine->sm_count; i++)
        level->instance_of_sm[i] = (uint16_t)i;
    return true;
}
