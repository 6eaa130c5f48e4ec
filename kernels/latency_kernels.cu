/* latency_kernels.cu: the device side of the probes that time loads (daemon/gpu/probe.h): CHASE,
 * ROUND, PAIRS, SIDES, and the census of SMs.
 *
 * The arena is zero everywhere, so no chain has to be built. The next address is computed in
 * registers, plus the value just loaded (always 0). So each load depends on the load before.
 *
 * A block cannot be placed on a given SM. So there is one block per SM (by shared memory) and a
 * counter that all blocks wait on. Then %smid decides the role. Only this order guarantees a block
 * on every SM.
 *
 * All kernels are built for each architecture into one fatbin, which daemon/gpu/cuda/cuda_open.c
 * loads. No includes of the CUDA runtime are needed on the host side.
 */
#include "abi.h"
#include "grid.cuh"
#include "load.cuh"

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

static __device__ u32 middle(u32 a, u32 b, u32 c)
{
    return max(min(a, b), min(max(a, b), c));
}

/* Returns the median of three loads of one page. */
static __device__ u32 time_three(u64 address, u32 *v, struct watch *w)
{
    const u32 a = timed_load(address + *v, v);
    const u32 b = timed_load(address + *v, v);
    const u32 c = timed_load(address + *v, v);
    watch_look(w);
    return middle(a, b, c);
}

static __device__ u32 time_nine(u64 address, u32 *v, struct watch *w)
{
    const u32 a = time_three(address, v, w);
    const u32 b = time_three(address, v, w);
    return middle(a, b, time_three(address, v, w));
}

/* Returns the median of medians of loads of one page, of which all but the first hit. Some loads
 * take 50 cycles less, because the near side of the L2 has their line, so the fastest of some loads
 * changes from part to part. No array is used, because local memory is translated too. */
static __device__ u32 time_reference(u64 address, u32 *shared, struct watch *w)
{
    u32 v = 0;
    const u32 a = time_nine(address, &v, w);
    const u32 b = time_nine(address, &v, w);
    const u32 c = time_nine(address, &v, w);
    keep(v, shared);
    return middle(a, b, c);
}

/* Returns whether two references differ by more than loads at one clock do. */
static __device__ bool is_other_clock(u32 now, u32 first)
{
    return (now > first ? now - first : first - now) * REACH_REFERENCE_SLACK > first;
}

/* Scales taken[from, to) to the clock of the first reference of the probe, which is `*first`, or 0
 * before there is one. `now` is the reference of these values. */
static __device__ void scale_to_first(u32 *taken, u32 from, u32 to, u32 now, u32 *first)
{
    if (*first == 0)
        *first = now;
    for (u32 i = from; i < to && is_other_clock(now, *first); i++)
        taken[i] = (u32)(((u64)taken[i] * *first + now / 2) / now);
}

/* One thread times each page of [first, first + n) once, and then the last page as the reference,
 * whose first value of this probe is `*reference`. */
static __device__ void time_slice(u64 base, u64 stride, u32 first, u32 n, u32 *taken,
                                  u32 *reference, struct watch *w)
{
    u32 v = 0;
    u64 address = base + (u64)first * stride;
    for (u32 j = 0; j < n; j++) {
        taken[j] = timed_load(address + v, &v);
        watch_look(w);
        address += stride;
    }
    keep(v, taken);
    scale_to_first(taken, 0, n, time_reference(address - stride, taken, w), reference);
}

/* A cycle of n pages that one thread walks. */
struct cycle {
    u64 base, stride, end; /* addresses of page 0 and behind the last page */
    u64 address;           /* address of the next page */
    u32 value;             /* value of the last load: 0 */
};

static __device__ __forceinline__ void next_page(struct cycle *c)
{
    c->address += c->stride;
    if (c->address == c->end)
        c->address = c->base;
}

/* Makes `loads` untimed loads, then times loads from number k on. Ends early if it is interrupted.
 * Returns the number of timed loads. */
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

/* Returns the untimed laps of one thread after an interruption, for the `futile`th time without a
 * timed load. All lanes together have walked the cycle before. */
static __device__ u32 laps_again(u32 laps, u32 futile)
{
    if (futile > 0 && futile % 2 == 0)
        return 0;
    return laps > 1 ? laps - 1 : laps;
}

/* Runs one point with the first warp. After an interruption the whole point begins again. At the
 * onset of a level the result depends on the order of all loads before the missing load. On an
 * H200, 2050 pages miss in every lap, unless the laps begin in their middle. A point that is too
 * long for a time slice warms up from the next page, and times the missing loads. All lanes walk
 * the first lap after an interruption, in a fraction of the time if every page misses. If that lap
 * and the laps of one thread do not fit into a time slice, only all lanes together warm up every
 * second time.
 *
 * The page of the reference is the first page of the warm-up, so the order of the pages does not
 * change. If the reference after the point is another, the clock has changed during the point, and
 * the whole point begins again, at most REACH_WHOLE_AGAIN times. A point without a warm-up, or in
 * memory of the host, has no reference. */
