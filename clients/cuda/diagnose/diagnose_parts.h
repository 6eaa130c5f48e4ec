/* diagnose_parts.h: the parts of one diagnosis, for reach_diagnose only. Each diagnosis belongs to
 * one thread. */
#pragma once

#include "clients/cuda/alloc/alloc_driver.h"
#include "clients/cuda/reach_diagnose.h"
#include "kernels/abi.h"

enum { DIAGNOSE_LINE = 128, DIAGNOSE_SM_SLOTS = 512 };

/* The words that a launch and its kernel exchange, in device memory. */
struct diagnose_exchange {
    uint32_t control[64]; /* arrivals, blocks that gave up, and a sink: 64 bytes apart */
    uint32_t positions[DIAGNOSE_SM_SLOTS];
    struct reach_window windows[DIAGNOSE_SM_SLOTS];
    uint32_t lines[DIAGNOSE_SM_SLOTS];
    uint64_t started[DIAGNOSE_SM_SLOTS];
    uint64_t ended[DIAGNOSE_SM_SLOTS];
};

enum diagnose_kernel { DIAGNOSE_READ, DIAGNOSE_READ_FAR, DIAGNOSE_KERNELS };

struct diagnose {
    struct alloc_driver driver;
    struct reach_diagnose_options options;
    struct reach_diagnosis found;
    uint64_t start_ns; /* CLOCK_MONOTONIC */
    int device;
    bool retained; /* whether the primary context was retained and is current */
    uint64_t address;
    enum reach_alloc_status failed; /* first failure of a driver query */
    struct reach_alloc_error failure;
    const char *unread; /* why the memory is not read; NULL if it may be read */
    /* diagnose_read.c */
    uint32_t sm_count;
    uint64_t l2_bytes;
    unsigned shared_bytes;
    void *module;
    void *kernels[DIAGNOSE_KERNELS];
    void *stream;
    uint64_t scratch;
    uint32_t launches;
    struct diagnose_exchange exchange;
};

/* diagnose.c: opens a diagnosis in the context of the device. diagnose_close closes it and accepts
 * NULL. `*out` is NULL on failure. */
enum reach_alloc_status diagnose_open(const struct reach_diagnose_options *options,
                                      struct diagnose **out, struct reach_alloc_error *error);
/* Finds the kind, reads the memory and writes the text, all in `d->found`. */
enum reach_alloc_status diagnose_run(struct diagnose *d, uint64_t pointer, uint64_t bytes,
                                     struct reach_alloc_error *error);
enum reach_alloc_status diagnose_copy(struct diagnose *d, struct reach_diagnosis *out,
                                      struct reach_alloc_error *error);
void diagnose_close(struct diagnose *take);

static inline struct reach_finding finding_make(double value, double error)
{
    return (struct reach_finding){.known = true, .value = value, .error = error, .reason = ""};
}

static inline struct reach_finding finding_absent(const char *reason)
{
    return (struct reach_finding){.reason = reason};
}

/* diagnose_kind.c: queries the driver for the kind, the address, the bounds, and whether the memory
 * may be read. */
enum reach_alloc_status diagnose_kind(struct diagnose *d, uint64_t pointer,
                                      struct reach_alloc_error *error);

/* diagnose_read.c: `read_open` loads the kernels, and sets `d->unread` if this build has no device
 * code. */
enum reach_alloc_status read_open(struct diagnose *d, struct reach_alloc_error *error);
void read_close(struct diagnose *d);
/* Returns the time since the diagnosis began (`start_ns`). */
uint64_t read_elapsed_ns(const struct diagnose *d);
/* Returns ns per random read of 128 bytes by all SMs over the first `bytes`. If the SMs are not
 * available, returns 0 and sets `d->unread`. With `gap_lines`, the reads are in pieces of 4 KiB
 * with this number of lines between two pieces, and `bytes` counts the pieces only. */
enum reach_alloc_status read_ns(struct diagnose *d, enum diagnose_kernel kernel, uint64_t bytes,
                                uint32_t gap_lines, double *ns, struct reach_alloc_error *error);

/* diagnose_find.c: makes all findings that require reads. */
enum reach_alloc_status find_all(struct diagnose *d, struct reach_alloc_error *error);
