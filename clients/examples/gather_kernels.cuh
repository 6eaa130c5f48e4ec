/* gather_kernels.cuh: a pooled embedding gather, in windows. A bag is 64 row numbers; its result is
 * the sum of those rows. A warp processes 32 / L bags at a time: L lanes of 16 bytes each are as
 * wide as a row and own a bag. They keep the row numbers of their window and add up these rows,
 * with eight loads in flight.
 *
 * If several windows share a bag, its sum is completed in `out`: one window, its "home", stores,
 * and the others add. The windows process the bags `lag` pieces apart, so that no window waits for
 * the store. The first window to reach a bag is its home. The row numbers that it read are still in
 * the L2 when the others follow.
 *
 * gather.cu and gather.py use the same kernels.
 */
#pragma once

#include "element.h"
#include "reach.cuh"

enum {
    GATHER_BAG = 64,   /* rows of a bag */
    GATHER_PIECE = 16, /* bags that a warp draws at a time */
    GATHER_IN_FLIGHT = 8,
    GATHER_THREADS = 1024,
    GATHER_PAD = 4 /* words between two lists, so that they begin in different banks */
};
static const uint32_t GATHER_NONE = 0xffffffffu; /* a row number that is in no window */

/* The data of a launch. All pointers are device memory. */
struct gather_work {
    const float4 *rows;        /* the embedding table */
    const uint32_t *numbers;   /* [bags][64], row numbers */
    const uint16_t *in_window; /* [windows][bags]: counts of row numbers if bags are partitioned by
                                  window; NULL if `numbers` is one list for all */
    float4 *out;               /* [bags], one row each */
    uint32_t *stored; /* [pieces], 0 at the start: whether this piece of `out` may be added to */
    uint32_t pieces;  /* bags / GATHER_PIECE */
    uint32_t lag;     /* distance of two windows in pieces; windows * lag <= pieces */
    uint32_t add;     /* 1 if `out` has sums already and every window adds */
};

/* Returns the cache policy of rows, which the L2 evicts first. Rows are not read again soon, but
 * row numbers and sums are. */
static __device__ __forceinline__ uint64_t gather_policy()
{
    uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

/* Loads 16 bytes without a branch. Returns 0 if `wanted` is false. */
static __device__ __forceinline__ float4 gather_load(const float4 *at, bool wanted, uint64_t policy)
{
    float4 v;
#if __CUDA_ARCH__ >= 800
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0;"
                 " mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000;"
                 " mov.f32 %2, 0f00000000; mov.f32 %3, 0f00000000;"
                 " @p ld.global.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %6; }"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(at), "r"((uint32_t)wanted), "l"(policy)
                 : "memory");
#else
    v = wanted ? __ldcg(at) : make_float4(0, 0, 0, 0);
#endif
    return v;
}

static __device__ __forceinline__ void gather_add(float4 *at, float4 v)
{
#if __CUDA_ARCH__ >= 900
    atomicAdd(at, v);
#else
    atomicAdd(&at->x, v.x);
    atomicAdd(&at->y, v.y);
    atomicAdd(&at->z, v.z);
    atomicAdd(&at->w, v.w);
#endif
}

/* Returns the row numbers of a bag that this lane holds, with GATHER_NONE after the first
 * `count`. */
template <int L>
static __device__ __forceinline__ void gather_fetch(const uint32_t *bag, uint32_t count,
                                                    uint32_t number[GATHER_BAG / L])
{
    const uint32_t lane = threadIdx.x % L;
#pragma unroll
    for (int k = 0; k < GATHER_BAG / L; k += 2) {
        const uint32_t at = (k / 2 * L + lane) * 2;
        uint2 pair = make_uint2(GATHER_NONE, GATHER_NONE);
        if (at < count)
            pair = __ldcg((const uint2 *)(bag + at));
        number[k] = pair.x;
        number[k + 1] = at + 1 < count ? pair.y : GATHER_NONE;
    }
}

