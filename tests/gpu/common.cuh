/* common.cuh: shared parts of the tests in CUDA. It has checks that end the program after an error,
 * random numbers from a counter, the SM of a thread, and functions of the driver. `mix`, `sm_id`
 * and `driver_symbol` are inline, so a test need not use all of them. */
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

/* Ends the program if a call of the runtime or of the driver fails. Both return 0 for success. */
#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int result_ = (int)(call);                                                           \
        if (result_ != 0) {                                                                        \
            fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, result_);          \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

/* Mixes the bits of a number by splitmix64 (Steele, Lea, Flood 2014). It is a bijection, and mix(0)
 * is 0. */
static __host__ __device__ inline uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static __device__ inline uint32_t sm_id()
{
    uint32_t id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

/* Returns a function of the driver, looked up at run time because the build machine may lack a
 * driver. */
#define DRIVER(name) ((decltype(&name))driver_symbol(#name))
static inline void *driver_symbol(const char *name)
{
    static void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    void *const symbol = library ? dlsym(library, name) : NULL;

    if (!symbol) {
        fprintf(stderr, "the driver has no %s: install it, or a later one\n", name);
        exit(EXIT_FAILURE);
    }
    return symbol;
}
