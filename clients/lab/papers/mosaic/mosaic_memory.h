/* mosaic_memory.h: the data caches and the DRAM of Mosaic's machine (MICRO 2017, table 1). A read
 * returns the cycle in which the line arrives. A line that is already requested is not requested
 * again. Ports, banks and buses have a time at which they are free next. Times are cycles of a core
 * (1020 MHz), below 2^32. The functions are not thread-safe. */
#pragma once

#include <stdint.h>

enum { MOSAIC_LINE_BYTES = 128, MOSAIC_CHANNELS = 6 };

struct mosaic_memory;

/* Returns NULL if out of memory. */
struct mosaic_memory *mosaic_memory_new(uint32_t cores);
void mosaic_memory_free(struct mosaic_memory *take);

/* Reads physical line `line` (address / 128) for a core at `now`. Returns the cycle of its
 * arrival. */
uint64_t mosaic_memory_read(struct mosaic_memory *m, uint32_t core, uint32_t line, uint64_t now);

/* Reads a line for the page walker, which is beside the L2 cache. */
uint64_t mosaic_memory_walk(struct mosaic_memory *m, uint32_t line, uint64_t now);
