/* read_kernels.cu: the device side of READ and CONCURRENCY (daemon/gpu/probe.h): every SM reads,
 * writes or adds at random in its window for a set time, and counts its accesses. There is one
 * block per SM, by shared memory. */
#include "abi.h"
#include "grid.cuh"
#include "load.cuh"
#include "reads.cuh"

enum { FAR_BYTES = REACH_FAR_UNROLL * 128 /* bytes of far memory that a warp accesses at a time */ };

/* The state from which one lane draws line numbers. All lanes draw at once, then the warp reads the
 * 32 lines one after the other. If the warp drew together, drawing would cost ten times as much. */
struct reader {
    u32 state; /* state of the random numbers */
    u32 lines; /* lines of the window; line numbers count from its start */
    u32 random_share;
    u32 period_mask; /* lines of a period minus one; 0 if there are no copies */
    u32 period_bits;
    u32 own_first, own_lines, own_next; /* the warp's part of the period, and this lane's place */
    u32 phase;                          /* place of the window's start in the period */
    u32 copies;                         /* copies that the window lies in */
    u32 drawn, turn; /* far memory: the row that this lane has drawn, rows accessed by the warp */
    u32 row_bits;    /* far memory: log2 of the bytes of a row */
    u64 output;      /* far memory: this lane's place in the output */
    u32 copied, copy_step, copy_mask; /* far memory: offset of the next rows in the output, bytes
                                         from rows to rows of this warp, bytes of the output - 1 */
    u32 gap;         /* lines between pieces */
};

/* Permutes the numbers up to `mask`, which is 2^bits - 1: every step can be undone. */
static __device__ __forceinline__ u32 scatter(u32 x, u32 mask, u32 bits)
{
    x = (x * 0x9e3779b1u) & mask;
    x ^= x >> (bits / 2 + 1);
    x = (x * 0x85ebca6bu) & mask;
    return x ^ (x >> (bits / 2 + 1));
}

static __device__ __forceinline__ u32 next_line(struct reader *r)
{
    if (r->period_mask && next_random(&r->state) >= r->random_share) {
        const u32 within = scatter(r->own_first + r->own_next, r->period_mask, r->period_bits);
        const u64 copy = __umulhi(next_random(&r->state), r->copies);
        const u64 line = (copy << r->period_bits) + within - r->phase;
        r->own_next += 32;
        if (r->own_next >= r->own_lines)
            r->own_next -= r->own_lines;
        /* Copy 0 begins before the window, by the phase, and the last copy may end behind the
         * window. A line outside of the window is drawn again from the whole window, so every line
         * has the same probability. */
        if (line < r->lines)
            return (u32)line;
    }
    return __umulhi(next_random(&r->state), r->lines);
}

/* Makes a reader. `first_line` and `lines` of the window, and the lines of a period, are in units
 * of one draw: lines, blocks of lines or rows. */
static __device__ struct reader reader_of(const struct reach_read_args *a, u32 rank, u64 first_line,
                                          u64 lines, u64 period_lines, u32 smid)
{
    const u32 warp = threadIdx.x / 32;
    struct reader r = {0};
    r.lines = lines > 0xffffffffu ? 0xffffffffu : (u32)lines;
    r.gap = a->gap_lines;
    r.row_bits = 31 - __clz(a->row_bytes);
    r.output = a->output + threadIdx.x % 32 * 4;
    r.copied = (rank * (REACH_READ_THREADS / 32) + warp) * FAR_BYTES;
    r.copy_step = a->readers * (REACH_READ_THREADS / 32) * FAR_BYTES;
    r.copy_mask = a->output_bytes - 1;
    r.state = a->seed ^ ((smid * REACH_READ_THREADS + threadIdx.x) * 0x632be5abu);
    if (period_lines && lines > period_lines) {
        r.random_share = a->random_share;
        r.period_mask = (u32)period_lines - 1;
        r.period_bits = __popc(r.period_mask);
        r.own_lines = (u32)period_lines / (a->readers * (REACH_READ_THREADS / 32));
        r.own_first = (rank * (REACH_READ_THREADS / 32) + warp) * r.own_lines;
        r.own_next = threadIdx.x % 32;
        r.phase = (u32)first_line & r.period_mask;
        r.copies = (u32)(((u64)r.phase + r.lines - 1) >> r.period_bits) + 1;
    }
    return r;
}

