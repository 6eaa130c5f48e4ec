/* gpu.h: one GPU, real or simulated: list, open, describe, run, close.
 *
 * Two sources implement struct gpu_ops:
 *   cuda       cuda/cuda_gpu.c   a real device through libcuda.so.1, loaded at run time
 *   simulated  sim/sim_gpu.c     an MMU model described by a text (sim/sim_desc.h)
 *
 * A `struct gpu` is used by one thread at a time. It exists only in a worker process, because
 * libcuda must not enter the address space of the serving process.
 */
#pragma once

#include "types/identity.h"
#include "base/status.h"
#include "gpu/probe.h"

struct gpu;

/* Options: the GPUs to list and limits for them. It is a plain value whose strings are borrowed for
 * the call. */
struct gpu_options {
    /* NULL-terminated list of simulated GPUs. Each entry is a profile's name ("h200") or a
     * description ("sms=13 l1=16@128K/sm ..."). NULL or an empty list means the real devices,
     * through the cuda source. */
    const char *const *simulated;
    const char *libcuda;         /* file name or path; NULL means "libcuda.so.1" */
    uint64_t memory_limit_bytes; /* limit of device memory for all probes; 0 means 1.1 GiB */
    uint32_t deadline_ms;        /* limit for one probe on the device; 0 means 30 000 */
    /* Limit of the host memory that probes hold at a time. 0 means a quarter of the available
     * memory, which is the upper bound in any case. The limit also applies to managed memory at a
     * device whose memory is memory of the host. */
    uint64_t host_memory_bytes;
    /* Path of the state of the daemon. A file that probes map is in the same folder. NULL or
     * ":memory:" means /var/tmp. */
    const char *state;
    uint32_t memory_ms; /* time limit for other kinds of memory; 0 means the default of the depth */
    bool no_vmm;        /* do not use the virtual memory API */
    /* Open the GPU only if no other process uses it, and if a process that starts meanwhile can use
     * it too. Otherwise gpu_open returns STATUS_GPU_BUSY, or STATUS_NOT_SUPPORTED if that is not
     * known. */
    bool idle_only;
    bool alone; /* make the driver show only the GPU that is opened, because another GPU hangs */
    uint32_t identify_ms; /* time limit for the driver to identify one GPU; 0 means 20 000 */
};

/* A GPU that a source has found. */
struct gpu_listed {
    struct gpu_identity identity; /* only partly known if there is an error */
    struct maybe_u32 minor; /* N of the device file /dev/nvidiaN; it can change at each boot */
    struct err error;       /* the reason why the driver does not identify it, or STATUS_OK */
};
/* A function that a source calls for each GPU, in any order. */
typedef void gpu_found_fn(void *self, const struct gpu_listed *gpu);

/* Operations of one source. Every slot is required. */
struct gpu_ops {
    const char *name; /* "cuda", "simulated" */
    /* Finds the GPUs. No context is made on any device. Returns STATUS_NO_DRIVER or
     * STATUS_DRIVER_TOO_OLD if there is no usable driver. */
    enum status (*list)(const struct gpu_options *options, gpu_found_fn *found, void *self,
                        struct err *err);
    /* Opens the GPU with this UUID: makes its context, kernels and arena. Releases everything on
     * failure.
     */
    enum status (*open)(const struct gpu_options *options, const char *uuid, struct gpu **out,
                        struct err *err);
    /* Reports identity and limits. Either output may be NULL. */
    void (*describe)(const struct gpu *gpu, struct gpu_identity *identity,
                     struct gpu_limits *limits);
    /* Runs a checked spec. On success the caller owns out->values. */
    enum status (*run)(struct gpu *gpu, const struct probe_spec *spec, struct probe_result *out,
                       struct err *err);
    void (*close)(struct gpu *take);
};

/* The operations of the two sources. */
extern const struct gpu_ops cuda_gpu_ops;
extern const struct gpu_ops sim_gpu_ops;

/* The first member of the struct of every source. */
struct gpu {
    const struct gpu_ops *ops;
};

/* Finds the GPUs of this node under `options` and reports each as soon as it is identified. */
enum status gpu_find(const struct gpu_options *options, gpu_found_fn *found, void *self,
                     struct err *err);
/* Lists the GPUs that can be identified, in the order of their indices (identity_compare), at most
 * `max`. If no GPU can be identified, returns the error of one GPU. */
enum status gpu_list(const struct gpu_options *options, struct gpu_identity *out, uint32_t max,
                     uint32_t *out_count, struct err *err);

/* Opens one GPU. On success the caller owns `*out` (gpu_close). Returns STATUS_NOT_FOUND,
 * STATUS_GPU_BUSY, STATUS_GPU_NO_MEMORY, STATUS_NO_DRIVER, STATUS_DRIVER_TOO_OLD,
 * STATUS_NOT_SUPPORTED (no device code for this chip) or STATUS_GPU_FAULT on failure. */
enum status gpu_open(const struct gpu_options *options, const char *uuid, struct gpu **out,
                     struct err *err);

/* Reports identity and limits. Either output may be NULL. */
void gpu_describe(const struct gpu *gpu, struct gpu_identity *identity, struct gpu_limits *limits);

/* Runs one probe and waits for it, at most options.deadline_ms. Checks the spec first
 * (STATUS_INVALID_ARGUMENT). After STATUS_GPU_LOST or STATUS_DEADLINE the GPU can only be closed,
 * and closing may hang in the driver, so the process should end instead. */
enum status gpu_run(struct gpu *gpu, const struct probe_spec *spec, struct probe_result *out,
                    struct err *err);

/* Releases all device memory, the context and the library. NULL is allowed. */
void gpu_close(struct gpu *take);
