/* shared_kernels.cu: the device side of SHARED and PEER in daemon/gpu/probe.h.
 *
 * Every word contains its own address, so the value of one load is the address of the next. There
 * is no arithmetic between the loads (Mei 2016, listing 4, with all chains of length 1).
 */
#include "abi.h"
#include "grid.cuh"

static __device__ __forceinline__ u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

/* Returns the clock when `v`, which is not 0, has arrived. The read of the clock is predicated on
 * `v`. Otherwise the assembler may move it before the use of the value. */
static __device__ __forceinline__ u32 clock_after(u32 v)
{
    u32 t;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.ne.u32 p, %1, 0;\n\t"
                 "mov.u32 %0, 0;\n\t"
                 "@p mov.u32 %0, %%clock;\n\t"
                 "}"
                 : "=&r"(t)
                 : "r"(v)
                 : "memory");
    return t;
}

/* ---- SHARED ---- */

/* Loads WIDTH bytes; returns the first word, which is the next address. */
template <int WIDTH> static __device__ __forceinline__ u32 load_shared(u32 at, u32 *rest)
{
    u32 v, b, c, d;
    if (WIDTH == 4) {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    } else if (WIDTH == 8) {
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v), "=r"(b) : "r"(at) : "memory");
        *rest |= b;
    } else {
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(at)
                     : "memory");
        *rest |= b | c | d;
    }
    return v;
}

/* Runs one warp's loads in CONCURRENCY chains side by side. Returns the cycles since the clock was
 * `begin`, or since the first load if that is 0. */
template <int WIDTH, int CONCURRENCY>
static __device__ u32 run_chains(u32 at, u32 row_bytes, u32 loads, u32 begin, u32 *rest)
{
    u32 chain[CONCURRENCY];
    u32 all = 0;
#pragma unroll
    for (int k = 0; k < CONCURRENCY; k++)
        chain[k] = at + k * row_bytes;
    if (begin == 0)
        begin = clock_cycles();
#pragma unroll 1
    for (u32 i = 0; i < loads; i += 8) {
#pragma unroll
        for (int j = 0; j < 8; j++)
            chain[j % CONCURRENCY] = load_shared<WIDTH>(chain[j % CONCURRENCY], rest);
    }
#pragma unroll
    for (int k = 0; k < CONCURRENCY; k++)
        all |= chain[k];
    return clock_after(all) - begin;
}

template <int WIDTH>
static __device__ u32 run_width(u32 at, u32 row_bytes, u32 loads, u32 in_flight, u32 begin,
                                u32 *rest)
{
    switch (in_flight) {
    case 1:
        return run_chains<WIDTH, 1>(at, row_bytes, loads, begin, rest);
    case 2:
        return run_chains<WIDTH, 2>(at, row_bytes, loads, begin, rest);
    case 4:
        return run_chains<WIDTH, 4>(at, row_bytes, loads, begin, rest);
    default:
        return run_chains<WIDTH, 8>(at, row_bytes, loads, begin, rest);
    }
}

static __device__ u32 run_shared(const struct reach_shared_args &a, u32 at, u32 row_bytes,
                                 u32 begin, u32 *rest)
{
    if (a.width == 4)
        return run_width<4>(at, row_bytes, a.samples, a.in_flight, begin, rest);
    if (a.width == 8)
        return run_width<8>(at, row_bytes, a.samples, a.in_flight, begin, rest);
    return run_width<16>(at, row_bytes, a.samples, a.in_flight, begin, rest);
}

/* The SMs of the list run independently. All warps of a block load the same words. */
extern "C" __global__ void __launch_bounds__(1024, 1) reach_shared(struct reach_shared_args a)
{
    extern __shared__ __align__(16) u32 words[];
    __shared__ u32 go_on, begin, most;
    const u32 *sms = (const u32 *)a.sms;
    const u32 smid = sm_id();
    const u32 lane = threadIdx.x % 32;
    u32 round = 0, me = 0, rest = 0;
    if (threadIdx.x == 0)
        go_on = grid_barrier(&a.grid, &round);
    __syncthreads();
    while (me < a.sm_count && sms[me] != smid)
        me++;
    if (!go_on || me == a.sm_count)
        return;
    for (u32 p = 0; p < a.count; p++) {
        const u32 stride = (u32)((const u64 *)a.points)[p];
        const u32 row_bytes = 32 * stride;
        for (u32 i = threadIdx.x; i < REACH_SHARED_BYTES / 4; i += blockDim.x)
            words[i] = shared_address(&words[i]);
        for (u32 lap = 0; lap < a.laps + a.repeats; lap++) {
            __syncthreads();
            if (threadIdx.x == 0) {
                most = 0;
                begin = clock_cycles() | 1; /* not 0 */
            }
            __syncthreads();
            /* A single warp measures itself. If there are several warps, the last warp counts from
             * a common begin. */
            const u32 from = a.warps == 1 ? 0 : begin;
            const u32 cycles =
                run_shared(a, shared_address(words) + lane * stride, row_bytes, from, &rest);
            if (lane == 0)
                atomicMax(&most, cycles);
            __syncthreads();
            if (threadIdx.x == 0 && lap >= a.laps)
                ((u32 *)a.values)[((u64)(lap - a.laps) * a.sm_count + me) * a.count + p] = most;
        }
    }
    if (rest == 1) /* never true: it has bits of addresses, or is 0 */
        words[0] = rest;
}

