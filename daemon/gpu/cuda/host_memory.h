/* host_memory.h: how much memory the host has for probes, and pages of it. Linux. One thread. */
#ifndef REACH_GPU_CUDA_HOST_MEMORY_H
#define REACH_GPU_CUDA_HOST_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes that are available without swapping (MemAvailable), or that the process's cgroup has left
 * if that is less; 0: not known. */
uint64_t host_memory_available(void);

/* Bytes of memory that the host has, used or not (MemTotal); 0: not known. */
uint64_t host_memory_total(void);

/* Anonymous pages, all present and zero, aligned to 2 MiB; `huge`: transparent huge pages.
 * STATUS_NO_MEMORY; STATUS_NOT_SUPPORTED if huge pages are not to be had. host_memory_free. */
enum status host_memory_map(uint64_t bytes, bool huge, void **out, struct err *err);
void host_memory_free(void *take, uint64_t bytes);

/* Touches every page of [p, p + bytes), by several threads, so that it is present: a page fault
 * takes a tenth of a second for each GiB and more. */
void host_memory_touch(void *p, uint64_t bytes);

#endif
