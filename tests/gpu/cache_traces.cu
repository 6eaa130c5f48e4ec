/* cache_traces.cu: checks the statements of docs/caches.md about L1 and L2 with other walks than
 * reachd. The walks load line after line in whole laps. The program uses the CUDA runtime and plain
 * memory. It prints one line per number.
 *
 * cache_traces l1 KIB LAPS FIRST LAST STEP STRIDE
 *
 *     A block that takes KIB of shared memory walks FIRST, FIRST + STEP, .. LAST lines, STRIDE
 *     lines apart, LAPS times: "l1 LINES STRIDE SM misses LAP:COUNT .. trace HEX". The trace has a
 *     bit for each line, which is set if the line missed in the last lap. The first line has the
 *     lowest bit of the first digit.
 *
 * cache_traces divisions
 *
 *     "division HINT BLOCK THREADS LINES": the number of lines that stay in L1. The kernel prefers
 *     HINT KiB of shared memory for an SM (0: no preference) and each of its blocks takes BLOCK
 *     KiB. LINES shows how the driver divided the array of the SM into L1 and shared memory.
 *
 * cache_traces fetch
 *
 *     "fetch LIMIT .. TRACE": a walk in order over sectors of 32 bytes that are not in the L2. There
 *     is one line for each fetch granularity of the L2. TRACE has H for a hit and M for a miss of
 *     each of the first 64 sectors.
 *
 * cache_traces line
 *
 *     "line STRIDE MIB MISSES SAMPLES": all SMs load one word of each STRIDE bytes of MIB. MISSES
 *     of SAMPLES of these words are then not in the L2.
 *
 * cache_traces age
 *
 *     "age MIB HITS SAMPLES": all SMs load 256 MiB in order. HITS of SAMPLES of the lines that were
 *     loaded MIB before the end are still in the L2. "again MIB HITS SAMPLES": 8 MiB are loaded
 *     again after each other 8 MiB, until MIB are loaded. HITS of SAMPLES of the repeated lines are
 *     still in the L2. LRU keeps them, FIFO does not.
 *
 * cache_traces first GIB
 *
 *     "first STRIDE CYCLES ..": the cycles of the first accesses to untouched memory of GIB, at
 *     strides from 2 MiB to 1 GiB. Each stride has a part of the memory.
 */
#include "common.cuh"
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

typedef uint32_t u32;
typedef uint64_t u64;

enum {
    LINE = 128,
    MOST_LINES = 4096,
    MOST_LAPS = 1024,
    SM_SLOTS = 512,
    SAMPLES = 2048,
    L1_MISS = 150
};
static const u64 MIB = 1 << 20;

/* Returns the cycles of a load; the second clock is predicated on the value, which is 0. */
#define TIMED(name, load)                                                                          \
    static __device__ __forceinline__ u32 name(u64 address, u32 *v)                                \
    {                                                                                              \
        u32 t0, t1;                                                                                \
        asm volatile("{\n\t"                                                                       \
                     ".reg .pred p;\n\t"                                                           \
                     "mov.u32 %0, %%clock;\n\t" load " %2, [%3];\n\t"                              \
                     "setp.eq.u32 p, %2, 0;\n\t"                                                   \
                     "mov.u32 %1, 0;\n\t"                                                          \
                     "@p mov.u32 %1, %%clock;\n\t"                                                 \
                     "}"                                                                           \
                     : "=&r"(t0), "=&r"(t1), "=&r"(*v)                                             \
                     : "l"(address)                                                                \
                     : "memory");                                                                  \
        return t1 - t0;                                                                            \
    }
TIMED(timed_l1, "ld.global.ca.u32")
TIMED(timed_l2, "ld.global.cg.u32")

/* ---- L1 ---- */

struct l1_answer {
    u32 sm;
    u32 misses[MOST_LAPS];
    u32 trace[MOST_LINES / 32];
};

__global__ void l1_laps(u64 base, u32 first, u32 step, u32 last, u64 stride, u32 laps,
                        l1_answer *out)
{
    extern __shared__ u32 shared[];
    u32 *const misses = shared;
    u32 *const trace = shared + laps;
    const u32 n = first + step * blockIdx.x;
    u32 v = 0;
    if (threadIdx.x > 0 || n > last)
        return;
    for (u32 i = 0; i < MOST_LINES / 32; i++)
        trace[i] = 0;
#pragma unroll 1
    for (u32 lap = 0; lap < laps; lap++) {
        u32 slow = 0;
#pragma unroll 1
        for (u32 i = 0; i < n; i++) {
            const u32 cycles = timed_l1(base + i * stride + v, &v);
            slow += cycles > L1_MISS;
            if (lap == laps - 1 && cycles > L1_MISS)
                trace[i / 32] |= 1u << (i % 32);
        }
        misses[lap] = slow;
    }
    l1_answer *const a = out + blockIdx.x;
    for (u32 i = 0; i < laps; i++)
        a->misses[i] = misses[i] + v;
    for (u32 i = 0; i < MOST_LINES / 32; i++)
        a->trace[i] = trace[i];
    a->sm = sm_id();
}

