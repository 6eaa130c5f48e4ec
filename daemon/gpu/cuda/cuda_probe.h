/* cuda_probe.h: runs a probe_spec on the device: tables and arguments, launch, copy back. Internal
 * to the cuda source. */
#ifndef REACH_GPU_CUDA_CUDA_PROBE_H
#define REACH_GPU_CUDA_CUDA_PROBE_H

#include "base/clock.h"
#include "gpu/cuda/cuda_api.h"
#include "gpu/cuda/cuda_arena.h"
#include "gpu/cuda/cuda_memory.h"

enum {
    CUDA_SCRATCH_BYTES = 32 << 20,
    CUDA_LINES = 64, /* candidates for the line that the pages of a latency probe share */
    CUDA_LINE_STEP_BYTES =
        4224,           /* between two of them: 33 lines, so that they lie in many slices */
    CUDA_LINE_LAPS = 32 /* timed loads of each */
};

enum cuda_kernel {
    KERNEL_CENSUS = 0,
    KERNEL_CHASE,
    KERNEL_ROUND,
    KERNEL_PAIRS,
    KERNEL_SIDES,
    KERNEL_CACHE,
    KERNEL_READ,
    KERNEL_READ_FLIGHT,
    KERNEL_READ_FAR,
    KERNEL_READ_SECTORS,
    KERNEL_READ_BLOCKS,
    KERNEL_ATOMIC,
    KERNEL_WRITE,
    KERNEL_SPREAD_SORT,
    KERNEL_SPREAD_LINES,
    KERNEL_SPREAD_BLOCKS,
    KERNEL_SHARED,
    KERNEL_PEER,
    CUDA_KERNELS
};

struct cuda_probe {
    const struct cuda_api *api;
    cu_module module;
    cu_function kernels[CUDA_KERNELS];
    cu_stream stream;
    cu_deviceptr scratch;        /* CUDA_SCRATCH_BYTES: control words, tables, values */
    unsigned shared_bytes;       /* dynamic, per block: more than half of an SM's */
    unsigned sm_shared_bytes;    /* most that an SM has */
    unsigned shared_block_bytes; /* most of one block */
    unsigned cluster_sms;        /* most blocks of a cluster; 0: there are no clusters */
    nsec_t deadline_ns;
    uint32_t sm_count;
    uint16_t sm_ids[REACH_MAX_SMS];
};

/* Loads the device code and finds the SM ids. STATUS_NOT_SUPPORTED if the build has no code for
 * this chip (or none at all). Releases everything on failure. */
enum status cuda_probe_open(const struct cuda_api *api, cu_device device, nsec_t deadline_ns,
                            struct cuda_probe *out, struct err *err);
void cuda_probe_close(struct cuda_probe *probe);

/* Chooses the line that all pages of a latency probe share. Lines differ by their distance to an
 * SM: those in the farther half of the L2 are not only slower, they also jitter by ten cycles, as
 * much as a miss of a small level costs. `cycles`: [CUDA_LINE_LAPS][CUDA_LINES], in the order of
 * the loads. Returns the line whose 90th percentile is lowest; the first of equals. Pure. */
uint32_t cuda_probe_choose_line(const uint32_t *cycles);

/* Runs a checked spec, all but SPREAD, over the arena, or over `memory`, which has the range that
 * the spec needs; fills sm_ids and values. */
enum status cuda_probe_run(struct cuda_probe *probe, struct cuda_arena *arena,
                           const struct cuda_memory *memory, const struct probe_spec *spec,
                           struct probe_result *out, struct err *err);

/* Places in the scratch memory; the map of all is in cuda_probe.c. */
enum {
    CUDA_AT_SINK = 128,
    CUDA_AT_TABLE = 8 << 10,
    CUDA_AT_LINES = 32 << 10,
    CUDA_AT_STARTED = 36 << 10,
    CUDA_AT_ENDED = 44 << 10,
    CUDA_AT_VALUES = 64 << 10
};

/* For the other files of the cuda source: what all launches share; the copy to CUDA_AT_TABLE; one
 * launch of a block per SM, which waits for its end. */
struct reach_grid;
void cuda_probe_grid(const struct cuda_probe *probe, struct reach_grid *out);
enum status cuda_probe_put_table(const struct cuda_probe *probe, const void *table, size_t bytes,
                                 struct err *err);
enum status cuda_probe_launch(const struct cuda_probe *probe, enum cuda_kernel kernel,
                              unsigned threads, void *args, struct err *err);
/* A row of a read that has ended: the elapsed time, and what each SM has counted. */
enum status cuda_probe_read_row(const struct cuda_probe *probe, uint32_t *row, struct err *err);

/* Room for the answer, to be freed, all 0; what no launch could fill is STATUS_INVALID_ARGUMENT. */
enum status cuda_probe_values(const struct cuda_probe *probe, const struct probe_spec *spec,
                              uint32_t **out, struct err *err);

/* cuda_spread.c: as cuda_probe_run, for a SPREAD over the start of the arena's memory, which has no
 * copies there. */
enum status cuda_spread_run(const struct cuda_probe *probe, const struct cuda_arena *arena,
                            const struct probe_spec *spec, struct probe_result *out,
                            struct err *err);

/* The SMs of a result. */
void cuda_probe_name_sms(const struct cuda_probe *probe, struct probe_result *out);

#endif
