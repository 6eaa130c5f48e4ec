/* serve.h: what the cores share: the second-level data cache and the memory channels. Each is a
 * server with a next free time, which takes requests in the order in which they are made. Times are
 * cycles of the cores. One thread at a time. */
#ifndef REACH_CLIENTS_LAB_SERVE_H
#define REACH_CLIENTS_LAB_SERVE_H

#include "clients/lab/cache.h"

enum { LAB_MAX_CHANNELS = 16, LAB_MAX_PORTS = 64, LAB_LINE_SHIFT = 7 };

struct lab_memory_desc {
    uint32_t cache_bytes, cache_ways; /* of all channels */
    uint32_t cache_line_shift;        /* its lines are so many powers of two larger than a core's */
    uint32_t cache_cycles;            /* from a core to a line that hits, and back */
    uint32_t cache_busy;              /* of one channel, by a core's line */
    uint32_t channels;                /* a power of two */
    uint32_t dram_cycles;             /* in addition, for a line that misses */
    uint32_t dram_busy;               /* of one channel, by a line of the cache */
    uint32_t cores_per_port;          /* that share one way to the channels */
    uint32_t port_busy;               /* by a core's line */
    uint32_t entry_busy;              /* of a channel's cache and of a port, by a table entry */
};

struct lab_memory {
    struct lab_memory_desc desc;
    struct lab_cache *cache; /* owned */
    uint64_t channel_free[LAB_MAX_CHANNELS];
    uint64_t dram_free[LAB_MAX_CHANNELS];
    uint64_t port_free[LAB_MAX_PORTS];
    uint64_t dram_lines;
    uint8_t port_of_core[LAB_MAX_PORTS];
};

/* A server that is free from *free on begins no earlier than now, works for `busy` cycles; returns
 * when it begins. */
static inline uint64_t lab_serve(uint64_t *free, uint64_t now, uint32_t busy)
{
    const uint64_t start = *free > now ? *free : now;
    *free = start + busy;
    return start;
}

/* NULL: no memory. */
struct lab_memory *lab_memory_new(const struct lab_memory_desc *desc);
void lab_memory_free(struct lab_memory *take);

/* Reads a core's line (byte address >> LAB_LINE_SHIFT, 2^cache_line_shift to 2^32 - 1); returns the
 * cycle in which it is there. `*out_hit`: the cache had it, or it was already on its way. */
uint64_t lab_memory_read(struct lab_memory *m, uint32_t core, uint32_t core_line, uint64_t now,
                         bool *out_hit);
/* The same for a walker, which reads an entry of the line: less to send. */
uint64_t lab_memory_read_entry(struct lab_memory *m, uint32_t core, uint32_t core_line,
                               uint64_t now, bool *out_hit);

#endif
