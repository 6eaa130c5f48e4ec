/* onchip.cu: measures shared memory, clusters and loads in flight by other methods than reachd, for
 * tests/gpu/test_onchip.py. It prints one line per number.
 *
 *     onchip banks
 *         "banks WAYS CYCLES": a load of a warp in which WAYS lanes each read different words of
 *         the same bank. No stride gives this pattern of lanes. There are 32 banks of 4 bytes. The
 *         words contain an index, not an address.
 *     onchip clusters
 *         Launches clusters by the CUDA runtime, with another amount of shared memory than reachd.
 *         "fits SIZE N": the number of clusters that CUDA reports to fit. "cluster SIZE SM ..": the
 *         SMs of each cluster of a launch of N, by %smid. "latency SIZE CYCLES": the median cycles
 *         of a generic load of an index, over all pairs of ranks.
 *     onchip speed MIB WARPS LOADS [SM,SM,..]
 *         "speed WARPS LOADS SMS GB/s": random reads of 128 bytes of plain memory, by all SMs or
 *         by the listed SMs. Each SM reads within its own MIB. The time is the difference between
 *         the best of RUNS kernels and the best of RUNS kernels that read twice as much. So the
 *         start and the end of a kernel do not count.
 */
#include "common.cuh"

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace cg = cooperative_groups;

enum { WARP = 32, LOADS = 256, SM_SLOTS = 512, MOST = 16, RUNS = 3, ROUNDS = 8000 };

/* ---- banks ---- */

/* The lanes of group k, which has `ways` lanes, read rows 0, 1, .. of bank (k + 5) % 32. */
__global__ void time_ways(uint32_t ways, uint32_t *out)
{
    __shared__ volatile uint32_t words[32 * 32];
    const uint32_t lane = threadIdx.x;
    for (uint32_t i = lane; i < 32 * 32; i += WARP)
        words[i] = i;
    __syncwarp();
    uint32_t at = lane % ways * 32 + (lane / ways + 5) % 32;
    for (uint32_t lap = 0; lap < 2; lap++) {
        const uint32_t begin = clock();
        for (uint32_t i = 0; i < LOADS; i++)
            at = words[at];
        const uint32_t end = clock() + (at > 32 * 32);
        if (lap == 1 && lane == 0)
            *out = end - begin;
    }
    if (at == ~0u)
        *out = at;
}

static void run_banks()
{
    uint32_t *out;
    CHECK(cudaMallocManaged(&out, sizeof *out));
    for (uint32_t ways = 1; ways <= WARP; ways *= 2) {
        time_ways<<<1, WARP>>>(ways, out);
        CHECK(cudaDeviceSynchronize());
        printf("banks %u %.2f\n", ways, *out / (double)LOADS);
    }
}

/* ---- clusters ---- */

struct seen {
    uint32_t sm;
    uint32_t cycles[MOST];
};

__global__ void look(struct seen *out)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ uint32_t mine[];
    cg::cluster_group cluster = cg::this_cluster();
    const uint32_t rank = cluster.block_rank();
    for (uint32_t i = 0; i < 64; i++)
        mine[i] = i;
    cluster.sync();
    out[blockIdx.x].sm = sm_id();
    for (uint32_t d = 0; d < cluster.num_blocks(); d++) {
        const uint32_t other = (rank + d) % cluster.num_blocks();
        volatile uint32_t *theirs = cluster.map_shared_rank(mine, other);
        uint32_t at = rank * 3;
        for (uint32_t lap = 0; lap < 2; lap++) {
            const uint32_t begin = clock();
            for (uint32_t i = 0; i < LOADS; i++)
                at = theirs[at];
            out[blockIdx.x].cycles[other] = clock() + (at > 64) - begin;
        }
        cluster.sync();
    }
#endif
}

static cudaLaunchConfig_t config_of(uint32_t size, uint32_t blocks, cudaLaunchAttribute *attribute)
{
    cudaLaunchConfig_t config = {};
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim.x = size;
    attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(1);
    config.dynamicSmemBytes = 160 << 10;
    config.attrs = attribute;
    config.numAttrs = 1;
    return config;
}

static void run_size(uint32_t size)
{
    cudaLaunchAttribute attribute;
    cudaLaunchConfig_t config = config_of(size, size, &attribute);
    std::vector<uint32_t> cycles;
    struct seen *out;
    int fits = 0;
    if (cudaOccupancyMaxActiveClusters(&fits, look, &config) != cudaSuccess)
        fits = 0;
    (void)cudaGetLastError();
    printf("fits %u %d\n", size, fits);
    if (fits == 0)
        return;
    CHECK(cudaMallocManaged(&out, fits * size * sizeof *out));
    config = config_of(size, fits * size, &attribute);
    CHECK(cudaLaunchKernelEx(&config, look, out));
    CHECK(cudaDeviceSynchronize());
    for (int c = 0; c < fits; c++) {
        printf("cluster %u", size);
        for (uint32_t k = 0; k < size; k++) {
            printf(" %u", out[c * size + k].sm);
            for (uint32_t other = 0; other < size; other++)
                if (other != k)
                    cycles.push_back(out[c * size + k].cycles[other]);
        }
        printf("\n");
    }
    std::sort(cycles.begin(), cycles.end());
    printf("latency %u %.1f\n", size, cycles[cycles.size() / 2] / (double)LOADS);
    CHECK(cudaFree(out));
}

