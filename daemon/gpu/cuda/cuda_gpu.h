/* cuda_gpu.h: the cuda source: a real device through libcuda.so.1. See gpu/gpu.h for the contract.
 * Neighbours: cuda_api (the driver's symbols), nvml (what only the management library tells),
 * cuda_arena (the memory probes touch), cuda_probe (one launch for each kind of probe). */
#ifndef REACH_GPU_CUDA_CUDA_GPU_H
#define REACH_GPU_CUDA_CUDA_GPU_H

#include "gpu/gpu.h"

extern const struct gpu_ops cuda_gpu_ops;

#endif
