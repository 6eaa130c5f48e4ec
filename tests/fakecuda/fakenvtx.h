/* fakenvtx.h: a copy of NVTX like the copies in programs. Its functions do nothing until a tool has
 * replaced them. Numbers of functions are places in the lists below, which have the order of NVTX.
 * Include this header in one file of a program. */
#pragma once

#include "clients/profile/inject/nvtx_api.h"

#include <stdbool.h>
#include <wchar.h>

enum {
    FAKENVTX_MARK_EX = 1,
    FAKENVTX_MARK_A,
    FAKENVTX_MARK_W,
    FAKENVTX_RANGE_START_EX,
    FAKENVTX_RANGE_START_A,
    FAKENVTX_RANGE_START_W,
    FAKENVTX_RANGE_END,
    FAKENVTX_RANGE_PUSH_EX,
    FAKENVTX_RANGE_PUSH_A,
    FAKENVTX_RANGE_PUSH_W,
    FAKENVTX_RANGE_POP,
    FAKENVTX_CORE_COUNT = FAKENVTX_RANGE_POP + 5 /* four functions that name things */
};

enum {
    FAKENVTX_DOMAIN_MARK_EX = 1,
    FAKENVTX_DOMAIN_RANGE_START_EX,
    FAKENVTX_DOMAIN_RANGE_END,
    FAKENVTX_DOMAIN_RANGE_PUSH_EX,
    FAKENVTX_DOMAIN_RANGE_POP,
    FAKENVTX_DOMAIN_RESOURCE_CREATE,
    FAKENVTX_DOMAIN_RESOURCE_DESTROY,
    FAKENVTX_DOMAIN_NAME_CATEGORY_A,
    FAKENVTX_DOMAIN_NAME_CATEGORY_W,
    FAKENVTX_DOMAIN_REGISTER_STRING_A,
    FAKENVTX_DOMAIN_REGISTER_STRING_W,
    FAKENVTX_DOMAIN_CREATE_A,
    FAKENVTX_DOMAIN_CREATE_W,
    FAKENVTX_DOMAIN_DESTROY,
    FAKENVTX_INITIALIZE,
    FAKENVTX_CORE2_COUNT
};

enum { FAKENVTX_ASCII = 1, FAKENVTX_UNICODE, FAKENVTX_REGISTERED }; /* types of messages */

static struct {
    nvtx_function core[FAKENVTX_CORE_COUNT], core2[FAKENVTX_CORE2_COUNT];
    nvtx_function *core_table[FAKENVTX_CORE_COUNT], *core2_table[FAKENVTX_CORE2_COUNT];
    unsigned core_count, core2_count; /* a test may make tables shorter, like another version */
    uint32_t tool_version;
} fakenvtx = {.core_count = FAKENVTX_CORE_COUNT, .core2_count = FAKENVTX_CORE2_COUNT};

static int fakenvtx_get_functions(int module, nvtx_function ***out_table, unsigned *out_count)
{
    if (module != 1 && module != 5) /* the other modules name objects of CUDA and OpenCL */
        return 0;
    for (unsigned i = 1; i < FAKENVTX_CORE_COUNT; i++)
        fakenvtx.core_table[i] = &fakenvtx.core[i];
    for (unsigned i = 1; i < FAKENVTX_CORE2_COUNT; i++)
        fakenvtx.core2_table[i] = &fakenvtx.core2[i];
    *out_table = module == 1 ? fakenvtx.core_table : fakenvtx.core2_table;
    *out_count = module == 1 ? fakenvtx.core_count : fakenvtx.core2_count;
    return 1;
}

static void fakenvtx_set_tool_version(uint32_t version)
{
    fakenvtx.tool_version = version;
}

static const void *fakenvtx_get_table(uint32_t id)
{
    static const struct nvtx_callbacks callbacks = {sizeof callbacks, fakenvtx_get_functions};
    static const struct nvtx_version version = {sizeof version, 3, 0, fakenvtx_set_tool_version};

    return id == 1 ? (const void *)&callbacks : id == 3 ? (const void *)&version : NULL;
}

/* Lets a tool replace functions. Returns whether the tool accepts this version of NVTX. */
static inline bool fakenvtx_attach(int (*initialize)(nvtx_get_table *get_table))
{
    return initialize(fakenvtx_get_table) != 0;
}

static inline int fakenvtx_push(const char *text)
{
    int (*const function)(const char *) =
        (int (*)(const char *))fakenvtx.core[FAKENVTX_RANGE_PUSH_A];
    return function ? function(text) : -2;
}

static inline int fakenvtx_push_wide(const wchar_t *text)
{
    int (*const function)(const wchar_t *) =
        (int (*)(const wchar_t *))fakenvtx.core[FAKENVTX_RANGE_PUSH_W];
    return function ? function(text) : -2;
}

/* Begins a range of a domain, or of the default domain if `domain` is NULL. */
static inline int fakenvtx_push_event(const void *domain, int type, const void *message)
{
    const struct nvtx_event event = {
        .version = 3, .bytes = sizeof event, .message_type = type, .message = message};
    int (*const plain)(const struct nvtx_event *) =
        (int (*)(const struct nvtx_event *))fakenvtx.core[FAKENVTX_RANGE_PUSH_EX];
    int (*const in_domain)(const void *, const struct nvtx_event *) = (int (*)(
        const void *, const struct nvtx_event *))fakenvtx.core2[FAKENVTX_DOMAIN_RANGE_PUSH_EX];
    return domain ? in_domain ? in_domain(domain, &event) : -2 : plain ? plain(&event) : -2;
}

static inline int fakenvtx_pop(const void *domain)
{
    int (*const plain)(void) = (int (*)(void))fakenvtx.core[FAKENVTX_RANGE_POP];
    int (*const in_domain)(const void *) =
        (int (*)(const void *))fakenvtx.core2[FAKENVTX_DOMAIN_RANGE_POP];
    return domain ? in_domain ? in_domain(domain) : -2 : plain ? plain() : -2;
}

static inline const void *fakenvtx_register(const void *domain, const char *text)
{
    const void *(*const function)(const void *, const char *) =
        (const void *(*)(const void *,
                         const char *))fakenvtx.core2[FAKENVTX_DOMAIN_REGISTER_STRING_A];
    return function ? function(domain, text) : NULL;
}

static inline const void *fakenvtx_register_wide(const void *domain, const wchar_t *text)
{
    const void *(*const function)(const void *, const wchar_t *) =
        (const void *(*)(const void *,
                         const wchar_t *))fakenvtx.core2[FAKENVTX_DOMAIN_REGISTER_STRING_W];
    return function ? function(domain, text) : NULL;
}

static inline const void *fakenvtx_create_domain(const char *name)
{
    const void *(*const function)(const char *) =
        (const void *(*)(const char *))fakenvtx.core2[FAKENVTX_DOMAIN_CREATE_A];
    return function ? function(name) : NULL;
}
