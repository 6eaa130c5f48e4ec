/* streams.cu: five threads with a stream each launch kernels at the same time. The numbers of all
 * threads are written to the standard output as bytes. */
#include "../common.cuh"

#include <thread>
#include <vector>

enum { THREADS = 5, NUMBERS = 1 << 20, LAUNCHES = 50, BLOCK = 256 };

__global__ void update(const uint64_t *in, uint64_t *out, uint64_t seed)
{
    const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

    out[i] = mix(in[mix(i + seed) % NUMBERS] + seed);
}

static void run(uint64_t *found, uint64_t seed)
{
    uint64_t *numbers[2];
    cudaStream_t stream;

    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (uint64_t *&part : numbers) {
        CHECK(cudaMallocAsync((void **)&part, NUMBERS * sizeof *part, stream));
        CHECK(cudaMemsetAsync(part, (int)seed, NUMBERS * sizeof *part, stream));
    }
    for (int i = 0; i < LAUNCHES; i++) {
        update<<<NUMBERS / BLOCK, BLOCK, 0, stream>>>(numbers[i % 2], numbers[1 - i % 2],
                                                      seed * LAUNCHES + i);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaMemcpyAsync(found, numbers[LAUNCHES % 2], NUMBERS * sizeof *found,
                          cudaMemcpyDeviceToHost, stream));
    for (uint64_t *part : numbers)
        CHECK(cudaFreeAsync(part, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
}

int main()
{
    std::vector<uint64_t> found(THREADS * (size_t)NUMBERS);
    std::vector<std::thread> threads;

    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(run, &found[i * (size_t)NUMBERS], i + 1);
    for (std::thread &thread : threads)
        thread.join();
    return fwrite(found.data(), sizeof found[0], found.size(), stdout) != found.size();
}
