/* working_set_kernels.cu: the device side of PROBE_WORKING_SET_READ.
 *
 * Loads go through L1 (ld.global.ca), so that a set may stay in any cache. If only near granules
 * are read, each SM keeps a bit for each granule in shared memory. A lane draws until it has a near
 * granule: two draws on average.
 */
#include "abi.h"
#include "grid.cuh"
#include "load.cuh"
#include "reads.cuh"

/* One thread of each of the first warps times the granules of its SM's share, and takes the least
 * of several times. */
static __device__ void time_granules(const struct reach_working_set_args &a,
                                     const struct reach_working_set_sm &me, u32 *sink)
{
    enum { TIMERS = 4 };
    const u32 timer = threadIdx.x / 32;
    unsigned short *const out = (unsigned short *)a.cycles + (u64)me.side * a.granules;
    u32 v = 0;
    if (threadIdx.x % 32 != 0 || timer >= TIMERS)
        return;
    for (u32 g = me.rank * TIMERS + timer; g < a.granules; g += me.side_sms * TIMERS) {
        u32 least = 0xffff;
        for (u32 lap = 0; lap < REACH_WORKING_SET_LAPS; lap++) {
            const u32 cycles = timed_atomic(a.base + ((u64)g << a.granule_bits), &v);
            least = lap > 0 ? min(least, cycles) : least;
        }
        out[g] = (unsigned short)least;
    }
    keep(v, sink);
}

extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)
    reach_working_set_sort(struct reach_working_set_args a)
{
    extern __shared__ u32 taken[];
    __shared__ u32 go_on;
    const u32 smid = sm_id();
    const u32 me = ((const u32 *)a.grid.positions)[smid];
    u32 round = 0;
    time_granules(a, ((const struct reach_working_set_sm *)a.sms)[smid], taken);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        go_on = grid_barrier(&a.grid, &round);
    __syncthreads();
    if (!go_on)
        return;
    const volatile unsigned short *const cycles = (const volatile unsigned short *)a.cycles;
    for (u32 word = me * REACH_READ_THREADS + threadIdx.x; word <= a.granules / 32;
         word += a.grid.blocks * REACH_READ_THREADS) {
        u32 bits = 0;
        for (u32 g = word * 32; g < word * 32 + 32 && g < a.granules; g++)
            bits |= (u32)(cycles[a.granules + g] < cycles[g]) << g % 32;
        ((u32 *)a.bits)[word] = bits;
    }
}

static __device__ __forceinline__ uint4 cached_load(u64 address)
{
    uint4 v;
    asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address)
                 : "memory");
    return v;
}

/* The accesses of an SM, in units of one line or of REACH_BLOCK_LINES lines. The first unit is at
 * `base`. */
struct spread_reader {
    u32 state; /* state of the random numbers */
    u32 units;
    u32 granule_shift; /* unit >> granule_shift is the granule of a unit */
    const u32 *near;   /* a bit for each granule; NULL if all are near */
    u64 base;
};

static __device__ __forceinline__ u32 draw_unit(struct spread_reader *r)
{
    for (;;) {
        const u32 unit = __umulhi(next_random(&r->state), r->units);
        const u32 granule = unit >> r->granule_shift;
        if (!r->near || r->near[granule / 32] >> granule % 32 & 1)
            return unit;
    }
}

/* Reads the units that the 32 lanes have drawn. Each instruction reads one unit of 512 bytes or
 * four of 128, so that the instructions do not limit short reads. */
template <int UNITS>
static __device__ __forceinline__ void read_units(struct spread_reader *r, u32 *sum)
{
    const u32 lanes = 32 / UNITS; /* lanes of one unit, 16 bytes each */
    const u32 mine = draw_unit(r);
    const u32 lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll 1
    for (int first = 0; first < 32 / UNITS; first += REACH_LANE_UNROLL) {
        uint4 v[REACH_LANE_UNROLL];
#pragma unroll
        for (int j = 0; j < REACH_LANE_UNROLL; j++) {
            const u64 unit = __shfl_sync(~0u, mine, (first + j) * UNITS + lane / lanes);
            v[j] = cached_load(r->base + (unit * lanes + lane % lanes) * 16);
        }
#pragma unroll
        for (int j = 0; j < REACH_LANE_UNROLL; j++)
            *sum |= v[j].x | v[j].y | v[j].z | v[j].w;
    }
}

template <int UNITS>
static __device__ u32 spread_until(struct spread_reader *r, u64 start, u64 end, u64 stop, u32 *sum)
{
    u64 from = __shfl_sync(~0u, timer_ns(), 0);
    u32 n = 0;
    do {
        read_units<UNITS>(r, sum);
        const u64 to = __shfl_sync(~0u, timer_ns(), 0);
        n += counted(32, from, to, start, end);
        from = to;
    } while (from < stop);
    return n;
}

/* Copies the bits of the near granules of this SM to shared memory. Returns NULL if all granules
 * are near. */
static __device__ const u32 *load_near(const struct reach_working_set_args &a, u32 smid,
                                       u32 *shared)
{
    const u32 flip = ((const struct reach_working_set_sm *)a.sms)[smid].side ? 0 : ~0u;
    if (a.granules == 0)
        return nullptr;
    for (u32 word = threadIdx.x; word <= a.granules / 32; word += REACH_READ_THREADS)
        shared[word] = ((const u32 *)a.bits)[word] ^ flip;
    return shared;
}

template <int UNITS> static __device__ void spread_all(const struct reach_working_set_args &a)
{
    extern __shared__ u32 near[];
    __shared__ u32 total, go_on;
    __shared__ u64 start;
    const u32 smid = sm_id();
    const u32 me = ((const u32 *)a.grid.positions)[smid];
    const u64 parts = a.own ? a.grid.blocks : 1;
    const u64 unit_bytes = 32 / UNITS * 16;
    struct spread_reader r;
    u32 round = 0, sum = 0, n = 0;
    r.state = a.seed ^ ((smid * REACH_READ_THREADS + threadIdx.x) * 0x632be5abu);
    r.units = (u32)(a.set_bytes / unit_bytes / parts);
    r.granule_shift = a.granule_bits - (UNITS == 1 ? 9 : 7);
    r.base = a.base + (a.own ? me : 0) * (u64)r.units * unit_bytes;
    r.near = load_near(a, smid, near);
    if (threadIdx.x == 0) {
        total = 0;
        go_on = grid_barrier(&a.grid, &round);
        start = timer_ns() + a.warm_ns;
    }
    __syncthreads();
    const u64 end = start + a.run_ns;
    const u64 stop = end + a.run_ns / REACH_COOL_DIVISOR;
    if (go_on && r.units)
        n = spread_until<UNITS>(&r, start, end, stop, &sum);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&total, n);
    if (sum)
        *(u32 *)a.sink = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        const u64 now = timer_ns();
        ((u32 *)a.lines)[me] = total;
        ((u64 *)a.started)[me] = start;
        /* A delay of more than the last few accesses is due to another process. */
        ((u64 *)a.ended)[me] = now > stop + a.run_ns / 4 ? now : end;
    }
}

extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)
    reach_working_set_lines(struct reach_working_set_args a)
{
    spread_all<4>(a);
}

extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)
    reach_working_set_blocks(struct reach_working_set_args a)
{
    spread_all<1>(a);
}
