/* cuda_list.h: which GPUs the node has, and who they are. MIG instances are GPUs of their own; so
 * that the driver shows one, the process must name it before it first calls the driver. One thread.
 */
#ifndef REACH_GPU_CUDA_CUDA_LIST_H
#define REACH_GPU_CUDA_CUDA_LIST_H

#include "gpu/cuda/cuda_api.h"
#include "gpu/cuda/nvml.h"
#include "gpu/gpu.h"

/* gpu_ops.list: GPUs, MIG instances, and GPUs that are divided into them (identity_is_divided),
 * which come last, like those that the driver does not identify. Starts a process for each GPU.
 * Those that have not answered in time are terminated. */
enum status cuda_list(const struct gpu_options *options, gpu_found_fn *found, void *self,
                      struct err *err);

/* Before the driver is called for the first time: the process is to see this GPU. The second does
 * nothing for a whole GPU, nor if CUDA_VISIBLE_DEVICES is set. */
void cuda_show_alone(const char *uuid);
void cuda_show_instance(const char *uuid);

/* The UUID of the GPU, or of the MIG instance where this device is one, and `mig`: then the two
 * calls differ. */
enum status cuda_identify_uuid(const struct cuda_api *api, cu_device device,
                               struct gpu_identity *out, struct err *err);
/* All of it. Makes `nvml` (may be NULL) one about this device. */
enum status cuda_identify(const struct cuda_api *api, struct nvml *nvml, cu_device device,
                          struct gpu_identity *out, struct err *err);

#endif