/* Writes the numbers in [first, first + length) to `list` and returns their count. */
template <int L>
static __device__ __forceinline__ uint32_t gather_keep(const uint32_t number[GATHER_BAG / L],
                                                       uint32_t first, uint32_t length,
                                                       uint32_t *list)
{
    uint32_t mine = 0, end;
#pragma unroll
    for (int k = 0; k < GATHER_BAG / L; k++)
        mine += number[k] - first < length;
    end = mine;
#pragma unroll
    for (int step = 1; step < L; step *= 2) {
        const uint32_t before = __shfl_up_sync(~0u, end, step, L);
        end += threadIdx.x % L >= step ? before : 0;
    }
    uint32_t at = end - mine;
#pragma unroll
    for (int k = 0; k < GATHER_BAG / L; k++) {
        if (number[k] - first < length)
            list[at++] = number[k];
    }
    return __shfl_sync(~0u, end, L - 1, L);
}

/* Returns this lane's 16 bytes of the sum of the `count` rows of a list. */
template <int L>
static __device__ __forceinline__ float4 gather_rows(const float4 *rows, const uint32_t *list,
                                                     uint32_t count, uint64_t policy)
{
    float4 sum = make_float4(0, 0, 0, 0);
    uint32_t most = count; /* longest list of the bags that this warp processes at a time */
#pragma unroll
    for (int step = L; step < 32; step *= 2)
        most = max(most, __shfl_xor_sync(~0u, most, step));
#pragma unroll 1
    for (uint32_t r = 0; r < most; r += GATHER_IN_FLIGHT) {
        float4 v[GATHER_IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < GATHER_IN_FLIGHT; k++) {
            const bool there = r + k < count;
            const uint64_t row = there ? list[r + k] : 0;
            v[k] = gather_load(rows + row * L + threadIdx.x % L, there, policy);
        }
#pragma unroll
        for (int k = 0; k < GATHER_IN_FLIGHT; k++) {
            sum.x += v[k].x;
            sum.y += v[k].y;
            sum.z += v[k].z;
            sum.w += v[k].w;
        }
    }
    return sum;
}

/* Returns the window that reaches a piece first. */
static __device__ __forceinline__ uint32_t gather_home(const gather_work &work, uint32_t windows,
                                                       uint32_t piece)
{
    return min(piece / work.lag, windows - 1);
}

/* Waits until a piece is stored; all lanes must call it. Usually the piece is stored already,
 * because its home processed it `lag` pieces ago. */
static __device__ __forceinline__ void gather_wait(const uint32_t *stored)
{
    while (*(volatile const uint32_t *)stored == 0)
        __nanosleep(200);
    __threadfence();
}

template <int L> static __device__ void gather(const reach_table &table, const gather_work &work)
{
    __shared__ uint32_t lists[GATHER_THREADS / L][GATHER_BAG + GATHER_PAD];
    constexpr uint32_t together = 32 / L;
    const uint32_t bag_of_warp = threadIdx.x % 32 / L, bags = work.pieces * GATHER_PIECE;
    const uint64_t policy = gather_policy();
    uint32_t *list = lists[threadIdx.x / L];
    reach_me me;
    if (!reach_enter(table, &me))
        return;
    const uint32_t first = (uint32_t)(me.first_byte / (L * 16));
    const uint32_t length = (uint32_t)(me.length_bytes / (L * 16));
    const uint16_t *counts = work.in_window ? work.in_window + (uint64_t)me.window * bags : NULL;
    const uint32_t *numbers = work.numbers + (counts ? (uint64_t)me.window * bags * GATHER_BAG : 0);
    REACH_PIECES(table, me, work.pieces, drawn)
    {
        const uint32_t piece = (drawn + me.window * work.lag) % work.pieces;
        const bool store = !work.add && gather_home(work, table.window_count, piece) == me.window;
        uint32_t bag = piece * GATHER_PIECE + bag_of_warp, number[GATHER_BAG / L];
        gather_fetch<L>(numbers + (uint64_t)bag * GATHER_BAG, counts ? counts[bag] : GATHER_BAG,
                        number);
        if (!store && !work.add)
            gather_wait(work.stored + piece);
#pragma unroll 1
        for (uint32_t done = together; done <= GATHER_PIECE; done += together) {
            const uint32_t count = gather_keep<L>(number, first, length, list);
            const uint32_t next = bag + together;
            if (done < GATHER_PIECE) /* overlaps with the rows of this bag */
                gather_fetch<L>(numbers + (uint64_t)next * GATHER_BAG,
                                counts ? counts[next] : GATHER_BAG, number);
            __syncwarp();
            const float4 sum = gather_rows<L>(work.rows, list, count, policy);
            float4 *out = work.out + (uint64_t)bag * L + threadIdx.x % L;
            if (store)
                __stcg(out, sum);
            else if (count)
                gather_add(out, sum);
            bag = next;
            __syncwarp();
        }
        if (store && table.window_count > 1 && threadIdx.x % 32 == 0) {
            __threadfence();
            *(volatile uint32_t *)(work.stored + piece) = 1;
        }
    }
}

