/* partition.cuh: partitions numbers by window before they are used: one list per window, so that
 * every SM reads only work of its own window. The price: each number is written and read once more.
 *
 * The order within a list is not kept. A list has room for `capacity` numbers; those that do not
 * fit are counted.
 */
#ifndef REACH_EXAMPLES_PARTITION_CUH
#define REACH_EXAMPLES_PARTITION_CUH

#include "job_device.cuh"

enum {
    PARTITION_TILE = 32 * 32, /* numbers that a warp partitions at a time */
    PARTITION_THREADS = 512,
    PARTITION_WARPS = PARTITION_THREADS / 32
};

struct partition_lists {
    u32 *numbers;   /* [windows][capacity] */
    u32 *counts;    /* [windows + 1]; the last: numbers that did not fit */
    u64 capacity;   /* of one list, of as many as the table has windows */
    u64 room_bytes; /* of all lists */
};

/* The window that a byte lies in; the last one extends to the end of the memory. */
static __device__ __forceinline__ u32 partition_window_of(const reach_span *windows, u32 count,
                                                          u64 byte)
{
    u32 w = 0;
    while (w + 1 < count && byte >= windows[w + 1].first_byte)
        w++;
    return w;
}

/* A Number has number(i), the i-th number to partition, and byte(number), the memory that it will
 * access. The last of out.counts is the next tile. */
template <class Number>
__global__ void __launch_bounds__(PARTITION_THREADS, 2)
    partition(reach_table table, Number in, u32 count, partition_lists out)
{
    __shared__ uint16_t counted[PARTITION_WARPS][REACH_WINDOW_MAX];
    __shared__ u32 starts[PARTITION_WARPS][REACH_WINDOW_MAX];
    __shared__ reach_span windows[REACH_WINDOW_MAX];
    const u32 lane = threadIdx.x % 32, below = (1u << lane) - 1;
    uint16_t *const my_count = counted[threadIdx.x / 32];
    u32 *const my_start = starts[threadIdx.x / 32];
    for (u32 w = threadIdx.x; w < table.window_count; w += blockDim.x)
        windows[w] = table.windows[w];
    __syncthreads();
    for (;;) {
        u32 tile = lane == 0 ? atomicAdd(out.counts + REACH_WINDOW_MAX + 1, 1u) : 0;
        tile = __shfl_sync(~0u, tile, 0);
        if (tile >= (count + PARTITION_TILE - 1) / PARTITION_TILE)
            return;
        for (u32 w = lane; w < table.window_count; w += 32)
            my_count[w] = 0;
        __syncwarp();
        u32 place[32]; /* place in the tile's share of a window, and the window: 10 and 22 bits */
#pragma unroll
        for (u32 r = 0; r < 32; r++) {
            const u32 i = tile * PARTITION_TILE + r * 32 + lane;
            const u32 w =
                i < count ? partition_window_of(windows, table.window_count, in.byte(in.number(i)))
                          : REACH_WINDOW_MAX;
            const u32 same = __match_any_sync(~0u, w);
            const u32 before = w < REACH_WINDOW_MAX ? my_count[w] : 0;
            __syncwarp();
            if (w < REACH_WINDOW_MAX && (same & below) == 0)
                my_count[w] = (uint16_t)(before + __popc(same));
            place[r] = w << 10 | (before + __popc(same & below));
            __syncwarp();
        }
        for (u32 w = lane; w < table.window_count; w += 32)
            my_start[w] = my_count[w] ? atomicAdd(out.counts + w, my_count[w]) : 0;
        __syncwarp();
#pragma unroll
        for (u32 r = 0; r < 32; r++) {
            const u32 i = tile * PARTITION_TILE + r * 32 + lane, w = place[r] >> 10;
            if (w >= REACH_WINDOW_MAX)
                continue;
            const u64 at = (u64)my_start[w] + (place[r] & 1023);
            if (at < out.capacity)
                out.numbers[w * out.capacity + at] = in.number(i);
            else
                atomicAdd(out.counts + table.window_count, 1u);
        }
        __syncwarp();
    }
}

static inline bool partition_make(job_device *d, partition_lists *out, u64 numbers_bytes, char *why)
{
    out->room_bytes = numbers_bytes;
    return job_device_allocate(d, &out->numbers, numbers_bytes, why) &&
           job_device_allocate(d, &out->counts, (REACH_WINDOW_MAX + 2) * sizeof(u32), why);
}

/* Partitions `count` numbers, after what runs in `stream`. */
template <class Number>
static bool partition_run(const job_device *d, const reach_table &table, Number in, u32 count,
                          partition_lists *lists, cudaStream_t stream, char *why)
{
    lists->capacity = lists->room_bytes / sizeof(u32) / table.window_count;
    TRY(cudaMemsetAsync(lists->counts, 0, (REACH_WINDOW_MAX + 2) * sizeof(u32), stream));
    partition<<<job_blocks(d) * 2, PARTITION_THREADS, 0, stream>>>(table, in, count, *lists);
    TRY(cudaGetLastError());
    return true;
}

/* Waits. False if a list was too short. */
static inline bool partition_check(const partition_lists *lists, u32 windows, char *why)
{
    u32 lost = 0;
    TRY(cudaMemcpy(&lost, lists->counts + windows, sizeof lost, cudaMemcpyDeviceToHost));
    return lost == 0 || job_fail(why, "%u numbers did not fit into the list of their window", lost);
}

#endif
