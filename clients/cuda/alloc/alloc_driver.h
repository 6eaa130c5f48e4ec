/* alloc_driver.h: the functions of the CUDA driver that libreach-cuda uses, loaded at run time, and
 * the conversion of their failures to errors. Any thread may call them.
 *
 * The types mirror the used part of the public driver ABI, so a program builds without CUDA. Every
 * driver since CUDA 11.2 exports these symbols.
 */
#pragma once

#include "clients/cuda/reach_alloc.h"

struct drv_location { /* CUmemLocation */
    int type;
    int id; /* DRV_DEVICE_DOMAIN: the device in the first byte, and the domain in the second */
};
struct drv_prop { /* CUmemAllocationProp: pinned, not exportable */
    int type;
    int requested_handle_types;
    struct drv_location location;
    void *win32_metadata;
    unsigned char flags[8];
};
struct drv_access { /* CUmemAccessDesc */
    struct drv_location location;
    int flags;
};

enum {
    DRV_INVALID_VALUE = 1,
    DRV_OUT_OF_MEMORY = 2,
    DRV_NOT_READY = 600,
    DRV_NOT_PERMITTED = 800,
    DRV_NOT_SUPPORTED = 801,
    DRV_PINNED = 1,
    DRV_DEVICE = 1,
    DRV_HOST_NUMA = 3,
    DRV_DEVICE_DOMAIN = 6, /* cuda.h of CUDA 13.5: CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN */
    DRV_READ_WRITE = 3,
    DRV_ATTRIBUTE_VMM = 102,
    DRV_ATTRIBUTE_HOST_NUMA_ID = 134,
    DRV_ATTRIBUTE_DOMAIN_COUNT = 149, /* CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT, CUDA 13.4 */
    DRV_EVENT_DISABLE_TIMING = 2,
    DRV_HOST_PORTABLE_MAPPED = 3,
    DRV_ATTACH_GLOBAL = 1,
    DRV_ADVISE_PREFERRED_LOCATION = 3,
    DRV_ADVISE_ACCESSED_BY = 5,
    DRV_CPU = -1,
    DRV_NOWHERE = -2,
    DRV_STREAM_NON_BLOCKING = 1,
    DRV_STREAM_PER_THREAD = 2, /* handle of a default stream per thread */
};

