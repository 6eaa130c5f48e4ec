/* working_sets.cu: measures the read rate of a working set that caches may keep, by a kernel that
 * uses no code of reachd. tests/gpu/test_fit.py runs it.
 *
 *     working_sets SHARED UNIT BYTES ..
 *         One block of 1024 threads on each SM reads UNIT bytes (128 or 512) at random. The block
 *         takes SHARED bytes of shared memory; "half" is a little more than half of the shared
 *         memory of an SM. For each size the program prints BYTES and four rates in GB/s. In the
 *         first, every block reads all of the set; in the second, each block reads its own part.
 *         In these two, warps take pieces of the work from a queue. The third and the fourth are
 *         the same with an equal number of reads in each block, so that all blocks wait for the
 *         slowest SM.
 *
 * Memory is zero, and read by ordinary loads. A rate is the median of RUNS.
 */
#include "common.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum {
    THREADS = 1024,
    WARP = 32,
    PIECES = 64,  /* pieces of each warp if there is no queue */
    BATCHES = 16, /* batches of a piece, of WARP units each */
    RUNS = 5,
    FLIGHT = 4,
    LOAD_BYTES = 16
};

/* Murmur3's finalizer: Appleby, public domain. */
static __device__ uint32_t mix32(uint32_t k)
{
    k = (k ^ (k >> 16)) * 0x85ebca6bu;
    k = (k ^ (k >> 13)) * 0xc2b2ae35u;
    return k ^ (k >> 16);
}

/* Takes the next piece of a warp that has had `had` pieces. Returns false if no piece is left. */
static __device__ bool next_piece(uint32_t *queue, uint32_t had)
{
    uint32_t piece = 0;
    if (!queue)
        return had < PIECES;
    if (threadIdx.x % WARP == 0)
        piece = atomicAdd(queue, 1);
    return __shfl_sync(~0u, piece, 0) < gridDim.x * (THREADS / WARP) * PIECES;
}

/* A warp reads UNITS with each instruction: one of 512 bytes or four of 128. The set begins at
 * `set`, and a part of `units` at each `stride` of them. `queue` counts the pieces taken; NULL if
 * each warp has its own. */
template <int UNITS>
__global__ void __launch_bounds__(THREADS)
    reads(const uint4 *__restrict__ set, uint32_t units, uint64_t stride, uint32_t seed,
          uint32_t *queue, uint32_t *sink)
{
    const uint32_t lanes = WARP / UNITS;
    const uint32_t lane = threadIdx.x % WARP;
    const uint4 *const part = set + blockIdx.x * stride * lanes + lane % lanes;
    uint32_t at = (seed * gridDim.x + blockIdx.x) * THREADS + threadIdx.x;
    uint32_t sum = 0;
    for (uint32_t had = 0; next_piece(queue, had); had++) {
        for (uint32_t batch = 0; batch < BATCHES; batch++) {
            const uint32_t mine = __umulhi(mix32(at += 0x9e3779b9u), units);
#pragma unroll 1
            for (int k = 0; k < WARP / UNITS; k += FLIGHT) {
                uint4 v[FLIGHT];
#pragma unroll
                for (int j = 0; j < FLIGHT; j++)
                    v[j] = part[(uint64_t)__shfl_sync(~0u, mine, (k + j) * UNITS + lane / lanes) *
                                lanes];
#pragma unroll
                for (int j = 0; j < FLIGHT; j++)
                    sum |= v[j].x | v[j].y | v[j].z | v[j].w;
            }
        }
    }
    if (sum)
        *sink = sum;
}

struct setup {
    uint32_t blocks, shared_bytes;
    void *memory;
    uint32_t *sink, *queue;
    cudaEvent_t before, after;
};

template <int UNITS> static double gbps(const setup &s, uint64_t bytes, bool own, bool dealt)
{
    const uint64_t unit = WARP / UNITS * LOAD_BYTES;
    const uint64_t all = std::max<uint64_t>(bytes / unit, 1);
    const uint64_t units = own ? std::max<uint64_t>(all / s.blocks, 1) : all;
    float ms[RUNS + 1];

    CHECK(cudaFuncSetAttribute(reads<UNITS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               (int)s.shared_bytes));
    for (uint32_t run = 0; run <= RUNS; run++) { /* the first run warms up */
        CHECK(cudaMemset(s.queue, 0, sizeof *s.queue));
        CHECK(cudaEventRecord(s.before));
        reads<UNITS><<<s.blocks, THREADS, s.shared_bytes>>>(
            (const uint4 *)s.memory, (uint32_t)units, own ? units : 0, run + 1,
            dealt ? s.queue : nullptr, s.sink);
        CHECK(cudaEventRecord(s.after));
        CHECK(cudaEventSynchronize(s.after));
        CHECK(cudaEventElapsedTime(&ms[run], s.before, s.after));
    }
    std::sort(ms + 1, ms + 1 + RUNS);
    return (double)s.blocks * (THREADS / WARP) * PIECES * BATCHES * WARP * (double)unit /
           ms[1 + RUNS / 2] / 1e6;
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
    if (strcmp(argv[1], "half") == 0) {
        int per_sm = 0;
        CHECK(cudaDeviceGetAttribute(&per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0));
        s.shared_bytes = (uint32_t)per_sm / 2 + 1024;
    }
    for (int i = 3; i < argc; i++)
        most = std::max(most, (uint64_t)strtoull(argv[i], nullptr, 10));
    most = std::max<uint64_t>(most, (uint64_t)s.blocks * unit);
    CHECK(cudaMalloc(&s.memory, most));
    CHECK(cudaMemset(s.memory, 0, most));
    CHECK(cudaMalloc((void **)&s.sink, sizeof *s.sink));
    CHECK(cudaMalloc((void **)&s.queue, sizeof *s.queue));
    CHECK(cudaEventCreate(&s.before));
    CHECK(cudaEventCreate(&s.after));
    for (int i = 3; i < argc; i++) {
        const uint64_t bytes = strtoull(argv[i], nullptr, 10);
        printf("%llu", (unsigned long long)bytes);
        for (int way = 0; way < 4; way++) {
            const bool own = way % 2, dealt = way < 2;
            printf(" %.1f",
                   unit == 512 ? gbps<1>(s, bytes, own, dealt) : gbps<4>(s, bytes, own, dealt));
        }
        printf("\n");
    }
    return 0;
}
