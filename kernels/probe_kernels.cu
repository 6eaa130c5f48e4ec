/* probe_kernels.cu: the device side of the probes in daemon/gpu/probe.h.
 *
 * Idea. The arena is zero everywhere, so a chain needs no building: the next address is computed in
 * registers, plus the value just loaded (always 0), which makes each load depend on the one before.
 * Loads are ld.global.cg: they bypass L1, where a hit would not be translated at all (Mei 2016).
 *
 * A load is timed by two reads of %clock with the load and a use of its value between them. The
 * hardware issues in order, so the second read waits for the value. The pair costs a constant few
 * cycles, which stay in the numbers: analysis works with differences.
 *
 * A block cannot be asked onto an SM. One block an SM (by shared memory), a counter that all blocks
 * wait on, then %smid decides the role: nothing else guarantees that a block sits on every SM.
 *
 * Built for each architecture into one fatbin, loaded by daemon/gpu/cuda/cuda_gpu.c. No includes
 * of the CUDA runtime are needed on the host side.
 */
#include "abi.h"
#include "grid.cuh"

/* A load that L1 cannot answer. The assembler drops a load whose value is not used, "volatile" or
 * not, so every value must end in something that is stored (see keep). */
static __device__ __forceinline__ u32 load_line(u64 address)
{
    u32 v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
    return v;
}

/* Loads and times: *v depends on the address. The second read of the clock is predicated on the
 * value, which is always 0: without that the assembler may move it before the use of the value. */
static __device__ __forceinline__ u32 timed_load(u64 address, u32 *v)
{
    u32 t0, t1;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mov.u32 %0, %%clock;\n\t"
                 "ld.global.cg.u32 %2, [%3];\n\t"
                 "setp.eq.u32 p, %2, 0;\n\t"
                 "mov.u32 %1, 0;\n\t"
                 "@p mov.u32 %1, %%clock;\n\t"
                 "}"
                 : "=&r"(t0), "=&r"(t1), "=&r"(*v)
                 : "l"(address)
                 : "memory");
    return t1 - t0;
}

extern "C" __global__ void reach_census(struct reach_census_args a)
{
    u32 round = 0;
    if (threadIdx.x != 0)
        return;
    atomicAdd((u32 *)a.seen + min(sm_id(), a.grid.sm_slots - 1), 1u);
    grid_barrier(&a.grid, &round);
}

/* The first warp loads pages [first, first + n) in any order, starting at `from` (< n) and wrapping
 * around, `laps` times. */
static __device__ void touch(u64 base, u64 stride, u32 first, u32 n, u32 from, u32 laps,
                             u32 *shared, struct watch *w)
{
    u32 v = 0;
    for (u32 lap = 0; lap < laps; lap++) {
        for (u32 i = threadIdx.x; i < n; i += 32) {
            u32 page = from + i;
            if (page >= n)
                page -= n;
            v = load_line(base + (u64)(first + page) * stride + v);
            watch_look(w);
        }
        __syncwarp();
    }
    keep(v, shared);
}

/* One thread times each page of [first, first + n) once. */
static __device__ void time_slice(u64 base, u64 stride, u32 first, u32 n, u32 *taken,
                                  struct watch *w)
{
    u32 v = 0;
    u64 address = base + (u64)first * stride;
    for (u32 j = 0; j < n; j++) {
        taken[j] = timed_load(address + v, &v);
        watch_look(w);
        address += stride;
    }
    keep(v, taken);
}

/* A cycle of n pages, gone through by one thread. */
struct cycle {
    u64 base, stride, end; /* addresses of page 0, and behind the last */
    u64 address;           /* of the next page */
    u32 value;             /* of the last load: 0 */
};

static __device__ __forceinline__ void next_page(struct cycle *c)
{
    c->address += c->stride;
    if (c->address == c->end)
        c->address = c->base;
}

/* Walks `laps` cycles of n pages, then times loads from number k on, as far as nothing interrupts
 * it. Returns the number of loads that are timed. */