static void run_l1(u32 kib, u32 laps, u32 first, u32 last, u32 step, u32 stride)
{
    static const u32 marks[] = {1,  2,  3,  4,   6,   8,   12,  16,  24,  32,
                                48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
    cudaDeviceProp prop;
    u64 base;
    l1_answer *out;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    const u32 sms = (u32)prop.multiProcessorCount;
    const u64 bytes = ((u64)last * stride * LINE + 2 * MIB) / (2 * MIB) * 2 * MIB;
    CHECK(cudaMalloc((void **)&base, bytes + 2 * MIB));
    CHECK(cudaMemset((void *)base, 0, bytes));
    CHECK(cudaMallocManaged(&out, sms * sizeof *out));
    const u32 most = 1024 * (kib > 1 ? kib - 1 : 1);
    CHECK(cudaFuncSetAttribute(l1_laps, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most));
    CHECK(cudaFuncSetAttribute(l1_laps, cudaFuncAttributePreferredSharedMemoryCarveout,
                               (int)(100 * kib * 1024 / prop.sharedMemPerMultiprocessor)));
    const u64 at = (base + 2 * MIB - 1) / (2 * MIB) * 2 * MIB;
    for (u32 n = first; n <= last; n += step * sms) {
        l1_laps<<<sms, 1, most>>>(at, n, step, last, (u64)stride * LINE, laps, out);
        CHECK(cudaDeviceSynchronize());
        for (u32 b = 0; b < sms && n + b * step <= last; b++) {
            printf("l1 %u %u %u misses", n + b * step, stride, out[b].sm);
            for (const u32 mark : marks)
                if (mark <= laps)
                    printf(" %u:%u", mark, out[b].misses[mark - 1]);
            printf(" trace ");
            for (u32 i = 0; i < (n + b * step + 31) / 32; i++)
                for (u32 k = 0; k < 8; k++)
                    printf("%x", out[b].trace[i] >> 4 * k & 15);
            printf("\n");
        }
    }
    CHECK(cudaFree((void *)base));
    CHECK(cudaFree(out));
}

/* Prints how many lines stay in L1, in steps of a few lines: each SM has its own lap. */
static u32 kept_lines(u64 base, u32 sms, u32 threads, u32 dynamic_bytes, l1_answer *out)
{
    const u32 laps = 4;
    const u32 step = 2048 / sms + 1;
    u32 kept = 0;
    l1_laps<<<sms, threads, dynamic_bytes>>>(base, step, step, MOST_LINES, LINE, laps, out);
    CHECK(cudaDeviceSynchronize());
    for (u32 b = 0; b < sms && out[b].misses[laps - 1] == 0; b++)
        kept = step * (b + 1);
    return kept;
}

/* Runs kernels with several preferences for shared memory. Their blocks take little of the shared
 * memory or all of it, and have one warp or half of the threads of an SM. */
static void run_divisions()
{
    static const u32 hints[] = {0, 8, 16, 32, 64, 100, 132, 164, 196};
    static const u32 threads[] = {32, 1024};
    const u32 least_kib = 2;
    cudaDeviceProp prop;
    u64 base;
    l1_answer *out;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    CHECK(cudaMalloc((void **)&base, 2 * MIB));
    CHECK(cudaMemset((void *)base, 0, 2 * MIB));
    CHECK(cudaMallocManaged(&out, prop.multiProcessorCount * sizeof *out));
    for (const u32 hint : hints) {
        const int percent = hint == 0 ? cudaSharedmemCarveoutDefault
                                      : (int)(100 * hint * 1024 / prop.sharedMemPerMultiprocessor);
        CHECK(cudaFuncSetAttribute(l1_laps, cudaFuncAttributePreferredSharedMemoryCarveout,
                                   percent));
        for (const u32 block : {least_kib, hint > least_kib ? hint : 17u}) {
            const u32 bytes = 1024 * (block - 1);
            CHECK(cudaFuncSetAttribute(l1_laps, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       (int)bytes));
            for (const u32 t : threads)
                printf("division %u %u %u %u\n", hint, block, t,
                       kept_lines(base, (u32)prop.multiProcessorCount, t, bytes, out));
        }
    }
    CHECK(cudaFree(out));
    CHECK(cudaFree((void *)base));
}

/* ---- the L2 ---- */

__global__ void sweep(u64 base, u64 from, u64 to, u64 stride, u32 *sink)
{
    const u64 threads = (u64)gridDim.x * blockDim.x;
    u32 all = 0;
    for (u64 at = from + ((u64)blockIdx.x * blockDim.x + threadIdx.x) * stride; at < to;
         at += threads * stride) {
        u32 v;
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(base + at) : "memory");
        all |= v;
    }
    if (all)
        *sink = all;
}

