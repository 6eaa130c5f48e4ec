/* cache_kernels.cu: the device side of PROBE_CACHE: dependent loads of one thread, each timed, by
 * the path of the probe. It is the fine-grained pointer chase of Mei and Chu 2016, section 4.2.
 *
 * L1 and shared memory are parts of one array, so a block takes no more shared memory than it
 * needs. Two blocks may therefore land on one SM, although one block for each SM is launched. The
 * first block on an SM claims it; the host checks that each SM with work was claimed.
 *
 * Cycles are kept with 16 bits: 65535 stands for all longer times.
 */
#include "abi.h"
#include "grid.cuh"

/* The constant bank. It is zero like all memory of the probes. */
extern "C" {
__constant__ uint32_t reach_constants[REACH_CONSTANT_BYTES / 4];
}

namespace cache
{
/* Waits at barrier number `*round` (from 1) of the grid. All threads of a block call it. Returns
 * false if the time is up. */
static __device__ bool meet(const struct reach_grid *g, u32 *round, u32 *flag)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        const u64 start = timer_ns();
        const u32 target = (*round + 1) * g->blocks;
        __threadfence();
        atomicAdd((u32 *)g->arrived, 1u);
        *flag = 1;
        while (*flag && read_counter((const u32 *)g->arrived) < target) {
            __nanosleep(200);
            if (read_counter((const u32 *)g->gave_up)) {
                *flag = 0;
            } else if (timer_ns() - start > g->limit_ns) {
                atomicExch((u32 *)g->gave_up, 1u);
                *flag = 0;
            }
        }
    }
    *round += 1;
    __syncthreads();
    return *flag != 0;
}

/* Loads by each path, alone and between two reads of the clock. `load` is the instruction. */
#define LOADS(name, load)                                                                          \
    struct name {                                                                                  \
        static __device__ __forceinline__ u32 plain(u64 address)                                   \
        {                                                                                          \
            u32 v;                                                                                 \
            asm volatile(load " %0, [%1];" : "=r"(v) : "l"(address) : "memory");                   \
            return v;                                                                              \
        }                                                                                          \
        static __device__ __forceinline__ u32 timed(u64 address, u32 *v)                           \
        {                                                                                          \
            u32 t0, t1, x;                                                                         \
            asm volatile("mov.u32 %0, %%clock;\n\t" load " %2, [%4];\n\t"                          \
                         "add.u32 %3, %2, %0;\n\t"                                                 \
                         "xor.b32 %3, %3, %0;\n\t"                                                 \
                         "mov.u32 %1, %%clock;"                                                    \
                         : "=&r"(t0), "=&r"(t1), "=&r"(*v), "=&r"(x)                               \
                         : "l"(address)                                                            \
                         : "memory");                                                              \
            return t1 - t0 + x;                                                                    \
        }                                                                                          \
    };
LOADS(l2_loads, "ld.global.cg.u32")
LOADS(l1_loads, "ld.global.ca.u32")
LOADS(read_only_loads, "ld.global.nc.u32")
LOADS(constant_loads, "ld.const.u32")

/* There is no load. The time is the time of reading the clock twice. */
struct no_loads {
    static __device__ __forceinline__ u32 plain(u64)
    {
        return 0;
    }
    static __device__ __forceinline__ u32 timed(u64, u32 *v)
    {
        u32 t0, t1, x;
        asm volatile("mov.u32 %0, %%clock;\n\t"
                     "add.u32 %3, %2, %0;\n\t"
                     "xor.b32 %3, %3, %0;\n\t"
                     "mov.u32 %1, %%clock;"
                     : "=&r"(t0), "=&r"(t1), "+r"(*v), "=&r"(x)
                     :
                     : "memory");
        return t1 - t0 + x;
    }
};

/* A place in a cycle of n elements. next() moves it by `step` elements, modulo n. */
struct cursor {
    u64 at, step, n;
    __device__ __forceinline__ void next()
    {
        at += step;
        if (at >= n)
            at -= n;
    }
};

template <class loads> static __device__ u32 walk(u64 base, u64 stride, u64 n, u64 step, u32 laps)
{
    u32 v = 0;
    for (u32 lap = 0; lap < laps; lap++) {
        cursor c = {0, step, n};
#pragma unroll 1
        for (u64 i = 0; i < n; i++) {
            v = loads::plain(base + c.at * stride + v);
            c.next();
        }
    }
    return v;
}

template <class loads>
static __device__ u32 time_loads(u64 base, u64 stride, u64 n, u64 step, u32 samples,
                                 uint16_t *taken)
{
    u32 v = 0;
    cursor c = {0, step, n};
#pragma unroll 1
    for (u32 k = 0; k < samples; k++) {
        const u32 cycles = loads::timed(base + c.at * stride + v, &v);
        taken[k] = (uint16_t)(cycles > 0xffff ? 0xffff : cycles);
        c.next();
    }
    return v;
}

