/* reach_sides.cuh: work on the near side of the L2. It is header only and needs reach.h (libreach).
 *
 * The L2 of large chips lies in two sides. A line is on one side, by a hash of its physical address
 * that changes every few KiB (a granule). If SMs of the other side read the line, the L2 keeps a
 * copy on their side. So data that all SMs read takes twice its room. If each SM reads only
 * granules of its own side, twice as much stays in the L2, and every access takes the short way.
 * The strategy "sides" of a plan predicts the gain.
 *
 * No interface reports the sides of the granules of a buffer, so reach_sides_sort times each
 * granule. It adds 0 atomically to the first word of the granule, several times. Values do not
 * change, and kernels may use the buffer meanwhile. Physical memory does not move, so one call per
 * allocation is enough.
 *
 *     __global__ void work(reach_sides sides, const char *buffer, uint32_t pieces, ...)
 *     {
 *         struct reach_side_me me;
 *         if (!reach_side_enter(sides, &me))                              // this SM has no side
 *             return;
 *         REACH_SIDE_PIECES(sides, me, pieces, piece)                     // drawn by each warp
 *             touch only granules of me.granules[0 .. me.granule_count)
 *     }
 *
 * If the positions of a job come from its input, each side scans all of the input and keeps the
 * positions that reach_side_of assigns to it. A job over many GiB that computes its positions works
 * in the same way. A list takes four bytes per granule, which would compete with the set for the
 * L2, and reach_side_of reads one bit.
 *
 * On the host, call reach_sides_make once per GPU and largest buffer, and reach_sides_sort for each
 * buffer. Call reach_sides_start before each launch that draws pieces, reach_sides_check after it,
 * and reach_sides_free at the end. Launch all blocks that the GPU holds at a time, so that every SM
 * gets one.
 *
 * If the L2 of a fingerprint has no known sides, there is one side with every SM and all granules.
 * The same kernel then works, and gains nothing. */
#ifndef REACH_SIDES_CUH
#define REACH_SIDES_CUH

#include "reach.cuh"
#include "reach_side_lists.h"

#include <stdlib.h>

/* The struct is passed to kernels by value. All pointers are device memory that the struct owns. */
struct reach_sides {
    uint64_t granule_bytes;
    uint64_t bytes;         /* bytes of the buffer */
    uint64_t lead_bytes;    /* offset of the buffer from the start of granule 0 */
    uint32_t granule_count; /* granules of the buffer */
    uint32_t side_count;    /* 1 if the sides are not known, and all granules are near to all SMs */
    uint32_t first[2];      /* granules[first[s]] is the first of side s */
    uint32_t count[2];
    uint32_t sm_count[2];
    uint32_t sm_slots; /* number of SM ids in the table */
    uint32_t unsure;   /* granules of unclear side; accesses are slower if it is wrong */
    double contrast_cycles;
    uint64_t most_bytes;  /* largest buffer for which the table has room */
    int16_t *side_of_sm;  /* [REACH_SM_MAX] */
    uint16_t *rank_of_sm; /* [REACH_SM_MAX]: rank 0, 1, .. among the SMs of the side */
    uint32_t *granules;   /* granules of side 0, ascending, then of side 1 */
    uint32_t *bits;       /* side of granule g: bit g % 32 of word g / 32 */
    uint32_t *queues;     /* next piece of either side, REACH_QUEUE_WORDS apart */
    uint32_t *unknown;    /* blocks that ran on an SM of no side; the next word is never read */
    uint16_t *cycles;     /* [2][granule_count]: least cycles from either side */
};

/* The side of the calling thread. */
struct reach_side_me {
    uint32_t sm;
    uint32_t side;
    uint32_t rank;     /* rank of this SM among those of its side: 0 .. sm_count - 1 */
    uint32_t sm_count; /* number of SMs on this side */
    uint32_t granule_count;
    const uint32_t *granules; /* granules near to this SM, ascending */
};

/* ---- on the device -------------------------------------------------------------------------- */

/* All threads of a block must call this function first. Returns false if the kernel must return,
 * because this SM is on no known side (and is counted). */
static __device__ __forceinline__ bool reach_side_enter(const reach_sides &sides, reach_side_me *me)
{
    const uint32_t sm = reach_sm_id();
    const int side = sm < sides.sm_slots ? sides.side_of_sm[sm] : REACH_IDLE;
    if (side < 0) {
        if (threadIdx.x + threadIdx.y + threadIdx.z == 0)
            atomicAdd(sides.unknown, 1u);
        return false;
    }
    me->sm = sm;
    me->side = (uint32_t)side;
    me->rank = sides.rank_of_sm[sm];
    me->sm_count = sides.sm_count[side];
    me->granule_count = sides.count[side];
    me->granules = sides.granules + sides.first[side];
    return true;
}

