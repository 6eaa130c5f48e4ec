/* l2_sides.cu: finds the sides of the L2 by two other methods than reachd, for
 * tests/gpu/test_caches.py.
 *
 *     l2_sides loads GRANULE
 *         Times one load of each of GRANULES lines, GRANULE bytes apart, for each SM.
 *         "store SM CYCLES ..": right after another SM has stored to the lines. "cold SM CYCLES ..":
 *         right after all SMs have read 256 MiB of other memory. After a store some SMs find all
 *         lines near; such rows place no SM.
 *
 *     l2_sides reads GRANULE SM,SM,.. MIB ..
 *         Measures random reads of 512 bytes by all SMs. The list has the SMs of one side. The
 *         program sorts the granules by the time of an atomic from the first SM of the list. For
 *         each size it prints MIB and three rates in GB/s. Every SM reads in all granules, then in
 *         the granules near to it, then in the granules far from it.
 *
 * Memory is zero. A rate is the best of RUNS.
 */
#include "common.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

enum {
    GRANULES = 256,
    SM_SLOTS = 512,
    WARP = 32,
    THREADS = 1024,
    IN_FLIGHT = 8,
    BLOCK_BYTES = 512,
    PIECES = 1024,
    RUNS = 3,
    ATOMICS = 3,
    MOST_CYCLES = 65535
};
static const uint64_t SWEEP_BYTES = 256 << 20;

/* Returns true for one thread of the first block on this SM, which then does the work. */
static __device__ bool is_first(uint32_t sm, uint32_t *taken)
{
    return threadIdx.x == 0 && sm_id() == sm && atomicExch(taken, 1u) == 0;
}

__global__ void store_lines(char *base, uint64_t granule, uint32_t not_on, uint32_t *taken)
{
    if (threadIdx.x != 0 || sm_id() == not_on || atomicExch(taken, 1u) != 0)
        return;
    for (uint32_t g = 0; g < GRANULES; g++)
        *(volatile uint32_t *)(base + g * granule) = 0;
}

__global__ void sweep(const uint4 *from, uint64_t count, uint32_t *sink)
{
    uint32_t sum = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count;
         i += (uint64_t)gridDim.x * blockDim.x)
        sum |= __ldcg(from + i).x;
    if (sum == 1)
        *sink = sum;
}

__global__ void time_loads(const char *base, uint64_t granule, uint32_t sm, uint32_t *taken,
                           uint16_t *cycles)
{
    __shared__ uint16_t out[GRANULES];
    uint32_t v = 0;

    if (!is_first(sm, taken))
        return;
    for (uint32_t g = 0; g < GRANULES; g++) {
        uint32_t before, after, used;
        asm volatile("mov.u32 %0, %%clock;\n\t"
                     "ld.global.cg.u32 %2, [%4];\n\t"
                     "add.u32 %3, %2, %0;\n\t"
                     "xor.b32 %3, %3, %0;\n\t"
                     "mov.u32 %1, %%clock;"
                     : "=&r"(before), "=&r"(after), "=&r"(v), "=&r"(used)
                     : "l"(base + g * granule + v)
                     : "memory");
        out[g] = (uint16_t)min(after - before + used, (uint32_t)MOST_CYCLES);
    }
    for (uint32_t g = 0; g < GRANULES; g++)
        cycles[g] = out[g];
}

__global__ void time_atomics(char *base, uint64_t granule, uint32_t count, uint32_t sm,
                             uint32_t *taken, uint16_t *cycles)
{
    uint32_t v = 0;

    if (!is_first(sm, taken))
        return;
    for (uint32_t g = 0; g < count; g++) {
        uint32_t least = MOST_CYCLES;
        for (uint32_t k = 0; k <= ATOMICS; k++) { /* the first run warms up */
            uint32_t before, after, used;
            asm volatile("mov.u32 %0, %%clock;\n\t"
                         "atom.global.add.u32 %2, [%4], %2;\n\t"
                         "add.u32 %3, %2, %0;\n\t"
                         "xor.b32 %3, %3, %0;\n\t"
                         "mov.u32 %1, %%clock;"
                         : "=&r"(before), "=&r"(after), "+r"(v), "=&r"(used)
                         : "l"(base + g * granule)
                         : "memory");
            if (k > 0)
                least = min(least, after - before + used);
        }
        cycles[g] = (uint16_t)least;
    }
}