static __device__ u32 walk_and_time(struct cycle *c, u64 loads, u32 k, u32 samples, u32 *taken,
                                    struct watch *w)
{
    for (u64 i = 0; i < loads && !w->interrupted; i++) {
        c->value = load_line(c->address + c->value);
        next_page(c);
        watch_look(w);
    }
    for (; k < samples && !w->interrupted; k++) {
        const u32 cycles = timed_load(c->address + c->value, &c->value);
        next_page(c);
        watch_look(w);
        if (w->interrupted)
            break;
        taken[k] = cycles;
    }
    return k;
}

/* Untimed laps of one thread, the `futile`th time that nothing could be timed after an
 * interruption. All lanes together have gone through the cycle before. */
static __device__ u32 laps_again(u32 laps, u32 futile)
{
    if (futile > 0 && futile % 2 == 0)
        return 0;
    return laps > 1 ? laps - 1 : laps;
}

/* One point, by the first warp. After an interruption it begins again as a whole: at the onset of a
 * level it depends on the order of all loads before what misses (H200: 2050 pages miss in every lap,
 * unless the laps begin in their middle). A point that is too long for a time slice warms up from
 * the page on whose turn it is, and times what is missing. The first lap after an interruption is
 * made by all lanes, which takes a fraction of the time where every page misses. Where that and the
 * laps of one thread do not fit into a time slice, every second time all lanes alone warm up. */
static __device__ void chase_point(const struct reach_walk_args *a, u64 n, u32 *taken, u32 *timed)
{
    u32 k = 0;
    u32 futile = 0;
    u32 turns = 0;
    for (; k < a->samples && futile < REACH_MOST_FUTILE; turns++) {
        k = turns > REACH_WHOLE_AGAIN && a->laps ? k : 0;
        const u32 from = (u32)(k % n);
        const u32 laps = turns ? laps_again(a->laps, futile) : a->laps;
        struct cycle c = {a->base, a->stride_bytes, a->base + n * a->stride_bytes,
                          a->base + from * a->stride_bytes, 0};
        struct watch w;
        watch_start(&w);
        if (turns && a->laps)
            touch(a->base, a->stride_bytes, 0, (u32)n, from, laps ? 1 : 2, taken, &w);
        if (threadIdx.x == 0)
            *timed = walk_and_time(&c, n * laps, k, a->samples, taken, &w);
        __syncwarp();
        futile = *timed > k ? 0 : futile + 1;
        k = *timed;
        __syncwarp();
    }
    for (u32 i = threadIdx.x; k < a->samples && i < a->samples; i += 32)
        taken[i] = 0;
    if (threadIdx.x == 0 && turns > 1)
        atomicAdd(away_word(&a->grid, REACH_AWAY_INTERRUPTED), turns - 1);
    if (threadIdx.x == 0 && k < a->samples)
        atomicAdd(away_word(&a->grid, REACH_AWAY_GIVEN_UP), 1u);
    __syncwarp();
}

extern "C" __global__ void reach_chase(struct reach_walk_args a)
{
    extern __shared__ u32 taken[]; /* [samples]: a store to global memory would be translated too */
    __shared__ u32 flag;
    u32 round = 0;
    if (threadIdx.x >= 32)
        return;
    if (threadIdx.x == 0)
        flag = grid_barrier(&a.grid, &round) && sm_id() == a.sm;
    __syncwarp();
    if (!flag)
        return;
    for (u32 p = 0; p < a.count; p++) {
        u32 *values = (u32 *)a.values + (u64)p * a.samples;
        __syncwarp();
        chase_point(&a, ((const u64 *)a.points)[p], taken, &flag);
        for (u32 k = threadIdx.x; k < a.samples; k += 32)
            values[k] = taken[k];
    }
}

/* One half of a repeat, by the first warp of each SM: all flush, prime all slices, flush again,
 * then the pivot thrashes (second half only), then everybody times its own slice. */