static __device__ u32 read_until(struct reader *r, u64 window, u64 end_ns, u32 *sum)
{
    u32 n = 0;
    do {
        const u32 mine = next_line(r);
#pragma unroll 1
        for (int first = 0; first < 32; first += REACH_READ_UNROLL) {
            u32 v[REACH_READ_UNROLL];
#pragma unroll
            for (int j = 0; j < REACH_READ_UNROLL; j++)
                v[j] = load_line(window + (u64)__shfl_sync(~0u, mine, first + j) * 128);
#pragma unroll
            for (int j = 0; j < REACH_READ_UNROLL; j++)
                *sum |= v[j];
        }
        n += 32;
    } while (timer_ns() < end_ns);
    return n;
}

/* The lines of one warp of reach_read_concurrent, which are its own part of the window of its SM.
 * The order is so scattered that no line repeats while it is in L2. All lanes compute the same
 * line, because a shuffle between two loads would delay the second load. */
struct walker {
    u32 first, count, next;
    u32 mask, bits; /* the window's lines, rounded down to a power of two */
};

static __device__ __forceinline__ u32 next_of_walk(struct walker *w)
{
    const u32 line = scatter(w->first + w->next, w->mask, w->bits);
    w->next = w->next + 1 == w->count ? 0 : w->next + 1;
    return line * 128;
}

template <int CONCURRENCY>
static __device__ u32 walk_until(struct walker *w, u64 window, u64 end_ns, u32 *sum)
{
    u32 n = 0;
    do {
#pragma unroll 1
        for (int first = 0; first < 32; first += CONCURRENCY) {
            u32 v[CONCURRENCY];
#pragma unroll
            for (int j = 0; j < CONCURRENCY; j++)
                v[j] = load_line(window + next_of_walk(w));
#pragma unroll
            for (int j = 0; j < CONCURRENCY; j++)
                *sum |= v[j];
        }
        n += 32;
    } while (timer_ns() < end_ns);
    return n;
}

/* Reads until the run begins, and then until it ends. Returns the number of lines of the run. */
template <int CONCURRENCY>
static __device__ u32 walk_run(struct walker *w, u64 window, u64 start, u64 run_ns, u32 *sum)
{
    walk_until<CONCURRENCY>(w, window, start, sum);
    return walk_until<CONCURRENCY>(w, window, start + run_ns, sum);
}

static __device__ u32 walk_concurrent(const struct reach_read_args *a, u64 window, u64 lines,
                                      u64 start, u32 *sum)
{
    struct walker w = {0};
    w.bits = 31 - __clz((u32)lines);
    w.mask = (1u << w.bits) - 1;
    w.count = max((w.mask + 1) / a->warps, 1u);
    w.first = threadIdx.x / 32 * w.count;
    switch (a->in_flight) {
    case 1:
        return walk_run<1>(&w, window, start, a->run_ns, sum);
    case 2:
        return walk_run<2>(&w, window, start, a->run_ns, sum);
    case 4:
        return walk_run<4>(&w, window, start, a->run_ns, sum);
    case 8:
        return walk_run<8>(&w, window, start, a->run_ns, sum);
    case 16:
        return walk_run<16>(&w, window, start, a->run_ns, sum);
    default:
        return walk_run<32>(&w, window, start, a->run_ns, sum);
    }
}

/* If IN_FLIGHT is set, the arguments have the loads in flight. Otherwise the lines are random. */
template <bool IN_FLIGHT> static __device__ void read_lines(const struct reach_read_args &a)
{
    __shared__ u32 total, go_on;
    __shared__ u64 start;
    const u32 smid = sm_id();
    const u32 me = ((const u32 *)a.grid.positions)[smid];
    const struct reach_window w = ((const struct reach_window *)a.windows)[smid];
    u32 round = 0, sum = 0, n = 0;
    if (threadIdx.x == 0) {
        total = 0;
        go_on = grid_barrier(&a.grid, &round);
        start = timer_ns() + a.warm_ns;
    }
    __syncthreads();
    if (go_on && w.lines) {
        const u64 window = a.base + w.first_line * 128 + (threadIdx.x % 32) * 4;
        if (IN_FLIGHT) {
            n = walk_concurrent(&a, window, w.lines, start, &sum);
        } else {
            struct reader r = reader_of(&a, w.rank, w.first_line, w.lines, a.period_lines, smid);
            read_until(&r, window, start, &sum);
            n = read_until(&r, window, start + a.run_ns, &sum);
        }
    }
    if (threadIdx.x % 32 == 0)
        atomicAdd(&total, n);
    if (sum)
        *(u32 *)a.sink = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        ((u32 *)a.lines)[me] = total;
        ((u64 *)a.started)[me] = start;
        ((u64 *)a.ended)[me] = timer_ns();
    }
}

