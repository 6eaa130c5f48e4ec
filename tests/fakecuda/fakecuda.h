/* fakecuda.h: the control functions of the stand-in driver, beside the driver API. A test finds
 * these functions with dlsym. */
#pragma once

#include <stdint.h>

/* Resources that are held, and errors since the last start. */
struct fakecuda_report {
    uint64_t calls; /* number of driver calls except cuGetErrorName and cuGetErrorString */
    uint32_t contexts;
    uint32_t modules;
    uint32_t streams;
    uint32_t
        allocations;  /* allocations of cuMemAlloc, and host memory of every kind except handles */
    uint32_t handles; /* cuMemCreate */
    uint32_t reservations; /* cuMemAddressReserve */
    uint32_t mappings;     /* cuMemMap */
    uint32_t events;
    uint64_t device_bytes; /* bytes of all allocations and handles */
    uint64_t most_device_bytes;
    uint32_t launches;
    uint64_t faults;  /* number of calls that failed because of the control text */
    uint32_t misuses; /* number of misuses: double releases, unknown handles, ranges outside of
                         memory, calls without a context */
    char first_misuse[160]; /* text that describes the first misuse */
};

/* Releases all state and starts again under `control` (see fakecuda.c). Returns 0, or -1 if the
 * text is invalid. */
typedef int fakecuda_start_fn(const char *control);
int fakecuda_start(const char *control);

typedef void fakecuda_report_fn(struct fakecuda_report *out);
void fakecuda_report(struct fakecuda_report *out);

/* From this call on, memory is scattered: creating a handle of more than `bytes` fails. 0 means no
 * limit. */
typedef void fakecuda_limit_runs_fn(uint64_t bytes);
void fakecuda_limit_runs(uint64_t bytes);

/* Returns how often the driver call with this name was made, such as "cuMemMap". */
typedef uint64_t fakecuda_uses_fn(const char *call);
uint64_t fakecuda_uses(const char *call);
