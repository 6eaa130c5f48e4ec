/* cuda_memory.h: ranges of kinds of memory other than the device's own, for probes that name such a
 * kind (types/memory_kind.h). One range at a time is in use. It is made when a probe needs it, and
 * made again when a probe needs a longer one. It is released when a probe touches other memory.
 * Host memory is kept until the end, within its limit, because the GPU waits while host memory is
 * released.
 *
 * A range of a peer's memory is one small handle mapped again and again, like in cuda_arena.h. So
 * the range can be far longer than the memory behind it. Host memory from the virtual memory API is
 * made in the same way if the range is longer than the limit of host memory. All other memory is as
 * large as the range. All memory is zero. Pages of the host are on the NUMA node that the probe
 * names, otherwise on the node nearest to the device if the process may use its CPUs. The CPU
 * gathers from a range of MEMORY_HOST_REGISTERED. One thread uses it.
 */
#pragma once

#include "gpu/cuda/cuda_arena.h"
#include "gpu/cuda/host_pieces.h"
#include "gpu/probe.h"

/* The bytes that the CPU gathers before they are copied: several times the caches of most cores. */
#define CUDA_BATCH_BYTES ((uint64_t)32 << 20)

struct cuda_range {
    enum memory_kind kind; /* MEMORY_DEVICE means no range */
    uint32_t peer;
    uint32_t node; /* like in probe_spec */
    cu_deviceptr base;
    uint64_t bytes;
    uint64_t period_bytes;       /* period of the memory behind it; 0 if it does not repeat */
    void *host;                  /* address in the process, if the memory was allocated there */
    uint64_t registered_bytes;   /* length of the registered memory from `host` on */
    struct cuda_alias alias;     /* mapped handle, if period_bytes is not 0 */
    struct host_handles handles; /* handles of MEMORY_HOST_VIRTUAL, if period_bytes is 0 */
};

struct cuda_memory {
    const struct cuda_api *api;
    cu_device device;
    cu_device peers[REACH_MAX_GPUS]; /* the other devices, in the order of the driver */
    uint32_t peer_count;
    const char *state;         /* like in gpu_options */
    uint64_t host_limit_bytes; /* like in gpu_options; 0 means a quarter of the available memory */
    bool vmm;                  /* true if the virtual memory API may be used */
    uint64_t managed_bytes;    /* limit of device memory for managed memory */
    bool unified;              /* true if the memory of the device is host memory */
    struct cuda_range range;   /* the range in use */
    struct cuda_range left[MEMORY_KIND_COUNT];
    uint32_t left_count;
    void *batch; /* pinned memory of CUDA_BATCH_BYTES for MEMORY_HOST_GATHERED, or NULL */
};

/* Returns the most host memory that a range may take now: at most a quarter of the available
 * memory. */
uint64_t cuda_memory_host_bytes(const struct cuda_memory *m);

/* Makes the range for a checked spec, unless it exists. If that kind is not available, at this
 * length or at all, reports the reason and makes no range. Fails only if the device is lost. */
enum status cuda_memory_use(struct cuda_memory *m, const struct probe_spec *spec,
                            enum reason *out_reason, struct err *err);
/* Returns the NUMA node for the pages of the range, or -1 if any node will do. */
int cuda_memory_node(const struct cuda_memory *m);
/* Releases all ranges. There may be no range. */
void cuda_memory_close(struct cuda_memory *m);
