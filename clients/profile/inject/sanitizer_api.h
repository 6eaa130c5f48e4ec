/* sanitizer_api.h: the part of NVIDIA's Sanitizer API that the recorder uses, loaded at run time.
 * The library (libsanitizer-public.so) is under NVIDIA's license, and each user has a copy in the
 * CUDA Toolkit or in a Python package, so no header of the API is needed to build. The structs
 * below mirror the members that versions 12.9 to 13.5 share. */
#pragma once

#include "base/status.h"

#include <stdint.h>

typedef struct CUctx_st *san_context;
typedef struct CUmod_st *san_module;
typedef struct CUfunc_st *san_function;
typedef struct Sanitizer_Stream_st *san_stream;
typedef struct Sanitizer_Launch_st *san_launch;
typedef struct Sanitizer_Subscriber_st *san_subscriber;

/* Sanitizer_CallbackDomain */
enum {
    SAN_DOMAIN_DRIVER_API = 1,
    SAN_DOMAIN_RESOURCE = 3,
    SAN_DOMAIN_LAUNCH = 5,
    SAN_DOMAIN_GRAPHS = 10
};

/* Sanitizer_CallbackIdResource */
enum {
    SAN_CONTEXT_DESTROY_STARTING = 4,
    SAN_MODULE_LOADED = 9,
    SAN_MODULE_UNLOAD_STARTING = 10,
    SAN_DEVICE_MEMORY_ALLOC = 11,
    SAN_DEVICE_MEMORY_FREE = 12,
    SAN_HOST_MEMORY_ALLOC = 13,
    SAN_HOST_MEMORY_FREE = 14,
    SAN_MEMORY_ALLOC_ASYNC = 15,
    SAN_MEMORY_FREE_ASYNC = 16,
    SAN_VIRTUAL_RESERVE = 26,
    SAN_VIRTUAL_RELEASE = 27
};

enum { SAN_LAUNCH_BEGIN = 1, SAN_LAUNCH_END = 3 }; /* Sanitizer_CallbackIdLaunch */
enum { SAN_NODE_LAUNCH_BEGIN = 4, SAN_GRAPH_LAUNCH_BEGIN = 6, SAN_GRAPH_LAUNCH_END = 7 };
enum { SAN_KERNEL_NODE = 0 }; /* CUgraphNodeType */

/* Sanitizer_ResourceMemoryFlags */
enum {
    SAN_MEMORY_MODULE = 1,
    SAN_MEMORY_MANAGED = 2,
    SAN_MEMORY_MAPPED = 4,
    SAN_MEMORY_PINNED = 8
};

/* Sanitizer_InstructionId */
enum {
    SAN_GLOBAL_MEMORY_ACCESS = 3,
    SAN_MEMCPY_ASYNC = 14,
    SAN_BULK_COPY_GLOBAL_TO_SHARED = 30,
    SAN_BULK_COPY_SHARED_TO_GLOBAL = 35,
    SAN_TMA_LOAD = 43
};

enum { SAN_MAX_LIMIT_REACHED = 10 }; /* SanitizerResult: there is a subscriber */

enum { SAN_CALL_ENTER = 0 }; /* Sanitizer_ApiCallbackSite */

struct san_call_data { /* Sanitizer_CallbackData */
    int site;
    const char *name; /* of the driver's function */
    const void *parameters;
    const int *result; /* valid when the call ends */
};

struct san_module_data { /* Sanitizer_ResourceModuleData */
    san_context context;
    san_module module;
};

struct san_context_data { /* Sanitizer_ResourceContextData */
    san_context context;
};

struct san_memory_data { /* Sanitizer_ResourceMemoryData */
    uint64_t address;
    uint64_t bytes;
    san_context context;
    int device;
    void *user_stream;
    san_stream stream;
    void *pool;
    uint32_t flags;
    uint32_t permissions;
    int visibility;
    int source_device;
};

struct san_launch_data { /* Sanitizer_LaunchData */
    san_context context;
    void *user_stream;
    san_stream stream;
    san_module module;
    san_function function;
    const char *name;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3];
    uint64_t grid_id;
    san_launch launch;
    int device;
    san_context api_context;
    void *api_stream;
    san_stream api_stream_handle;
};

struct san_node_data { /* Sanitizer_GraphNodeLaunchData; its union begins with a launch */
    void *exec;
    uint32_t launch_id;
    void *node;
    int type;
    struct san_launch_data launch;
};

struct san_graph_data { /* Sanitizer_GraphLaunchData */
    san_context context;
    void *user_stream;
    san_stream stream;
    void *exec;
    uint32_t is_upload;
};

typedef void (*san_callback)(void *user, int domain, uint32_t id, const void *data);

#define SANITIZER_FUNCTIONS(F)                                                                     \
    F(sanitizerSubscribe, subscribe, (san_subscriber *, san_callback, void *))                     \
    F(sanitizerEnableDomain, enable_domain, (uint32_t, san_subscriber, int))                       \
    F(sanitizerEnableCallback, enable_callback, (uint32_t, san_subscriber, int, uint32_t))         \
    F(sanitizerGetResultString, result_string, (int, const char **))                               \
    F(sanitizerAddPatches, add_patches, (const void *, san_context))                               \
    F(sanitizerPatchInstructions, patch_instructions, (int, san_module, const char *))             \
    F(sanitizerPatchModule, patch_module, (san_module))                                            \
    F(sanitizerUnpatchModule, unpatch_module, (san_module))                                        \
    F(sanitizerSetLaunchCallbackData, set_launch_data,                                             \
      (san_launch, san_function, san_stream, const void *))                                        \
    F(sanitizerAlloc, alloc, (san_context, void **, size_t))                                       \
    F(sanitizerFree, free, (san_context, void *))                                                  \
    F(sanitizerAllocHost, alloc_host, (san_context, void **, size_t))                              \
    F(sanitizerFreeHost, free_host, (san_context, void *))                                         \
    F(sanitizerMemset, memset, (void *, int, size_t, san_stream))                                  \
    F(sanitizerMemcpyHostToDeviceAsync, to_device, (void *, const void *, size_t, san_stream))     \
    F(sanitizerMemcpyDeviceToHost, to_host, (void *, const void *, size_t, san_stream))            \
    F(sanitizerGetStreamHandle, get_stream, (san_context, void *, san_stream *))                   \
    F(sanitizerGetFunctionPcAndSize, function_pc,                                                  \
      (san_module, const char *, uint64_t *, uint64_t *))

struct sanitizer_api {
#define MEMBER(symbol, member, arguments) int(*member) arguments;
    SANITIZER_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* Loads the library `path`. Returns STATUS_NOT_FOUND if the library cannot be opened, and
 * STATUS_NOT_SUPPORTED if a function is missing. The library stays loaded. */
enum status sanitizer_api_load(const char *path, struct sanitizer_api *out, struct err *err);