/* Returns the part of a granule that lies in the buffer. */
static __device__ __forceinline__ reach_extent reach_side_extent(const reach_sides &sides,
                                                                 uint32_t granule)
{
    return reach_side_cut(granule, sides.granule_bytes, sides.lead_bytes, sides.bytes);
}

/* Returns the side that byte `at` of the buffer is near to. */
static __device__ __forceinline__ uint32_t reach_side_of(const reach_sides &sides, uint64_t at)
{
    const uint64_t granule = (at + sides.lead_bytes) / sides.granule_bytes;
    return __ldg(sides.bits + granule / REACH_SIDE_BITS) >> granule % REACH_SIDE_BITS & 1;
}

/* Draws the next piece of work of this side. All 32 lanes of a warp must call it and get the same
 * piece. */
static __device__ __forceinline__ uint32_t reach_side_draw(const reach_sides &sides,
                                                           const reach_side_me &me)
{
    uint32_t piece = 0;
    if (threadIdx.x % 32 == 0)
        piece = atomicAdd(sides.queues + me.side * REACH_QUEUE_WORDS, 1u);
    return __shfl_sync(0xffffffffu, piece, 0);
}

/* A loop over the pieces that this warp draws. Blocks must be one-dimensional, with whole warps. */
#define REACH_SIDE_PIECES(sides, me, pieces, piece)                                                \
    for (uint32_t piece = reach_side_draw(sides, me); piece < (pieces);                            \
         piece = reach_side_draw(sides, me))

/* Returns the cycles of adding 0 to a word; *v receives the word. An atomic is executed where the
 * line lives, so nothing is copied to the near side. */
static __device__ __forceinline__ uint32_t reach_side_cycles(char *word, uint32_t *v)
{
    uint32_t before, after, used;
    asm volatile("mov.u32 %0, %%clock;\n\t"
                 "atom.global.add.u32 %2, [%4], %5;\n\t"
                 "add.u32 %3, %2, %0;\n\t"
                 "mov.u32 %1, %%clock;"
                 : "=&r"(before), "=&r"(after), "=&r"(*v), "=&r"(used)
                 : "l"(word), "r"(0)
                 : "memory");
    *v = used;
    return after - before;
}

enum {
    REACH_SIDE_CHUNK = 8,  /* granules that a thread draws at a time */
    REACH_SIDE_LAPS = 4,   /* atomics on each granule; the first brings it into the L2 */
    REACH_SIDE_ROUNDS = 5, /* largest number of launches until all granules are clear */
    REACH_SIDE_BLOCKS = 4  /* blocks per SM, of one thread each */
};

/* Times every granule by some SM of either side; the least time of all laps and rounds counts. */
static __global__ void reach_sides_time(reach_sides sides, char *buffer)
{
    reach_side_me me;
    uint32_t never = 0;
    if (threadIdx.x != 0 || !reach_side_enter(sides, &me))
        return;
    uint16_t *const out = sides.cycles + (uint64_t)me.side * sides.granule_count;
    for (;;) {
        const uint32_t first =
            atomicAdd(sides.queues + me.side * REACH_QUEUE_WORDS, 1u) * REACH_SIDE_CHUNK;
        if (first >= sides.granule_count)
            break;
        for (uint32_t g = first; g < first + REACH_SIDE_CHUNK && g < sides.granule_count; g++) {
            char *const word = buffer + reach_side_extent(sides, g).first_byte;
            uint32_t least = out[g], v;
            for (uint32_t lap = 0; lap < REACH_SIDE_LAPS; lap++) {
                const uint32_t cycles = reach_side_cycles(word, &v);
                never |= v;
                if (lap > 0)
                    least = min(least, min(cycles, REACH_NO_CYCLES - 1u));
            }
            out[g] = (uint16_t)least;
        }
    }
    if (never == 0) /* the values are used, so the clock waits for them */
        sides.unknown[1] = 1;
}

/* ---- on the host ---------------------------------------------------------------------------- */

/* Releases the memory of a table. A table of zeros is valid. */
static inline void reach_sides_free(reach_sides *sides)
{
    cudaFree(sides->side_of_sm);
    cudaFree(sides->rank_of_sm);
    cudaFree(sides->granules);
    cudaFree(sides->bits);
    cudaFree(sides->queues);
    cudaFree(sides->unknown);
    cudaFree(sides->cycles);
    memset(sides, 0, sizeof *sides);
}

