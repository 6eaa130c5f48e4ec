/* fake_api.h: a table of Sanitizer functions over a GPU that does what it is given at once, or when
 * a test lets it. Include this header in one file of a test program. Any function can be told to
 * fail. The functions may be called on any thread. */
#pragma once

#include "clients/profile/inject/sanitizer_api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FAKE_STREAMS = 1024, FAKE_WRITES = 4096, FAKE_OBJECTS = 256, FAKE_FAILURE = 7 };

struct Sanitizer_Launch_st {
    bool has_data;
    const void *data;
};

/* Other handles are addresses in these arrays. */
static char fake_contexts[64], fake_modules[64];
static char fake_stream_handles[FAKE_STREAMS];

static inline san_context fake_context(int i)
{
    return (san_context)(void *)&fake_contexts[i];
}

static inline san_module fake_module(int i)
{
    return (san_module)(void *)&fake_modules[i];
}

static inline san_stream fake_stream(int i)
{
    return (san_stream)(void *)&fake_stream_handles[i];
}

/* A byte that a stopped GPU has not written yet. */
struct fake_write {
    _Atomic unsigned char *byte;
    san_stream stream;
};

/* Memory of a context, which is freed with the context, so that late accesses are found. */
struct fake_memory {
    san_context context;
    void *bytes; /* owned */
};

static struct {
    pthread_mutex_t lock;
    atomic_bool is_stopped; /* sets of bytes wait for fake_go */
    struct fake_write writes[FAKE_WRITES];
    unsigned write_count;
    struct fake_memory memory[FAKE_OBJECTS];
    bool is_patched[64];
    const char *_Atomic failing; /* name of a member of the table */
    _Atomic unsigned failures;   /* how many more of its calls fail */
    _Atomic unsigned calls;      /* of all functions */
    _Atomic unsigned patches, unpatches, misuses;
    void (*on_patch)(void);
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool fake_fails(const char *name)
{
    const char *const failing = atomic_load(&fake.failing);
    atomic_fetch_add(&fake.calls, 1);
    if (!failing || strcmp(failing, name) != 0 || atomic_load(&fake.failures) == 0)
        return false;
    atomic_fetch_sub(&fake.failures, 1);
    return true;
}

static inline void fake_fail(const char *name, unsigned count)
{
    atomic_store(&fake.failures, count);
    atomic_store(&fake.failing, name);
}

/* Lets the GPU write what it was given; all streams, or one. */
static inline void fake_go_in(san_stream stream)
{
    unsigned kept = 0;
    pthread_mutex_lock(&fake.lock);
    for (unsigned i = 0; i < fake.write_count; i++) {
        if (!stream || fake.writes[i].stream == stream)
            atomic_store(fake.writes[i].byte, 1);
        else
            fake.writes[kept++] = fake.writes[i];
    }
    fake.write_count = kept;
    pthread_mutex_unlock(&fake.lock);
}

static inline void fake_stop(void)
{
    atomic_store(&fake.is_stopped, true);
}

static inline void fake_go(void)
{
    atomic_store(&fake.is_stopped, false);
    fake_go_in(NULL);
}

/* Frees the memory of a context, like the driver after the callback. */
static inline void fake_destroy_context(san_context context)
{
    unsigned kept = 0;
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < FAKE_OBJECTS; i++) {
        struct fake_memory *const m = &fake.memory[i];
        if (!m->bytes || m->context != context)
            continue;
        kept = 0;
        for (unsigned w = 0; w < fake.write_count; w++) {
            const char *const byte = (const char *)(uintptr_t)fake.writes[w].byte;
            if (byte < (char *)m->bytes || byte >= (char *)m->bytes + 256)
                fake.writes[kept++] = fake.writes[w];
        }
        fake.write_count = kept;
        free(m->bytes);
        m->bytes = NULL;
    }
    pthread_mutex_unlock(&fake.lock);
}

/* ---- the table ---- */

static int fake_take(const char *name, san_context context, void **out, size_t bytes)
{
    if (fake_fails(name))
        return FAKE_FAILURE;
    *out = calloc(1, bytes);
    pthread_mutex_lock(&fake.lock);
    int i = 0;
    while (i < FAKE_OBJECTS - 1 && fake.memory[i].bytes)
        i++;
    fake.memory[i] = (struct fake_memory){context, *out};
    pthread_mutex_unlock(&fake.lock);
    return *out ? 0 : FAKE_FAILURE;
}

static int fake_alloc(san_context context, void **out, size_t bytes)
{
    return fake_take("alloc", context, out, bytes);
}

static int fake_alloc_host(san_context context, void **out, size_t bytes)
{
    return fake_take("alloc_host", context, out, bytes);
}

