/* A kernel with persistent blocks: one block per SM, whose warps draw pieces of work from a queue until
 * it is empty. It reads random 4-byte words from all of the GPU's memory and adds them up.
 * sample_before.cu is the original, sample_after.cu works in windows; docs/moving-to-windows.md shows
 * the difference. */
#include "reach.cuh"
#include "sample.cuh"

__global__ void __launch_bounds__(1024, 1)
    sample(const u32 *memory, u64 words, reach_table table, u64 *total)
{
    u64 sum = 0;
    reach_me me;
    if (!reach_enter(table, &me))
        return;
    for (;;) {
        const u32 piece = reach_draw(table, me);
        if (piece >= SAMPLES / PIECE)
            break;
#pragma unroll 8
        for (u32 k = threadIdx.x % 32; k < PIECE; k += 32) {
            const u64 at = element_random((u64)piece * PIECE + k, 1, words);
            if (element_inside(at * 4, me.first_byte, me.length_bytes))
                sum += __ldcg(memory + at);
        }
    }
    atomicAdd(total, sum);
}

int main(void)
{
    size_t free_bytes, total_bytes;
    cudaDeviceProp gpu;
    cudaEvent_t before, after;
    float ms = 0;
    u32 *memory;
    char why[REACH_ERROR_BYTES];
    reach_table table;
    u64 *total, sum = 0;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    const u64 bytes = (free_bytes - (1ull << 30)) >> 25 << 25;
    CHECK(cudaMalloc((void **)&memory, bytes));
    if (!reach_table_get(NULL, bytes, &table, why, sizeof why))
        return fprintf(stderr, "%s\n", why), 1;
    CHECK(cudaMalloc((void **)&total, sizeof *total));
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    fill<<<gpu.multiProcessorCount * 2, 1024>>>(memory, bytes / 4);
    for (int run = 0; run < 2; run++) { /* the first warms up */
        CHECK(cudaMemset(total, 0, sizeof *total));
        CHECK(cudaEventRecord(before));
        CHECK(reach_table_start(&table, 0));
        sample<<<gpu.multiProcessorCount, 1024>>>(memory, bytes / 4, table, total);
        CHECK(cudaEventRecord(after));
        CHECK(cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
        CHECK(cudaEventElapsedTime(&ms, before, after));
    }
    if (!reach_table_check(&table, why, sizeof why))
        return fprintf(stderr, "%s\n", why), 1;
    printf("%llu bytes, sum %llu, %.2f G samples/s\n", bytes, sum, (double)SAMPLES / ms / 1e6);
    return 0;
}
