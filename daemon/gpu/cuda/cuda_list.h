/* cuda_list.h: the GPUs of the node and their identities. A MIG instance counts as a GPU. The
 * driver shows an instance only to a process that names it before its first call of the driver. One
 * thread calls these functions. */
#pragma once

#include "gpu/cuda/cuda_api.h"
#include "gpu/cuda/nvml.h"
#include "gpu/gpu.h"

/* Implements gpu_ops.list. Reports GPUs, MIG instances, and GPUs that are divided into instances
 * (identity_is_divided). Divided GPUs and GPUs that the driver does not identify come last. Starts
 * a process for each GPU and terminates the processes that have not answered in time. */
enum status cuda_list(const struct gpu_options *options, gpu_found_fn *found, void *self,
                      struct err *err);

/* Make the driver show only this GPU to the process. They must be called before the first call of
 * the driver. The second does nothing for a whole GPU, or if CUDA_VISIBLE_DEVICES is set. */
void cuda_show_alone(const char *uuid);
void cuda_show_instance(const char *uuid);

/* Reports the UUID of the GPU, or of the MIG instance if the device is an instance. Sets `mig` for
 * an instance, for which the driver's two calls return different UUIDs. */
enum status cuda_identify_uuid(const struct cuda_api *api, cu_device device,
                               struct gpu_identity *out, struct err *err);
/* Reads the whole identity. Makes `nvml` (may be NULL) refer to this device. */
enum status cuda_identify(const struct cuda_api *api, struct nvml *nvml, cu_device device,
                          struct gpu_identity *out, struct err *err);
