/* partition.cu: tests reach_partition.cuh on a GPU: from no key to more than 2^31 keys, also from a
 * graph. It then measures the keys per second. test_partition.py runs it. It prints "ok"/"not ok"
 * lines, then rows of a table that begin with "|".
 *
 *   partition [SEED [LOG2]]     2^LOG2 keys for the speeds, default 2^30
 *
 * The check of a result uses positions as payload. Positions must ascend within a range, so they
 * differ. Key i of the output must be the input key at its position, and must lie in the range of
 * the offsets. Then the output is a permutation of the input, stable, and partitioned. Results with
 * keys alone and with other payloads are compared with this result.
 */
#include "reach_partition.cuh"

#include "common.cuh"

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

typedef unsigned long long u64;

enum { REPEATS = 7, BLOCKS = 2048, THREADS = 256 };

/* ---- on the device -----------------------------------------------------------------------------
 */

/* Pattern 0 is random, 1 puts all keys in the last range, 2 is ascending. */
template <class Key>
__global__ void fill(Key *keys, uint64_t count, uint64_t below, int pattern, uint64_t seed)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        keys[i] = (Key)(pattern == 0   ? __umul64hi(mix(i * 0x9e3779b97f4a7c15ull + seed), below)
                        : pattern == 1 ? below - 1
                                       : __umul64hi(~0ull / count * i, below));
}

template <class Payload> __global__ void fill_payloads(Payload *payloads, uint64_t count)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        payloads[i] = (Payload)mix(i);
}

template <class Key, class Position>
__global__ void find_errors(const __grid_constant__ reach_ranges ranges, const Key *in,
                            const Key *out, const Position *positions, uint64_t count,
                            const uint64_t *offsets, u64 *errors)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    u64 wrong = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        uint32_t range = 0;
        const uint64_t key = (uint64_t)out[i], at = (uint64_t)positions[i];
        while (range + 1 < ranges.count && key >= ranges.first[range + 1])
            range++;
        const bool begins = i == offsets[range];
        wrong += i < offsets[range] || i >= offsets[range + 1];
        wrong += at >= count || in[at] != out[i];
        wrong += !begins && i > 0 && positions[i - 1] >= positions[i];
    }
    if (wrong)
        atomicAdd(errors, wrong);
}

/* Counts payloads that differ from the positions that fill_payloads wrote. */
template <class Key, class Position, class Payload>
__global__ void compare(const Key *a, const Key *b, const Position *positions,
                        const Payload *payloads, uint64_t count, u64 *errors)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    u64 wrong = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        wrong += a[i] != b[i] || (payloads && payloads[i] != (Payload)mix((uint64_t)positions[i]));
    if (wrong)
        atomicAdd(errors, wrong);
}

/* ---- on the host -------------------------------------------------------------------------------
 */

static bool all_right = true;

static void report(bool right, const char *name)
{
    printf("%s %s\n", right ? "ok" : "not ok", name);
    fflush(stdout);
    all_right = all_right && right;
}

/* Makes windows that are not quite equal, over [0, below). */
static reach_ranges make_ranges(uint32_t count, uint64_t below)
{
    uint64_t first[REACH_RANGE_MAX];
    reach_ranges ranges;
    for (uint32_t r = 0; r < count; r++)
        first[r] = below / count * r + (r ? mix(r) % (below / count / 2 + 1) : 0);
    reach_ranges_make(&ranges, first, count, 1);
    return ranges;
}

