/* cuda_list.h: the GPUs of the node and their identities. A MIG instance counts as a GPU. The
 * driver shows it only to a process that names it before its first call of the driver. One
 * thread. */
#ifndef REACH_GPU_CUDA_CUDA_LIST_H
#define REACH_GPU_CUDA_CUDA_LIST_H

#include "gpu/cuda/cuda_api.h"
#include "gpu/cuda/nvml.h"
#include "gpu/gpu.h"

/* gpu_ops.list: GPUs, MIG instances, and GPUs that are divided into them (identity_is_divided),
 * which come last, like those that the driver does not identify. Starts a process for each GPU and
 * terminates the processes that have not answered in time. */
enum status cuda_list(const struct gpu_options *options, gpu_found_fn *found, void *self,
                      struct err *err);

/* Must be called before the first call of the driver: makes the process see this GPU. The second
 * does nothing for a whole GPU or if CUDA_VISIBLE_DEVICES is set. */
void cuda_show_alone(const char *uuid);
void cuda_show_instance(const char *uuid);

/* Reports the UUID of the GPU, or of the MIG instance if the device is one. Then `mig` is set, and
 * the two calls return different UUIDs. */
enum status cuda_identify_uuid(const struct cuda_api *api, cu_device device,
                               struct gpu_identity *out, struct err *err);
/* Reads the whole identity. Makes `nvml` (may be NULL) refer to this device. */
enum status cuda_identify(const struct cuda_api *api, struct nvml *nvml, cu_device device,
                          struct gpu_identity *out, struct err *err);

#endif