static int fake_free(san_context context, void *memory)
{
    bool found = false;
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < FAKE_OBJECTS && !found; i++) {
        found = fake.memory[i].bytes == memory && fake.memory[i].context == context;
        if (found)
            fake.memory[i].bytes = NULL;
    }
    pthread_mutex_unlock(&fake.lock);
    atomic_fetch_add(&fake.misuses, !found);
    free(memory);
    return 0;
}

static int fake_memset(void *memory, int value, size_t bytes, san_stream stream)
{
    if (fake_fails(bytes == 1 ? "mark" : "memset"))
        return FAKE_FAILURE;
    if (bytes != 1) {
        memset(memory, value, bytes);
    } else if (!atomic_load(&fake.is_stopped)) {
        atomic_store((_Atomic unsigned char *)memory, (unsigned char)value);
    } else {
        pthread_mutex_lock(&fake.lock);
        if (fake.write_count < FAKE_WRITES)
            fake.writes[fake.write_count++] = (struct fake_write){memory, stream};
        pthread_mutex_unlock(&fake.lock);
    }
    return 0;
}

static int fake_to_device(void *to, const void *from, size_t bytes, san_stream stream)
{
    (void)stream;
    if (fake_fails("to_device"))
        return FAKE_FAILURE;
    memcpy(to, from, bytes);
    return 0;
}

static int fake_to_host(void *to, const void *from, size_t bytes, san_stream stream)
{
    (void)stream;
    if (fake_fails("to_host"))
        return FAKE_FAILURE;
    memcpy(to, from, bytes);
    return 0;
}

static int fake_get_stream(san_context context, void *user_stream, san_stream *out)
{
    (void)context;
    (void)user_stream;
    *out = fake_stream(0);
    return fake_fails("get_stream") ? FAKE_FAILURE : 0;
}

static int fake_add_patches(const void *image, san_context context)
{
    atomic_fetch_add(&fake.misuses, !image || !context);
    return fake_fails("add_patches") ? FAKE_FAILURE : 0;
}

static int fake_patch_instructions(int instruction, san_module module, const char *function)
{
    (void)instruction;
    atomic_fetch_add(&fake.misuses, !module || !function);
    return fake_fails("patch_instructions") ? FAKE_FAILURE : 0;
}

static int fake_set_patched(san_module module, bool is_patched)
{
    bool *const state = &fake.is_patched[(char *)(void *)module - fake_modules];
    pthread_mutex_lock(&fake.lock);
    atomic_fetch_add(&fake.misuses, *state == is_patched);
    *state = is_patched;
    pthread_mutex_unlock(&fake.lock);
    if (fake.on_patch)
        fake.on_patch();
    return 0;
}

static inline bool fake_is_patched(san_module module)
{
    pthread_mutex_lock(&fake.lock);
    const bool is_patched = fake.is_patched[(char *)(void *)module - fake_modules];
    pthread_mutex_unlock(&fake.lock);
    return is_patched;
}

static int fake_patch_module(san_module module)
{
    if (fake_fails("patch_module"))
        return FAKE_FAILURE;
    atomic_fetch_add(&fake.patches, 1);
    return fake_set_patched(module, true);
}

static int fake_unpatch_module(san_module module)
{
    if (fake_fails("unpatch_module"))
        return FAKE_FAILURE;
    atomic_fetch_add(&fake.unpatches, 1);
    return fake_set_patched(module, false);
}

static int fake_set_launch_data(san_launch launch, san_function function, san_stream stream,
                                const void *data)
{
    (void)function;
    (void)stream;
    if (fake_fails("set_launch_data"))
        return FAKE_FAILURE;
    *launch = (struct Sanitizer_Launch_st){true, data};
    return 0;
}

static int fake_function_pc(san_module module, const char *name, uint64_t *out_pc,
                            uint64_t *out_bytes)
{
    (void)module;
    (void)name;
    *out_pc = 0x1000;
    *out_bytes = 0x100;
    return fake_fails("function_pc") ? FAKE_FAILURE : 0;
}

static const struct sanitizer_api fake_api = {
    .add_patches = fake_add_patches,
    .patch_instructions = fake_patch_instructions,
    .patch_module = fake_patch_module,
    .unpatch_module = fake_unpatch_module,
    .set_launch_data = fake_set_launch_data,
    .alloc = fake_alloc,
    .free = fake_free,
    .alloc_host = fake_alloc_host,
    .free_host = fake_free,
    .memset = fake_memset,
    .to_device = fake_to_device,
    .to_host = fake_to_host,
    .get_stream = fake_get_stream,
    .function_pc = fake_function_pc,
};