static __device__ bool round_half(const struct reach_walk_args *a, bool thrash, u32 me, u32 *taken,
                                  u32 *go_on, u32 *round, struct watch *w)
{
    const u32 slices = a->grid.blocks * a->slice_pages;
    for (u32 phase = 0; phase < 4; phase++) {
        if (threadIdx.x == 0)
            *go_on = watched_barrier(&a->grid, round, w);
        __syncwarp();
        if (!*go_on)
            return false;
        if (phase < 2)
            touch(a->base, a->stride_bytes, slices, a->flush_pages, 0, 1, taken, w);
        if (phase == 0)
            touch(a->base, a->stride_bytes, 0, slices, me * a->slice_pages, 1, taken, w);
        else if (phase == 2 && thrash)
            touch(a->base, a->stride_bytes, slices + a->flush_pages, a->thrash_pages, 0, a->laps,
                  taken, w);
        else if (phase == 3 && threadIdx.x == 0)
            time_slice(a->base, a->stride_bytes, me * a->slice_pages, a->slice_pages, taken, w);
        __syncwarp();
    }
    return true;
}

/* When all SMs have ended an attempt: was it interrupted on any? They all get the same answer.
 * False: the time is up. */
static __device__ bool ask_interrupted(const struct reach_grid *g, u32 attempt, u32 *interrupted,
                                       u32 *round, struct watch *w)
{
    u32 *word = away_word(g, REACH_AWAY_ATTEMPT);
    if (!watched_barrier(g, round, w))
        return false;
    if (w->interrupted)
        atomicMax(word, attempt);
    if (!watched_barrier(g, round, w))
        return false;
    *interrupted = read_counter(word) == attempt;
    return true;
}

static __device__ u32 *round_value(const struct reach_walk_args *a, u32 half, u32 me, u32 page)
{
    return (u32 *)a->values + ((u64)half * a->grid.blocks + me) * a->slice_pages + page;
}

extern "C" __global__ void reach_round(struct reach_walk_args a)
{
    extern __shared__ u32 taken[];
    __shared__ u32 go_on;
    __shared__ u32 interrupted;
    const u32 smid = sm_id();
    const u32 me = ((const u32 *)a.grid.positions)[smid];
    const bool pivot = smid == a.sm;
    u32 round = 0;
    u32 attempt = 0;
    u32 futile = 0;
    if (threadIdx.x >= 32)
        return;
    for (u32 repeat = 0; repeat < a.count;) {
        struct watch w;
        watch_start(&w);
        attempt++;
        for (u32 half = 0; half < 2; half++) {
            if (!round_half(&a, half && pivot, me, taken, &go_on, &round, &w))
                return;
            for (u32 j = threadIdx.x; j < a.slice_pages; j += 32)
                *round_value(&a, repeat * 2 + half, me, j) = taken[j];
            __syncwarp();
        }
        if (threadIdx.x == 0)
            go_on = ask_interrupted(&a.grid, attempt, &interrupted, &round, &w);
        __syncwarp();
        if (!go_on)
            return;
        const bool again = interrupted && futile < REACH_MOST_FUTILE;
        for (u32 j = threadIdx.x; interrupted && !again && j < 2 * a.slice_pages; j += 32)
            *round_value(&a, repeat * 2 + j / a.slice_pages, me, j % a.slice_pages) = 0;
        if (threadIdx.x == 0 && pivot && interrupted)
            atomicAdd(away_word(&a.grid, again ? REACH_AWAY_INTERRUPTED : REACH_AWAY_GIVEN_UP), 1u);
        futile = again ? futile + 1 : 0;
        repeat += !again;
        __syncwarp();
    }
}

/* A page that still hits in a nearer level is not filled into the farther one: flush first too. */
static __device__ void prime_slice(const struct reach_walk_args *a, u32 *shared, struct watch *w)
{
    touch(a->base, a->stride_bytes, a->slice_pages, a->flush_pages, 0, 1, shared, w);
    touch(a->base, a->stride_bytes, 0, a->slice_pages, 0, 1, shared, w);
    touch(a->base, a->stride_bytes, a->slice_pages, a->flush_pages, 0, 1, shared, w);
}

static __device__ void thrash(const struct reach_walk_args *a, u32 *shared, struct watch *w)
{
    touch(a->base, a->stride_bytes, a->slice_pages + a->flush_pages, a->thrash_pages, 0, a->laps,
          shared, w);
}

