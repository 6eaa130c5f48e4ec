/* gpu_load.cu: a neighbor that holds device memory, or that works on the GPU.
 *
 *     gpu_load --free           prints "FREE TOTAL", the bytes that a process sees, and ends
 *     gpu_load --leave BYTES    takes all but BYTES, prints one line, holds it until standard input ends
 *     gpu_load --read BYTES     reads at random in so many bytes, from all SMs and without a pause, until
 *                          standard input ends
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

#define CHECK(call) check((call), #call)

static void check(cudaError_t result, const char *call)
{
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "gpu_load: %s: %s\n", call, cudaGetErrorString(result));
    exit(EXIT_FAILURE);
}

/* Takes pieces of `piece` bytes while more than `leave` would stay free. */
static void take_pieces(size_t piece, size_t leave)
{
    for (;;) {
        size_t free_bytes, total_bytes;
        void *memory;
        CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
        if (free_bytes < leave + piece)
            return;
        const cudaError_t result = cudaMalloc(&memory, piece);
        if (result == cudaErrorMemoryAllocation)
            return;
        CHECK(result);
    }
}

/* Some milliseconds of dependent loads all over `words`. */
__global__ void read_at_random(const uint64_t *words, uint64_t count, uint64_t *sink)
{
    uint64_t x = 88172645463325252ull + blockIdx.x * 7919ull + threadIdx.x;
    uint64_t sum = 0;
    for (int i = 0; i < 4096; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sum += __ldcg(&words[(x + sum) % count]);
    }
    if (sum == 1)
        *sink = sum;
}

static int read_until_told(size_t bytes)
{
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    uint64_t *words;
    bool said = false;
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    CHECK(cudaMalloc(&words, bytes));
    CHECK(cudaMemset(words, 0, bytes));
    while (poll(&in, 1, 0) == 0) {
        for (int i = 0; i < 4; i++)
            read_at_random<<<properties.multiProcessorCount * 4, 256>>>(words, bytes / 8, words);
        CHECK(cudaStreamSynchronize(0));
        if (!said) {
            printf("reading\n");
            fflush(stdout);
        }
        said = true;
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    size_t free_bytes, total_bytes;
    CHECK(cudaSetDevice(0));
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (argc == 2 && strcmp(argv[1], "--free") == 0) {
        printf("%zu %zu\n", free_bytes, total_bytes);
        return EXIT_SUCCESS;
    }
    if (argc == 3 && strcmp(argv[1], "--read") == 0)
        return read_until_told(strtoull(argv[2], NULL, 10));
    if (argc != 3 || strcmp(argv[1], "--leave") != 0) {
        fprintf(stderr, "usage: gpu_load --free | --leave BYTES | --read BYTES\n");
        return 2;
    }
    const size_t leave = strtoull(argv[2], NULL, 10);
    take_pieces((size_t)1 << 30, leave);
    take_pieces((size_t)2 << 20, leave);
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    printf("holding, %zu bytes left free\n", free_bytes);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    /* What this process held goes with it. */
    return EXIT_SUCCESS;
}
