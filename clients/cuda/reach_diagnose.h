/* reach_diagnose.h: the kind of memory behind a pointer, and whether the GPU's TLB reaches all of
 * it. The functions are part of libreach-cuda. A job calls them to find out whether the TLB limits
 * the accesses to its own memory. The header works in C11 and C++.
 *
 *     const struct reach_diagnose_options options = {.size = sizeof(options), .device = 0};
 *     struct reach_diagnosis found = {.size = sizeof(found)};
 *     struct reach_alloc_error why;
 *
 *     if (reach_diagnose(table, bytes, &options, &found, &why) == REACH_ALLOC_OK)
 *         puts(found.text);
 *
 * A call queries the driver, then times random reads of 128 bytes by all SMs over the memory and
 * over parts of it. On an idle GPU each run of reads takes some milliseconds, and all runs together
 * take less than 100. A call never writes to the memory and moves no pages: managed memory that a
 * read would move is not read. With numbers of reachd's fingerprint in the options, a call reports
 * more. A value that is not known has a reason; nothing is guessed.
 *
 * The reads run on a stream that the call creates. Keep the GPU idle, because other kernels disturb
 * the times. Do not start a diagnosis while a stream is captured. A call runs in the current
 * context if that belongs to options.device, otherwise in the device's primary context. It leaves
 * the current context as it was. It takes some 100 KiB of device memory while it runs.
 *
 * The rules of reach_alloc.h for threads, errors and compatibility apply. Any number of threads may
 * call at once, but they disturb each other's times. */
#ifndef REACH_DIAGNOSE_H
#define REACH_DIAGNOSE_H

#include "reach_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of the fingerprint (docs/formats.md). */
enum reach_memory {
    REACH_MEMORY_UNKNOWN = 0,
    REACH_MEMORY_DEVICE = 1, /* memory of options.device, plain or by the virtual memory API */
    REACH_MEMORY_PEER = 2,   /* memory of another device */
    REACH_MEMORY_MANAGED_DEVICE = 3,
    REACH_MEMORY_MANAGED_HOST = 4,
    REACH_MEMORY_MANAGED = 5, /* neither at options.device nor at the host */
    REACH_MEMORY_HOST_PINNED = 6,
    REACH_MEMORY_HOST_REGISTERED = 7,
    REACH_MEMORY_HOST_VIRTUAL = 8,
    REACH_MEMORY_COUNT = 9
};

/* Returns a static name such as "host-pinned", or "unknown" for any other value. */
const char *reach_memory_name(enum reach_memory memory);

/* The cost of a miss by the kind of memory around the address, in nanoseconds of the whole GPU. */
struct reach_miss_ns {
    double contiguous;
    double scattered;
};

/* Numbers of the GPU's fingerprint; 0 if not known. */
struct reach_diagnose_options {
    size_t size;
    int32_t device;                           /* CUDA ordinal of the GPU that reads */
    const char *driver;                       /* library to load; "libcuda.so.1" if NULL */
    uint64_t reach_bytes[REACH_MEMORY_COUNT]; /* by kind; windows.reach_bytes for device memory */
    uint64_t frame_bytes;                     /* contiguity.frame_bytes of the fingerprint */
    struct reach_miss_ns miss_ns;
};

struct reach_finding {
    bool known;
    double value;
    double error;       /* largest error of the value; 0 if not known */
    const char *reason; /* why it is not known, as a sentence; "" if it is known. Static */
};

enum { REACH_DIAGNOSIS_TEXT_BYTES = 640 };

struct reach_diagnosis {
    size_t size;
    enum reach_memory memory;
    uint64_t bytes;         /* length of the diagnosed memory, in whole lines of 128 bytes */
    uint64_t mapping_bytes; /* length of the piece at the pointer (virtual memory API) */
    uint64_t free_bytes;    /* free bytes before reach_diagnose_free took them */
    uint64_t part_bytes;    /* length of the part for comparison; 0 if there was none */
    struct reach_finding compressible; /* 1 if compressible (slow to read at random), else 0 */
    struct reach_finding out_of_reach; /* 1 if reads over all of the memory are slower than reads
                                          over the part, or if the memory is longer than
                                          options.reach_bytes; otherwise 0 */
    struct reach_finding read_gbps;    /* throughput of random reads over the memory */
    struct reach_finding part_gbps;    /* throughput of random reads over the part */
    struct reach_finding reach_bytes;  /* length over which these reads are fast, by their time */
    struct reach_finding entry_bytes;  /* length that one TLB entry translates */
    struct reach_finding contiguous;   /* share of frames that are one physical run, 0 .. 1 */
    struct reach_finding contiguous_gbps; /* expected throughput if all were contiguous */
    struct reach_finding gain; /* part_gbps / read_gbps, the largest gain of work within the reach
                                  (windows, scopes) */
    uint64_t ns;               /* duration of the call */
    char text[REACH_DIAGNOSIS_TEXT_BYTES]; /* all findings in sentences; always terminated */
};

/* The caller sets `out->size`; `options` may be NULL. Kernels of the device must be allowed to read
 * all of [pointer, pointer + bytes). Returns REACH_ALLOC_INVALID_ARGUMENT if the driver has no such
 * memory or the range is longer than the allocation, or any other status. */
enum reach_alloc_status reach_diagnose(const void *pointer, uint64_t bytes,
                                       const struct reach_diagnose_options *options,
                                       struct reach_diagnosis *out,
                                       struct reach_alloc_error *error);

enum reach_free_way {
    REACH_FREE_PLAIN = 0, /* one plain allocation, as cudaMalloc makes it */
    REACH_FREE_FRAMES = 1 /* handles of options.frame_bytes each, side by side */
};

/* Diagnoses the device memory that is free now, except 1/128 of the device's memory. The call holds
 * that memory for about a second, and other processes get none meanwhile. The share of contiguous
 * frames is a property of the memory; a plain allocation may have less. REACH_FREE_FRAMES without
 * frame_bytes also returns REACH_ALLOC_INVALID_ARGUMENT. */
enum reach_alloc_status reach_diagnose_free(enum reach_free_way way,
                                            const struct reach_diagnose_options *options,
                                            struct reach_diagnosis *out,
                                            struct reach_alloc_error *error);

#ifdef __cplusplus
}
#endif

#endif
