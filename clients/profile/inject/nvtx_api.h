/* nvtx_api.h: the part of version 3 of NVTX, NVIDIA's library of named ranges, that the recorder
 * uses. NVTX consists of headers, so a program can contain several copies of it. Each copy loads
 * the library in NVTX_INJECTION64_PATH at its first call, and passes the export tables of the copy
 * to InitializeInjectionNvtx2. A tool replaces functions in the tables; the other functions do
 * nothing. The structs below mirror NVTX, so no header of NVTX is needed to build. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 }; /* NvtxExportTableID */
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };      /* NvtxCallbackModule */

/* NvtxCallbackIdCore */
enum { NVTX_RANGE_PUSH_EX = 8, NVTX_RANGE_PUSH_A = 9, NVTX_RANGE_PUSH_W = 10, NVTX_RANGE_POP = 11 };

/* NvtxCallbackIdCore2 */
enum {
    NVTX_DOMAIN_RANGE_PUSH_EX = 4,
    NVTX_DOMAIN_RANGE_POP = 5,
    NVTX_DOMAIN_REGISTER_STRING_A = 10,
    NVTX_DOMAIN_REGISTER_STRING_W = 11,
    NVTX_DOMAIN_CREATE_A = 12,
    NVTX_DOMAIN_CREATE_W = 13
};

/* nvtxMessageType_t */
enum { NVTX_MESSAGE_A = 1, NVTX_MESSAGE_W = 2, NVTX_MESSAGE_STRING = 3 };

enum {
    NVTX_TOOL_VERSION = 3,
    NVTX_NO_DEPTH = -2 /* what functions that push and pop return without a tool */
};

struct nvtx_event { /* nvtxEventAttributes_t */
    uint16_t version;
    uint16_t bytes; /* of the struct of the program */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message; /* text, wide text, or a registered string */
};

typedef void (*nvtx_function)(void); /* of any type */

struct nvtx_callbacks { /* NvtxExportTableCallbacks */
    size_t bytes;
    /* Sets `*out_table` to an array of the addresses of function pointers, and `*out_count` to its
     * length. Returns 0 if there is no such module. */
    int (*get_functions)(int module, nvtx_function ***out_table, unsigned *out_count);
};

struct nvtx_version { /* NvtxExportTableVersionInfo */
    size_t bytes;
    uint32_t version;
    uint32_t reserved;
    void (*set_tool_version)(uint32_t version);
};

typedef const void *nvtx_get_table(uint32_t id);

/* NVTX calls this function, and ignores a library for which it returns 0. */
int InitializeInjectionNvtx2(nvtx_get_table *get_table);
