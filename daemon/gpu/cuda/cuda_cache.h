/* cuda_cache.h: runs CACHE on the device. It is internal to the cuda source. */
#pragma once

#include "gpu/cuda/cuda_launch.h"

/* Returns the largest dynamic shared memory of a CACHE block in bytes. */
unsigned cuda_cache_most_shared(const struct cuda_probe *p);

/* Runs a CACHE whose element 0 is at `base`; the values are in the scratch memory afterwards.
 * Returns STATUS_GPU_BUSY if an SM has no block. */
enum status cuda_cache_run(const struct cuda_probe *p, const struct probe_spec *spec,
                           cu_deviceptr base, struct err *err);