/* Waits for turn `turn` of the pair walk. False: the time is up. */
static __device__ bool take_turn(const struct reach_grid *g, u32 turn, u32 *flag, struct watch *w)
{
    if (threadIdx.x == 0)
        *flag = wait_for(g, g->blocks + turn, 256, w);
    __syncwarp();
    const bool mine = *flag;
    __syncwarp();
    return mine;
}

/* Only who has the turn passes it on: forward, or back to the pivot. */
static __device__ void pass_turn(const struct reach_grid *g, u32 turn)
{
    __syncwarp();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicExch((u32 *)g->arrived, g->blocks + turn);
    }
    __syncwarp();
}

/* The pivot of a pair: thrashes whenever it has turn + 1, until the pair has ended. */
static __device__ bool serve_pair(const struct reach_walk_args *a, u32 turn, u32 *taken, u32 *flag)
{
    const u32 *counter = (const u32 *)a->grid.arrived;
    struct watch w;
    watch_start(&w);
    for (;;) {
        if (!take_turn(&a->grid, turn + 1, flag, &w))
            return false;
        if (threadIdx.x == 0)
            *flag = read_counter(counter) - a->grid.blocks;
        __syncwarp();
        const u32 now = *flag;
        __syncwarp();
        if (now >= turn + 3)
            return true;
        if (now == turn + 1) {
            thrash(a, taken, &w);
            pass_turn(&a->grid, turn + 2);
        } else {
            __nanosleep(256);
            if (read_counter((const u32 *)a->grid.gave_up))
                return false;
        }
    }
}

/* One attempt of a pair, by the SM that is probed, which has the turn: primes, times, primes again;
 * the pivot thrashes; it times. False: the time is up. */
static __device__ bool try_pair(const struct reach_walk_args *a, bool pivot, u32 turn, u32 *values,
                                u32 *taken, u32 *flag, struct watch *w)
{
    const u32 s = a->slice_pages;
    watch_start(w);
    for (u32 half = 0; half < 2; half++) {
        if (half && pivot) {
            thrash(a, taken, w);
        } else if (half) {
            pass_turn(&a->grid, turn + 1);
            if (!take_turn(&a->grid, turn + 2, flag, w))
                return false;
        } else {
            prime_slice(a, taken, w);
        }
        if (threadIdx.x == 0)
            time_slice(a->base, a->stride_bytes, 0, s, taken, w);
        __syncwarp();
        for (u32 j = threadIdx.x; j < s; j += 32)
            values[half * a->grid.blocks * s + j] = taken[j];
        __syncwarp();
        if (!half)
            prime_slice(a, taken, w);
    }
    return true;
}

/* All attempts of a pair. */
static __device__ bool probe_pair(const struct reach_walk_args *a, bool pivot, u32 turn,
                                  u32 *values, u32 *taken, u32 *flag)
{
    const u32 s = a->slice_pages;
    u32 interrupted = 1;
    struct watch w;
    watch_start(&w);
    if (!take_turn(&a->grid, turn, flag, &w))
        return false;
    for (u32 tries = 0; interrupted && tries <= REACH_MOST_FUTILE; tries++) {
        if (!try_pair(a, pivot, turn, values, taken, flag, &w))
            return false;
        if (threadIdx.x == 0)
            *flag = w.interrupted;
        __syncwarp();
        interrupted = *flag;
        __syncwarp();
        if (threadIdx.x == 0 && interrupted)
            atomicAdd(away_word(&a->grid, tries < REACH_MOST_FUTILE ? REACH_AWAY_INTERRUPTED
                                                                    : REACH_AWAY_GIVEN_UP),
                      1u);
    }
    for (u32 j = threadIdx.x; interrupted && j < s; j += 32)
        values[j] = values[(u64)a->grid.blocks * s + j] = 0;
    pass_turn(&a->grid, turn + 3);
    return true;
}

/* Three turns a pair: the SM that is probed, the pivot, the SM again; if that was interrupted, both
 * once more. Everybody else sleeps and polls one word. */
