/* For docs/profile.md. */
/* rows_in_flight.cu: measures how long random reads of rows take within and out of reach, if few of
 * them are in flight, and with and without an equal share of the rows for each SM.
 *
 *     rows_in_flight BYTES_IN_REACH BYTES...
 *
 * Each warp reads rows of 128 bytes in batches. The rows of a batch are in flight together, and the
 * addresses of the next batch depend on them. Each line of output is a way to launch, the number of
 * resident warps of each SM, the rows of a batch, and the median time of a launch in ms for each
 * size:
 *
 *     equal  all blocks are resident at once, so each SM reads the same number of rows
 *     free   an SM has its next block when one of its blocks has ended, so fast SMs read more rows
 *
 * If the times out of reach are equal and the times within the reach are not, the time out of reach
 * does not tell how long a kernel takes within the reach. */
#include "tests/gpu/median.cuh"

#include <algorithm>

typedef uint32_t u32;
typedef uint64_t u64;

enum {
    WARP = 32,
    WARPS_OF_BLOCK = 4,
    ROWS = 1 << 21,
    RUNS = 7,
    MOST_SIZES = 4,
    MOST_WARPS = 64,
    BATCHES = 16 /* of a warp if blocks are free */
};

/* All memory is 0, so the sum changes no address. The compiler cannot know this. */
template <int BATCH>
__global__ void __launch_bounds__(WARP *WARPS_OF_BLOCK)
    read_rows(const u32 *table, u64 table_rows, u64 seed, u32 *out)
{
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    const u32 warps = gridDim.x * blockDim.x / WARP;
    u32 sum = 0;

    for (u32 first = warp * BATCH; first < ROWS; first += warps * BATCH) {
        u32 v[BATCH];
        for (int i = 0; i < BATCH; i++) {
            const u64 row = __umul64hi(mix(seed + first + i + sum), table_rows);
            asm volatile("ld.global.u32 %0, [%1];"
                         : "=r"(v[i])
                         : "l"(table + row * WARP + threadIdx.x % WARP));
        }
        for (int i = 0; i < BATCH; i++)
            sum += v[i];
    }
    if (sum != 0)
        *out = sum;
}

struct setup {
    const u32 *table;
    u32 *out;
    u32 sms, shared; /* SMs, and shared memory of each in bytes that a block may use */
    u64 bytes[MOST_SIZES];
    int sizes;
};

struct way {
    bool equal;
    u32 warps; /* resident on each SM */
};

/* Shared memory limits the resident blocks. */
template <int BATCH> static float time_ms(const setup &s, u64 bytes, const way &w)
{
    static u64 seed = 1;
    const u32 resident = w.warps / WARPS_OF_BLOCK;
    const u32 blocks = w.equal ? s.sms * resident : ROWS / (WARPS_OF_BLOCK * BATCH * BATCHES);
    const u32 shared = w.warps < MOST_WARPS ? s.shared / resident / 1024 * 1024 - 1024 : 0;

    CHECK(cudaFuncSetAttribute(read_rows<BATCH>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               (int)shared));
    return median_ms<RUNS>([&](u32) {
        seed += ROWS;
        read_rows<BATCH><<<blocks, WARP * WARPS_OF_BLOCK, shared>>>(
            s.table, bytes / (WARP * sizeof *s.table), seed, s.out);
    });
}

template <int BATCH> static void measure(const setup &s, const way &w)
{
    printf("%-5s %5u %5d", w.equal ? "equal" : "free", w.warps, BATCH);
    for (int i = 0; i < s.sizes; i++)
        printf(" %9.4f", time_ms<BATCH>(s, s.bytes[i], w));
    printf("\n");
}

int main(int argc, char **argv)
{
    setup s = {};
    u32 *table;
    int sms, shared;
    u64 most = 0;

    while (s.sizes < argc - 1 && s.sizes < MOST_SIZES) {
        s.bytes[s.sizes] = strtoull(argv[s.sizes + 1], NULL, 10);
        most = std::max(most, s.bytes[s.sizes++]);
    }
    if (most == 0) {
        fprintf(stderr, "usage: rows_in_flight BYTES_IN_REACH BYTES...\n");
        return 2;
    }
    CHECK(cudaMalloc((void **)&table, most));
    CHECK(cudaMalloc((void **)&s.out, sizeof *s.out));
    CHECK(cudaMemset(table, 0, most));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    s.table = table;
    s.sms = (u32)sms;
    s.shared = (u32)shared;
    printf("way   warps batch");
    for (int i = 0; i < s.sizes; i++)
        printf(" %5.1f GiB", (double)s.bytes[i] / (double)(1 << 30));
    printf("  (ms of %d rows)\n", ROWS);
    for (u32 equal = 2; equal-- > 0;) {
        for (u32 warps = 4; warps <= MOST_WARPS; warps *= 2) {
            const way w = {equal != 0, warps};
            measure<1>(s, w);
            measure<2>(s, w);
            measure<4>(s, w);
            measure<8>(s, w);
        }
    }
    return 0;
}
