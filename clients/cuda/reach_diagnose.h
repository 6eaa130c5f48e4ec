/* reach_diagnose.h: what memory a pointer is, and whether the GPU's TLB reaches all of it; part of
 * libreach-cuda. "Is it the TLB?", asked by the job itself, of its own pointer. C11 and C++.
 *
 *     const struct reach_diagnose_options options = {.size = sizeof(options), .device = 0};
 *     struct reach_diagnosis found = {.size = sizeof(found)};
 *     struct reach_alloc_error why;
 *
 *     if (reach_diagnose(table, bytes, &options, &found, &why) == REACH_ALLOC_OK)
 *         puts(found.text);
 *
 * A call asks the driver, then times random reads of 128 bytes by all SMs over the memory and over
 * parts of it, some milliseconds each and less than 100 in all on an idle GPU. It never writes to
 * the memory and moves no pages: managed memory that a read would move is not read. With numbers of
 * reachd's fingerprint in the options it tells more. What is not known has a reason; nothing is
 * guessed.
 *
 * Streams. The reads are work of a stream of the call's own; let the GPU be idle, because other
 * kernels disturb the times. Do not call it while a stream is captured. A call runs in the current
 * context if that is of options.device, otherwise in the device's primary context, and leaves the
 * current context as it was. It takes some 100 KiB of device memory while it runs.
 *
 * Threads, errors, compatibility: as in reach_alloc.h. Any number of threads may call at once, but
 * they disturb each other's times.
 */
#ifndef REACH_DIAGNOSE_H
#define REACH_DIAGNOSE_H

#include "reach_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of the fingerprint (docs/formats.md). */
enum reach_memory {
    REACH_MEMORY_UNKNOWN = 0,
    REACH_MEMORY_DEVICE = 1, /* of options.device, plain or by the virtual memory API */
    REACH_MEMORY_PEER = 2,   /* of another device */
    REACH_MEMORY_MANAGED_DEVICE = 3,
    REACH_MEMORY_MANAGED_HOST = 4,
    REACH_MEMORY_MANAGED = 5, /* with no location at options.device or at the host */
    REACH_MEMORY_HOST_PINNED = 6,
    REACH_MEMORY_HOST_REGISTERED = 7,
    REACH_MEMORY_HOST_VIRTUAL = 8,
    REACH_MEMORY_COUNT = 9
};

/* "host-pinned"; "unknown" for any other value. Static. */
const char *reach_memory_name(enum reach_memory memory);

/* What a miss costs, by the memory around the address; nanoseconds of the whole GPU. */
struct reach_miss_ns {
    double contiguous;
    double scattered;
};

/* Numbers of the GPU's fingerprint; 0: not known. */
struct reach_diagnose_options {
    size_t size;
    int32_t device;                           /* CUDA ordinal of the GPU that reads */
    const char *driver;                       /* library to load; NULL: "libcuda.so.1" */
    uint64_t reach_bytes[REACH_MEMORY_COUNT]; /* by kind; of device memory windows.reach_bytes */
    uint64_t frame_bytes;                     /* of contiguity, like the two prices */
    struct reach_miss_ns miss_ns;
};

struct reach_finding {
    bool known;
    double value;
    double error;       /* the value is right to within this; 0: no statement */
    const char *reason; /* why it is not known, as a sentence; "" if it is. Static */
};

enum { REACH_DIAGNOSIS_TEXT_BYTES = 640 };

struct reach_diagnosis {
    size_t size;
    enum reach_memory memory;
    uint64_t bytes;         /* that the diagnosis is about: whole lines of 128 bytes */
    uint64_t mapping_bytes; /* of the piece at the pointer, if the virtual memory API mapped it */
    uint64_t free_bytes;    /* of reach_diagnose_free: before it took them */
    uint64_t part_bytes;    /* of the part that is compared; 0: none was */
    struct reach_finding compressible; /* 1: yes, and slow to read at random; 0: no */
    struct reach_finding out_of_reach; /* 1: reads over all of it are slower than over the part, or
                                          it is longer than options.reach_bytes; 0: no */
    struct reach_finding read_gbps;    /* over all of it */
    struct reach_finding part_gbps;    /* over the part */
    struct reach_finding reach_bytes;  /* how far these reads are fast, by their times alone */
    struct reach_finding entry_bytes;  /* that one TLB entry translates */
    struct reach_finding contiguous;   /* share of its frames that are one physical run, 0 .. 1 */
    struct reach_finding contiguous_gbps; /* expected over all of it if every frame were */
    struct reach_finding gain; /* part_gbps / read_gbps: what work within the reach (windows,
                                  scopes) can gain at most */
    uint64_t ns;               /* that the call took */
    char text[REACH_DIAGNOSIS_TEXT_BYTES]; /* all of it in sentences; always terminated */
};

/* The caller sets `out->size`; `options` may be NULL. All of [pointer, pointer + bytes) must be
 * memory that kernels of the device may read. REACH_ALLOC_INVALID_ARGUMENT: it is not memory that
 * the driver knows, or longer than the allocation; any. */
enum reach_alloc_status reach_diagnose(const void *pointer, uint64_t bytes,
                                       const struct reach_diagnose_options *options,
                                       struct reach_diagnosis *out,
                                       struct reach_alloc_error *error);

enum reach_free_way {
    REACH_FREE_PLAIN = 0, /* one plain allocation, as cudaMalloc makes it */
    REACH_FREE_FRAMES = 1 /* handles of options.frame_bytes each, side by side */
};

/* The same of the device memory that is free now, less 1/128 of the device's memory. Takes it for
 * about a second, in which other processes get none. The share that frames have contiguous is a
 * property of the memory; a plain allocation may have less. REACH_ALLOC_INVALID_ARGUMENT also
 * without the frame_bytes that REACH_FREE_FRAMES needs. */
enum reach_alloc_status reach_diagnose_free(enum reach_free_way way,
                                            const struct reach_diagnose_options *options,
                                            struct reach_diagnosis *out,
                                            struct reach_alloc_error *error);

#ifdef __cplusplus
}
#endif

#endif