/* Copies the sides of `chip`. If `chip` is NULL or has no known sides, there is one side with every
 * SM. */
static inline void reach_sides_set_chip(reach_sides *sides, const struct reach_fingerprint *chip,
                                        int16_t *side_of_sm, uint16_t *rank_of_sm)
{
    const bool known = chip && chip->sides.known && chip->sides.value == 2 &&
                       chip->side_granule_bytes.known && chip->side_slots > 0;

    sides->side_count = known ? 2 : 1;
    sides->sm_slots = known ? chip->side_slots : (uint32_t)REACH_SM_MAX;
    sides->granule_bytes = known ? (uint64_t)chip->side_granule_bytes.value : 4096;
    sides->contrast_cycles = known ? chip->side_far_cycles.value - chip->side_near_cycles.value : 0;
    for (uint32_t sm = 0; sm < sides->sm_slots; sm++) {
        side_of_sm[sm] = known ? chip->side_of_sm[sm] : 0;
        if (side_of_sm[sm] >= 0)
            rank_of_sm[sm] = (uint16_t)sides->sm_count[side_of_sm[sm]]++;
    }
}

/* Makes a table for buffers of at most `most_bytes` on the current device, whose fingerprint is
 * `chip` (from libreach; the text above describes missing sides). It takes about 8.1 bytes per
 * granule. The caller frees it. On an error nothing stays allocated. */
static inline cudaError_t reach_sides_make(const struct reach_fingerprint *chip,
                                           uint64_t most_bytes, reach_sides *out)
{
    int16_t side_of_sm[REACH_SM_MAX];
    uint16_t rank_of_sm[REACH_SM_MAX] = {};
    cudaError_t result;

    memset(out, 0, sizeof *out);
    reach_sides_set_chip(out, chip, side_of_sm, rank_of_sm);
    const uint64_t granules = most_bytes / out->granule_bytes + 2; /* both ends may be cut */
    const size_t slots = out->sm_slots;
    if (granules > UINT32_MAX)
        return cudaErrorInvalidValue;
    if ((result = cudaMalloc((void **)&out->side_of_sm, sizeof side_of_sm)) ||
        (result = cudaMalloc((void **)&out->rank_of_sm, sizeof rank_of_sm)) ||
        (result = cudaMalloc((void **)&out->granules, granules * sizeof *out->granules)) ||
        (result = cudaMalloc((void **)&out->bits,
                             (granules / REACH_SIDE_BITS + 1) * sizeof *out->bits)) ||
        (result = cudaMalloc((void **)&out->queues, 2 * REACH_QUEUE_WORDS * sizeof(uint32_t))) ||
        (result = cudaMalloc((void **)&out->unknown, 2 * sizeof *out->unknown)) ||
        (result = cudaMalloc((void **)&out->cycles, 2 * granules * sizeof *out->cycles)) ||
        (result = cudaMemset(out->unknown, 0, 2 * sizeof *out->unknown)) ||
        (result = cudaMemcpy(out->side_of_sm, side_of_sm, slots * sizeof side_of_sm[0],
                             cudaMemcpyHostToDevice)) ||
        (result = cudaMemcpy(out->rank_of_sm, rank_of_sm, slots * sizeof rank_of_sm[0],
                             cudaMemcpyHostToDevice)))
        reach_sides_free(out);
    out->most_bytes = result == cudaSuccess ? most_bytes : 0;
    return result;
}

/* Refills the queues. Call it before each launch that draws from them, in the same stream. */
static inline cudaError_t reach_sides_start(const reach_sides *sides, cudaStream_t stream)
{
    return cudaMemsetAsync(sides->queues, 0, 2 * REACH_QUEUE_WORDS * sizeof(uint32_t), stream);
}

/* Times the granules until all are clear, or the number of launches is used up. `cycles` has room
 * for two values per granule. */
static inline cudaError_t reach_sides_read(reach_sides *sides, char *buffer, uint16_t *cycles,
                                           uint32_t *list, uint32_t *bits,
                                           struct reach_side_lists *out)
{
    const size_t bytes = 2 * (size_t)sides->granule_count * sizeof *cycles;
    int device = 0, sms = 0;
    cudaError_t result;

