/* cooperative.cu: a cooperative launch. All threads of the grid wait for each other between two
 * rounds, so a block that is held back stops the grid. The numbers are written to the standard
 * output as bytes. */
#include "../common.cuh"

#include <cooperative_groups.h>
#include <vector>

enum { BLOCK = 256, NUMBERS = 1 << 20, ROUNDS = 16, LAUNCHES = 10 };

__global__ void update(uint64_t *a, uint64_t *b)
{
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();

    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = grid.thread_rank(); i < NUMBERS; i += grid.size())
            b[i] = mix(a[mix(i + round) % NUMBERS] + round);
        grid.sync();
        uint64_t *const other = a;
        a = b;
        b = other;
    }
}

int main()
{
    std::vector<uint64_t> found(NUMBERS);
    uint64_t *a, *b;
    void *arguments[] = {&a, &b};
    int sms;

    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaMalloc((void **)&a, NUMBERS * sizeof *a));
    CHECK(cudaMalloc((void **)&b, NUMBERS * sizeof *b));
    CHECK(cudaMemset(a, 1, NUMBERS * sizeof *a));
    for (int i = 0; i < LAUNCHES; i++) /* one block per SM, because patched code needs more registers */
        CHECK(cudaLaunchCooperativeKernel(update, dim3(sms), dim3(BLOCK), arguments, 0, NULL));
    CHECK(cudaMemcpy(found.data(), a, NUMBERS * sizeof *a, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return fwrite(found.data(), sizeof found[0], found.size(), stdout) != found.size();
}
