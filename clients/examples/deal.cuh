/* deal.cuh: deals the numbers of a list out to windows before any of them is used: one list for
 * each window, so that every SM then finds work of its own window and nothing else. The price: each
 * number is written and read once more.
 *
 * Order within a list is not kept. A list holds `capacity` numbers; what does not fit is counted.
 */
#ifndef REACH_EXAMPLES_DEAL_CUH
#define REACH_EXAMPLES_DEAL_CUH

#include "job_device.cuh"

enum {
    DEAL_TILE = 32 * 32, /* numbers that a warp deals at a time */
    DEAL_THREADS = 512,
    DEAL_WARPS = DEAL_THREADS / 32
};

struct deal_lists {
    u32 *numbers;  /* [windows][capacity] */
    u32 *counts;   /* [windows + 1]; the last: numbers that did not fit */
    u32 *next;     /* next tile */
    u64 capacity;
};

/* The window that a byte lies in; the last where none claims it (it ends where memory ends). */
static __device__ __forceinline__ u32 deal_window_of(const reach_span *windows, u32 count, u64 byte)
{
    u32 w = 0;
    while (w + 1 < count && byte >= windows[w + 1].first_byte)
        w++;
    return w;
}

/* A Number has number(i), the i-th number to deal, and byte(number), where it will touch memory. */
template <class Number>
__global__ void __launch_bounds__(DEAL_THREADS, 2)
    deal(reach_table table, Number in, u32 count, deal_lists out)
{
    __shared__ uint16_t counted[DEAL_WARPS][REACH_WINDOW_MAX];
    __shared__ u32 starts[DEAL_WARPS][REACH_WINDOW_MAX];
    __shared__ reach_span windows[REACH_WINDOW_MAX];
    const u32 lane = threadIdx.x % 32, below = (1u << lane) - 1;
    uint16_t *const my_count = counted[threadIdx.x / 32];
    u32 *const my_start = starts[threadIdx.x / 32];
    for (u32 w = threadIdx.x; w < table.window_count; w += blockDim.x)
        windows[w] = table.windows[w];
    __syncthreads();
    for (;;) {
        u32 tile = lane == 0 ? atomicAdd(out.next, 1u) : 0;
        tile = __shfl_sync(~0u, tile, 0);
        if (tile >= (count + DEAL_TILE - 1) / DEAL_TILE)
            return;
        for (u32 w = lane; w < table.window_count; w += 32)
            my_count[w] = 0;
        __syncwarp();
        u32 place[32]; /* within the tile's share of a window, and which: 10 and 22 bits */
#pragma unroll
        for (u32 r = 0; r < 32; r++) {
            const u32 i = tile * DEAL_TILE + r * 32 + lane;
            const u32 w = i < count ? deal_window_of(windows, table.window_count,
                                                     in.byte(in.number(i)))
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
            const u32 i = tile * DEAL_TILE + r * 32 + lane, w = place[r] >> 10;
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

/* Room for `windows` lists out of `count` numbers in all, with what chance may add to a window's
 * share. */
static inline bool deal_make(deal_lists *out, u64 numbers_bytes, char *why)
{
    TRY(cudaMalloc((void **)&out->numbers, numbers_bytes));
    TRY(cudaMalloc((void **)&out->counts, (REACH_WINDOW_MAX + 2) * sizeof(u32)));
    out->next = out->counts + REACH_WINDOW_MAX + 1;
    return true;
}

static inline void deal_free(deal_lists *lists)
{
    cudaFree(lists->numbers);
    cudaFree(lists->counts);
}

/* Deals `count` numbers, behind what runs in `stream`. `room` is that of deal_make. */
template <class Number>
static bool deal_run(const job_device *d, const reach_table &table, Number in, u32 count,
                     u64 room_bytes, deal_lists *lists, cudaStream_t stream, char *why)
{
    lists->capacity = room_bytes / sizeof(u32) / table.window_count;
    TRY(cudaMemsetAsync(lists->counts, 0, (REACH_WINDOW_MAX + 2) * sizeof(u32), stream));
    deal<<<job_blocks(d) * 2, DEAL_THREADS, 0, stream>>>(table, in, count, *lists);
    TRY(cudaGetLastError());
    return true;
}

/* Waits. False where a list was too short. */
static inline bool deal_check(const deal_lists *lists, u32 windows, char *why)
{
    u32 lost = 0;
    TRY(cudaMemcpy(&lost, lists->counts + windows, sizeof lost, cudaMemcpyDeviceToHost));
    if (lost)
        snprintf(why, JOB_TEXT_BYTES, "%u numbers did not fit their window's list", lost);
    return lost == 0;
}

#endif