/* Each SM reads in the granules of the list for its side. */
__global__ void __launch_bounds__(THREADS)
    reads(const char *base, uint64_t granule, const uint32_t *const *lists, const uint8_t *side_of,
          uint32_t count, uint64_t seed, uint32_t *sink)
{
    const uint32_t *const list = lists[side_of[sm_id()]];
    const uint32_t lane = threadIdx.x % WARP;
    const uint32_t blocks = (uint32_t)(granule / BLOCK_BYTES);
    uint64_t x = (seed << 32) + blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP + 1;
    uint32_t sum = 0;

    for (uint32_t i = 0; i < PIECES; i++) {
        uint4 v[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            uint64_t z = (x += 0x9e3779b97f4a7c15u);
            z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
            z ^= z >> 27;
            const uint32_t g = __ldg(list + __umulhi((uint32_t)(z >> 32), count));
            const uint32_t block = (uint32_t)z % blocks;
            v[k] = __ldcg((const uint4 *)(base + g * granule + block * BLOCK_BYTES) + lane);
        }
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++)
            sum |= v[k].x | v[k].y | v[k].z | v[k].w;
    }
    if (sum == 1)
        *sink = sum;
}

template <typename T> static T *take(uint64_t count)
{
    T *p;
    CHECK(cudaMalloc((void **)&p, count * sizeof(T)));
    CHECK(cudaMemset(p, 0, count * sizeof(T)));
    return p;
}

