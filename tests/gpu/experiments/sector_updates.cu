/* For docs/jobs.md. */
/* sector_updates.cu: measures the rate at which a GPU changes random sectors of 32 bytes. Additions
 * to Bloom filters, hash tables and histograms cannot be faster. tests/gpu/test_cuco.py runs it.
 *
 *     sector_updates BYTES KEYS
 *
 * The kernels access KEYS random sectors in BYTES of memory. They compute the positions and read
 * nothing else. The program prints 10^9 sectors per second, the median of RUNS:
 *
 *     or G            eight lanes set a bit of each word of the sector, in one atomic request
 *     load-store G    eight lanes read the sector and write it back, without atomics
 *     store-word G    one word of the sector is written
 *     store-sector G  the whole sector is written
 *     load G          the sector is read
 */
#include "tests/gpu/median.cuh"

typedef uint32_t u32;
typedef uint64_t u64;

enum { THREADS = 1024, SM_BLOCKS = 2, LANES = 8, SECTOR_BYTES = 32, RUNS = 5, BITS = 32 };
enum way { OR, LOAD_STORE, STORE_WORD, STORE_SECTOR, LOAD, WAYS };
static const char *const names[WAYS] = {"or", "load-store", "store-word", "store-sector", "load"};

/* From sm_80 on the sector leaves the L2 early, because no sector is used again soon. */
static __device__ void set_bit(u32 *at, u32 bit)
{
#if __CUDA_ARCH__ >= 800
    u64 leaves_early;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(leaves_early));
    asm volatile("red.relaxed.gpu.global.or.b32.L2::cache_hint [%0], %1, %2;" ::"l"(
                     __cvta_generic_to_global(at)),
                 "r"(bit), "l"(leaves_early)
                 : "memory");
#else
    atomicOr(at, bit);
#endif
}

/* LANES lanes work on one sector at a time. */
template <int WAY>
__global__ void __launch_bounds__(THREADS)
    update(u32 *memory, u64 sectors, u64 keys, u64 seed, u32 *sink)
{
    const u32 lane = threadIdx.x % LANES;
    const u64 step = (u64)gridDim.x * THREADS / LANES;
    u32 sum = 0;

#pragma unroll 4
    for (u64 k = ((u64)blockIdx.x * THREADS + threadIdx.x) / LANES; k < keys; k += step) {
        u32 *const at = memory + __umul64hi(mix(k + seed), sectors) * LANES + lane;
        const u32 bit = 1u << k % BITS;
        if (WAY == OR)
            set_bit(at, bit);
        else if (WAY == LOAD_STORE)
            __stcg(at, __ldcg(at) | bit);
        else if (WAY == STORE_SECTOR || (WAY == STORE_WORD && lane == 0))
            __stcg(at, bit);
        else if (WAY == LOAD)
            sum |= __ldcg(at);
    }
    if (sum) /* stored, so that the compiler keeps the loads */
        *sink = sum;
}

struct setup {
    u32 *memory, *sink;
    u64 sectors, keys;
    u32 blocks;
};

template <int WAY> static void run(const setup &s)
{
    const float ms = median_ms<RUNS>([&](u32 k) {
        update<WAY><<<s.blocks, THREADS>>>(s.memory, s.sectors, s.keys,
                                           (u64)(WAY * RUNS + k + 1) << 40, s.sink);
    });

    printf("%s %.2f\n", names[WAY], (double)s.keys / ms / 1e6);
}

int main(int argc, char **argv)
{
    setup s = {};
    int sms;
    const u64 bytes = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;

    s.sectors = bytes / SECTOR_BYTES;
    s.keys = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (s.sectors == 0 || s.keys == 0) {
        fprintf(stderr, "usage: sector_updates BYTES KEYS\n");
        return 2;
    }
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    s.blocks = (u32)sms * SM_BLOCKS;
    CHECK(cudaMalloc((void **)&s.memory, bytes));
    CHECK(cudaMalloc((void **)&s.sink, sizeof *s.sink));
    CHECK(cudaMemset(s.memory, 0, bytes));
    run<OR>(s);
    run<LOAD_STORE>(s);
    run<STORE_WORD>(s);
    run<STORE_SECTOR>(s);
    run<LOAD>(s);
    return 0;
}