extern "C" __global__ void reach_pairs(struct reach_walk_args a)
{
    extern __shared__ u32 taken[];
    __shared__ u32 flag;
    const u32 smid = sm_id();
    const u32 me = ((const u32 *)a.grid.positions)[smid];
    u32 round = 0;
    if (threadIdx.x >= 32)
        return;
    if (threadIdx.x == 0)
        flag = grid_barrier(&a.grid, &round);
    __syncwarp();
    if (!flag)
        return;
    __syncwarp();
    for (u32 p = 0; p < a.count; p++) {
        const bool pivot = ((const u32 *)a.pivots)[p] == smid;
        for (u32 k = 0; k < a.grid.blocks; k++) {
            const u32 turn = (p * a.grid.blocks + k) * 3;
            u32 *values = (u32 *)a.values + ((u64)p * 2 * a.grid.blocks + k) * a.slice_pages;
            if (k == me && !probe_pair(&a, pivot, turn, values, taken, &flag))
                return;
            if (k != me && pivot && !serve_pair(&a, turn, taken, &flag))
                return;
        }
    }
}

/* Adds 0 atomically to a line and times it: *v, which is 0, is what is added and what comes back,
 * so each depends on the one before. */
static __device__ __forceinline__ u32 timed_atomic(u64 address, u32 *v)
{
    u32 t0, t1;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mov.u32 %0, %%clock;\n\t"
                 "atom.global.add.u32 %2, [%3], %2;\n\t"
                 "setp.eq.u32 p, %2, 0;\n\t"
                 "mov.u32 %1, 0;\n\t"
                 "@p mov.u32 %1, %%clock;\n\t"
                 "}"
                 : "=&r"(t0), "=&r"(t1), "+r"(*v)
                 : "l"(address)
                 : "memory");
    return t1 - t0;
}

/* The SMs of the list, all at once, go through the same pages, each from a place of its own on, so
 * that they seldom meet. An atomic is carried out where the line lives: nothing is copied nearer,
 * and the same line can be timed again. */
extern "C" __global__ void reach_sides(struct reach_walk_args a)
{
    extern __shared__ u32 taken[];
    const u32 *sms = (const u32 *)a.pivots;
    const u32 smid = sm_id();
    u32 round = 0, me = 0, v = 0;
    if (threadIdx.x != 0 || !grid_barrier(&a.grid, &round))
        return;
    while (me < a.count && sms[me] != smid)
        me++;
    if (me == a.count)
        return;
    const u32 first = (u32)((u64)me * a.samples / a.count);
    for (u32 lap = 0; lap < a.laps + a.repeats; lap++) {
        u32 page = first;
        for (u32 k = 0; k < a.samples; k++) {
            taken[page] = timed_atomic(a.base + page * a.stride_bytes, &v);
            page = page + 1 == a.samples ? 0 : page + 1;
        }
        if (lap < a.laps)
            continue;
        u32 *values = (u32 *)a.values + ((u64)(lap - a.laps) * a.count + me) * a.samples;
        for (u32 k = 0; k < a.samples; k++)
            values[k] = taken[k];
    }
    keep(v, taken);
}

/* One lane's stream of random numbers: the state advances by a Weyl step and is mixed (Murmur3's
 * finaliser), so that every lane has its own sequence. */
static __device__ __forceinline__ u32 next_random(u32 *state)
{
    u32 z = (*state += 0x9e3779b9u);
    z = (z ^ (z >> 16)) * 0x85ebca6bu;
    z = (z ^ (z >> 13)) * 0xc2b2ae35u;
    return z ^ (z >> 16);
}

/* What one lane draws line numbers from. All lanes draw at once, then the warp reads the 32 lines
 * one after the other: drawing costs an SM a tenth of what it would if the warp drew together. */
struct reader {
    u32 state; /* of the random numbers */
    u32 lines; /* of the window; line numbers count from its start */
    u32 random_share;
    u32 period_mask; /* lines of a period less one; 0: no copies */
    u32 period_bits;
    u32 own_first, own_lines, own_next; /* the warp's part of the period, where this lane is */
    u32 phase;                          /* where in the period the window starts */
    u32 copies;                         /* that the window lies in */
    u32 drawn, turn;                    /* far memory: this lane's line, lines read by the warp */
    u32 gap;                            /* lines between pieces */
};

