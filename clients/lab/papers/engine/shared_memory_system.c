/* shared_memory_system.c: see shared_memory_system.h. A request takes the core's port, the
 * channel's cache and, if it misses, the channel's memory. A line that is already requested counts
 * as a hit and waits. */
#include "clients/lab/papers/engine/shared_memory_system.h"

#include <stdlib.h>

struct lab_memory *lab_memory_new(const struct lab_memory_desc *desc)
{
    struct lab_memory *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->desc = *desc;
    const uint32_t shift = LAB_LINE_SHIFT + desc->cache_line_shift;
    m->cache = lab_cache_new((desc->cache_bytes >> shift) / desc->cache_ways, desc->cache_ways);
    if (m->cache)
        return m;
    free(m);
    return NULL;
}

void lab_memory_free(struct lab_memory *take)
{
    if (take)
        lab_cache_free(take->cache);
    free(take);
}

/* All bits of the line select the channel, so that no stride uses only one channel. */
static uint32_t line_channel(const struct lab_memory *m, uint32_t line)
{
    return (uint32_t)(((uint64_t)line * 0x9e3779b1u) >> 16) & (m->desc.channels - 1);
}

static uint64_t read_cache_line(struct lab_memory *m, uint32_t core, uint32_t core_line,
                                uint32_t port_busy, uint32_t cache_busy, uint64_t now,
                                bool *out_hit)
{
    const struct lab_memory_desc *d = &m->desc;
    const uint32_t line = core_line >> d->cache_line_shift;
    const uint32_t channel = line_channel(m, line);
    uint64_t at = lab_server_start(&m->port_free[core / d->cores_per_port], now, port_busy);
    at = lab_server_start(&m->channel_free[channel], at, cache_busy) + d->cache_cycles;
    uint32_t slot = lab_cache_find(m->cache, line);
    *out_hit = slot != LAB_NO_SLOT;
    if (*out_hit) {
        lab_cache_use(m->cache, slot);
        return at > m->cache->slots[slot].ready ? at : m->cache->slots[slot].ready;
    }
    uint32_t evicted;
    slot = lab_cache_fill(m->cache, line, &evicted);
    m->dram_lines++;
    at = lab_server_start(&m->dram_free[channel], at, d->dram_busy) + d->dram_cycles;
    m->cache->slots[slot].ready = at;
    return at;
}

uint64_t lab_memory_read(struct lab_memory *m, uint32_t core, uint32_t core_line, uint64_t now,
                         bool *out_hit)
{
    return read_cache_line(m, core, core_line, m->desc.port_busy, m->desc.cache_busy, now, out_hit);
}

uint64_t lab_memory_read_entry(struct lab_memory *m, uint32_t core, uint32_t core_line,
                               uint64_t now, bool *out_hit)
{
    return read_cache_line(m, core, core_line, m->desc.entry_busy, m->desc.entry_busy, now,
                           out_hit);
}