/* ---- PEER ---- */

#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void cluster_barrier()
{
    __syncwarp();
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

/* Returns this SM's address of `at` in the SM of rank `rank`. */
static __device__ __forceinline__ u32 map_shared(u32 at, u32 rank)
{
    u32 mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(at), "r"(rank));
    return mapped;
}

/* Makes `samples` loads from the SM of rank `rank`, each from the word that belongs to this SM
 * there. */
static __device__ u32 time_peer(u32 own_word, u32 rank, u32 samples)
{
    u32 at = map_shared(own_word, rank);
    asm volatile("st.shared::cluster.u32 [%0], %0;" : : "r"(at) : "memory");
    asm volatile("ld.shared::cluster.u32 %0, [%0];" : "+r"(at) : : "memory");
    const u32 begin = clock_cycles();
#pragma unroll 1
    for (u32 i = 0; i < samples; i += 8) {
#pragma unroll
        for (int j = 0; j < 8; j++)
            asm volatile("ld.shared::cluster.u32 %0, [%0];" : "+r"(at) : : "memory");
    }
    return clock_after(at) - begin;
}

/* All threads read from rank `rank`, with four loads of 16 bytes in flight each. */
static __device__ u32 read_ring(u32 words, u32 rank, u32 bytes)
{
    u32 sum = 0;
#pragma unroll 1
    for (u32 done = 0; done < bytes; done += REACH_PEER_LAP_BYTES) {
        /* The place differs each time, so that the compiler cannot reuse an earlier read. */
        const u32 at =
            map_shared(words + (done / REACH_PEER_LAP_BYTES & 1) * 16384, rank) + threadIdx.x * 16;
        u32 v[4][4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v[j][0]), "=r"(v[j][1]), "=r"(v[j][2]), "=r"(v[j][3])
                         : "r"(at)
                         : "memory");
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum |= v[j][0] | v[j][1] | v[j][2] | v[j][3];
    }
    return sum;
}
#endif

/* The kernel writes nothing if it was compiled for chips without clusters. */
extern "C" __global__ void __launch_bounds__(REACH_PEER_THREADS, 1)
    reach_peer(struct reach_peer_args a)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) u32 words[];
    __shared__ u32 begin;
    u32 rank, size, cluster, sum = 0;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(cluster));
    u32 *row = (u32 *)a.values + (u64)(1 + ((const u32 *)a.grid.positions)[sm_id()]) * a.columns;
    for (u32 i = threadIdx.x; i < REACH_SHARED_BYTES / 4; i += blockDim.x)
        words[i] = 0;
    __syncthreads();
    if (threadIdx.x == 0 && atomicCAS(&row[0], 0u, cluster + 1) != 0)
        row[0] = REACH_PEER_TWICE;
    if (threadIdx.x == 0)
        row[1] = rank;
    for (u32 d = 0; d < size; d++) {
        const u32 other = rank + d < size ? rank + d : rank + d - size;
        cluster_barrier();
        if (threadIdx.x == 0)
            row[2 + other] = time_peer(shared_address(&words[rank * 32]), other, a.samples);
    }
    cluster_barrier();
    if (threadIdx.x == 0)
        begin = clock_cycles();
    __syncthreads();
    sum = read_ring(shared_address(words), rank + 1 < size ? rank + 1 : 0, a.ring_bytes);
    __syncthreads();
    if (threadIdx.x == 0)
        row[2 + size] = clock_cycles() - begin;
    cluster_barrier(); /* no block leaves while others read from it */
    if (sum == 1)      /* never true: the words are 0 or addresses */
        words[0] = sum;
#endif
}