    if ((result = cudaGetDevice(&device)) ||
        (result = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) ||
        (result = cudaMemset(sides->cycles, 0xff, bytes)))
        return result;
    for (int round = 0; round < REACH_SIDE_ROUNDS; round++) {
        if ((result = reach_sides_start(sides, 0)))
            return result;
        reach_sides_time<<<(unsigned)sms * REACH_SIDE_BLOCKS, 32>>>(*sides, buffer);
        if ((result = cudaGetLastError()) ||
            (result = cudaMemcpy(cycles, sides->cycles, bytes, cudaMemcpyDeviceToHost)))
            return result;
        *out =
            reach_side_lists_make(cycles, sides->granule_count, sides->contrast_cycles, list, bits);
        if (out->unsure + out->untimed == 0)
            break;
    }
    return cudaSuccess;
}

/* Sorts the granules of a buffer of device memory, aligned to 4 bytes, and waits for the device.
 * Sorting takes some 0.1 ms per MiB. Returns false, with a message in `why`, if no SM of one side
 * got a block, or if CUDA failed. A few `sides->unsure` granules are not a failure; accesses to
 * them may be slower. */
static inline bool reach_sides_sort(reach_sides *sides, void *buffer, uint64_t bytes, char *why,
                                    size_t why_bytes)
{
    const uint64_t lead = (uint64_t)(uintptr_t)buffer % sides->granule_bytes;
    const uint64_t granules = (lead + bytes + sides->granule_bytes - 1) / sides->granule_bytes;
    struct reach_side_lists lists = {{granules, 0}, 0, 0};
    cudaError_t result = cudaSuccess;

    if (bytes == 0 || bytes > sides->most_bytes || (uintptr_t)buffer % 4 != 0) {
        snprintf(why, why_bytes,
                 "cannot sort %llu bytes: the table has room for 1 to %llu, at a multiple of 4",
                 (unsigned long long)bytes, (unsigned long long)sides->most_bytes);
        return false;
    }
    sides->bytes = bytes;
    sides->lead_bytes = lead;
    sides->granule_count = (uint32_t)granules;
    uint16_t *const cycles = (uint16_t *)malloc(2 * granules * sizeof *cycles);
    uint32_t *const list = (uint32_t *)malloc(granules * sizeof *list);
    uint32_t *const bits = (uint32_t *)calloc(granules / REACH_SIDE_BITS + 1, sizeof *bits);
    const bool room = cycles && list && bits;

    if (room && sides->side_count == 2)
        result = reach_sides_read(sides, (char *)buffer, cycles, list, bits, &lists);
    for (uint64_t g = 0; room && sides->side_count == 1 && g < granules; g++)
        list[g] = (uint32_t)g;
    if (room && result == cudaSuccess &&
        (result = cudaMemcpy(sides->granules, list, granules * sizeof *list,
                             cudaMemcpyHostToDevice)) == cudaSuccess)
        result = cudaMemcpy(sides->bits, bits, (granules / REACH_SIDE_BITS + 1) * sizeof *bits,
                            cudaMemcpyHostToDevice);
    free(cycles);
    free(list);
    free(bits);
    for (uint32_t side = 0; side < 2; side++) {
        sides->first[side] = side ? (uint32_t)lists.count[0] : 0;
        sides->count[side] = (uint32_t)lists.count[side];
    }
    sides->unsure = (uint32_t)lists.unsure;
    if (!room)
        snprintf(why, why_bytes, "cannot sort %llu granules: out of memory",
                 (unsigned long long)granules);
    else if (result != cudaSuccess)
        snprintf(why, why_bytes, "cannot sort by sides: %s", cudaGetErrorString(result));
    else if (lists.untimed > 0)
        snprintf(why, why_bytes,
                 "%llu granules were timed from one side only: is another job on this GPU?",
                 (unsigned long long)lists.untimed);
    return room && result == cudaSuccess && lists.untimed == 0;
}

/* Waits for the device. Returns false, with a message in `why`, if a block ran on an SM of no
 * side. */
static inline bool reach_sides_check(const reach_sides *sides, char *why, size_t why_bytes)
{
    uint32_t unknown = 0;
    const cudaError_t result =
        cudaMemcpy(&unknown, sides->unknown, sizeof unknown, cudaMemcpyDeviceToHost);

    if (result != cudaSuccess)
        snprintf(why, why_bytes, "the kernel failed: %s", cudaGetErrorString(result));
    else if (unknown)
        snprintf(
            why, why_bytes,
            "%u blocks ran on SMs of no known side: the fingerprint is not of this GPU, or the "
            "GPU must be measured again",
            unknown);
    return result == cudaSuccess && unknown == 0;
}

#endif
