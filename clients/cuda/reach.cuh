/* reach.cuh: a plan on the device: the window of an SM, the other SMs in it, and its remaining
 * work. It is header only and needs no other header than reach.h (libreach).
 *
 * A kernel that works in windows needs three additional lines:
 *
 *     __global__ void work(reach_table table, uint32_t pieces, ...)
 *     {
 *         struct reach_me me;
 *         if (!reach_enter(table, &me))                                   // this SM has no work
 *             return;
 *         REACH_PIECES(table, me, pieces, piece)                          // drawn by each warp
 *             touch only [me.first_byte, me.first_byte + me.length_bytes) of the allocation
 *     }
 *
 * A plan over several allocations gives each window a part of each of them: reach_part(table, me,
 * i).
 *
 * On the host, call reach_table_make once, reach_table_load for each plan, reach_table_start before
 * each launch, reach_table_check after it, and reach_table_free at the end. Launch all blocks that
 * the GPU holds at a time (one per SM, or more), so that every SM gets one. The SM of a block is
 * not predictable.
 *
 * An SM whose id is not in the table does nothing and is counted; reach_table_check then fails.
 * Such an SM is never sent to an arbitrary window. All pointers of a table are device memory that
 * the table owns. */
#ifndef REACH_CUH
#define REACH_CUH

#include "reach.h"

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct reach_span {
    uint64_t first_byte; /* offset within the allocation */
    uint64_t length_bytes;
    uint32_t sm_count; /* number of SMs that work in the window */
    uint32_t unused;
};

enum { REACH_QUEUE_WORDS = 64 }; /* distance of two queues, so that they do not share a line */

/* A table is passed to kernels by value. */
struct reach_table {
    struct reach_span *windows; /* [REACH_WINDOW_MAX] */
    uint32_t window_count;
    uint32_t sm_slots;          /* number of SM ids in the table */
    int16_t *window_of_sm;      /* [REACH_SM_MAX]; REACH_IDLE if there is no work */
    uint16_t *rank_of_sm;       /* [REACH_SM_MAX]: rank 0, 1, .. among the SMs of the window */
    uint32_t *queues;           /* next piece of each window, REACH_QUEUE_WORDS apart */
    uint32_t *unknown;          /* blocks that ran on an SM that is not in the table */
    struct reach_extent *parts; /* [REACH_WINDOW_MAX * REACH_ALLOCATION_MAX], window by window */
    uint32_t allocation_count;  /* 1, unless the plan is over a list of allocations */
};

/* The window of the calling thread. */
struct reach_me {
    uint32_t sm;
    uint32_t window;
    uint32_t rank;     /* rank of this SM among those of its window: 0 .. sm_count - 1 */
    uint32_t sm_count; /* number of SMs in this window */
    uint64_t first_byte;
    uint64_t length_bytes;
};

/* ---- on the device -------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t reach_sm_id(void)
{
    uint32_t id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

/* All threads of a block must call this function first. Returns false if the kernel must return:
 * this SM has no work, or it is not in the table (and is counted). */
static __device__ __forceinline__ bool reach_enter(const reach_table &table, reach_me *me)
{
    const uint32_t sm = reach_sm_id();
    if (sm >= table.sm_slots) {
        if (threadIdx.x + threadIdx.y + threadIdx.z == 0)
            atomicAdd(table.unknown, 1u);
        return false;
    }
    const int window = table.window_of_sm[sm];
    if (window < 0)
        return false;
    const reach_span span = table.windows[window];
    me->sm = sm;
    me->window = (uint32_t)window;
    me->rank = table.rank_of_sm[sm];
    me->sm_count = span.sm_count;
    me->first_byte = span.first_byte;
    me->length_bytes = span.length_bytes;
    return true;
}

/* Returns the part of allocation `i` (in the plan's list, from 0) that belongs to this window. It
 * may be empty if that allocation has few rows. */
static __device__ __forceinline__ reach_extent reach_part(const reach_table &table,
                                                          const reach_me &me, uint32_t i)
{
    return table.parts[me.window * table.allocation_count + i];
}

