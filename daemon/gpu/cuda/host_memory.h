/* host_memory.h: the memory of the host that probes may take, and its pages. It needs Linux. One
 * thread uses it. */
#ifndef REACH_GPU_CUDA_HOST_MEMORY_H
#define REACH_GPU_CUDA_HOST_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns the bytes that are available without swapping (MemAvailable), or the bytes that the
 * process's cgroup has left if that is less. Returns 0 if the number is unknown. */
uint64_t host_memory_available(void);

/* Returns the bytes of memory of the host, used or not (MemTotal). Returns 0 if the number is
 * unknown. */
uint64_t host_memory_total(void);

/* Allocates anonymous pages, all present and zero, aligned to 2 MiB. They are transparent huge
 * pages if `huge` is set. Returns STATUS_NO_MEMORY, or STATUS_NOT_SUPPORTED if huge pages are not
 * available. The caller frees them with host_memory_free. */
enum status host_memory_map(uint64_t bytes, bool huge, void **out, struct err *err);
void host_memory_free(void *take, uint64_t bytes);

/* Touches every page of [p, p + bytes) with several threads, so that each page is present. Page
 * faults take a tenth of a second or more for each GiB. */
void host_memory_touch(void *p, uint64_t bytes);

#endif
