/* cuda_gather.h: runs a READ of MEMORY_HOST_GATHERED. Threads of the CPU gather rows into pinned
 * memory, and the driver copies them to the device, as jobs without access to the table do. It is
 * internal to the cuda source. */
#pragma once

#include "gpu/cuda/cuda_launch.h"
#include "gpu/cuda/cuda_memory.h"

/* Gathers rows of the range, which is memory of this process, by one thread on each CPU of its
 * NUMA node, and copies them by batches. Each row of `values` has the elapsed nanoseconds, then the
 * gathered rows, divided evenly among the SMs. Returns the errors of the copies. */
enum status cuda_gather_run(const struct cuda_probe *p, const struct cuda_memory *memory,
                            const struct probe_spec *spec, uint32_t *values, struct err *err);