/* Draws the next piece of work of this window. All 32 lanes of a warp must call it and get the same
 * piece. Pieces are 0, 1, 2, ..; each is drawn once per window. reach_ask returns at once, and
 * reach_take waits for the result. A warp with long pieces requests the next piece before it
 * processes the current one. */
static __device__ __forceinline__ uint32_t reach_ask(const reach_table &table, const reach_me &me)
{
    uint32_t piece = 0;
    if (threadIdx.x % 32 == 0)
        piece = atomicAdd(table.queues + me.window * REACH_QUEUE_WORDS, 1u);
    return piece;
}

static __device__ __forceinline__ uint32_t reach_take(uint32_t asked)
{
    return __shfl_sync(0xffffffffu, asked, 0);
}

static __device__ __forceinline__ uint32_t reach_draw(const reach_table &table, const reach_me &me)
{
    return reach_take(reach_ask(table, me));
}

/* A loop over the pieces that this warp draws. Blocks must be one-dimensional, with whole warps. */
#define REACH_PIECES(table, me, pieces, piece)                                                     \
    for (uint32_t piece = reach_draw(table, me); piece < (pieces); piece = reach_draw(table, me))

/* ---- on the host ---------------------------------------------------------------------------- */

/* Releases the memory of a table. A table of zeros is valid. */
static inline void reach_table_free(reach_table *table)
{
    cudaFree(table->windows);
    cudaFree(table->parts);
    cudaFree(table->window_of_sm);
    cudaFree(table->rank_of_sm);
    cudaFree(table->queues);
    cudaFree(table->unknown);
    memset(table, 0, sizeof *table);
}

/* Allocates some KiB on the current device; the caller frees the table. On an error nothing stays
 * allocated. */
static inline cudaError_t reach_table_make(reach_table *out)
{
    const size_t queue_bytes = REACH_WINDOW_MAX * REACH_QUEUE_WORDS * sizeof(uint32_t);
    cudaError_t result;

    memset(out, 0, sizeof *out);
    if ((result = cudaMalloc((void **)&out->windows, REACH_WINDOW_MAX * sizeof(reach_span))) ||
        (result = cudaMalloc((void **)&out->parts,
                             REACH_WINDOW_MAX * REACH_ALLOCATION_MAX * sizeof(reach_extent))) ||
        (result = cudaMalloc((void **)&out->window_of_sm, REACH_SM_MAX * sizeof(int16_t))) ||
        (result = cudaMalloc((void **)&out->rank_of_sm, REACH_SM_MAX * sizeof(uint16_t))) ||
        (result = cudaMalloc((void **)&out->queues, queue_bytes)) ||
        (result = cudaMalloc((void **)&out->unknown, sizeof(uint32_t))) ||
        (result = cudaMemset(out->unknown, 0, sizeof(uint32_t))))
        reach_table_free(out);
    return result;
}

/* Copies the windows of a plan to a table, and waits for running kernels. Returns
 * cudaErrorInvalidValue for inconsistent windows; the table is then empty and contains no SM. */
static inline cudaError_t reach_table_load(reach_table *table, const struct reach_windows *windows)
{
    static_assert(REACH_SM_MAX <= 0xffff, "ranks have 16 bits");
    reach_span spans[REACH_WINDOW_MAX] = {};
    uint16_t ranks[REACH_SM_MAX] = {};
    cudaError_t result;

    table->sm_slots = table->window_count = 0;
    if (windows->window_count > REACH_WINDOW_MAX || windows->sm_slots > REACH_SM_MAX ||
        windows->allocation_count > REACH_ALLOCATION_MAX)
        return cudaErrorInvalidValue;
    for (uint32_t w = 0; w < windows->window_count; w++) {
        spans[w].first_byte = windows->window[w].first_byte;
        spans[w].length_bytes = windows->window[w].length_bytes;
    }
    for (uint32_t sm = 0; sm < windows->sm_slots; sm++) {
        const int w = windows->window_of_sm[sm];
        if (w >= (int)windows->window_count || w < REACH_IDLE)
            return cudaErrorInvalidValue;
        if (w != REACH_IDLE)
            ranks[sm] = (uint16_t)spans[w].sm_count++;
    }
    const size_t sm_count = windows->sm_slots;
    const size_t part_bytes =
        (size_t)windows->window_count * windows->allocation_count * sizeof(reach_extent);
    if ((result = cudaMemcpy(table->parts, windows->part, part_bytes, cudaMemcpyHostToDevice)) ||
        (result = cudaMemcpy(table->windows, spans, sizeof spans, cudaMemcpyHostToDevice)) ||
        (result = cudaMemcpy(table->rank_of_sm, ranks, sizeof ranks, cudaMemcpyHostToDevice)) ||
        (result = cudaMemcpy(table->window_of_sm, windows->window_of_sm, sm_count * sizeof(int16_t),
                             cudaMemcpyHostToDevice)))
        return result;
    table->window_count = windows->window_count;
    table->allocation_count = windows->allocation_count;
    table->sm_slots = windows->sm_slots;
    return cudaSuccess;
}