/* There is one kernel per row size. Launch one block of GATHER_THREADS per SM. */
extern "C" __global__ void __launch_bounds__(GATHER_THREADS, 1)
    gather_128(reach_table table, gather_work work)
{
    gather<8>(table, work);
}

extern "C" __global__ void __launch_bounds__(GATHER_THREADS, 1)
    gather_256(reach_table table, gather_work work)
{
    gather<16>(table, work);
}

extern "C" __global__ void __launch_bounds__(GATHER_THREADS, 1)
    gather_512(reach_table table, gather_work work)
{
    gather<32>(table, work);
}

/* ---- data and checks ------------------------------------------------------------------------- */

/* Computes every number of the table from its row and column. */
extern "C" __global__ void gather_fill(float *rows, uint64_t numbers, uint32_t columns)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < numbers; i += step)
        rows[i] = element_cell(i / columns, (uint32_t)(i % columns));
}

/* Fills `numbers` with random row numbers below `rows`. */
extern "C" __global__ void gather_numbers(uint32_t *numbers, uint64_t count, uint64_t rows,
                                          uint32_t seed)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        numbers[i] = (uint32_t)element_random(i, seed, rows);
}

/* Computes a sum over all results that depends on the bag and column of each. */
extern "C" __global__ void gather_check(const float *out, uint64_t count, unsigned long long *sum)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    unsigned long long mine = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        mine += (unsigned long long)out[i] * (element_mix32((uint32_t)i) | 1u);
    for (int lanes = 16; lanes; lanes /= 2)
        mine += __shfl_xor_sync(~0u, mine, lanes);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, mine);
}

/* Partitions the row numbers of each bag by window. A warp takes a bag and writes the numbers of
 * each window together, [windows][bags][64], and their count, [windows][bags]. */
extern "C" __global__ void gather_partition(reach_table table, const uint32_t *numbers,
                                            uint32_t bags, uint32_t row_bytes,
                                            uint32_t *partitioned, uint16_t *in_window)
{
    const uint32_t lane = threadIdx.x % 32, below = (1u << lane) - 1;
    const uint32_t warps = gridDim.x * blockDim.x / 32;
    for (uint32_t bag = (blockIdx.x * blockDim.x + threadIdx.x) / 32; bag < bags; bag += warps) {
        const uint32_t a = __ldcs(numbers + (uint64_t)bag * GATHER_BAG + lane);
        const uint32_t b = __ldcs(numbers + (uint64_t)bag * GATHER_BAG + 32 + lane);
        for (uint32_t w = 0; w < table.window_count; w++) {
            const uint64_t first = table.windows[w].first_byte;
            const uint64_t length = table.windows[w].length_bytes;
            const bool has_a = element_inside((uint64_t)a * row_bytes, first, length);
            const bool has_b = element_inside((uint64_t)b * row_bytes, first, length);
            const uint32_t in_a = __ballot_sync(~0u, has_a), in_b = __ballot_sync(~0u, has_b);
            const uint64_t at = (uint64_t)w * bags + bag;
            uint32_t *out = partitioned + at * GATHER_BAG;
            if (has_a)
                out[__popc(in_a & below)] = a;
            if (has_b)
                out[__popc(in_a) + __popc(in_b & below)] = b;
            if (lane == 0)
                in_window[at] = (uint16_t)(__popc(in_a) + __popc(in_b));
        }
    }
}
