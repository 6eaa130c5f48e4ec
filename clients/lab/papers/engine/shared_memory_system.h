/* shared_memory_system.h: the second-level data cache and the memory channels. All cores share
 * them. Each unit is a server with a time at which it is free next. It serves requests in the order
 * of the calls. Times are cycles of the cores. Only one thread may use the system at a time. */
#pragma once

#include "clients/lab/papers/engine/cache.h"
#include "clients/lab/papers/engine/coalescer.h"

enum { LAB_MAX_CHANNELS = 16, LAB_MAX_PORTS = 64 };

struct lab_memory_desc {
    uint32_t cache_bytes, cache_ways; /* size of the caches of all channels */
    uint32_t cache_line_shift;        /* log2 of (line size of the cache / line size of a core) */
    uint32_t cache_cycles;            /* cycles of a hit, from a core and back */
    uint32_t cache_busy;              /* busy cycles of one channel per line of a core */
    uint32_t channels;                /* a power of two */
    uint32_t dram_cycles;             /* cycles that are added if the line misses */
    uint32_t dram_busy;               /* busy cycles of one channel per line of the cache */
    uint32_t cores_per_port;          /* cores that share a port to the channels */
    uint32_t port_busy;               /* busy cycles of a port per line of a core */
    uint32_t entry_busy; /* busy cycles of a channel's cache and of a port per table entry */
};

struct lab_memory {
    struct lab_memory_desc desc;
    struct lab_cache *cache; /* owned */
    uint64_t channel_free[LAB_MAX_CHANNELS];
    uint64_t dram_free[LAB_MAX_CHANNELS];
    uint64_t port_free[LAB_MAX_PORTS];
    uint64_t dram_lines;
};

/* Occupies a server for `busy` cycles, from `now` or from *free if that is later. Returns the
 * start. */
static inline uint64_t lab_server_start(uint64_t *free, uint64_t now, uint32_t busy)
{
    const uint64_t start = *free > now ? *free : now;
    *free = start + busy;
    return start;
}

/* Returns NULL if out of memory. */
struct lab_memory *lab_memory_new(const struct lab_memory_desc *desc);
void lab_memory_free(struct lab_memory *take);

/* Reads a core's line (byte address >> LAB_LINE_SHIFT, 2^cache_line_shift to 2^32 - 1). Returns the
 * cycle in which the data is available. Sets `*out_hit` to whether the cache has the line or has
 * already requested it. */
uint64_t lab_memory_read(struct lab_memory *m, uint32_t core, uint32_t core_line, uint64_t now,
                         bool *out_hit);
/* Reads one entry of the line for a walker. The transfer is shorter. */
uint64_t lab_memory_read_entry(struct lab_memory *m, uint32_t core, uint32_t core_line,
                               uint64_t now, bool *out_hit);
