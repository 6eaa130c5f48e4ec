/* fake_driver.h: the driver API that the stand-in exports, under the names of the real symbols.
 * reachd uses no other functions of the API. */
#pragma once

#include "gpu/cuda/cuda_api.h"

cu_result cuInit(unsigned flags);
cu_result cuDriverGetVersion(int *version);
cu_result cuGetErrorName(cu_result r, const char **name);
cu_result cuGetErrorString(cu_result r, const char **text);
cu_result cuDeviceGetCount(int *count);
cu_result cuDeviceGet(cu_device *device, int ordinal);
cu_result cuDeviceGetName(char *name, int length, cu_device device);
cu_result cuDeviceGetUuid(struct cu_uuid *uuid, cu_device device);
cu_result cuDeviceGetUuid_v2(struct cu_uuid *uuid, cu_device device);
cu_result cuDeviceTotalMem_v2(size_t *bytes, cu_device device);
cu_result cuDeviceGetAttribute(int *value, int attribute, cu_device device);
cu_result cuDeviceGetPCIBusId(char *id, int length, cu_device device);
cu_result cuDevicePrimaryCtxRetain(cu_context *context, cu_device device);
cu_result cuDevicePrimaryCtxRelease_v2(cu_device device);
cu_result cuDevicePrimaryCtxReset_v2(cu_device device);
cu_result cuCtxSetCurrent(cu_context context);
cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
cu_result cuMemAlloc_v2(cu_deviceptr *p, size_t bytes);
cu_result cuMemFree_v2(cu_deviceptr p);
cu_result cuMemcpyDtoH_v2(void *to, cu_deviceptr from, size_t bytes);
cu_result cuMemcpyHtoD_v2(cu_deviceptr to, const void *from, size_t bytes);
cu_result cuMemsetD8_v2(cu_deviceptr p, unsigned char value, size_t bytes);
cu_result cuModuleLoadData(cu_module *module, const void *image);
cu_result cuModuleUnload(cu_module module);
cu_result cuModuleGetFunction(cu_function *f, cu_module module, const char *name);
cu_result cuFuncSetAttribute(cu_function f, int attribute, int value);
cu_result cuLaunchKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                         unsigned by, unsigned bz, unsigned shared_bytes, cu_stream stream,
                         void **parameters, void **extra);
cu_result cuFuncGetAttribute(int *value, int attribute, cu_function f);
cu_result cuOccupancyMaxActiveClusters(int *clusters, cu_function f,
                                       const struct cu_launch_config *config);
cu_result cuLaunchKernelEx(const struct cu_launch_config *config, cu_function f, void **parameters,
                           void **extra);
cu_result cuStreamCreate(cu_stream *stream, unsigned flags);
cu_result cuStreamDestroy_v2(cu_stream stream);
cu_result cuStreamQuery(cu_stream stream);
cu_result cuDeviceCanAccessPeer(int *can, cu_device device, cu_device peer);
cu_result cuMemHostAlloc(void **p, size_t bytes, unsigned flags);
cu_result cuMemFreeHost(void *p);
cu_result cuMemHostGetDevicePointer_v2(cu_deviceptr *p, void *host, unsigned flags);
cu_result cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags);
cu_result cuMemHostUnregister(void *p);
cu_result cuMemAllocManaged(cu_deviceptr *p, size_t bytes, unsigned flags);
cu_result cuMemAdvise(cu_deviceptr p, size_t bytes, int advice, cu_device device);
cu_result cuMemPrefetchAsync(cu_deviceptr p, size_t bytes, cu_device device, cu_stream stream);
cu_result cuMemGetAllocationGranularity(size_t *bytes, const struct cu_mem_allocation_prop *prop,
                                        int option);
cu_result cuMemCreate(cu_mem_handle *handle, size_t bytes,
                      const struct cu_mem_allocation_prop *prop, unsigned long long flags);
cu_result cuMemRelease(cu_mem_handle handle);
cu_result cuMemAddressReserve(cu_deviceptr *p, size_t bytes, size_t alignment, cu_deviceptr hint,
                              unsigned long long flags);
cu_result cuMemAddressFree(cu_deviceptr p, size_t bytes);
cu_result cuMemMap(cu_deviceptr p, size_t bytes, size_t offset, cu_mem_handle handle,
                   unsigned long long flags);
cu_result cuMemUnmap(cu_deviceptr p, size_t bytes);
cu_result cuMemSetAccess(cu_deviceptr p, size_t bytes, const struct cu_mem_access_desc *access,
                         size_t count);
/* Further calls, which the allocators of libreach-cuda make, are in fake_alloc.c. */
typedef struct cu_event_st *cu_event;
cu_result cuCtxPushCurrent_v2(cu_context context);
cu_result cuCtxPopCurrent_v2(cu_context *context);
cu_result cuCtxSynchronize(void);
cu_result cuStreamSynchronize(cu_stream stream);
cu_result cuEventCreate(cu_event *event, unsigned flags);
cu_result cuEventRecord(cu_event event, cu_stream stream);
cu_result cuEventQuery(cu_event event);
cu_result cuEventSynchronize(cu_event event);
cu_result cuEventDestroy_v2(cu_event event);
cu_result cuMemcpyDtoD_v2(cu_deviceptr to, cu_deviceptr from, size_t bytes);
/* Calls that the diagnosis of libreach-cuda makes are in fake_pointer.c. */
cu_result cuCtxGetDevice(cu_device *device);
cu_result cuMemcpyHtoDAsync_v2(cu_deviceptr to, const void *from, size_t bytes, cu_stream stream);
cu_result cuMemcpyDtoHAsync_v2(void *to, cu_deviceptr from, size_t bytes, cu_stream stream);
cu_result cuPointerGetAttribute(void *data, int attribute, cu_deviceptr pointer);
cu_result cuMemRangeGetAttribute(void *data, size_t bytes, int attribute, cu_deviceptr p,
                                 size_t count);
cu_result cuMemGetAccess(unsigned long long *flags, const struct cu_mem_location *location,
                         cu_deviceptr p);
cu_result cuMemRetainAllocationHandle(cu_mem_handle *handle, void *p);
cu_result cuMemGetAllocationPropertiesFromHandle(struct cu_mem_allocation_prop *prop,
                                                 cu_mem_handle handle);
/* Graphs of kernels that a test describes are in fake_script.c. */
struct kernel_node;
cu_result cuGraphCreate(void **out, unsigned flags);
cu_result cuGraphAddKernelNode(void **out, void *graph, void *const *after, size_t after_count,
                               const struct kernel_node *kernel);
cu_result cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags);
cu_result cuGraphUpload(void *graph, cu_stream stream);
cu_result cuGraphLaunch(void *graph, cu_stream stream);
cu_result cuGraphDestroy(void *graph);
cu_result cuGraphExecDestroy(void *graph);
