/* For docs/lab-programs.md. */
/* repeated_loads.cu: measures what a load costs that a warp repeats at once, out of reach. The
 * kernel accesses memory like the probe of clients/lab/record/hash_join.py: each thread loads its
 * key, loads a random word, and stores a byte. Most blocks load the same random words again.
 *
 *     repeated_loads BYTES ROWS
 *
 * Each line of output is a way to load, a limit of resident blocks, a size of shared memory, the
 * median time in ms, and the cost of a repeated load in loads of a new word:
 *
 *     once      no block repeats its loads
 *     cached    loads may hit the L1 (ld.global.ca)
 *     uncached  loads do not use the L1 (ld.global.cg)
 *
 * If "uncached" costs 1.0 and "cached" costs less, the L1 serves repeated loads without a
 * translation. If both cost the same, the TLBs alone decide. The shared memory of the second part
 * reduces the L1 and leaves the number of blocks alone, so it shows the effect of the size of the
 * L1. */
#include "tests/gpu/median.cuh"

typedef uint32_t u32;
typedef uint64_t u64;

enum { THREADS = 128, RUNS = 3, PERCENT = 100 };
enum way { ONCE, CACHED, UNCACHED, WAYS };
static const char *const names[WAYS] = {"once", "cached", "uncached"};

/* Shares of the blocks of the recorded trace that repeat at least once, twice and three times, in
 * 2^-32: 1270, 24 and 3 of 2050 blocks. */
struct shares {
    u32 once, twice, thrice;
};
static const struct shares SHARES = {2660784618u, 50282544u, 6285318u};

template <int WAY> static __device__ u64 load(const u64 *at)
{
    u64 v;
    if (WAY == UNCACHED)
        asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
    else
        asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
    return v;
}

/* All memory is 0, so a loaded word changes no address. The compiler cannot know this, and loads
 * wait for each other. */
template <int WAY>
__global__ void __launch_bounds__(THREADS)
    probe(const u64 *keys, const u64 *table, u64 words, unsigned char *found, u32 seed,
          struct shares shares)
{
    const u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    const u32 draw = (u32)(mix(blockIdx.x + ((u64)seed << 32) + 1) >> 32);
    int repeats =
        WAY == ONCE ? 0 : (draw < shares.once) + (draw < shares.twice) + (draw < shares.thrice);
    const u64 key = keys[row] + row + ((u64)seed << 40);
    const u64 *const at = table + __umul64hi(mix(key), words);
    u64 seen = load<WAY>(at);
    while (__syncthreads_or(seen != 0 || repeats-- > 0))
        seen = load<WAY>(at + seen);
    found[row] = (unsigned char)(seen == key);
}

struct setup {
    u64 *keys, *table;
    unsigned char *found;
    u64 words, rows;
};

/* Returns the median time of a launch in ms, with `shared` bytes of shared memory per block. */
template <int WAY> static float time_ms(const setup &s, u32 shared, int carveout)
{
    CHECK(
        cudaFuncSetAttribute(probe<WAY>, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
    CHECK(
        cudaFuncSetAttribute(probe<WAY>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    return median_ms<RUNS>([&](u32 k) {
        probe<WAY><<<(u32)(s.rows / THREADS), THREADS, shared>>>(s.keys, s.table, s.words, s.found,
                                                                 WAY * RUNS + k + 1, SHARES);
    });
}

static double repeats_per_load(void)
{
    return ((double)SHARES.once + SHARES.twice + SHARES.thrice) / 4294967296.0;
}

static void print(enum way way, u32 blocks, int carveout, float ms, float once_ms)
{
    printf("%-8s blocks %2u carveout %3d %% %8.3f ms", names[way], blocks, carveout, ms);
    if (way != ONCE)
        printf("  repeated load %.3f", (ms / once_ms - 1) / repeats_per_load());
    printf("\n");
}

static void measure(const setup &s, u32 blocks, u32 shared, int carveout)
{
    const float once = time_ms<ONCE>(s, shared, carveout);
    print(ONCE, blocks, carveout, once, once);
    print(CACHED, blocks, carveout, time_ms<CACHED>(s, shared, carveout), once);
    print(UNCACHED, blocks, carveout, time_ms<UNCACHED>(s, shared, carveout), once);
}

int main(int argc, char **argv)
{
    static const u32 limits[] = {8, 4, 2};
    static const int carveouts[] = {25, 50, 75, PERCENT};
    setup s = {};
    int bytes_of_sm, reserved, resident;
    const u64 bytes = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;

    s.words = bytes / sizeof *s.table;
    s.rows = argc == 3 ? strtoull(argv[2], NULL, 10) / THREADS * THREADS : 0;
    if (s.words == 0 || s.rows == 0) {
        fprintf(stderr, "usage: repeated_loads BYTES ROWS\n");
        return 2;
    }
    CHECK(cudaMalloc((void **)&s.table, bytes));
    CHECK(cudaMalloc((void **)&s.keys, s.rows * sizeof *s.keys));
    CHECK(cudaMalloc((void **)&s.found, s.rows));
    CHECK(cudaMemset(s.table, 0, bytes));
    CHECK(cudaMemset(s.keys, 0, s.rows * sizeof *s.keys));
    CHECK(cudaDeviceGetAttribute(&bytes_of_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0));
    CHECK(cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, probe<CACHED>, THREADS, 0));
    measure(s, (u32)resident, 0, cudaSharedmemCarveoutDefault);
    for (int carveout : carveouts)
        measure(s, (u32)resident, 0, carveout);
    for (u32 limit : limits)
        measure(s, limit, (u32)(bytes_of_sm / (int)limit - reserved) / 128 * 128, PERCENT);
    return 0;
}
