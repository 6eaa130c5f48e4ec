/* hog.cu: a neighbour that holds device memory.
 *
 *     hog --free           prints "FREE TOTAL", the bytes that a process sees, and ends
 *     hog --leave BYTES    takes all but BYTES, prints one line, holds it until standard input ends
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) check((call), #call)

static void check(cudaError_t result, const char *call)
{
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "hog: %s: %s\n", call, cudaGetErrorString(result));
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

int main(int argc, char **argv)
{
    size_t free_bytes, total_bytes;
    CHECK(cudaSetDevice(0));
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (argc == 2 && strcmp(argv[1], "--free") == 0) {
        printf("%zu %zu\n", free_bytes, total_bytes);
        return EXIT_SUCCESS;
    }
    if (argc != 3 || strcmp(argv[1], "--leave") != 0) {
        fprintf(stderr, "usage: hog --free | --leave BYTES\n");
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
