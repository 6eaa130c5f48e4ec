/* cuda_cache.h: CACHE on the device. Internal to the cuda source. */
#ifndef REACH_GPU_CUDA_CUDA_CACHE_H
#define REACH_GPU_CUDA_CUDA_CACHE_H

#include "gpu/cuda/cuda_launch.h"

/* The largest dynamic shared memory of a CACHE block. */
unsigned cuda_cache_most_shared(const struct cuda_probe *p);

/* Element 0 is at `base`; the values are in the scratch memory afterwards. Returns STATUS_GPU_BUSY
 * if an SM has no block. */
enum status cuda_cache_run(const struct cuda_probe *p, const struct probe_spec *spec,
                           cu_deviceptr base, struct err *err);

#endif