template <typename T> static T *put(const std::vector<T> &v)
{
    T *const p = take<T>(v.size());
    CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

static uint32_t sm_count()
{
    int count = 0;
    CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    return (uint32_t)count;
}

/* Prints nothing for an id that no SM has: its cycles are still 0. */
static void print_row(const char *name, uint32_t sm, const uint16_t *cycles)
{
    std::vector<uint16_t> row(GRANULES);

    CHECK(cudaMemcpy(row.data(), cycles, GRANULES * sizeof row[0], cudaMemcpyDeviceToHost));
    if (row[0] == 0)
        return;
    printf("%s %u", name, sm);
    for (uint16_t c : row)
        printf(" %u", c);
    printf("\n");
}

static int time_all(uint64_t granule)
{
    const uint32_t sms = sm_count();
    char *const base = take<char>(GRANULES * granule);
    uint4 *const other = take<uint4>(SWEEP_BYTES / sizeof(uint4));
    uint32_t *const taken = take<uint32_t>(2);
    uint16_t *const cycles = take<uint16_t>(GRANULES);

    for (uint32_t sm = 0; sm < SM_SLOTS; sm++)
        for (uint32_t way = 0; way < 2; way++) {
            CHECK(cudaMemset(taken, 0, 2 * sizeof *taken));
            CHECK(cudaMemset(cycles, 0, GRANULES * sizeof *cycles));
            if (way == 0)
                store_lines<<<4 * sms, WARP>>>(base, granule, sm, taken);
            else
                sweep<<<2 * sms, THREADS>>>(other, SWEEP_BYTES / sizeof(uint4), taken);
            time_loads<<<32 * sms, WARP>>>(base, granule, sm, taken + 1, cycles);
            CHECK(cudaDeviceSynchronize());
            print_row(way == 0 ? "store" : "cold", sm, cycles);
        }
    return 0;
}

/* Returns the cycles in the middle of the widest gap of the inner eight tenths. */
static uint16_t border_of(std::vector<uint16_t> v)
{
    const size_t n = v.size();
    uint16_t gap = 0;
    uint16_t border = 0;

    std::sort(v.begin(), v.end());
    for (size_t i = n / 10; i + 1 < n - n / 10; i++)
        if (v[i + 1] - v[i] > gap) {
            gap = v[i + 1] - v[i];
            border = (uint16_t)((v[i] + v[i + 1]) / 2);
        }
    return border;
}

static double gbps(const char *base, uint64_t granule, const uint32_t *a, const uint32_t *b,
                   const uint8_t *side_of, uint64_t count, uint32_t *sink)
{
    const uint32_t *const *const lists = put(std::vector<const uint32_t *>{a, b});
    const uint32_t blocks = sm_count(); /* one block on each SM, because a second does not fit */
    cudaEvent_t before;
    cudaEvent_t after;
    float best = 1e30f;

    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    for (uint32_t run = 0; run <= RUNS; run++) { /* the first run warms up */
        float ms;
        CHECK(cudaEventRecord(before));
        reads<<<blocks, THREADS>>>(base, granule, lists, side_of, (uint32_t)count, run + 1, sink);
        CHECK(cudaEventRecord(after));
        CHECK(cudaEventSynchronize(after));
        CHECK(cudaEventElapsedTime(&ms, before, after));
        best = run > 0 ? std::min(best, ms) : best;
    }
    CHECK(cudaFree((void *)lists));
    return (double)blocks * (THREADS / WARP) * PIECES * IN_FLIGHT * BLOCK_BYTES / best / 1e6;
}

static int read_all(uint64_t granule, char *sms, const std::vector<uint64_t> &mib)
{
    const uint64_t most = *std::max_element(mib.begin(), mib.end()) << 20;
    const uint32_t count = (uint32_t)((most + most / 8) / granule); /* the sides are not quite equal */
    std::vector<uint16_t> cycles(count);
    std::vector<uint8_t> side_of(SM_SLOTS, 1);
    std::vector<uint32_t> all, of[2];
    const uint32_t first = (uint32_t)atoi(sms);
    char *const base = take<char>(count * granule);
    uint16_t *const out = take<uint16_t>(count);
    uint32_t *const taken = take<uint32_t>(2);

    for (char *sm = strtok(sms, ","); sm; sm = strtok(nullptr, ","))
        side_of[(uint32_t)atoi(sm) % SM_SLOTS] = 0;
    time_atomics<<<32 * sm_count(), WARP>>>(base, granule, count, first, taken, out);
    CHECK(cudaMemcpy(cycles.data(), out, count * sizeof cycles[0], cudaMemcpyDeviceToHost));
    const uint16_t border = border_of(cycles);
    for (uint32_t g = 0; g < count; g++) {
        all.push_back(g);
        of[cycles[g] > border].push_back(g);
    }
    const uint32_t *const lists[] = {put(of[0]), put(of[1]), put(all)};
    const uint8_t *const sides = put(side_of);
    for (uint64_t m : mib) {
        const uint64_t n = (m << 20) / granule;
        if (n / 2 > std::min(of[0].size(), of[1].size()))
            return fprintf(stderr, "l2_sides: %zu granules near and %zu far\n", of[0].size(),
                           of[1].size()),
                   1;
        printf("%llu %.0f %.0f %.0f\n", (unsigned long long)m,
               gbps(base, granule, lists[2], lists[2], sides, n, taken),
               gbps(base, granule, lists[0], lists[1], sides, n / 2, taken),
               gbps(base, granule, lists[1], lists[0], sides, n / 2, taken));
    }
    return 0;
}

int main(int argc, char **argv)
{
    const uint64_t granule = argc > 2 ? strtoull(argv[2], nullptr, 10) : 0;
    std::vector<uint64_t> mib;

    for (int i = 4; i < argc; i++)
        mib.push_back(strtoull(argv[i], nullptr, 10));
    if (granule >= BLOCK_BYTES && argc == 3 && strcmp(argv[1], "loads") == 0)
        return time_all(granule);
    if (granule >= BLOCK_BYTES && !mib.empty() && strcmp(argv[1], "reads") == 0)
        return read_all(granule, argv[3], mib);
    return fprintf(stderr, "usage: l2_sides loads GRANULE | reads GRANULE SM,.. MIB ..\n"), 2;
}