/* A permutation of the numbers up to `mask`, 2^bits - 1: every step can be undone. */
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
        /* Copy 0 begins before the window, by the phase, and the last may end behind it. A line out
         * there is drawn again from the whole window: so every line has the same chance. */
        if (line < r->lines)
            return (u32)line;
    }
    return __umulhi(next_random(&r->state), r->lines);
}

/* `first_line` and `lines` of the window, and the lines of a period, in whatever one draw names:
 * lines or blocks of them. */
static __device__ struct reader reader_of(const struct reach_read_args *a, u32 rank, u64 first_line,
                                          u64 lines, u64 period_lines, u32 smid)
{
    const u32 warp = threadIdx.x / 32;
    struct reader r = {0};
    r.lines = lines > 0xffffffffu ? 0xffffffffu : (u32)lines;
    r.gap = a->gap_lines;
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

/* The lines of one warp of reach_read_flight: a part of its SM's window that is its own, in
 * scattered order, so that no line comes back soon and is found in L2. All lanes compute the same:
 * a shuffle between two loads would keep the second one back. */
struct walker {
    u32 first, count, next;
    u32 mask, bits; /* of the window's lines, a power of two */
};

static __device__ __forceinline__ u32 next_of_walk(struct walker *w)
{
    const u32 line = scatter(w->first + w->next, w->mask, w->bits);
    w->next = w->next + 1 == w->count ? 0 : w->next + 1;
    return line * 128;
}

template <int FLIGHT>
static __device__ u32 walk_until(struct walker *w, u64 window, u64 end_ns, u32 *sum)
{
    u32 n = 0;
    do {
#pragma unroll 1
        for (int first = 0; first < 32; first += FLIGHT) {
            u32 v[FLIGHT];
#pragma unroll
            for (int j = 0; j < FLIGHT; j++)
                v[j] = load_line(window + next_of_walk(w));
#pragma unroll
            for (int j = 0; j < FLIGHT; j++)
                *sum |= v[j];
        }
        n += 32;
    } while (timer_ns() < end_ns);
    return n;
}

/* Reads until the run begins, and then until it ends; returns how many lines of the latter. */
template <int FLIGHT>
static __device__ u32 walk_run(struct walker *w, u64 window, u64 start, u64 run_ns, u32 *sum)
{
    walk_until<FLIGHT>(w, window, start, sum);
    return walk_until<FLIGHT>(w, window, start + run_ns, sum);
}

static __device__ u32 walk_flight(const struct reach_read_args *a, u64 window, u64 lines, u64 start,
                                  u32 *sum)
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

/* `IN_FLIGHT`: as the arguments say; otherwise at random. */
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
            n = walk_flight(&a, window, w.lines, start, &sum);
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

extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)
    reach_read(struct reach_read_args a)
{
    read_lines<false>(a);
}

extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)
    reach_read_flight(struct reach_read_args a)
{
    read_lines<true>(a);
}

/* ---- other kinds of access ---- */

/* A kind says how many lines one draw names, how many accesses a warp makes between two looks at
 * the time, and makes them. `base` is that of the window. */

/* A sector that this lane draws. The line comes from the high bits of what was mixed; the state
 * before mixing is an even sequence, so its highest bits choose among the four evenly. */
static __device__ __forceinline__ u64 next_sector(struct reader *r, u64 base)
{
    const u64 line = next_line(r);
    return base + line * 128 + (r->state >> 30) * 32;
}

/* Lines of memory that is far away, some of those that the lanes have drawn: over a slow link even
 * so few take all SMs a millisecond. */
