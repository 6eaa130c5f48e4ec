/* An ordinary kernel: reads random 4-byte words from all of the GPU's memory and adds them up.
 * scopes_before.cu is the original, scopes_after.cu works in scopes; docs/moving-to-scopes.md shows
 * the difference. */
#include "sample.cuh"

__global__ void sample(const u32 *memory, u64 words, u64 *total)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    u64 sum = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < SAMPLES; i += step) {
        const u64 at = element_random(i, 1, words);
        sum += __ldcg(memory + at);
    }
    atomicAdd(total, sum);
}

int main(void)
{
    size_t free_bytes, total_bytes;
    u32 *memory;
    u64 *total, sum = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    const u64 bytes = (free_bytes - (1ull << 30)) >> 25 << 25;
    CHECK(cudaMalloc((void **)&memory, bytes));
    CHECK(cudaMalloc((void **)&total, sizeof *total));
    CHECK(cudaMemset(total, 0, sizeof *total));
    fill<<<1024, 1024>>>(memory, bytes / 4);
    sample<<<1024, 1024>>>(memory, bytes / 4, total);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
    printf("%llu bytes, sum %llu\n", bytes, sum);
    return 0;
}
