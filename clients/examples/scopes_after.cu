/* An ordinary kernel: reads random 4-byte words from all of the GPU's memory and adds them up.
 * scopes_before.cu is the original, scopes_after.cu works in scopes; docs/moving-to-scopes.md shows
 * the difference. */
#include "reach_scopes.cuh"
#include "sample.cuh"

__global__ void sample(const u32 *memory, u64 words, u64 *total, reach_items scope)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    u64 sum = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < SAMPLES; i += step) {
        const u64 at = element_random(i, 1, words);
        if (reach_has_item(scope, at))
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
    struct reach *reach;
    struct reach_answer *answer;
    struct reach_error why;
    const reach_scope_request request = {sizeof request, bytes};
    if (reach_open(NULL, &reach, &why) || reach_get_scope(reach, "0", &request, &answer, &why))
        return fprintf(stderr, "%s\n", why.text), 1;
    CHECK(cudaMalloc((void **)&total, sizeof *total));
    CHECK(cudaMemset(total, 0, sizeof *total));
    fill<<<1024, 1024>>>(memory, bytes / 4);
    CHECK(reach_for_each_scope(reach_answer_scope(answer)->scopes, [=](const reach_pass &pass) {
        sample<<<1024, 1024>>>(memory, bytes / 4, total, reach_pass_items(&pass, 0, 4));
    }));
    CHECK(cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
    printf("%llu bytes, sum %llu\n", bytes, sum);
    return 0;
}
