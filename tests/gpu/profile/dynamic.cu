/* dynamic.cu: kernels that launch kernels. Each block of the first kernel launches a kernel for its
 * part. The numbers are written to the standard output as bytes. */
#include "../common.cuh"

#include <vector>

enum { PARTS = 64, PART_NUMBERS = 1 << 14, LAUNCHES = 10, BLOCK = 256 };

__global__ void update(uint64_t *numbers, uint64_t seed)
{
    const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

    numbers[i] = mix(numbers[i] + seed + i);
}

__global__ void launch(uint64_t *numbers, uint64_t seed)
{
    update<<<PART_NUMBERS / BLOCK, BLOCK>>>(numbers + (uint64_t)blockIdx.x * PART_NUMBERS,
                                            seed + blockIdx.x);
}

int main()
{
    std::vector<uint64_t> found((size_t)PARTS * PART_NUMBERS);
    uint64_t *numbers;

    CHECK(cudaMalloc((void **)&numbers, found.size() * sizeof found[0]));
    CHECK(cudaMemset(numbers, 1, found.size() * sizeof found[0]));
    for (int i = 0; i < LAUNCHES; i++) {
        launch<<<PARTS, 1>>>(numbers, i);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaMemcpy(found.data(), numbers, found.size() * sizeof found[0], cudaMemcpyDeviceToHost));
    CHECK(cudaFree(numbers));
    return fwrite(found.data(), sizeof found[0], found.size(), stdout) != found.size();
}
