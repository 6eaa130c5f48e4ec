/* sample.h: shortens a trace by whole thread blocks. */
#pragma once

#include "clients/lab/trace/rlt.h"

/* Copies one block in `every` (1 or more) from `in`, which must be seekable, to `out`. The blocks
 * of a kernel are kept in runs of neighbors, which lie evenly over those in the trace, so that
 * accesses that neighbors share stay. The copy has all applications, allocations and kernels, and
 * its numbers of left-out accesses are reduced like the records. Returns STATUS_IO,
 * STATUS_NO_MEMORY, or STATUS_CORRUPT if the trace is damaged. */
enum status sample_blocks(FILE *in, uint64_t every, FILE *out, struct err *err);
