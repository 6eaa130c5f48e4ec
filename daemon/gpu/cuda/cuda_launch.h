/* cuda_launch.h: launches a kernel on the device and waits for its end. It is internal to the cuda
 * source. One thread uses it for each GPU.
 *
 * One scratch allocation holds all data that host and device exchange:
 *
 *     0        control words: arrivals, "gave up", sink, away    zeroed before each launch
 *     1 KiB    cache: the SMs on which a block sits               zeroed too
 *     4 KiB    SM id -> position                                 written once, after the census
 *     8 KiB    table of this launch: points, pivots or windows
 *     32 KiB   read: lines, started, ended of each SM
 *     64 KiB   values
 */
#pragma once

#include "base/clock.h"
#include "gpu/cuda/cuda_api.h"
#include "gpu/probe.h"

enum {
    CUDA_AT_ARRIVED = 0,
    CUDA_AT_GAVE_UP = 64,
    CUDA_AT_SINK = 128,
    CUDA_AT_AWAY = 192,
    CUDA_AT_CLAIMED = 1 << 10,
    CUDA_AT_POSITIONS = 4 << 10,
    CUDA_AT_TABLE = 8 << 10,
    CUDA_AT_LINES = 32 << 10,
    CUDA_AT_STARTED = 36 << 10,
    CUDA_AT_ENDED = 44 << 10,
    CUDA_AT_VALUES = 64 << 10,
    CUDA_SCRATCH_BYTES = 32 << 20,
    CUDA_WARP = 32
};

/* Each kernel, and its name in the device code. */
#define CUDA_KERNEL_LIST(X)                                                                        \
    X(KERNEL_CENSUS, reach_census)                                                                 \
    X(KERNEL_CHASE, reach_chase)                                                                   \
    X(KERNEL_ROUND, reach_round)                                                                   \
    X(KERNEL_PAIRS, reach_pairs)                                                                   \
    X(KERNEL_SIDES, reach_sides)                                                                   \
    X(KERNEL_CACHE, reach_cache)                                                                   \
    X(KERNEL_READ, reach_read)                                                                     \
    X(KERNEL_READ_CONCURRENT, reach_read_concurrent)                                               \
    X(KERNEL_READ_FAR, reach_read_far)                                                             \
    X(KERNEL_ATOMIC_FAR, reach_atomic_far)                                                         \
    X(KERNEL_WRITE_FAR, reach_write_far)                                                           \
    X(KERNEL_COPY_FAR, reach_copy_far)                                                             \
    X(KERNEL_READ_SECTORS, reach_read_sectors)                                                     \
    X(KERNEL_READ_BLOCKS, reach_read_blocks)                                                       \
    X(KERNEL_ATOMIC, reach_atomic)                                                                 \
    X(KERNEL_WRITE, reach_write)                                                                   \
    X(KERNEL_WORKING_SET_SORT, reach_working_set_sort)                                             \
    X(KERNEL_WORKING_SET_LINES, reach_working_set_lines)                                           \
    X(KERNEL_WORKING_SET_BLOCKS, reach_working_set_blocks)                                         \
    X(KERNEL_SHARED, reach_shared)                                                                 \
    X(KERNEL_PEER, reach_peer)

#define CUDA_KERNEL(kernel, name) kernel,
enum cuda_kernel { CUDA_KERNEL_LIST(CUDA_KERNEL) CUDA_KERNELS };

/* Returns the name of the kernel in the device code. */
const char *cuda_launch_name(enum cuda_kernel kernel);

/* Device code and the data that all launches share. */
struct cuda_probe {
    const struct cuda_api *api;
    cu_module module;
    cu_function kernels[CUDA_KERNELS];
    cu_stream stream;
    cu_deviceptr scratch; /* CUDA_SCRATCH_BYTES: control words, tables, values */
    unsigned
        shared_bytes; /* dynamic shared memory of a block: more than half of the memory of an SM */
    unsigned sm_shared_bytes;    /* the largest shared memory of an SM */
    unsigned shared_block_bytes; /* the largest shared memory of one block */
    unsigned cluster_sms;        /* blocks of the largest cluster; 0 if the GPU has no clusters */
    nsec_t deadline_ns;
    uint32_t sm_count;
    uint16_t sm_ids[REACH_MAX_SMS];
};

/* Returns the data that all launches share, in the form for the device code. */
struct reach_grid cuda_launch_grid(const struct cuda_probe *p);

/* The first function copies `table` to CUDA_AT_TABLE. The second copies `bytes` from offset `at` of
 * the scratch memory. */
enum status cuda_launch_put(const struct cuda_probe *p, const void *table, size_t bytes,
                            struct err *err);
enum status cuda_launch_read(const struct cuda_probe *p, uint32_t at, void *out, size_t bytes,
                             struct err *err);

/* The shape of a launch: `blocks` blocks, in clusters of `cluster_sms` blocks if that is not 0. */
struct cuda_shape {
    unsigned threads;
    unsigned blocks;
    unsigned cluster_sms;
    unsigned shared_bytes; /* dynamic shared memory of a block */
};

/* Zeroes the control words, launches and waits for the end. Returns STATUS_DEADLINE if a wait of
 * the device gave up. */
enum status cuda_launch_shape(const struct cuda_probe *p, enum cuda_kernel kernel,
                              struct cuda_shape shape, void *args, struct err *err);
/* Launches like cuda_launch_shape, with one block per SM. */
enum status cuda_launch(const struct cuda_probe *p, enum cuda_kernel kernel, unsigned threads,
                        void *args, struct err *err);

/* Returns the number of clusters of this size that the GPU runs at a time. Returns 0, without an
 * error, if the GPU does not run clusters of that size. */
unsigned cuda_launch_clusters(const struct cuda_probe *p, unsigned cluster_sms);
