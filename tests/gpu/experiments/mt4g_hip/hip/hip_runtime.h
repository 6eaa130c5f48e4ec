/* The part of HIP that MT4G uses, over the CUDA runtime. It replaces hipcc for NVIDIA on machines
 * that only have nvcc. Only the test tests/gpu/experiments/mt4g.sh uses it; the reachd
 * programs do not use it. */
#pragma once

#include <cuda_runtime.h>

#include <cstring>

#define __HIP_PLATFORM_NVIDIA__ 1

#define hipError_t                                   cudaError_t
#define hipSuccess                                   cudaSuccess
#define hipGetErrorString                            cudaGetErrorString
#define hipMalloc                                    cudaMalloc
#define hipFree                                      cudaFree
#define hipMemcpy                                    cudaMemcpy
#define hipMemcpyHostToDevice                        cudaMemcpyHostToDevice
#define hipMemcpyDeviceToHost                        cudaMemcpyDeviceToHost
#define hipMemset                                    cudaMemset
#define hipGetDevice                                 cudaGetDevice
#define hipSetDevice                                 cudaSetDevice
#define hipDeviceReset                               cudaDeviceReset
#define hipDeviceSynchronize                         cudaDeviceSynchronize
#define hipGetLastError                              cudaGetLastError
#define hipDeviceGetAttribute                        cudaDeviceGetAttribute
#define hipDeviceAttributeMultiprocessorCount        cudaDevAttrMultiProcessorCount
#define hipDeviceAttributeWarpSize                   cudaDevAttrWarpSize
#define hipDeviceAttributeMaxThreadsPerBlock         cudaDevAttrMaxThreadsPerBlock
#define hipDeviceAttributeCooperativeLaunch          cudaDevAttrCooperativeLaunch
#define hipDeviceAttributeClockRate                  cudaDevAttrClockRate
#define hipDriverGetVersion                          cudaDriverGetVersion
#define hipRuntimeGetVersion                         cudaRuntimeGetVersion
#define hipStream_t                                  cudaStream_t
#define hipStreamCreate                              cudaStreamCreate
#define hipStreamDestroy                             cudaStreamDestroy
#define hipStreamSynchronize                         cudaStreamSynchronize
#define hipEvent_t                                   cudaEvent_t
#define hipEventCreate                               cudaEventCreate
#define hipEventDestroy                              cudaEventDestroy
#define hipEventRecord                               cudaEventRecord
#define hipEventSynchronize                          cudaEventSynchronize
#define hipEventElapsedTime                          cudaEventElapsedTime
#define hipFuncCache_t                               cudaFuncCache
#define hipFuncCachePreferL1                         cudaFuncCachePreferL1
#define hipFuncCachePreferShared                     cudaFuncCachePreferShared
#define hipFuncCachePreferEqual                      cudaFuncCachePreferEqual
#define hipDeviceSetCacheConfig                      cudaDeviceSetCacheConfig
#define hipOccupancyMaxActiveBlocksPerMultiprocessor cudaOccupancyMaxActiveBlocksPerMultiprocessor
#define hipLaunchCooperativeKernel                   cudaLaunchCooperativeKernel
#define hipTextureObject_t                           cudaTextureObject_t
#define hipTextureDesc                               cudaTextureDesc
#define hipResourceDesc                              cudaResourceDesc
#define hipResourceTypeLinear                        cudaResourceTypeLinear
#define hipReadModeElementType                       cudaReadModeElementType
#define hipAddressModeClamp                          cudaAddressModeClamp
#define hipFilterModePoint                           cudaFilterModePoint
#define hipCreateChannelDesc                         cudaCreateChannelDesc
#define hipCreateTextureObject                       cudaCreateTextureObject
#define hipDestroyTextureObject                      cudaDestroyTextureObject

/* Newer CUDA runtimes have the clocks only as attributes, and have no revision of the chip. */
struct hipDeviceProp_t {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, totalConstMem, sharedMemPerMultiprocessor,
        reservedSharedMemPerBlock;
    int asicRevision, clockRate, concurrentKernels, globalL1CacheSupported, l2CacheSize,
        localL1CacheSupported, major;
    int maxBlocksPerMultiProcessor, maxThreadsPerBlock, maxThreadsPerMultiProcessor, memoryBusWidth,
        memoryClockRate;
    int minor, multiProcessorCount, persistingL2CacheMaxSize, regsPerBlock, regsPerMultiprocessor,
        warpSize;
    int pciBusID, pciDeviceID, pciDomainID;
};

static inline cudaError_t hipGetDeviceProperties(hipDeviceProp_t *to, int device)
{
    cudaDeviceProp from;
    cudaError_t error = cudaGetDeviceProperties(&from, device);
    if (error != cudaSuccess)
        return error;
    std::memcpy(to->name, from.name, sizeof(to->name));
#define COPY(member) to->member = from.member
    COPY(totalGlobalMem);
    COPY(sharedMemPerBlock);
    COPY(totalConstMem);
    COPY(sharedMemPerMultiprocessor);
    COPY(reservedSharedMemPerBlock);
    COPY(concurrentKernels);
    COPY(globalL1CacheSupported);
    COPY(localL1CacheSupported);
    COPY(l2CacheSize);
    COPY(major);
    COPY(minor);
    COPY(maxBlocksPerMultiProcessor);
    COPY(maxThreadsPerBlock);
    COPY(maxThreadsPerMultiProcessor);
    COPY(memoryBusWidth);
    COPY(multiProcessorCount);
    COPY(persistingL2CacheMaxSize);
    COPY(regsPerBlock);
    COPY(regsPerMultiprocessor);
    COPY(warpSize);
    COPY(pciBusID);
    COPY(pciDeviceID);
    COPY(pciDomainID);
#undef COPY
    to->asicRevision = 0;
    error = cudaDeviceGetAttribute(&to->clockRate, cudaDevAttrClockRate, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&to->memoryClockRate, cudaDevAttrMemoryClockRate, device);
    return error;
}
