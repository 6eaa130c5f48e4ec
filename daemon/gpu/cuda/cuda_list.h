/* cuda_list.h: which GPUs the node has, and who they are. MIG instances are GPUs of their own; so
 * that the driver shows one, the process must name it before it first calls the driver. One thread.
 */
#ifndef REACH_GPU_CUDA_CUDA_LIST_H
#define REACH_GPU_CUDA_CUDA_LIST_H

#include "gpu/cuda/cuda_api.h"
#include "gpu/cuda/nvml.h"
#include "gpu/gpu.h"

/* gpu_ops.list: what the driver shows, then MIG instances, then the GPUs that are divided into them
 * (identity_is_divided). Starts a process for each instance, which has ended when it returns. */
enum status cuda_list(const struct gpu_options *options, struct gpu_identity *out, uint32_t max,
                      uint32_t *out_count, struct err *err);

/* Before the driver is called for the first time: the process is to see this GPU. Does nothing for
 * a whole GPU, nor if CUDA_VISIBLE_DEVICES says already what the process sees. */
void cuda_show_instance(const char *uuid);

/* The UUID of the GPU, or of the MIG instance where this device is one, and `mig`: then the two
 * calls differ. */
enum status cuda_identify_uuid(const struct cuda_api *api, cu_device device,
                               struct gpu_identity *out, struct err *err);
/* All of it. Makes `nvml` (may be NULL) one about this device. */
enum status cuda_identify(const struct cuda_api *api, struct nvml *nvml, cu_device device,
                          struct gpu_identity *out, struct err *err);

#endif
