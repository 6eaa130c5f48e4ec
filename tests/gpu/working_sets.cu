/* working_sets.cu: how fast a job reads a set that caches may keep, by a kernel that knows nothing
 * of reachd. For tests/gpu/test_fit.py.
 *
 *     working_sets SHARED UNIT BYTES ..
 *         Random reads of UNIT bytes, 128 or 512, by one block of 1024 threads on each SM, which
 * takes SHARED bytes of shared memory. Prints for each size: BYTES, and GB/s where every block
 *         reads all of the set, and where each reads a part of its own.
 *
 * Memory is zero, and read by ordinary loads. Median of RUNS.
 */
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

enum { THREADS = 1024, WARP = 32, BATCHES = 192, RUNS = 5, LINE_FLIGHT = 16, BLOCK_FLIGHT = 4 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int result_ = (int)(call);                                                           \
        if (result_ != 0) {                                                                        \
            fprintf(stderr, "working_sets: %s: error %d\n", #call, result_);                       \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

/* Murmur3's finalizer: Appleby, public domain. */
static __device__ uint32_t mix(uint32_t k)
{
    k = (k ^ (k >> 16)) * 0x85ebca6bu;
    k = (k ^ (k >> 13)) * 0xc2b2ae35u;
    return k ^ (k >> 16);
}

static __device__ uint32_t bits_of(uint32_t v)
{
    return v;
}

static __device__ uint32_t bits_of(uint4 v)
{
    return v.x | v.y | v.z | v.w;
}

/* The set begins at `set`, and a part of `units` at each `stride` of them. */
template <class Word, int FLIGHT>
__global__ void __launch_bounds__(THREADS) reads(const Word *__restrict__ set, uint32_t units,
                                                 uint64_t stride, uint32_t seed, uint32_t *sink)
{
    const Word *const part = set + blockIdx.x * stride * WARP + threadIdx.x % WARP;
    uint32_t at = (seed * gridDim.x + blockIdx.x) * THREADS + threadIdx.x;
    uint32_t sum = 0;
    for (uint32_t batch = 0; batch < BATCHES; batch++) {
        const uint32_t mine = __umulhi(mix(at += 0x9e3779b9u), units);
#pragma unroll 1
        for (int k = 0; k < WARP; k += FLIGHT) {
            Word v[FLIGHT];
#pragma unroll
            for (int j = 0; j < FLIGHT; j++)
                v[j] = part[(uint64_t)__shfl_sync(~0u, mine, k + j) * WARP];
#pragma unroll
            for (int j = 0; j < FLIGHT; j++)
                sum |= bits_of(v[j]);
        }
    }
    if (sum)
        *sink = sum;
}

struct setup {
    uint32_t blocks, shared_bytes;
    void *memory;
    uint32_t *sink;
    cudaEvent_t before, after;
};

template <class Word, int FLIGHT> static double gbps(const setup &s, uint64_t bytes, bool own)
{
    const uint64_t unit = WARP * sizeof(Word);
    const uint64_t all = std::max<uint64_t>(bytes / unit, 1);
    const uint64_t units = own ? std::max<uint64_t>(all / s.blocks, 1) : all;
    float ms[RUNS + 1];

    CHECK(cudaFuncSetAttribute(reads<Word, FLIGHT>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               (int)s.shared_bytes));
    for (uint32_t run = 0; run <= RUNS; run++) { /* the first warms up */
        CHECK(cudaEventRecord(s.before));
        reads<Word, FLIGHT><<<s.blocks, THREADS, s.shared_bytes>>>(
            (const Word *)s.memory, (uint32_t)units, own ? units : 0, run + 1, s.sink);
        CHECK(cudaEventRecord(s.after));
        CHECK(cudaEventSynchronize(s.after));
        CHECK(cudaEventElapsedTime(&ms[run], s.before, s.after));
    }
    std::sort(ms + 1, ms + 1 + RUNS);
    return (double)s.blocks * (THREADS / WARP) * BATCHES * WARP * (double)unit / ms[1 + RUNS / 2] /
           1e6;
}

int main(int argc, char **argv)
{
    const uint32_t unit = argc > 3 ? (uint32_t)atoi(argv[2]) : 0;
    setup s = {};
    int sms = 0;
    uint64_t most = 0;

    if (unit != 128 && unit != 512)
        return fprintf(stderr, "usage: working_sets SHARED 128|512 BYTES ..\n"), 2;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    s.blocks = (uint32_t)sms;
    s.shared_bytes = (uint32_t)atoi(argv[1]);
    for (int i = 3; i < argc; i++)
        most = std::max(most, (uint64_t)strtoull(argv[i], nullptr, 10));
    most = std::max<uint64_t>(most, (uint64_t)s.blocks * unit);
    CHECK(cudaMalloc(&s.memory, most));
    CHECK(cudaMemset(s.memory, 0, most));
    CHECK(cudaMalloc((void **)&s.sink, sizeof *s.sink));
    CHECK(cudaEventCreate(&s.before));
    CHECK(cudaEventCreate(&s.after));
    for (int i = 3; i < argc; i++) {
        const uint64_t bytes = strtoull(argv[i], nullptr, 10);
        const double same = unit == 512 ? gbps<uint4, BLOCK_FLIGHT>(s, bytes, false)
                                        : gbps<uint32_t, LINE_FLIGHT>(s, bytes, false);
        const double own = unit == 512 ? gbps<uint4, BLOCK_FLIGHT>(s, bytes, true)
                                       : gbps<uint32_t, LINE_FLIGHT>(s, bytes, true);
        printf("%llu %.1f %.1f\n", (unsigned long long)bytes, same, own);
    }
    return 0;
}
