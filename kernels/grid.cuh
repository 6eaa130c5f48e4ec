/* grid.cuh: the beginning of every kernel: the id of this SM, the time, a barrier over all blocks.
 */
#ifndef REACH_KERNELS_GRID_CUH
#define REACH_KERNELS_GRID_CUH

#include "abi.h"

typedef uint32_t u32;
typedef uint64_t u64;

static __device__ __forceinline__ u32 sm_id()
{
    u32 id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

static __device__ __forceinline__ u64 timer_ns()
{
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

/* Uses a value that is always 0, so that the compiler keeps the loads that produced it. */
static __device__ __forceinline__ void keep(u32 v, u32 *shared)
{
    if (v)
        *shared = v;
}

static __device__ __forceinline__ u32 read_counter(const u32 *p)
{
    u32 v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

/* One thread's view of %clock. It finds a pause between two reads that no work explains. */
struct watch {
    u32 last;
    bool interrupted;
};

static __device__ __forceinline__ u32 clock_cycles()
{
    u32 t;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(t) : : "memory");
    return t;
}

static __device__ __forceinline__ void watch_start(struct watch *w)
{
    w->last = clock_cycles();
    w->interrupted = false;
}

static __device__ __forceinline__ void watch_look(struct watch *w)
{
    const u32 now = clock_cycles();
    w->interrupted |= now - w->last > REACH_AWAY_CYCLES;
    w->last = now;
}

static __device__ __forceinline__ u32 *away_word(const struct reach_grid *g, enum reach_away word)
{
    return (u32 *)g->away + word;
}

/* Waits until *counter >= target. Returns false if the time is up or another block gave up. */
static __device__ bool wait_for(const struct reach_grid *g, u32 target, u32 sleep_ns,
                                struct watch *w)
{
    const u32 *counter = (const u32 *)g->arrived;
    u32 *gave_up = (u32 *)g->gave_up;
    const u64 start = timer_ns();
    while (read_counter(counter) < target) {
        watch_look(w);
        if (sleep_ns)
            __nanosleep(sleep_ns);
        if (read_counter(gave_up))
            return false;
        if (timer_ns() - start > g->limit_ns) {
            atomicExch(gave_up, 1u);
            return false;
        }
    }
    watch_look(w);
    return true;
}

/* Waits at barrier number `*round` (from 1) over one thread of each block. Returns false if the
 * time is up. */
static __device__ bool watched_barrier(const struct reach_grid *g, u32 *round, struct watch *w)
{
    __threadfence();
    atomicAdd((u32 *)g->arrived, 1u);
    *round += 1;
    return wait_for(g, *round * g->blocks, 0, w);
}

static __device__ bool grid_barrier(const struct reach_grid *g, u32 *round)
{
    struct watch w;
    watch_start(&w);
    return watched_barrier(g, round, &w);
}

#endif