/* Makes and loads a table for an allocation of `bytes` on the current device, with the placement of
 * the reachd at `uri`. `uri` is for reach_open; NULL means its default. Needs libreach. Returns
 * false, with a message in `why`, if there is no placement or if it is for another GPU. The caller
 * frees the table. */
static inline bool reach_table_get(const char *uri, uint64_t bytes, reach_table *out, char *why,
                                   size_t why_bytes)
{
    struct reach_placement_request request = {};
    const struct reach_placement *placement = nullptr;
    struct reach_answer *answer = nullptr;
    struct reach_error error = {};
    struct reach *reach = nullptr;
    cudaDeviceProp properties;
    char gpu[REACH_UUID_BYTES];
    int device = 0;
    cudaError_t result;

    memset(out, 0, sizeof *out);
    request.size = sizeof request;
    request.bytes = bytes;
    if ((result = cudaGetDevice(&device)) == cudaSuccess &&
        (result = cudaGetDeviceProperties(&properties, device)) == cudaSuccess) {
        reach_uuid_text((const unsigned char *)properties.uuid.bytes, false, gpu);
        if (reach_open(uri, &reach, &error) == REACH_OK &&
            reach_get_placement(reach, gpu, &request, &answer, &error) == REACH_OK &&
            reach_answer_check_gpu(answer, gpu, &error) == REACH_OK &&
            (result = reach_table_make(out)) == cudaSuccess) {
            placement = reach_answer_placement(answer);
            result = reach_table_load(out, &placement->windows);
        }
    }
    if (result != cudaSuccess)
        snprintf(why, why_bytes, "no table of windows: %s", cudaGetErrorString(result));
    else if (error.status != REACH_OK)
        snprintf(why, why_bytes, "%s", error.text);
    else if (placement->windows.window_count == 0)
        snprintf(why, why_bytes, "there are no windows: %s", placement->reason);
    const bool good = result == cudaSuccess && error.status == REACH_OK && out->window_count > 0;

    if (!good)
        reach_table_free(out);
    reach_answer_free(answer);
    reach_close(reach);
    return good;
}

/* Refills the queues. Call it before each launch that draws from them, in the same stream. */
static inline cudaError_t reach_table_start(const reach_table *table, cudaStream_t stream)
{
    const size_t bytes = table->window_count * REACH_QUEUE_WORDS * sizeof(uint32_t);
    return cudaMemsetAsync(table->queues, 0, bytes, stream);
}

/* Waits for the device. Returns false, with a message in `why`, if a block ran on an SM that is not
 * in the table. The work of the block is not lost, because other blocks drew it, but the table is
 * not of this GPU. */
static inline bool reach_table_check(const reach_table *table, char *why, size_t why_bytes)
{
    uint32_t unknown = 0;
    const cudaError_t result =
        cudaMemcpy(&unknown, table->unknown, sizeof unknown, cudaMemcpyDeviceToHost);

    if (result != cudaSuccess)
        snprintf(why, why_bytes, "the kernel failed: %s", cudaGetErrorString(result));
    else if (unknown)
        snprintf(why, why_bytes,
                 "%u blocks ran on SMs that are not in the table of windows (it ends at SM %u): it "
                 "is not of this GPU, or the GPU must be measured again",
                 unknown, table->sm_slots);
    return result == cudaSuccess && unknown == 0;
}

#endif