/* Makes `samples` loads, each `step` elements of `stride` bytes after the last, modulo n. */
__global__ void time_l2(u64 base, u64 stride, u64 n, u64 step, u32 samples, bool touch, u32 *cycles,
                        u32 *sink)
{
    __shared__ u32 kept[8192];
    u32 v = 0;
    u64 at = 0;
    for (u64 page = 0; touch && page < n * stride; page += 2 * MIB) /* the translations */
        v |= timed_l2(base + page + 96, &v) >> 31;
    v = 0;
#pragma unroll 1
    for (u32 k = 0; k < samples; k++) {
        kept[k] = timed_l2(base + at * stride + v, &v);
        at = (at + step) % n;
    }
    for (u32 k = 0; k < samples; k++)
        cycles[k] = kept[k];
    if (v)
        *sink = v;
}

struct l2 {
    u64 base;
    u32 *cycles, *sink;
    u32 sms;
    u32 threshold; /* threshold between a hit of the far side and memory */
};

static u64 scatter(u64 n)
{
    u64 step = n - (u64)(n * 0.6180339887498949);
    for (; step > 1; step--) {
        u64 a = n, b = step;
        while (b) {
            const u64 rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            break;
    }
    return step;
}

static void load(const l2 *c, u64 from, u64 to, u64 stride)
{
    sweep<<<c->sms, 1024>>>(c->base, from, to, stride, c->sink);
    CHECK(cudaDeviceSynchronize());
}

static const u32 *timed(const l2 *c, u64 from, u64 stride, u64 n, u64 step, u32 samples)
{
    time_l2<<<1, 1>>>(c->base + from, stride, n, step, samples, true, c->cycles, c->sink);
    CHECK(cudaDeviceSynchronize());
    return c->cycles;
}

static l2 open_l2(void)
{
    l2 c;
    cudaDeviceProp prop;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    c.sms = (u32)prop.multiProcessorCount;
    CHECK(cudaMalloc((void **)&c.base, 1024 * MIB));
    CHECK(cudaMemset((void *)c.base, 0, 1024 * MIB));
    CHECK(cudaMallocManaged(&c.cycles, 8192 * sizeof(u32)));
    CHECK(cudaMalloc(&c.sink, sizeof(u32)));
    load(&c, 0, 8 * MIB, LINE);
    load(&c, 0, 8 * MIB, LINE);
    const u64 n = 8 * MIB / LINE;
    (void)timed(&c, 0, LINE, n, scatter(n), SAMPLES);
    const u32 *loads = timed(&c, 0, LINE, n, scatter(n), SAMPLES);
    std::vector<u32> hits(loads, loads + SAMPLES);
    load(&c, 512 * MIB, 1024 * MIB, 32);
    loads = timed(&c, 0, LINE, n, scatter(n), SAMPLES);
    std::vector<u32> cold(loads, loads + SAMPLES);
    std::sort(hits.begin(), hits.end());
    std::sort(cold.begin(), cold.end());
    c.threshold = cold[SAMPLES / 100] - (cold[SAMPLES / 100] - hits[SAMPLES / 2]) / 16;
    printf("l2 hit %u slow %u memory %u quick %u threshold %u\n", hits[SAMPLES / 2],
           hits[SAMPLES * 99 / 100], cold[SAMPLES / 2], cold[SAMPLES / 100], c.threshold);
    return c;
}

static u32 misses(const l2 *c, u32 samples)
{
    return (u32)std::count_if(c->cycles, c->cycles + samples,
                              [c](u32 v) { return v > c->threshold; });
}

static void run_fetch(void)
{
    const l2 c = open_l2();
    for (const size_t limit : {32, 64, 128}) {
        size_t got = 0;
        const int set = (int)cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, limit);
        CHECK(cudaDeviceGetLimit(&got, cudaLimitMaxL2FetchGranularity));
        load(&c, 512 * MIB, 1024 * MIB, 32);
        (void)timed(&c, 0, 32, 4096, 1, 4096);
        printf("fetch %zu set %d is %zu misses %u of 4096 ", limit, set, got, misses(&c, 4096));
        for (u32 k = 0; k < 64; k++)
            putchar(c.cycles[k] > c.threshold ? 'M' : 'H');
        printf("\n");
    }
}

