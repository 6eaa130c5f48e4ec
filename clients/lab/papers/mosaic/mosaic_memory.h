/* mosaic_memory.h: data caches and DRAM of Mosaic's machine (MICRO 2017, table 1): when does a line
 * arrive that is asked for now? A line on its way is not asked for again: what needs it waits for
 * it. Ports, banks and buses have the time at which they are free next. Times are cycles of a core
 * (1020 MHz), below 2^32. Not thread safe.
 */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_MEMORY_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_MEMORY_H

#include <stdint.h>

enum { MOSAIC_LINE_BYTES = 128, MOSAIC_CHANNELS = 6 };

struct mosaic_memory;

/* NULL: no memory. */
struct mosaic_memory *mosaic_memory_new(uint32_t cores);
void mosaic_memory_free(struct mosaic_memory *take);

/* A core asks for physical line `line` (address / 128) at `now`; returns when it has it. */
uint64_t mosaic_memory_read(struct mosaic_memory *m, uint32_t core, uint32_t line, uint64_t now);

/* The page walker does, which sits beside the L2 cache. */
uint64_t mosaic_memory_walk(struct mosaic_memory *m, uint32_t line, uint64_t now);

#endif