static void run_clusters()
{
    CHECK(cudaFuncSetAttribute(look, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 << 10));
    CHECK(cudaFuncSetAttribute(look, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    for (uint32_t size = 2; size <= MOST; size++)
        run_size(size);
}

/* ---- speed ---- */

static __device__ uint32_t mix32(uint32_t z)
{
    z = (z ^ (z >> 16)) * 0x85ebca6bu;
    z = (z ^ (z >> 13)) * 0xc2b2ae35u;
    return z ^ (z >> 16);
}

/* Each listed SM reads in the window whose number is its place in the list. */
template <int CONCURRENCY>
__global__ void __launch_bounds__(1024, 1)
    read_lines(const char *base, const uint32_t *place_of_sm, uint64_t window_bytes,
               uint32_t rounds, uint32_t *sink)
{
    const uint32_t place = place_of_sm[sm_id()];
    const uint32_t lane = threadIdx.x % WARP;
    const uint32_t lines = (uint32_t)(window_bytes / 128);
    uint32_t state = (place * 1024 + threadIdx.x / WARP) * 0x9e3779b9u, sum = 0;
    if (place == ~0u)
        return;
    const char *window = base + place * window_bytes + lane * 4;
#pragma unroll 1
    for (uint32_t i = 0; i < rounds / CONCURRENCY; i++) {
        uint32_t v[CONCURRENCY];
#pragma unroll
        for (int k = 0; k < CONCURRENCY; k++)
            v[k] = __ldcg((const uint32_t *)(window + __umulhi(mix32(++state), lines) * 128ull));
#pragma unroll
        for (int k = 0; k < CONCURRENCY; k++)
            sum |= v[k];
    }
    if (sum == 1)
        *sink = sum;
}

static void launch(uint32_t flight, uint32_t sms, uint32_t warps, const char *base,
                   const uint32_t *places, uint64_t window_bytes, uint32_t rounds, uint32_t *sink)
{
    const uint32_t shared = 120 << 10; /* one block per SM */
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        CHECK(cudaFuncSetAttribute(read_lines<n>, cudaFuncAttributeMaxDynamicSharedMemorySize,     \
                                   shared));                                                       \
        read_lines<n><<<sms, warps * WARP, shared>>>(base, places, window_bytes, rounds, sink);    \
        break
    switch (flight) {
        CASE(1);
        CASE(2);
        CASE(4);
        CASE(8);
        CASE(16);
        CASE(32);
    default:
        exit(EXIT_FAILURE);
    }
}

struct reading {
    uint32_t flight, sms, active, warps;
    const char *base;
    const uint32_t *places;
    uint64_t window_bytes;
    uint32_t *sink;
};

/* Returns milliseconds: the best of RUNS, after one run that is not counted. */
static float best_ms(const reading &r, uint32_t rounds)
{
    cudaEvent_t begin, end;
    float best = INFINITY;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (int run = 0; run < RUNS + 1; run++) {
        float ms;
        CHECK(cudaEventRecord(begin));
        launch(r.flight, r.sms, r.warps, r.base, r.places, r.window_bytes, rounds, r.sink);
        CHECK(cudaEventRecord(end));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        best = run > 0 ? std::min(best, ms) : best;
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return best;
}

static double best_gbps(const reading &r)
{
    const double bytes = (double)r.active * r.warps * (ROUNDS / r.flight * r.flight) * 128;
    return bytes / (best_ms(r, 2 * (ROUNDS / r.flight * r.flight)) - best_ms(r, ROUNDS)) / 1e6;
}

static void run_speed(uint64_t window_bytes, const char *points, const char *list)
{
    cudaDeviceProp device;
    uint32_t *places, *sink, active = 0;
    char *base;
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaMallocManaged(&places, SM_SLOTS * sizeof *places));
    CHECK(cudaMallocManaged(&sink, sizeof *sink));
    memset(places, list ? 0xff : 0, SM_SLOTS * sizeof *places);
    if (!list)
        for (; active < (uint32_t)device.multiProcessorCount; active++)
            places[active] = active;
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
        places[atoi(p)] = active++;
    CHECK(cudaMalloc(&base, active * window_bytes));
    CHECK(cudaMemset(base, 0, active * window_bytes));
    for (const char *p = points; *p; p += strcspn(p, ","), p += *p == ',') {
        unsigned warps, flight;
        if (sscanf(p, "%u:%u", &warps, &flight) != 2)
            exit(EXIT_FAILURE);
        printf("speed %u %u %u %.1f\n", warps, flight, active,
               best_gbps({flight, (uint32_t)device.multiProcessorCount, active, warps, base, places,
                          window_bytes, sink}));
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "banks") == 0)
        run_banks();
    else if (argc == 2 && strcmp(argv[1], "clusters") == 0)
        run_clusters();
    else if (argc >= 4 && strcmp(argv[1], "speed") == 0)
        run_speed(strtoull(argv[2], NULL, 0) << 20, argv[3], argc > 4 ? argv[4] : NULL);
    else
        return EXIT_FAILURE;
    return 0;
}
