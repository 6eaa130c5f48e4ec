/* cuda_api.h: the functions of the CUDA driver that reachd uses, loaded at run time.
 *
 * libcuda.so.1 is opened with dlopen, so that the same binary starts on a node without a driver. No
 * cuda.h is needed to build: the types below mirror the part of the public driver ABI that is used.
 * One table (CUDA_FUNCTIONS) declares the pointers and names their symbols.
 *
 * Only the worker process loads the library, and one thread at a time calls it.
 */
#pragma once

#include "base/status.h"

#include <stdint.h>

typedef int cu_result; /* CUresult */
typedef int cu_device;
typedef struct cu_context_st *cu_context;
typedef struct cu_module_st *cu_module;
typedef struct cu_function_st *cu_function;
typedef struct cu_stream_st *cu_stream;
typedef uint64_t cu_deviceptr;
typedef uint64_t cu_mem_handle; /* CUmemGenericAllocationHandle */

struct cu_uuid {
    unsigned char bytes[16];
};

/* CUmemAllocationProp and its parts. Here they describe pinned memory that is not exported. */
struct cu_mem_location {
    int type; /* enum cu_location */
    int id;
};
struct cu_mem_allocation_prop {
    int type;                   /* 1: pinned */
    int requested_handle_types; /* types of handles for export; 0 means none */
    struct cu_mem_location location;
    void *win32_metadata;
    struct {
        unsigned char compression_type;
        unsigned char gpu_direct_rdma_capable;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};
struct cu_mem_access_desc {
    struct cu_mem_location location;
    int flags; /* 3: read and write */
};
_Static_assert(sizeof(struct cu_mem_allocation_prop) == 32, "driver ABI");
_Static_assert(sizeof(struct cu_mem_access_desc) == 12, "driver ABI");

/* CUlaunchConfig with the only attribute that is used: the dimensions of a cluster in blocks. */
struct cu_launch_attribute {
    int id; /* 4: dimensions of a cluster */
    int pad;
    unsigned cluster[3];
    unsigned char rest[52];
};
struct cu_launch_config {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    cu_stream stream;
    struct cu_launch_attribute *attributes;
    unsigned attribute_count;
};
_Static_assert(sizeof(struct cu_launch_attribute) == 72, "driver ABI");
_Static_assert(sizeof(struct cu_launch_config) == 56, "driver ABI");

enum {
    CU_SUCCESS = 0,
    CU_ERROR_INVALID_VALUE = 1,
    CU_ERROR_OUT_OF_MEMORY = 2,
    CU_ERROR_NOT_INITIALIZED = 3,
    CU_ERROR_DEVICE_UNAVAILABLE = 46,
    CU_ERROR_NO_DEVICE = 100,
    CU_ERROR_INVALID_DEVICE = 101,
    CU_ERROR_NO_BINARY_FOR_GPU = 209,
    CU_ERROR_ECC_UNCORRECTABLE = 214,
    CU_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    CU_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CU_ERROR_CONTAINED = 226, /* hardware error, contained to this process */
    CU_ERROR_OPERATING_SYSTEM = 304,
    CU_ERROR_NOT_FOUND = 500,
    CU_ERROR_NOT_READY = 600,
    CU_ERROR_ILLEGAL_ADDRESS = 700,
    CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CU_ERROR_LAUNCH_FAILED = 719,
    CU_ERROR_NOT_PERMITTED = 800,
    CU_ERROR_NOT_SUPPORTED = 801,
    CU_ERROR_SYSTEM_NOT_READY = 802,
    CU_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
};

enum {
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT = 102,
    CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH = 120,
    CU_DEVICE_ATTRIBUTE_MPS_ENABLED = 133,
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID = 134,
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT = 141,
    /* CUDA 13.4 and later; the numbers are from cuda.h of CUDA 13.5. Earlier drivers return
     * CU_ERROR_INVALID_VALUE. */
    CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT = 149,
    CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT = 157,

    CU_COMPUTEMODE_PROHIBITED = 2,
    CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5, /* 90 for code for compute capability 9.0 */
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT =
        9, /* in percent of the largest shared memory of an SM */
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_STREAM_NON_BLOCKING = 1,