static void run_line(void)
{
    const l2 c = open_l2();
    for (const u64 stride : {32, 64, 128, 256, 512, 1024})
        for (const u64 mib : {8, 16, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512}) {
            const u64 n = mib * MIB / stride;
            load(&c, 512 * MIB, 1024 * MIB, 32);
            load(&c, 0, mib * MIB, stride);
            load(&c, 0, mib * MIB, stride);
            (void)timed(&c, 0, stride, n, scatter(n), SAMPLES);
            printf("line %u %u %u %u\n", (u32)stride, (u32)mib, misses(&c, SAMPLES), SAMPLES);
        }
}

static void run_age(void)
{
    const l2 c = open_l2();
    enum { STEP = 4, LAST = 256, RUNS = 4 };
    const u64 n = LAST * MIB / LINE;
    u32 hits[LAST / STEP] = {0}, all[LAST / STEP] = {0};
    for (u32 run = 0; run < RUNS; run++) {
        load(&c, 0, LAST * MIB, 32);
        const u64 step = scatter(n);
        const u32 *const cycles = timed(&c, 0, LINE, n, step, 8192);
        u64 at = 0;
        for (u32 k = 0; k < 8192; k++, at = (at + step) % n) {
            const u64 age = (LAST * MIB - 1 - at * LINE) / (STEP * MIB);
            all[age]++;
            hits[age] += cycles[k] <= c.threshold;
        }
    }
    for (u32 k = 0; k < LAST / STEP; k++)
        printf("age %u %u %u\n", k * STEP, hits[k], all[k]);
    for (u64 last = 16; last <= 128; last += 8) {
        load(&c, 512 * MIB, 1024 * MIB, 32);
        for (u64 mib = 8; mib < last; mib += 8) {
            load(&c, 0, 8 * MIB, 32);
            load(&c, mib * MIB, (mib + 8) * MIB, 32);
        }
        (void)timed(&c, 0, LINE, 8 * MIB / LINE, scatter(8 * MIB / LINE), SAMPLES);
        printf("again %u %u %u\n", (u32)last, SAMPLES - misses(&c, SAMPLES), SAMPLES);
    }
}

/* ---- first accesses ---- */

static void run_first(u64 gib)
{
    l2 c = {};
    size_t spare = 0, all = 0;
    cudaDeviceProp prop;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    c.sms = (u32)prop.multiProcessorCount;
    CHECK(cudaMalloc((void **)&c.base, gib << 30));
    CHECK(cudaMallocManaged(&c.cycles, 8192 * sizeof(u32)));
    CHECK(cudaMalloc(&c.sink, sizeof(u32)));
    CHECK(cudaMemset((void *)c.base, 0, gib << 30));
    CHECK(cudaMemGetInfo(&spare, &all));
    spare = (spare - (1u << 30)) / MIB * MIB;
    l2 other = c;
    CHECK(cudaMalloc((void **)&other.base, spare));
    printf("first beside %u MiB\n", (u32)(spare / MIB));
    for (u32 run = 0; run < 3; run++) {
        u64 from = 0;
        for (const u64 stride :
             {2 * MIB, 16 * MIB, 32 * MIB, 128 * MIB, 256 * MIB, 512 * MIB, 1024 * MIB}) {
            const u32 n = (u32)std::min<u64>(64, (gib << 30) / 8 / stride);
            load(&other, 0, spare, 2 * MIB); /* loads the translations of other memory */
            time_l2<<<1, 1>>>(c.base + from, stride + LINE, n, 1, n, false, c.cycles, c.sink);
            CHECK(cudaDeviceSynchronize());
            printf("first %u", (u32)(stride / MIB));
            for (u32 k = 0; k < n; k++)
                printf(" %u", c.cycles[k]);
            printf("\n");
            from += (gib << 30) / 8;
        }
    }
}

int main(int argc, char **argv)
{
    u32 v[6] = {0};
    for (int i = 2; i < argc && i < 8; i++)
        v[i - 2] = (u32)strtoul(argv[i], NULL, 10);
    if (argc == 8 && strcmp(argv[1], "l1") == 0 && v[1] >= 1 && v[1] <= MOST_LAPS &&
        v[3] <= MOST_LINES && v[4] >= 1)
        run_l1(v[0], v[1], v[2], v[3], v[4], v[5]);
    else if (argc == 2 && strcmp(argv[1], "divisions") == 0)
        run_divisions();
    else if (argc == 2 && strcmp(argv[1], "fetch") == 0)
        run_fetch();
    else if (argc == 2 && strcmp(argv[1], "line") == 0)
        run_line();
    else if (argc == 2 && strcmp(argv[1], "age") == 0)
        run_age();
    else if (argc == 3 && strcmp(argv[1], "first") == 0)
        run_first(v[0]);
    else
        return fprintf(stderr, "usage: see the head of cache_traces.cu\n"), 2;
    return 0;
}
