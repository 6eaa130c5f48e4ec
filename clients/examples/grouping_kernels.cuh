/* grouping_kernels.cuh: SELECT value, count(*) GROUP BY value into a hash table of 16-byte buckets,
 * in windows. A value whose bucket lies in the window is looked for there, by linear probing that
 * does not leave the window, and counted.
 *
 * How many threads work at a time matters, and more are not better. Inside the reach the atomics of
 * too many get into each other's way. Beyond it a thread's second access to its bucket (the count,
 * after the key) finds the translation of its first one still in the SM's own TLB, if few enough
 * others came in between; Karnagel 2017, section 4.4, saw the same. So the job tries (grouping.cu).
 */
#ifndef REACH_EXAMPLES_GROUPING_KERNELS_CUH
#define REACH_EXAMPLES_GROUPING_KERNELS_CUH

#include "element.h"
#include "job_device.cuh"

enum {
    GROUP_STEPS = 32,              /* values that each thread looks for, in a piece of work */
    GROUP_PIECE = 32 * GROUP_STEPS /* values that a warp draws at a time */
};

/* Part of a job: `count` values of one round. `values` may be host memory that the GPU reads. */
struct group_input {
    const u32 *values;
    u32 count;
    u32 round;
};

static __device__ __forceinline__ u64 group_load_if(const unsigned long long *key, bool wanted)
{
    u64 v;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u64 %0, 0;"
                 " @p ld.global.cg.u64 %0, [%1]; }"
                 : "=l"(v)
                 : "l"(key), "r"((u32)wanted)
                 : "memory");
    return v;
}

/* Counts `key`, whose search starts at `bucket`, where `seen` is what was there (0: empty, or not
 * looked at yet). A key, once there, stays: so what is not yet seen as there is asked for again
 * with an atomic, and what is seen needs none. */
static __device__ void group_count(element_bucket *table, u64 key, u64 bucket, u64 seen, u64 first,
                                   u64 length)
{
    while (seen != key) {
        if (seen == 0) {
            seen = atomicCAS(&table[bucket].key, 0ull, (unsigned long long)key);
            if (seen == 0 || seen == key)
                break;
        }
        bucket = element_next_bucket(bucket, first, length);
        seen = group_load_if(&table[bucket].key, true);
    }
    atomicAdd(&table[bucket].count, 1ull);
}

/* Looks for the value where it belongs, if it is mine to count. `look_first`: reads the key before
 * anything is written, and inserts only what is not there; best inside the reach. Otherwise inserts
 * right away: one access less for a new key, best where each access costs a translation. */
static __device__ __forceinline__ void group_value(element_bucket *table, u64 buckets, u64 key,
                                                   bool mine, bool look_first, u64 first,
                                                   u64 length)
{
    const u64 bucket = element_bucket_of(key, buckets);
    const bool wanted = mine && element_inside(bucket, first, length);
    const u64 seen = look_first ? group_load_if(&table[bucket].key, wanted) : 0;
    if (wanted)
        group_count(table, key, bucket, seen, first, length);
}

__global__ void __launch_bounds__(JOB_THREADS, 1)
    group(reach_table windows, element_bucket *table, u64 buckets, group_input in, bool look_first)
{
    reach_me me;
    if (!reach_enter(windows, &me))
        return;
    const u64 first = me.first_byte / sizeof *table, length = me.length_bytes / sizeof *table;
    REACH_PIECES(windows, me, (in.count + GROUP_PIECE - 1) / GROUP_PIECE, piece)
    {
        const u32 i = piece * GROUP_PIECE + threadIdx.x % 32;
        u32 next = load_if(in.values + i, i < in.count);
        for (u32 k = i; k < i + GROUP_PIECE; k += 32) {
            const u32 value = next;
            next = load_if(in.values + k + 32, k + 32 < in.count); /* while this one is looked for */
            group_value(table, buckets, element_key(value, in.round), k < in.count, look_first,
                        first, length);
        }
    }
}

/* Values dealt to the windows: each window reads its own list and nothing else. */
__global__ void __launch_bounds__(JOB_THREADS, 1)
    group_listed(reach_table windows, element_bucket *table, u64 buckets, const u32 *lists,
                 u64 capacity, const u32 *counts, u32 round)
{
    reach_me me;
    if (!reach_enter(windows, &me))
        return;
    const u64 first = me.first_byte / sizeof *table, length = me.length_bytes / sizeof *table;
    const u32 *values = lists + me.window * capacity;
    const u32 count = counts[me.window];
    REACH_PIECES(windows, me, (count + GROUP_PIECE - 1) / GROUP_PIECE, piece)
    {
        const u32 i = piece * GROUP_PIECE + threadIdx.x % 32;
        u32 next = load_if(values + i, i < count);
        for (u32 k = i; k < i + GROUP_PIECE; k += 32) {
            const u32 value = next;
            next = load_if(values + k + 32, k + 32 < count);
            group_value(table, buckets, element_key(value, round), k < count, true, first, length);
        }
    }
}

/* What is in the table: groups, all counts, and a sum over (key, count). */
__global__ void group_result(const element_bucket *table, u64 buckets, unsigned long long *out)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    unsigned long long groups = 0, counts = 0, check = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < buckets; i += step) {
        const ulonglong2 b = __ldcs((const ulonglong2 *)table + i);
        groups += b.x != 0;
        counts += b.y;
        check += b.x ? element_check(b.x) * b.y : 0;
    }
    for (int lanes = 16; lanes; lanes /= 2) {
        groups += __shfl_xor_sync(~0u, groups, lanes);
        counts += __shfl_xor_sync(~0u, counts, lanes);
        check += __shfl_xor_sync(~0u, check, lanes);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(out, groups);
        atomicAdd(out + 1, counts);
        atomicAdd(out + 2, check);
    }
}

/* Random values below `distinct`. */
__global__ void group_values(u32 *values, u32 count, u64 distinct, u32 seed)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        values[i] = (u32)element_random(i, seed, distinct);
}

/* For deal(): values, by their first bucket. */
struct group_number {
    const u32 *values;
    u64 buckets;
    u32 round;
    __device__ u32 number(u32 i) const
    {
        return __ldcg(values + i);
    }
    __device__ u64 byte(u32 value) const
    {
        return element_bucket_of(element_key(value, round), buckets) * sizeof(element_bucket);
    }
};

#endif
