/* grouping_kernels.cuh: SELECT value, count(*) GROUP BY value into a hash table of 16-byte buckets,
 * in windows. A value whose bucket lies in the window is searched for by linear probing that does
 * not leave the window, and counted.
 *
 * More threads are not always better. Within the reach, the atomics of too many threads collide.
 * Out of reach, a thread accesses its bucket twice: the key, then the count. The second access
 * finds the translation in the SM's own TLB if few other accesses came in between. Karnagel 2017,
 * section 4.4, reports this effect. So the job tries several numbers of threads (grouping.cu). */
#pragma once

#include "element.h"
#include "job_device.cuh"

enum {
    GROUP_STEPS = 32,              /* values per thread in a piece of work */
    GROUP_PIECE = 32 * GROUP_STEPS /* values that a warp draws at a time */
};

/* Part of a job: `count` values of one round. `values` may be host memory that the GPU reads. If
 * the values are partitioned by window (offsets not NULL), each window has its own list. */
struct group_input {
    const u32 *values;
    u32 count; /* number of values if they are not partitioned */
    u32 round;
    const u64 *offsets; /* [windows + 1] bounds of the lists in `values`, or NULL */
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

/* Counts `key`. The search starts at `bucket`, which held `seen` (0 means empty or not read yet). A
 * key is never removed, so only a bucket seen as empty needs an atomic, to insert or to read
 * again. */
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

/* Counts the value if it is `mine` and its bucket lies in the window. With `look_first` it reads
 * the bucket before it writes, and inserts only a missing key; this is best within the reach.
 * Otherwise it inserts at once, with one access less for a new key; this is best if each access
 * costs a translation. */
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
    const u64 begin = in.offsets ? in.offsets[me.window] : 0;
    const u32 *values = in.values + begin;
    const u32 count = in.offsets ? (u32)(in.offsets[me.window + 1] - begin) : in.count;
    REACH_PIECES(windows, me, (count + GROUP_PIECE - 1) / GROUP_PIECE, piece)
    {
        const u32 i = piece * GROUP_PIECE + threadIdx.x % 32;
        u32 next = load_if(values + i, i < count);
        for (u32 k = i; k < i + GROUP_PIECE; k += 32) {
            const u32 value = next;
            next = load_if(values + k + 32, k + 32 < count); /* overlaps with the work below */
            group_value(table, buckets, element_key(value, in.round), k < count, look_first, first,
                        length);
        }
    }
}

/* Reads the table and adds up the number of groups, all counts, and a checksum of keys and
 * counts. */
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

/* Fills `values` with random values below `distinct`. */
__global__ void group_values(u32 *values, u32 count, u64 distinct, u32 seed)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        values[i] = (u32)element_random(i, seed, distinct);
}

/* The functors for partition_run(): a value, and the byte of its first bucket. */
struct group_number {
    const u32 *values;
    __device__ u32 operator()(u64 i) const
    {
        return __ldcg(values + i);
    }
};
struct group_byte {
    u64 buckets;
    u32 round;
    __device__ u64 operator()(u32 value) const
    {
        return element_bucket_of(element_key(value, round), buckets) * sizeof(element_bucket);
    }
};