/* Arrays for `count` keys, which are freed when the object ends. */
template <class Key, class Position> struct arrays {
    uint64_t count;
    Key *in, *out, *other;
    Position *positions, *payloads_in, *payloads;
    uint64_t *offsets, *counts;
    u64 *errors;
    void *temp;
    size_t temp_bytes;

    /* Tests one case. If `all` is set, it also tests pairs and a second output. */
    arrays(uint64_t n, const reach_ranges &ranges, bool all)
        : count(n), temp(nullptr), temp_bytes(0)
    {
        const uint64_t few = all ? n + 1 : 1;
        CHECK(cudaMalloc((void **)&in, (n + 1) * sizeof(Key)));
        CHECK(cudaMalloc((void **)&out, (n + 1) * sizeof(Key)));
        CHECK(cudaMalloc((void **)&positions, (n + 1) * sizeof(Position)));
        CHECK(cudaMalloc((void **)&other, few * sizeof(Key)));
        CHECK(cudaMalloc((void **)&payloads_in, few * sizeof(Position)));
        CHECK(cudaMalloc((void **)&payloads, few * sizeof(Position)));
        CHECK(cudaMalloc((void **)&offsets, (REACH_RANGE_MAX + 1) * sizeof *offsets));
        CHECK(cudaMalloc((void **)&counts, REACH_RANGE_MAX * sizeof *counts));
        CHECK(cudaMalloc((void **)&errors, sizeof *errors));
        CHECK(cudaMemset(errors, 0, sizeof *errors));
        CHECK(run_positions(ranges, 0));
        CHECK(cudaMalloc(&temp, temp_bytes));
        CHECK(cudaMemset(temp, 0xa5, temp_bytes));
    }
    ~arrays()
    {
        for (void *p :
             {(void *)in, (void *)out, (void *)other, (void *)positions, (void *)payloads_in,
              (void *)payloads, (void *)offsets, (void *)counts, (void *)errors, temp})
            cudaFree(p);
    }
    cudaError_t run_positions(const reach_ranges &ranges, cudaStream_t stream)
    {
        return reach_partition_positions(temp, temp_bytes, in, out, positions, count, ranges,
                                         offsets, counts, stream);
    }
    cudaError_t run_keys(const reach_ranges &ranges, cudaStream_t stream)
    {
        return reach_partition_keys(temp, temp_bytes, in, other, count, ranges, offsets, counts,
                                    stream);
    }
    cudaError_t run_pairs(const reach_ranges &ranges, cudaStream_t stream)
    {
        return reach_partition_pairs(temp, temp_bytes, in, other, payloads_in, payloads, count,
                                     ranges, offsets, counts, stream);
    }
    /* Checks the counts of find_errors and compare, and the offsets and counts for `count`. */
    bool is_right(const reach_ranges &ranges)
    {
        u64 wrong = 0;
        uint64_t at[REACH_RANGE_MAX + 1], found[REACH_RANGE_MAX];
        CHECK(cudaMemcpy(&wrong, errors, sizeof wrong, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(at, offsets, (ranges.count + 1) * sizeof *at, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(found, counts, ranges.count * sizeof *at, cudaMemcpyDeviceToHost));
        bool right = wrong == 0 && at[0] == 0 && at[ranges.count] == count;
        for (uint32_t r = 0; r < ranges.count; r++)
            right = right && at[r] <= at[r + 1] && found[r] == at[r + 1] - at[r];
        return right;
    }
};

template <class Key, class Position>
static bool check_positions(arrays<Key, Position> &a, const reach_ranges &ranges)
{
    find_errors<<<BLOCKS, THREADS>>>(ranges, a.in, a.out, a.positions, a.count, a.offsets,
                                     a.errors);
    CHECK(cudaGetLastError());
    return a.is_right(ranges);
}

template <class Key, class Position>
static bool try_case(uint64_t count, uint32_t windows, int pattern, uint64_t below, uint64_t seed)
{
    const reach_ranges ranges = make_ranges(windows, below);
    arrays<Key, Position> a(count, ranges, true);
    fill<<<BLOCKS, THREADS>>>(a.in, count, below, pattern, seed);
    fill_payloads<<<BLOCKS, THREADS>>>(a.payloads_in, count);
    CHECK(a.run_positions(ranges, 0));
    bool right = check_positions(a, ranges);
    CHECK(a.run_keys(ranges, 0));
    compare<<<BLOCKS, THREADS>>>(a.out, a.other, a.positions, (Position *)nullptr, count, a.errors);
    right = a.is_right(ranges) && right;
    CHECK(a.run_pairs(ranges, 0));
    compare<<<BLOCKS, THREADS>>>(a.out, a.other, a.positions, a.payloads, count, a.errors);
    right = a.is_right(ranges) && right;
    if (!right)
        printf("# wrong: %llu keys of %d bytes, %u windows, pattern %d\n", (u64)count,
               (int)sizeof(Key), windows, pattern);
    return right;
}

template <class Key, class Position> static bool try_sizes(uint64_t below, uint64_t seed)
{
    static const uint64_t sizes[] = {0,    1,    31,   32,   33,    255,    2047,    2048,
                                     2049, 4095, 4096, 4097, 12289, 100003, 1 << 20, 33333333};
    static const uint32_t windows[] = {1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 100, 256};
    bool right = true;
    for (uint64_t size : sizes) {
        for (int k = 0; k < 4; k++)
            right = try_case<Key, Position>(size, windows[mix(seed + size * 4 + k) % 12],
                                            k == 3 ? 1 + (int)(size & 1) : 0, below, seed + k) &&
                    right;
    }
    return right;
}

/* Tests more keys than 32 bits can count, if memory is large enough. */
static void try_many(uint64_t seed)
{
    const uint64_t count = (1ull << 32) + 12345;
    size_t free_bytes, total_bytes;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (free_bytes < count * 17 + (4ull << 30)) {
        printf("skip 2^32 keys: they need %.0f GiB of free memory\n",
               (double)count * 17 / (1 << 30));
        return;
    }
    const reach_ranges ranges = make_ranges(5, 1ull << 31);
    arrays<int32_t, uint64_t> a(count, ranges, false);
    fill<<<BLOCKS, THREADS>>>(a.in, count, 1ull << 31, 0, seed);
    CHECK(a.run_positions(ranges, 0));
    report(check_positions(a, ranges), "2^32 + 12345 keys");
}

static void try_graph(uint64_t seed)
{
    const reach_ranges ranges = make_ranges(4, 1ull << 40);
    arrays<int64_t, uint32_t> a(3000001, ranges, false);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    bool right = true;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(a.run_positions(ranges, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&replay, graph, 0));
    for (int k = 0; k < 3; k++) { /* other keys each time */
        fill<<<BLOCKS, THREADS, 0, stream>>>(a.in, a.count, 1ull << 40, 0, seed + (uint64_t)k);
        CHECK(cudaGraphLaunch(replay, stream));
        CHECK(cudaStreamSynchronize(stream));
        right = check_positions(a, ranges) && right;
    }
    report(right, "captured once, replayed three times");
    CHECK(cudaGraphExecDestroy(replay));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
}

/* ---- speed -------------------------------------------------------------------------------------
 */

template <class Run> static double median_ms(Run run)
{
    std::vector<float> times;
    cudaEvent_t before, after;
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    for (int k = 0; k <= REPEATS; k++) {
        float ms;
        CHECK(cudaEventRecord(before));
        CHECK(run());
        CHECK(cudaEventRecord(after));
        CHECK(cudaEventSynchronize(after));
        CHECK(cudaEventElapsedTime(&ms, before, after));
        if (k > 0)
            times.push_back(ms);
    }
    CHECK(cudaEventDestroy(before));
    CHECK(cudaEventDestroy(after));
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

template <class Key, class Position>
static void time_keys(const char *name, uint64_t count, uint64_t below, uint64_t seed)
{
    for (uint32_t windows : {2u, 3u, 4u, 8u, 32u, 256u}) {
        const reach_ranges ranges = make_ranges(windows, below);
        arrays<Key, Position> a(count, ranges, true);
        fill<<<BLOCKS, THREADS>>>(a.in, count, below, 0, seed);
        fill_payloads<<<BLOCKS, THREADS>>>(a.payloads_in, count);
        const double keys = median_ms([&] { return a.run_keys(ranges, 0); });
        const double pairs = median_ms([&] { return a.run_pairs(ranges, 0); });
        const double positions = median_ms([&] { return a.run_positions(ranges, 0); });
        printf("| %-22s | %7u | %9.1f | %12.1f | %13.1f | %9.2f |\n", name, windows,
               (double)count / keys / 1e6, (double)count / pairs / 1e6,
               (double)count / positions / 1e6,
               (double)a.temp_bytes / ((double)count * sizeof(Key)) * 100);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], nullptr, 0) : 1;
    const uint64_t count = 1ull << (argc > 2 ? atoi(argv[2]) : 30);
    cudaDeviceProp gpu;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    report(try_sizes<int32_t, uint32_t>(1ull << 31, seed), "keys of 4 bytes, positions of 4");
    report(try_sizes<uint32_t, uint64_t>(1ull << 32, seed), "keys of 4 bytes, positions of 8");
    report(try_sizes<int64_t, uint64_t>(1ull << 40, seed), "keys of 8 bytes, positions of 8");
    report(try_sizes<int64_t, uint32_t>(1ull << 62, seed), "keys of 8 bytes, positions of 4");
    try_graph(seed);
    try_many(seed);
    printf("| %s, %llu keys, G keys/s\n", gpu.name, (u64)count);
    printf("| %-22s | %7s | %9s | %12s | %13s | %9s |\n", "keys, payloads", "windows", "keys",
           "with payload", "with position", "temp %");
    time_keys<int32_t, uint32_t>("4 bytes, 4 bytes", count, 1ull << 31, seed);
    time_keys<int64_t, uint32_t>("8 bytes, 4 bytes", count, 1ull << 34, seed);
    time_keys<int64_t, uint64_t>("8 bytes, 8 bytes", count, 1ull << 34, seed);
    return all_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
