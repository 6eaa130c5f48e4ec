/* memory.h: the allocations of the program, by address. The functions may be called on any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct allocation {
    int device;
    uint64_t address, bytes;
    const char *kind; /* static: "device", "pool", "pinned", .. (../recording.h) */
    const char *at;   /* static: "host", "device" or "unknown"; for managed and registered memory */
    bool freed;
};

void memory_allocated(int device, uint64_t address, uint64_t bytes, const char *kind);
void memory_freed(uint64_t address);

/* Counts a range of addresses that the driver reserves. Pinned memory is in such a range, and
 * memory that the program has registered is not. */
void memory_reserved(uint64_t address, uint64_t bytes);
void memory_released(uint64_t address);
bool memory_is_reserved(uint64_t address);

/* Returns whether an allocation, live or freed, contains `address`. */
bool memory_is_known(uint64_t address);

/* Sets the kind and the location of the allocation that begins at `address`. Both are static text.
 */
void memory_locate(uint64_t address, const char *kind, const char *at);

/* Copies allocation `i`, live or freed, to `*out`. Returns false if there are no more. A freed
 * allocation stays until another takes its place. */
bool memory_get(uint32_t i, struct allocation *out);