struct read_far {
    static const u32 lines = 1, made = REACH_FAR_UNROLL;
    static __device__ __forceinline__ void go(struct reader *r, u64 base, u32 zero, u32 *sum)
    {
        u32 v[REACH_FAR_UNROLL];
        (void)zero;
        if (r->turn % 32 == 0)
            r->drawn = next_line(r);
#pragma unroll
        for (int j = 0; j < REACH_FAR_UNROLL; j++) {
            const u64 line = __shfl_sync(~0u, r->drawn, r->turn + j);
            v[j] = load_line(base + (line + line / REACH_PIECE_LINES * r->gap) * 128 +
                             (threadIdx.x % 32) * 4);
        }
        r->turn += REACH_FAR_UNROLL;
#pragma unroll
        for (int j = 0; j < REACH_FAR_UNROLL; j++)
            *sum |= v[j];
    }
};

struct read_sectors {
    static const u32 lines = 1, made = 32 * REACH_LANE_UNROLL;
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

/* The 32 blocks that the lanes have drawn, one after the other. */
struct read_blocks {
    static const u32 lines = REACH_BLOCK_LINES, made = 32;
    static __device__ __forceinline__ void go(struct reader *r, u64 base, u32 zero, u32 *sum)
    {
        const u32 mine = next_line(r);
        (void)zero;
#pragma unroll 1
        for (int first = 0; first < 32; first += REACH_LANE_UNROLL) {
            uint4 v[REACH_LANE_UNROLL];
#pragma unroll
            for (int j = 0; j < REACH_LANE_UNROLL; j++) {
                const u64 block = base + (u64)__shfl_sync(~0u, mine, first + j) * (lines * 128);
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

/* What comes back is used: an add without a use of its result does not wait. */
struct atomics {
    static const u32 lines = 1, made = 32 * REACH_LANE_UNROLL;
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

struct writes {
    static const u32 lines = 1, made = 32 * REACH_LANE_UNROLL;
    static __device__ __forceinline__ void go(struct reader *r, u64 base, u32 zero, u32 *sum)
    {
        (void)sum;
#pragma unroll
        for (int j = 0; j < REACH_LANE_UNROLL; j++)
            asm volatile("st.global.cg.u32 [%0], %1;"
                         :
                         : "l"(next_sector(r, base)), "r"(zero)
                         : "memory");
    }
};

/* Of `made` accesses between two moments those that fall between start and end: where accesses are
 * slow, a warp is at a handful of them for a tenth of the run. */
static __device__ __forceinline__ u32 counted(u32 made, u64 from, u64 to, u64 start, u64 end)
{
    if (from >= start && to <= end)
        return made;
    if (to <= start || from >= end)
        return 0;
    return (u32)(made * (min(to, end) - max(from, start)) / (to - from));
}

template <class Kind>
static __device__ u32 access_until(struct reader *r, u64 base, u64 start, u64 end, u64 stop,
                                   u32 zero, u32 *sum)
{
    u64 from = __shfl_sync(~0u, timer_ns(), 0);
    u32 n = 0;
    do {
        Kind::go(r, base, zero, sum);
        __syncwarp();
        const u64 to = __shfl_sync(~0u, timer_ns(), 0);
        n += counted(Kind::made, from, to, start, end);
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
    /* Whole blocks inside the window. */
    const u64 first = (w.first_line + Kind::lines - 1) / Kind::lines;
    const u64 behind = (w.first_line + w.lines) / Kind::lines;
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
            reader_of(&a, w.rank, first, behind - first, a.period_lines / Kind::lines, smid);
        n = access_until<Kind>(&r, a.base + first * (Kind::lines * 128), start, end, stop, a.zero,
                               &sum);
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
        /* What is late by more than its last few accesses was held up by another process. */
        ((u64 *)a.ended)[me] = now > stop + a.late_ns ? now : end;
    }
}

extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)
    reach_read_far(struct reach_read_args a)
{
    access_all<read_far>(a);
}

extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)
    reach_read_sectors(struct reach_read_args a)
{
    access_all<read_sectors>(a);
}

extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)
    reach_read_blocks(struct reach_read_args a)
{
    access_all<read_blocks>(a);
}

extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)
    reach_atomic(struct reach_read_args a)
{
    access_all<atomics>(a);
}

extern "C" __global__ void __launch_bounds__(REACH_READ_THREADS, 1)
    reach_write(struct reach_read_args a)
{
    access_all<writes>(a);
}
