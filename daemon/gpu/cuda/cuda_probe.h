/* cuda_probe.h: from a probe_spec to a launch and back. One function for each kind of probe; the
 * struct holds what all of them need. Internal to the cuda source. */
#ifndef REACH_GPU_CUDA_CUDA_PROBE_H
#define REACH_GPU_CUDA_CUDA_PROBE_H

#include "base/clock.h"
#include "gpu/cuda/cuda_api.h"
#include "gpu/cuda/cuda_arena.h"

enum { CUDA_SCRATCH_BYTES = 32 << 20 };

enum cuda_kernel {
    KERNEL_CENSUS = 0,
    KERNEL_CHASE,
    KERNEL_ROUND,
    KERNEL_PAIRS,
    KERNEL_READ,
    KERNEL_READ_SECTORS,
    KERNEL_READ_BLOCKS,
    KERNEL_ATOMIC,
    KERNEL_WRITE,
    CUDA_KERNELS
};

struct cuda_probe {
    const struct cuda_api *api;
    cu_module module;
    cu_function kernels[CUDA_KERNELS];
    cu_stream stream;
    cu_deviceptr scratch;  /* CUDA_SCRATCH_BYTES: control words, tables, values */
    unsigned shared_bytes; /* dynamic, a block: more than half of an SM's */
    nsec_t deadline_ns;
    uint32_t sm_count;
    uint16_t sm_ids[REACH_MAX_SMS];
};

/* Loads the device code, finds out which SM ids there are. STATUS_NOT_SUPPORTED where the build has
 * no code for this chip (or none at all). Everything is given back on failure. */
enum status cuda_probe_open(const struct cuda_api *api, cu_device device, nsec_t deadline_ns,
                            struct cuda_probe *out, struct err *err);
void cuda_probe_close(struct cuda_probe *probe);

/* Runs a checked spec over the arena; fills sm_ids and values. */
enum status cuda_probe_run(struct cuda_probe *probe, struct cuda_arena *arena,
                           const struct probe_spec *spec, struct probe_result *out,
                           struct err *err);

#endif