static __device__ void chase_point(const struct reach_walk_args *a, u64 n, u32 *taken, u32 *timed,
                                   u32 *reference)
{
    u32 k = 0;
    u32 futile = 0;
    u32 turns = 0;
    u32 reclocked = 0;
    for (; k < a->samples && futile < REACH_MOST_FUTILE; turns++) {
        k = turns > REACH_WHOLE_AGAIN && a->laps ? k : 0;
        const u32 from = (u32)(k % n);
        const u32 laps = turns ? laps_again(a->laps, futile) : a->laps;
        struct cycle c = {a->base, a->stride_bytes, a->base + n * a->stride_bytes,
                          a->base + from * a->stride_bytes, 0};
        struct watch w;
        u32 now = 0;
        watch_start(&w);
        if (threadIdx.x == 0 && a->has_reference)
            now = time_reference(a->base, taken, &w);
        __syncwarp();
        if (turns && a->laps)
            touch(a->base, a->stride_bytes, 0, (u32)n, from, laps ? 1 : 2, taken, &w);
        if (threadIdx.x == 0)
            *timed = walk_and_time(&c, n * laps, k, a->samples, taken, &w);
        if (threadIdx.x == 0 && a->has_reference && *timed > k)
            scale_to_first(taken, k, *timed, now, reference);
        __syncwarp();
        futile = *timed > k ? 0 : futile + 1;
        k = *timed;
        __syncwarp();
        if (k < a->samples || !a->has_reference || reclocked == REACH_WHOLE_AGAIN)
            continue;
        if (threadIdx.x == 0)
            *timed = is_other_clock(time_reference(a->base, taken, &w), now) ? 0 : k;
        __syncwarp();
        k = *timed;
        reclocked += k == 0;
        __syncwarp();
    }
    for (u32 i = threadIdx.x; k < a->samples && i < a->samples; i += 32)
        taken[i] = 0;
    if (threadIdx.x == 0 && turns > reclocked + 1)
        atomicAdd(away_word(&a->grid, REACH_AWAY_INTERRUPTED), turns - reclocked - 1);
    if (threadIdx.x == 0 && k < a->samples)
        atomicAdd(away_word(&a->grid, REACH_AWAY_GIVEN_UP), 1u);
    __syncwarp();
}

extern "C" __global__ void reach_chase(struct reach_walk_args a)
{
    extern __shared__ u32 taken[]; /* [samples]: a store to global memory would be translated too */
    __shared__ u32 flag;
    u32 round = 0;
    u32 reference = 0;
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
        chase_point(&a, ((const u64 *)a.points)[p], taken, &flag, &reference);
        for (u32 k = threadIdx.x; k < a.samples; k += 32)
            values[k] = taken[k];
    }
}

/* Runs one half of a repeat with the first warp of each SM. All SMs flush, prime all slices and
 * flush again. Then the pivot thrashes (second half only). Then every SM times its own slice. */
static __device__ bool round_half(const struct reach_walk_args *a, bool thrash, u32 me, u32 *taken,
                                  u32 *go_on, u32 *round, u32 *reference, struct watch *w)
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
            time_slice(a->base, a->stride_bytes, me * a->slice_pages, a->slice_pages, taken,
                       reference, w);
        __syncwarp();
    }
    return true;
}

/* All SMs call it when they have ended an attempt. Reports whether the attempt was interrupted on
 * any SM. All SMs get the same answer. Returns false if the time is up. */
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
    u32 reference = 0;
    if (threadIdx.x >= 32)
        return;
    for (u32 repeat = 0; repeat < a.count;) {
        struct watch w;
        watch_start(&w);
        attempt++;
        for (u32 half = 0; half < 2; half++) {
            if (!round_half(&a, half && pivot, me, taken, &go_on, &round, &reference, &w))
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

/* Primes the slice of a pair. A page that still hits in a nearer level is not filled into the
 * farther one, so the SM flushes first too. */
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

/* Waits for turn `turn` of the pair walk. Returns false if the time is up. */
static __device__ bool take_turn(const struct reach_grid *g, u32 turn, u32 *flag, struct watch *w)
{
    if (threadIdx.x == 0)
        *flag = wait_for(g, g->blocks + turn, 256, w);
    __syncwarp();
    const bool mine = *flag;
    __syncwarp();
    return mine;
}

/* Passes the turn on, forward or back to the pivot. Only the SM that has the turn calls it. */
static __device__ void pass_turn(const struct reach_grid *g, u32 turn)
{
    __syncwarp();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicExch((u32 *)g->arrived, g->blocks + turn);
    }
    __syncwarp();
}

/* Runs the pivot of a pair: it thrashes whenever it has turn + 1, until the pair has ended. */
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

/* Runs one attempt of a pair on the probed SM, which has the turn. The SM primes, times and primes
 * again, the pivot thrashes, and the SM times again. Returns false if the time is up. */
static __device__ bool try_pair(const struct reach_walk_args *a, bool pivot, u32 turn, u32 *values,
                                u32 *taken, u32 *flag, struct watch *w)
{
    const u32 s = a->slice_pages;
    u32 reference = 0;
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
            time_slice(a->base, a->stride_bytes, 0, s, taken, &reference, w);
        __syncwarp();
        for (u32 j = threadIdx.x; j < s; j += 32)
            values[half * a->grid.blocks * s + j] = taken[j];
        __syncwarp();
        if (!half)
            prime_slice(a, taken, w);
    }
    return true;
}

/* Runs all attempts of a pair. */
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

/* A pair has three turns: the probed SM, the pivot, the SM again. After an interruption both SMs
 * get another turn. All other SMs sleep and poll one word. */
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

/* The SMs of the list walk the same pages at the same time, each from its own place, so that they
 * seldom meet. An atomic is executed in the half of the L2 that holds the line. No copy is made
 * nearer, so the same line can be timed again. */
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