/* The columns are the name, the ABI version (part of the symbol's name) and the parameters. */
/* clang-format off */
#define DRV_FUNCTIONS(X)                                                                           \
    X(cuInit, "", unsigned flags)                                                                  \
    X(cuGetErrorName, "", int result, const char **name)                                           \
    X(cuGetErrorString, "", int result, const char **text)                                         \
    X(cuDeviceGet, "", int *device, int ordinal)                                                   \
    X(cuDeviceGetAttribute, "", int *value, int attribute, int device)                             \
    X(cuDeviceTotalMem, "_v2", size_t *bytes, int device)                                          \
    X(cuDevicePrimaryCtxRetain, "", void **context, int device)                                    \
    X(cuDevicePrimaryCtxRelease, "_v2", int device)                                                \
    X(cuCtxPushCurrent, "_v2", void *context)                                                      \
    X(cuCtxPopCurrent, "_v2", void **context)                                                      \
    X(cuCtxSynchronize, "", void)                                                                  \
    X(cuStreamSynchronize, "", void *stream)                                                       \
    X(cuEventCreate, "", void **event, unsigned flags)                                             \
    X(cuEventRecord, "", void *event, void *stream)                                                \
    X(cuEventQuery, "", void *event)                                                               \
    X(cuEventSynchronize, "", void *event)                                                         \
    X(cuEventDestroy, "_v2", void *event)                                                          \
    X(cuMemcpyDtoD, "_v2", uint64_t to, uint64_t from, size_t bytes)                               \
    X(cuMemGetAllocationGranularity, "", size_t *bytes, const struct drv_prop *prop, int option)   \
    X(cuMemCreate, "", uint64_t *handle, size_t bytes, const struct drv_prop *prop,                \
      unsigned long long flags)                                                                    \
    X(cuMemRelease, "", uint64_t handle)                                                           \
    X(cuMemAddressReserve, "", uint64_t *address, size_t bytes, size_t alignment, uint64_t hint,   \
      unsigned long long flags)                                                                    \
    X(cuMemAddressFree, "", uint64_t address, size_t bytes)                                        \
    X(cuMemMap, "", uint64_t address, size_t bytes, size_t offset, uint64_t handle,                \
      unsigned long long flags)                                                                    \
    X(cuMemUnmap, "", uint64_t address, size_t bytes)                                              \
    X(cuMemSetAccess, "", uint64_t address, size_t bytes, const struct drv_access *access,         \
      size_t count)                                                                                \
    X(cuMemHostRegister, "_v2", void *memory, size_t bytes, unsigned flags)                        \
    X(cuMemHostUnregister, "", void *memory)                                                       \
    X(cuMemHostGetDevicePointer, "_v2", uint64_t *address, void *memory, unsigned flags)           \
    X(cuMemAllocManaged, "", uint64_t *address, size_t bytes, unsigned flags)                      \
    X(cuMemFree, "_v2", uint64_t address)                                                          \
    X(cuMemAdvise, "", uint64_t address, size_t bytes, int advice, int device)                     \
    X(cuCtxGetDevice, "", int *device)                                                             \
    X(cuMemGetInfo, "_v2", size_t *free_bytes, size_t *total_bytes)                                \
    X(cuMemAlloc, "_v2", uint64_t *address, size_t bytes)                                          \
    X(cuMemcpyHtoDAsync, "_v2", uint64_t to, const void *from, size_t bytes, void *stream)         \
    X(cuMemcpyDtoHAsync, "_v2", void *to, uint64_t from, size_t bytes, void *stream)               \
    X(cuPointerGetAttribute, "", void *value, int attribute, uint64_t pointer)                     \
    X(cuMemRangeGetAttribute, "",                                                                  \
      void *value, size_t bytes, int attribute, uint64_t address, size_t count)                    \
    X(cuMemGetAccess, "", unsigned long long *flags, const struct drv_location *location,          \
      uint64_t address)                                                                            \
    X(cuMemRetainAllocationHandle, "", uint64_t *handle, void *address)                            \
    X(cuMemGetAllocationPropertiesFromHandle, "", struct drv_prop *prop, uint64_t handle)          \
    X(cuModuleLoadData, "", void **module, const void *image)                                      \
    X(cuModuleUnload, "", void *module)                                                            \
    X(cuModuleGetFunction, "", void **function, void *module, const char *name)                    \
    X(cuFuncSetAttribute, "", void *function, int attribute, int value)                            \
    X(cuLaunchKernel, "", void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,      \
      unsigned by, unsigned bz, unsigned shared_bytes, void *stream, void **parameters,            \
      void **extra)                                                                                \
    X(cuStreamCreate, "", void **stream, unsigned flags)                                           \
    X(cuStreamDestroy, "_v2", void *stream)
/* clang-format on */

#define DRV_POINTER(function, version, ...) int (*function)(__VA_ARGS__);

struct alloc_driver {
    void *library;
    DRV_FUNCTIONS(DRV_POINTER)
};

/* Loads `name` ("libcuda.so.1" if NULL) and initializes it. Returns REACH_ALLOC_NO_DRIVER on
 * failure. */
enum reach_alloc_status alloc_driver_open(const char *name, struct alloc_driver *out,
                                          struct reach_alloc_error *error);
void alloc_driver_close(struct alloc_driver *driver);

/* Returns REACH_ALLOC_OK if `result` is success. Otherwise fills the error and returns its
 * status. */
enum reach_alloc_status alloc_driver_check(const struct alloc_driver *driver, int result,
                                           const char *call, struct reach_alloc_error *error);

/* Calls a function of the pool's driver. */
#define DRV(pool, error, function, ...)                                                            \
    alloc_driver_check(&(pool)->driver, (pool)->driver.function(__VA_ARGS__), #function, error)

/* Fills `*error` (if not NULL) without a driver call, and evaluates to `status`. It is a macro, so
 * that a checker that reads one file recognizes a failure. */
#define alloc_fail(error, status, ...) (alloc_fail_text(error, status, __VA_ARGS__), (status))

void alloc_fail_text(struct reach_alloc_error *error, enum reach_alloc_status status,
                     const char *format, ...) __attribute__((format(printf, 3, 4)));
