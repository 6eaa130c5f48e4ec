/* cuda_api.h: the few functions of the CUDA driver that reachd uses, loaded at run time.
 *
 * libcuda.so.1 is opened with dlopen, so that the same binary starts on a node without a driver. No
 * cuda.h is needed to build: the types below mirror the public driver ABI and only what is used of
 * it. One table (cuda_api.c) names every symbol and where its pointer goes; adding a function is
 * one line there and one here.
 *
 * Only the worker process loads this. One thread at a time.
 */
#ifndef REACH_GPU_CUDA_CUDA_API_H
#define REACH_GPU_CUDA_CUDA_API_H

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

/* CUmemAllocationProp and its parts: pinned device memory, not exportable. */
struct cu_mem_location {
    int type; /* 1: device */
    int id;
};
struct cu_mem_allocation_prop {
    int type;                   /* 1: pinned */
    int requested_handle_types; /* 0: none */
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
    CU_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CU_ERROR_CONTAINED = 226, /* hardware error, contained to this process */
    CU_ERROR_NOT_FOUND = 500,
    CU_ERROR_NOT_READY = 600,
    CU_ERROR_ILLEGAL_ADDRESS = 700,
    CU_ERROR_LAUNCH_TIMEOUT = 702,
    CU_ERROR_LAUNCH_FAILED = 719,
    CU_ERROR_NOT_PERMITTED = 800,
    CU_ERROR_NOT_SUPPORTED = 801,
    CU_ERROR_SYSTEM_NOT_READY = 802,
    CU_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
};

enum {
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT = 102,

    CU_COMPUTEMODE_PROHIBITED = 2,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_STREAM_NON_BLOCKING = 1,
};

struct cuda_api {
    void *library;
    int driver_version; /* 13000 for 13.0 */
    cu_result (*init)(unsigned flags);
    cu_result (*driver_get_version)(int *version);
    cu_result (*get_error_name)(cu_result r, const char **name);
    cu_result (*get_error_string)(cu_result r, const char **text);
    cu_result (*device_get_count)(int *count);
    cu_result (*device_get)(cu_device *device, int ordinal);
    cu_result (*device_get_name)(char *name, int length, cu_device device);
    cu_result (*device_get_uuid)(struct cu_uuid *uuid, cu_device device);
    cu_result (*device_total_mem)(size_t *bytes, cu_device device);
    cu_result (*device_get_attribute)(int *value, int attribute, cu_device device);
    cu_result (*device_get_pci_bus_id)(char *id, int length, cu_device device);
    cu_result (*primary_ctx_retain)(cu_context *context, cu_device device);
    cu_result (*primary_ctx_release)(cu_device device);
    cu_result (*ctx_set_current)(cu_context context);
    cu_result (*mem_get_info)(size_t *free_bytes, size_t *total_bytes);
    cu_result (*mem_alloc)(cu_deviceptr *p, size_t bytes);
    cu_result (*mem_free)(cu_deviceptr p);
    cu_result (*memcpy_dtoh)(void *to, cu_deviceptr from, size_t bytes);
    cu_result (*memcpy_htod)(cu_deviceptr to, const void *from, size_t bytes);
    cu_result (*memset_d8)(cu_deviceptr p, unsigned char value, size_t bytes);
    cu_result (*module_load_data)(cu_module *module, const void *image);
    cu_result (*module_unload)(cu_module module);
    cu_result (*module_get_function)(cu_function *f, cu_module module, const char *name);
    cu_result (*func_set_attribute)(cu_function f, int attribute, int value);
    cu_result (*launch_kernel)(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared_bytes, cu_stream stream,
                               void **parameters, void **extra);
    cu_result (*stream_create)(cu_stream *stream, unsigned flags);
    cu_result (*stream_destroy)(cu_stream stream);
    cu_result (*stream_query)(cu_stream stream);
    /* CUDA 11.4 and later, or NULL: tells a MIG instance's UUID where the other tells its GPU's. */
    cu_result (*device_get_uuid_v2)(struct cu_uuid *uuid, cu_device device);
    /* Virtual memory API, CUDA 10.2 and later: use it only where `has_vmm`. */
    cu_result (*mem_get_granularity)(size_t *bytes, const struct cu_mem_allocation_prop *prop,
                                     int option);
    cu_result (*mem_create)(cu_mem_handle *handle, size_t bytes,
                            const struct cu_mem_allocation_prop *prop, unsigned long long flags);
    cu_result (*mem_release)(cu_mem_handle handle);
    cu_result (*mem_address_reserve)(cu_deviceptr *p, size_t bytes, size_t alignment,
                                     cu_deviceptr hint, unsigned long long flags);
    cu_result (*mem_address_free)(cu_deviceptr p, size_t bytes);
    cu_result (*mem_map)(cu_deviceptr p, size_t bytes, size_t offset, cu_mem_handle handle,
                         unsigned long long flags);
    cu_result (*mem_unmap)(cu_deviceptr p, size_t bytes);
    cu_result (*mem_set_access)(cu_deviceptr p, size_t bytes,
                                const struct cu_mem_access_desc *access, size_t count);
    int has_vmm;
    int is_stand_in; /* the library of tests/fakecuda: its numbers are simulated */
};

/* Opens the library (`name` NULL: "libcuda.so.1") and resolves every symbol, then cuInit.
 * STATUS_NO_DRIVER: no library, no device; STATUS_DRIVER_TOO_OLD names the version found and the
 * version needed, or the symbol that is missing. `*out` is zeroed on failure. */
enum status cuda_api_open(const char *name, struct cuda_api *out, struct err *err);
/* Closes the library; contexts must be gone. Zeroes `*api`. */
void cuda_api_close(struct cuda_api *api);

/* STATUS_OK where `r` is success; otherwise says "call: NAME (number): text" and maps the number to
 * our domain: out of memory, busy, lost (sticky), fault. */
enum status cuda_api_check(const struct cuda_api *api, cu_result r, const char *call,
                           struct err *err);

#endif
