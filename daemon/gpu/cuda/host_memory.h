/* host_memory.h: the memory of the host that probes may take, and its pages. It needs Linux. One
 * thread uses it. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns the bytes that are available without swapping (MemAvailable), or the bytes that the
 * process's cgroup has left if that is less. Returns 0 if the number is unknown. */
uint64_t host_memory_available(void);

/* Returns the most host memory that probes may take now, in bytes: a quarter of the available
 * memory. */
uint64_t host_memory_share(void);

/* Returns the bytes of memory of the host, used or not (MemTotal). Returns 0 if the number is
 * unknown. */
uint64_t host_memory_total(void);

enum host_pages {
    HOST_PAGES_ORDINARY, /* no transparent huge pages */
    HOST_PAGES_HUGE,     /* only transparent huge pages */
    HOST_PAGES_ANY       /* transparent huge pages if the kernel has some */
};
/* Allocates anonymous pages, all present and zero, aligned to 2 MiB or to a huge page. `bytes` is a
 * multiple of 2 MiB. Returns STATUS_NO_MEMORY, or
 * STATUS_NOT_SUPPORTED if HOST_PAGES_HUGE are not available. The caller frees them with
 * host_memory_free. */
enum status host_memory_map(uint64_t bytes, enum host_pages pages, void **out, struct err *err);
/* Maps a file without a name, all of whose pages are zero and in the page cache. The file is in the
 * folder of the path `beside`, or in /var/tmp if `beside` has no folder or the folder cannot
 * contain the file. The pages are only read, so the file takes no room there. Returns
 * STATUS_NO_MEMORY, or STATUS_NOT_PERMITTED if neither folder can contain the file. The caller
 * frees the mapping with host_memory_free. */
enum status host_memory_map_file(const char *beside, uint64_t bytes, void **out, struct err *err);
void host_memory_free(void *take, uint64_t bytes);

/* Touches every page of [p, p + bytes) with several threads, so that each page is present. Page
 * faults take a tenth of a second or more for each GiB. */
void host_memory_touch(void *p, uint64_t bytes);
