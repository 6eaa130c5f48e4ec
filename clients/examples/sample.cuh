/* sample.cuh: the shared parts of sample_before.cu and sample_after.cu: checks of CUDA calls, and
 * the data. */
#include "element.h"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

typedef uint32_t u32;
typedef unsigned long long u64;

enum { PIECE = 4096 };
static const u64 SAMPLES = 1ull << 28;

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const cudaError_t result = (call);                                                         \
        if (result != cudaSuccess) {                                                               \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(result));                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

__global__ void fill(u32 *memory, u64 words)
{
    for (u64 i = blockIdx.x * 1024ull + threadIdx.x; i < words; i += gridDim.x * 1024ull)
        memory[i] = element_word(i);
}
