/* host_memory.h: the memory that the host has for probes, and pages of it. Linux. One thread. */
#ifndef REACH_GPU_CUDA_HOST_MEMORY_H
#define REACH_GPU_CUDA_HOST_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns the bytes that are available without swapping (MemAvailable), or the bytes that the
 * process's cgroup has left if that is less. 0 if unknown. */
uint64_t host_memory_available(void);

/* Returns the bytes of memory of the host, used or not (MemTotal). 0 if unknown. */
uint64_t host_memory_total(void);

/* Allocates anonymous pages, all present and zero, aligned to 2 MiB; transparent huge pages if
 * `huge`. Returns STATUS_NO_MEMORY, or STATUS_NOT_SUPPORTED if huge pages are not available. The
 * caller frees them with host_memory_free. */
enum status host_memory_map(uint64_t bytes, bool huge, void **out, struct err *err);
void host_memory_free(void *take, uint64_t bytes);

/* Touches every page of [p, p + bytes) with several threads, so that it is present. Page faults
 * take a tenth of a second or more for each GiB. */
void host_memory_touch(void *p, uint64_t bytes);

#endif