/* ---- other kinds of access ---- */

/* A kind of access defines the bytes of one draw, the accesses that a warp makes between two reads of
 * the time, and these accesses. `base` is the start of the window. */

/* Returns a sector that this lane draws. The line comes from the high bits of the mixed number. The
 * state before mixing is an even sequence, so its highest bits choose evenly among the four
 * sectors. */
static __device__ __forceinline__ u64 next_sector(struct reader *r, u64 base)
{
    const u64 line = next_line(r);
    return base + line * 128 + (r->state >> 30) * 32;
}

static __device__ __forceinline__ u32 atomic_add(u64 address, u32 value)
{
    u32 before;
    asm volatile("atom.global.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(address), "r"(value)
                 : "memory");
    return before;
}

static __device__ __forceinline__ void store(u64 address, u32 value)
{
    asm volatile("st.global.cg.u32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
}

enum far { FAR_READ, FAR_ATOMIC, FAR_WRITE, FAR_COPY };

/* Accesses rows of far memory, only some of the rows that the lanes have drawn. Over a slow link,
 * even these rows take all SMs a millisecond. A warp accesses REACH_FAR_UNROLL lines: several rows,
 * if a row is shorter. */
template <enum far ACCESS> struct far_rows {
    static __device__ __forceinline__ u32 unit(const struct reach_read_args &a)
    {
        return a.row_bytes;
    }
    static __device__ __forceinline__ u32 made(const struct reach_read_args &a)
    {
        return FAR_BYTES / a.row_bytes;
    }
    static __device__ __forceinline__ void go(struct reader *r, u64 base, u32 zero, u32 *sum)
    {
        u32 v[REACH_FAR_UNROLL] = {0};
        if (r->turn % 32 == 0)
            r->drawn = next_line(r);
#pragma unroll
        for (int j = 0; j < REACH_FAR_UNROLL; j++) {
            const u32 at = j * 128 + (threadIdx.x % 32) * 4;
            const u64 row = __shfl_sync(~0u, r->drawn, r->turn + (at >> r->row_bits));
            const u64 byte = (row << r->row_bits) + (at & ((1u << r->row_bits) - 1));
            const u64 place = base + byte + byte / (REACH_PIECE_LINES * 128) * r->gap * 128;
            if (ACCESS == FAR_READ || ACCESS == FAR_COPY)
                v[j] = load_line(place);
            else if (ACCESS == FAR_ATOMIC)
                v[j] = atomic_add(place, zero);
            else
                store(place, zero);
        }
        r->turn += FAR_BYTES >> r->row_bits;
#pragma unroll
        for (int j = 0; j < REACH_FAR_UNROLL; j++) {
            *sum |= v[j];
            if (ACCESS == FAR_COPY)
                store(r->output + ((r->copied + j * 128) & r->copy_mask), v[j]);
        }
        r->copied += r->copy_step;
    }
};

/* The kinds with a fixed length. */
template <u32 UNIT, u32 MADE> struct accesses {
    static __device__ __forceinline__ u32 unit(const struct reach_read_args &)
    {
        return UNIT;
    }
    static __device__ __forceinline__ u32 made(const struct reach_read_args &)
    {
        return MADE;
    }
};

struct read_sectors : accesses<128, 32 * REACH_LANE_UNROLL> {
    static __device__ __forceinline__ void go(struct reader *r, u64 base, u32 zero, u32 *sum)
    {
        u32 v[REACH_LANE_UNROLL];
        (void)zero;
#pragma unroll
        for (int j = 0; j < REACH_LANE_UNROLL; j++)
            v[j] = load_line(next_sector(r, base));
#pragma unroll
        for (int j = 0; j < REACH_LANE_UNROLL; j++)
            *sum |= v[j];
    }
};

/* Reads the 32 blocks that the lanes have drawn, one after the other. */
struct read_blocks : accesses<REACH_BLOCK_LINES * 128, 32> {
    static __device__ __forceinline__ void go(struct reader *r, u64 base, u32 zero, u32 *sum)
    {
        const u32 mine = next_line(r);
        (void)zero;
#pragma unroll 1
        for (int first = 0; first < 32; first += REACH_LANE_UNROLL) {
            uint4 v[REACH_LANE_UNROLL];
#pragma unroll
            for (int j = 0; j < REACH_LANE_UNROLL; j++) {
                const u64 block = base + (u64)__shfl_sync(~0u, mine, first + j) * (REACH_BLOCK_LINES * 128);
                asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v[j].x), "=r"(v[j].y), "=r"(v[j].z), "=r"(v[j].w)
                             : "l"(block + (threadIdx.x % 32) * 16)
                             : "memory");
            }
#pragma unroll
            for (int j = 0; j < REACH_LANE_UNROLL; j++)
                *sum |= v[j].x | v[j].y | v[j].z | v[j].w;
        }
    }
};