    CU_MEMHOST_PORTABLE_AND_MAPPED = 3, /* flags of cuMemHostAlloc and cuMemHostRegister */
    CU_MEM_ATTACH_GLOBAL = 1,
    CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
    CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
    CU_DEVICE_CPU = -1,
};
enum cu_location { CU_LOCATION_DEVICE = 1, CU_LOCATION_HOST_NUMA = 3 };

enum cuda_need {
    CUDA_REQUIRED,
    CUDA_OPTIONAL, /* NULL if missing. cuDeviceGetUuid_v2 (CUDA 11.4) reports a MIG instance, and
                      cuDeviceGetUuid reports the GPU of the instance */
    CUDA_VMM       /* the virtual memory API, CUDA 10.2 and later; complete if `has_vmm` */
};

/* Each row has the need for a function, its name, the version of its ABI (part of the symbol's
 * name), and its parameters. */
/* clang-format off */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(CUDA_REQUIRED, cuInit, "", unsigned flags)                                                   \
    X(CUDA_REQUIRED, cuDriverGetVersion, "", int *version)                                         \
    X(CUDA_REQUIRED, cuGetErrorName, "", cu_result r, const char **name)                           \
    X(CUDA_REQUIRED, cuGetErrorString, "", cu_result r, const char **text)                         \
    X(CUDA_REQUIRED, cuDeviceGetCount, "", int *count)                                             \
    X(CUDA_REQUIRED, cuDeviceGet, "", cu_device *device, int ordinal)                              \
    X(CUDA_REQUIRED, cuDeviceGetName, "", char *name, int length, cu_device device)                \
    X(CUDA_REQUIRED, cuDeviceGetUuid, "", struct cu_uuid *uuid, cu_device device)                  \
    X(CUDA_REQUIRED, cuDeviceTotalMem, "_v2", size_t *bytes, cu_device device)                     \
    X(CUDA_REQUIRED, cuDeviceGetAttribute, "", int *value, int attribute, cu_device device)        \
    X(CUDA_REQUIRED, cuDeviceGetPCIBusId, "", char *id, int length, cu_device device)              \
    X(CUDA_REQUIRED, cuDevicePrimaryCtxRetain, "", cu_context *context, cu_device device)          \
    X(CUDA_REQUIRED, cuDevicePrimaryCtxRelease, "_v2", cu_device device)                           \
    X(CUDA_REQUIRED, cuCtxSetCurrent, "", cu_context context)                                      \
    X(CUDA_REQUIRED, cuMemGetInfo, "_v2", size_t *free_bytes, size_t *total_bytes)                 \
    X(CUDA_REQUIRED, cuMemAlloc, "_v2", cu_deviceptr *p, size_t bytes)                             \
    X(CUDA_REQUIRED, cuMemFree, "_v2", cu_deviceptr p)                                             \
    X(CUDA_REQUIRED, cuMemcpyDtoH, "_v2", void *to, cu_deviceptr from, size_t bytes)               \
    X(CUDA_REQUIRED, cuMemcpyHtoD, "_v2", cu_deviceptr to, const void *from, size_t bytes)         \
    X(CUDA_REQUIRED, cuMemsetD8, "_v2", cu_deviceptr p, unsigned char value, size_t bytes)         \
    X(CUDA_REQUIRED, cuModuleLoadData, "", cu_module *module, const void *image)                   \
    X(CUDA_REQUIRED, cuModuleUnload, "", cu_module module)                                         \
    X(CUDA_REQUIRED, cuModuleGetFunction, "",                                                      \
      cu_function *f, cu_module module, const char *name)                                          \
    X(CUDA_REQUIRED, cuFuncSetAttribute, "", cu_function f, int attribute, int value)              \
    X(CUDA_REQUIRED, cuLaunchKernel, "",                                                           \
      cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,              \
      unsigned bz, unsigned shared_bytes, cu_stream stream, void **parameters, void **extra)       \
    X(CUDA_REQUIRED, cuStreamCreate, "", cu_stream *stream, unsigned flags)                        \
    X(CUDA_REQUIRED, cuStreamDestroy, "_v2", cu_stream stream)                                     \
    X(CUDA_REQUIRED, cuStreamQuery, "", cu_stream stream)                                          \
    X(CUDA_OPTIONAL, cuFuncGetAttribute, "", int *value, int attribute, cu_function f)             \
    X(CUDA_OPTIONAL, cuLaunchKernelEx, "",                                                         \
      const struct cu_launch_config *config, cu_function f, void **parameters, void **extra)       \
    X(CUDA_OPTIONAL, cuOccupancyMaxActiveClusters, "",                                             \
      int *clusters, cu_function f, const struct cu_launch_config *config)                         \
    X(CUDA_OPTIONAL, cuDeviceGetUuid_v2, "", struct cu_uuid *uuid, cu_device device)               \
    X(CUDA_OPTIONAL, cuDeviceCanAccessPeer, "", int *can, cu_device device, cu_device peer)        \
    X(CUDA_OPTIONAL, cuMemHostAlloc, "", void **p, size_t bytes, unsigned flags)                   \
    X(CUDA_OPTIONAL, cuMemFreeHost, "", void *p)                                                   \
    X(CUDA_OPTIONAL, cuMemHostGetDevicePointer, "_v2", cu_deviceptr *p, void *host, unsigned flags)\
    X(CUDA_OPTIONAL, cuMemHostRegister, "_v2", void *p, size_t bytes, unsigned flags)              \
    X(CUDA_OPTIONAL, cuMemHostUnregister, "", void *p)                                             \
    X(CUDA_OPTIONAL, cuMemAllocManaged, "", cu_deviceptr *p, size_t bytes, unsigned flags)         \
    X(CUDA_OPTIONAL, cuMemAdvise, "", cu_deviceptr p, size_t bytes, int advice, cu_device device)  \
    X(CUDA_OPTIONAL, cuMemPrefetchAsync, "",                                                       \
      cu_deviceptr p, size_t bytes, cu_device device, cu_stream stream)                            \
    X(CUDA_VMM, cuMemGetAllocationGranularity, "",                                                 \
      size_t *bytes, const struct cu_mem_allocation_prop *prop, int option)                        \
    X(CUDA_VMM, cuMemCreate, "",                                                                   \
      cu_mem_handle *handle, size_t bytes, const struct cu_mem_allocation_prop *prop,              \
      unsigned long long flags)                                                                    \
    X(CUDA_VMM, cuMemRelease, "", cu_mem_handle handle)                                            \
    X(CUDA_VMM, cuMemAddressReserve, "",                                                           \
      cu_deviceptr *p, size_t bytes, size_t alignment, cu_deviceptr hint,                          \
      unsigned long long flags)                                                                    \
    X(CUDA_VMM, cuMemAddressFree, "", cu_deviceptr p, size_t bytes)                                \
    X(CUDA_VMM, cuMemMap, "",                                                                      \
      cu_deviceptr p, size_t bytes, size_t offset, cu_mem_handle handle,                           \
      unsigned long long flags)                                                                    \
    X(CUDA_VMM, cuMemUnmap, "", cu_deviceptr p, size_t bytes)                                      \
    X(CUDA_VMM, cuMemSetAccess, "",                                                                \
      cu_deviceptr p, size_t bytes, const struct cu_mem_access_desc *access, size_t count)
/* clang-format on */

#define CUDA_POINTER(need, function, version, ...) cu_result (*function)(__VA_ARGS__);

struct cuda_api {
    void *library;
    int driver_version; /* 13000 for 13.0 */
    CUDA_FUNCTIONS(CUDA_POINTER)
    int has_vmm;
    int is_stand_in; /* 1 for the library of tests/fakecuda, whose numbers are simulated */
};

/* Opens the library `name` ("libcuda.so.1" if NULL), resolves every symbol and calls cuInit.
 * Returns STATUS_NO_DRIVER if there is no library or no device. Returns STATUS_DRIVER_TOO_OLD for
 * an old driver; the error names both versions, or the missing symbol. `*out` is zeroed on
 * failure. */
enum status cuda_api_open(const char *name, struct cuda_api *out, struct err *err);
/* Closes the library. All contexts must have been destroyed. Zeroes `*api`. */
void cuda_api_close(struct cuda_api *api);

/* Returns STATUS_OK if `r` is success. Otherwise the error is "call: NAME (number): text". Its
 * status depends on the number: out of memory, busy, lost (for all later calls) or fault. */
enum status cuda_api_check(const struct cuda_api *api, cu_result r, const char *call,
                           struct err *err);

/* Calls a function of the driver and returns the status of cuda_api_check. */
#define CUDA_CALL(api, err, function, ...)                                                         \
    cuda_api_check(api, (api)->function(__VA_ARGS__), #function, err)