static __device__ u32 walk_by(u32 path, u64 base, u64 stride, u64 n, u64 step, u32 laps)
{
    switch (path) {
    case REACH_PATH_L1:
        return walk<l1_loads>(base, stride, n, step, laps);
    case REACH_PATH_READ_ONLY:
        return walk<read_only_loads>(base, stride, n, step, laps);
    case REACH_PATH_CONSTANT:
        return walk<constant_loads>(base, stride, n, step, laps);
    case REACH_PATH_NONE:
        return 0;
    default:
        return walk<l2_loads>(base, stride, n, step, laps);
    }
}

static __device__ u32 time_by(u32 path, u64 base, u64 stride, u64 n, u64 step, u32 samples,
                              uint16_t *taken)
{
    switch (path) {
    case REACH_PATH_L1:
        return time_loads<l1_loads>(base, stride, n, step, samples, taken);
    case REACH_PATH_READ_ONLY:
        return time_loads<read_only_loads>(base, stride, n, step, samples, taken);
    case REACH_PATH_CONSTANT:
        return time_loads<constant_loads>(base, stride, n, step, samples, taken);
    case REACH_PATH_NONE:
        return time_loads<no_loads>(base, stride, n, step, samples, taken);
    default:
        return time_loads<l2_loads>(base, stride, n, step, samples, taken);
    }
}

/* All threads of all blocks load one word of each `step` bytes of [first, first + bytes), each word
 * by one of them. */
static __device__ u32 sweep(u64 first, u64 bytes, u64 step)
{
    const u64 threads = (u64)gridDim.x * blockDim.x;
    u32 v = 0;
    for (u64 at = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * step; at < bytes;
         at += threads * step)
        v |= l2_loads::plain(first + at);
    return v;
}

/* Runs the timed loop, so that its code is loaded before the loop counts. */
static __device__ u32 rehearse(u32 path, u64 base, uint16_t *taken)
{
    return time_by(path, base, 0, 1, 0, 8, taken);
}
} // namespace cache

extern "C" __global__ void __launch_bounds__(REACH_CACHE_THREADS, 1)
    reach_cache(struct reach_cache_args a)
{
    extern __shared__ uint16_t cycles[];
    __shared__ uint32_t flag;
    const struct reach_cache_point *points = (const struct reach_cache_point *)a.points;
    const uint32_t smid = sm_id();
    const bool constant = a.path == REACH_PATH_CONSTANT;
    uint64_t base = a.base;
    uint32_t round = 0;
    uint32_t v = 0;

    if (threadIdx.x == 0)
        flag = atomicExch((uint32_t *)a.claimed + min(smid, a.grid.sm_slots - 1), 1u);
    __syncthreads();
    const bool mine = flag == 0;
    if (constant)
        asm volatile("mov.u64 %0, reach_constants;" : "=l"(base));
    if (!cache::meet(&a.grid, &round, &flag))
        return;
    for (uint32_t p = 0; p < a.count; p++) {
        const uint64_t n = points[p].elements;
        const bool works = mine && threadIdx.x == 0 && points[p].sm == smid;
        if (works)
            v |= cache::walk_by(a.warm_path, base, a.stride_bytes, n, points[p].step, a.laps);
        if (a.sweep_bytes || a.sweep_footprint) {
            if (!cache::meet(&a.grid, &round, &flag))
                return;
            const uint64_t step =
                a.sweep_footprint == REACH_SWEEP_ELEMENTS ? a.stride_bytes : REACH_SWEEP_BYTES;
            v |= a.sweep_footprint ? cache::sweep(a.base, n * a.stride_bytes, step)
                                   : cache::sweep(a.sweep_base, a.sweep_bytes, step);
            if (!cache::meet(&a.grid, &round, &flag))
                return;
        }
        if (!works)
            continue;
        if (a.touch_bytes)
            v |= cache::walk_by(REACH_PATH_L2, a.base + REACH_TOUCH_OFFSET, a.touch_bytes,
                                (n * a.stride_bytes + a.touch_bytes - 1) / a.touch_bytes, 1, 1);
        if (a.evict_bytes)
            v |= cache::walk_by(a.path, base + a.evict_from, REACH_EVICT_STRIDE,
                                a.evict_bytes / REACH_EVICT_STRIDE, 1, 1);
        if (a.rehearse)
            v |= cache::rehearse(a.path, base + a.evict_from, cycles);
        v |= cache::time_by(a.path, base, a.stride_bytes, n, points[p].step, a.samples, cycles);
        uint32_t *values = (uint32_t *)a.values + (uint64_t)p * a.samples;
        for (uint32_t k = 0; k < a.samples; k++)
            values[k] = cycles[k];
    }
    if (v) /* never true: memory is zero */
        *(uint32_t *)a.sink = v;
}