/* The result is used because an add without a use of its result does not wait. */
struct atomics : accesses<128, 32 * REACH_LANE_UNROLL> {
    static __device__ __forceinline__ void go(struct reader *r, u64 base, u32 zero, u32 *sum)
    {
        u64 v[REACH_LANE_UNROLL];
#pragma unroll
        for (int j = 0; j < REACH_LANE_UNROLL; j++)
            asm volatile("atom.global.add.u64 %0, [%1], %2;"
                         : "=l"(v[j])
                         : "l"(next_sector(r, base)), "l"((u64)zero)
                         : "memory");
#pragma unroll
        for (int j = 0; j < REACH_LANE_UNROLL; j++)
            *sum |= (u32)v[j] | (u32)(v[j] >> 32);
    }
};

struct writes : accesses<128, 32 * REACH_LANE_UNROLL> {
    static __device__ __forceinline__ void go(struct reader *r, u64 base, u32 zero, u32 *sum)
    {
        (void)sum;
#pragma unroll
        for (int j = 0; j < REACH_LANE_UNROLL; j++)
            store(next_sector(r, base), zero);
    }
};

template <class Kind>
static __device__ u32 access_until(const struct reach_read_args &a, struct reader *r, u64 base,
                                   u64 start, u64 end, u64 stop, u32 *sum)
{
    u64 from = __shfl_sync(~0u, timer_ns(), 0);
    u32 n = 0;
    do {
        Kind::go(r, base, a.zero, sum);
        __syncwarp();
        const u64 to = __shfl_sync(~0u, timer_ns(), 0);
        n += counted(Kind::made(a), from, to, start, end);
        from = to;
    } while (from < stop);
    return n;
}

template <class Kind> static __device__ void access_all(const struct reach_read_args &a)
{
    __shared__ u32 total, go_on;
    __shared__ u64 start;
    const u32 smid = sm_id();
    const u32 me = ((const u32 *)a.grid.positions)[smid];
    const struct reach_window w = ((const struct reach_window *)a.windows)[smid];
    /* Only whole units inside the window are used. */
    const u32 unit = Kind::unit(a);
    const u64 first = (w.first_line * 128 + unit - 1) / unit;
    const u64 behind = (w.first_line + w.lines) * 128 / unit;
    u32 round = 0, sum = 0, n = 0;
    if (threadIdx.x == 0) {
        total = 0;
        go_on = grid_barrier(&a.grid, &round);
        start = timer_ns() + a.warm_ns;
    }
    __syncthreads();
    const u64 end = start + a.run_ns;
    const u64 stop = end + a.run_ns / REACH_COOL_DIVISOR;
    if (go_on && behind > first) {
        struct reader r =
            reader_of(&a, w.rank, first, behind - first, a.period_lines * 128 / unit, smid);
        n = access_until<Kind>(a, &r, a.base + first * unit, start, end, stop, &sum);
    }
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
        ((u64 *)a.ended)[me] = now > stop + a.late_ns ? now : end;
    }
}

/* Defines a kernel that calls `body`. */
#define READ_KERNEL(name, body)                                                                    \
    extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)                            \
        name(struct reach_read_args a)                                                             \
    {                                                                                              \
        body(a);                                                                                   \
    }

READ_KERNEL(reach_read, read_lines<false>)
READ_KERNEL(reach_read_concurrent, read_lines<true>)
READ_KERNEL(reach_read_far, access_all<far_rows<FAR_READ>>)
READ_KERNEL(reach_atomic_far, access_all<far_rows<FAR_ATOMIC>>)
READ_KERNEL(reach_write_far, access_all<far_rows<FAR_WRITE>>)
READ_KERNEL(reach_copy_far, access_all<far_rows<FAR_COPY>>)
READ_KERNEL(reach_read_sectors, access_all<read_sectors>)
READ_KERNEL(reach_read_blocks, access_all<read_blocks>)
READ_KERNEL(reach_atomic, access_all<atomics>)
READ_KERNEL(reach_write, access_all<writes>)
