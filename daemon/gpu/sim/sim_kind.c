/* sim_kind.c: reads the text of other kinds of memory of a simulated GPU, and describes each kind
 * as a separate GPU. That GPU has two levels of translation, one for each group of SMs and one for
 * the whole GPU. One walker behind them serves all misses. */
#include "gpu/sim/sim_text.h"

#include <string.h>

enum { MAX_GBPS = 1000000, MAX_MISS_NS = 1000000, MIN_ENTRY_BYTES = 4096 };

#define AT(member) offsetof(struct sim_kind, member)

static const struct sim_part numbers[] = {
    {"", {SIM_F64, AT(gbps), MAX_GBPS}},
    {"/", {SIM_U32, AT(sms_to_fill), REACH_MAX_SMS}},
    {"@", {SIM_U32, AT(latency_cycles), SIM_MAX_CYCLES}},
    {",", {SIM_BYTES, AT(entry_bytes), 0}},
    {",", {SIM_U32, AT(group_entries), SIM_MAX_ENTRIES}},
    {"+", {SIM_U32, AT(group_miss_cycles), SIM_MAX_CYCLES}},
    {",", {SIM_U32, AT(gpu_entries), SIM_MAX_ENTRIES}},
    {"+", {SIM_U32, AT(gpu_miss_cycles), SIM_MAX_CYCLES}},
    {",", {SIM_F64, AT(miss_ns), MAX_MISS_NS}},
};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

enum status sim_kind_read(struct sim_cursor *c, struct sim_kind *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned r = REASON_NOT_SUPPORTED; r <= REASON_NO_HOST_MEMORY; r++) {
        if (!sim_text_skip(c, reason_slug((enum reason)r)))
            continue;
        out->refused = (enum reason)r;
        return STATUS_OK;
    }
    const enum status s =
        sim_text_parts(c, numbers, NUMBERS,
                       "expected GB/s/SMs@cycles,entry,entries+cycles,entries+cycles,ns", out);
    if (s != STATUS_OK)
        return s;
    if (!(out->gbps > 0) || out->sms_to_fill == 0)
        return sim_text_fail(c, "the memory must have a speed and SMs");
    if (out->entry_bytes < MIN_ENTRY_BYTES)
        return sim_text_fail(c, "an entry must translate at least 4K");
    return STATUS_OK;
}

/* Returns the level whose groups the table of a group follows: the last level that is not shared by
 * the whole GPU. */
static const struct sim_level *group_level(const struct sim_desc *d)
{
    uint32_t i = d->level_count - 1;

    while (i > 0 && d->levels[i].instance_count == 1)
        i--;
    return &d->levels[i];
}

static struct sim_level *add_level(struct sim_desc *d, const struct sim_level *shared_as,
                                   uint64_t entry_bytes, uint32_t entries, uint32_t miss_cycles)
{
    struct sim_level *const l = &d->levels[d->level_count++];

    *l = (struct sim_level){.entry_bytes = entry_bytes,
                            .entries = entries,
                            .miss_cycles = miss_cycles,
                            .walkers = 1,
                            .sectors = 1,
                            .run_count = 1,
                            .runs = {{.ways = entries, .count = 1}},
                            .instance_count = 1};
    if (shared_as) {
        l->instance_count = shared_as->instance_count;
        memcpy(l->instance_of_sm, shared_as->instance_of_sm, sizeof l->instance_of_sm);
    }
    return l;
}

void sim_kind_desc(const struct sim_desc *desc, enum memory_kind kind, uint32_t node,
                   uint64_t range_bytes, struct sim_desc *out)
{
    const struct sim_kind *const k = &desc->kinds[kind];
    const bool is_far = node > 1 && desc->far_node_gbps < k->gbps;
    const double gbps = is_far ? desc->far_node_gbps : k->gbps;

    *out = *desc;
    memset(out->levels, 0, sizeof out->levels);
    out->level_count = 0;
    out->memory_bytes = out->range_bytes = range_bytes;
    out->latency_cycles = k->latency_cycles;
    out->plateau_gbps = gbps;
    out->sm_gbps = gbps / k->sms_to_fill;
    if (k->group_entries > 0)
        add_level(out, group_level(desc), k->entry_bytes, k->group_entries, k->group_miss_cycles);
    if (k->gpu_entries > 0)
        add_level(out, NULL, k->entry_bytes, k->gpu_entries, k->gpu_miss_cycles)->miss_ns =
            k->miss_ns;
    else if (k->group_entries > 0)
        out->levels[0].miss_ns = k->miss_ns;
    else
        add_level(out, NULL, range_bytes, 1, 0);
}
