/* reach_partition.cuh: a stable partition of keys by window or scope, on the device. Afterwards the
 * keys of each range lie side by side, in their old order, with their payloads or with the
 * positions that they had. Every SM then reads keys of its own window only (partitioned windows).
 *
 * It is header only and needs reach_ranges.h and CUB, which every CUDA toolkit has.
 *
 *     size_t bytes = 0; // as with CUB, the first call returns the size
 *     reach_partition_positions(NULL, bytes, rows, rows_out, positions, count, ranges, offsets,
 *                               NULL, stream);
 *     cudaMalloc(&temp, bytes);
 *     reach_partition_positions(temp, bytes, rows, rows_out, positions, count, ranges, offsets,
 *                               NULL, stream);
 *     // the keys of window w: rows_out[offsets[w] .. offsets[w + 1]), on the device
 *
 * All functions work on the caller's stream and can be captured in a graph. They allocate nothing
 * and wait for nothing. The workspace is some 2 % of the keys for 32 ranges. Input and output must
 * not overlap. The functions return cudaErrorInvalidValue if a required pointer is NULL, the
 * workspace is too small, there are no ranges, or positions cannot count the keys.
 *
 * First, each block counts one tile of keys by range. An exclusive sum over (range, tile) gives the
 * place of every tile in every range. Each block then ranks its tile again, sorts it by range in
 * shared memory and writes it in runs. Ranks come from ballots, like in the radix sort of Adinets
 * and Merrill (Onesweep, 2022), but without its look-back between blocks. Keys are read twice, and
 * no block waits for another one. */
#ifndef REACH_PARTITION_CUH
#define REACH_PARTITION_CUH

#include "reach_ranges.h"

#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>
#include <limits.h>
#include <type_traits>

enum {
    REACH_PARTITION_THREADS = 256,
    REACH_PARTITION_WARPS = REACH_PARTITION_THREADS / 32,
    REACH_PARTITION_BLOCKS = 4 /* least number of blocks per SM, whose threads fit on every GPU */
};

/* Keys in memory, for reach_partition_computed. */
template <class Key> struct reach_partition_array {
    const Key *keys;
    __device__ __forceinline__ Key operator()(uint64_t i) const
    {
        return keys[i];
    }
};

/* Keys that equal their own index, for reach_partition_computed. Negative keys lie beyond the last
 * range. */
struct reach_partition_itself {
    template <class Key> __device__ __forceinline__ uint64_t operator()(Key key) const
    {
        return (uint64_t)key;
    }
};

/* The payload type of keys without a payload. */
struct reach_partition_nothing {
};

/* ---- on the device -----------------------------------------------------------------------------
 */

/* The number of keys per thread (`items`) and per tile. A tile with its payload must fit 48 KiB of
 * shared memory. The registers of four blocks must fit one SM. */
template <class Key, class Payload> struct reach_partition_shape {
    static constexpr bool has_payload = !std::is_same<Payload, reach_partition_nothing>::value;
    static constexpr uint32_t payload_bytes = has_payload ? sizeof(Payload) : 0;
    static constexpr uint32_t items = sizeof(Key) <= 4 && payload_bytes <= 4 ? 16 : 8;
    static constexpr uint32_t tile = REACH_PARTITION_THREADS * items;
    static_assert(sizeof(Key) + payload_bytes <= 16, "keys and payloads have at most 8 bytes each");
};

/* Copies the bounds of the ranges to `first[2^BITS]`, for reach_find_range. */
template <uint32_t BITS>
static __device__ __forceinline__ void reach_partition_bounds(const reach_ranges &ranges,
                                                              uint64_t *first)
{
    for (uint32_t r = threadIdx.x; r < 1u << BITS; r += REACH_PARTITION_THREADS)
        first[r] = r < ranges.count ? ranges.first[r] : UINT64_MAX;
}

/* Returns the number of keys in the tile that begins at key `begin`. */
static __device__ __forceinline__ uint32_t reach_partition_filled(uint64_t count, uint64_t begin,
                                                                  uint32_t size)
{
    return count - begin < size ? (uint32_t)(count - begin) : size;
}

/* Sets counts[r * tiles + t] to the number of keys of range r in tile t. Each block counts one
 * tile. */
template <uint32_t BITS, uint32_t ITEMS, class In, class Where>
__global__ void __launch_bounds__(REACH_PARTITION_THREADS, REACH_PARTITION_BLOCKS)
    reach_partition_count(const __grid_constant__ reach_ranges ranges, In in, Where where,
                          uint64_t count, uint64_t *counts)
{
    __shared__ uint64_t first[1 << BITS];
    __shared__ uint32_t found[REACH_PARTITION_WARPS][1 << BITS];
    const uint64_t begin = (uint64_t)blockIdx.x * (REACH_PARTITION_THREADS * ITEMS);
    const uint32_t filled = reach_partition_filled(count, begin, REACH_PARTITION_THREADS * ITEMS);
    uint32_t *const mine = found[threadIdx.x / 32];
    reach_partition_bounds<BITS>(ranges, first);
    for (uint32_t r = threadIdx.x % 32; r < 1u << BITS; r += 32)
        mine[r] = 0;
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < ITEMS; k++) {
        const uint32_t at = k * REACH_PARTITION_THREADS + threadIdx.x;
        if (at < filled)
            atomicAdd(&mine[reach_find_range(first, BITS, ranges.count, where(in(begin + at)))],
                      1u);
    }
    __syncthreads();
    for (uint32_t r = threadIdx.x; r < ranges.count; r += REACH_PARTITION_THREADS) {
        uint32_t sum = 0;
        for (uint32_t warp = 0; warp < REACH_PARTITION_WARPS; warp++)
            sum += found[warp][r];
        counts[(uint64_t)r * gridDim.x + blockIdx.x] = sum;
    }
}

/* Returns the lanes of the warp with the same range. Lanes that are not `valid` have no range. */
template <uint32_t BITS>
static __device__ __forceinline__ uint32_t reach_partition_same(uint32_t range, bool valid)
{
    uint32_t same = __ballot_sync(~0u, valid);
#pragma unroll
    for (uint32_t bit = 0; bit < BITS; bit++) {
        const bool mine = range >> bit & 1;
        const uint32_t set = __ballot_sync(~0u, mine);
        same &= mine ? set : ~set;
    }
    return same;
}

/* The memory that the threads of a block share while they sort a tile. */
template <uint32_t BITS, class Key, class Payload> struct reach_partition_tile {
    static constexpr uint32_t size = reach_partition_shape<Key, Payload>::tile;
    uint64_t first[1 << BITS];            /* bounds of the ranges */
    uint64_t goal[1 << BITS];             /* place of each range in the output */
    uint32_t start[1 << BITS];            /* place of each range within the sorted tile */
    uint32_t sums[REACH_PARTITION_WARPS]; /* sums of `start`, warp by warp */
    uint16_t before[REACH_PARTITION_WARPS][1 << BITS]; /* keys of earlier warps, after ranking */
    uint8_t range[size];                               /* range of each sorted key */
    Key key[size];
    Payload payload[reach_partition_shape<Key, Payload>::has_payload ? size : 1];
};

/* Turns the counts of each warp in `before` into sums over the earlier warps, and fills `start`,
 * the exclusive sum over ranges. All threads of the block must call it, with one range per
 * thread. */
template <uint32_t BITS, class Tile>
static __device__ __forceinline__ void reach_partition_sums(Tile &tile)
{
    static_assert(1 << BITS <= REACH_PARTITION_THREADS, "a thread has one range");
    const uint32_t range = threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t own = 0, sum, earlier = 0;
    for (uint32_t w = 0; range < 1u << BITS && w < REACH_PARTITION_WARPS; w++) {
        const uint32_t counted = tile.before[w][range];
        tile.before[w][range] = (uint16_t)own;
        own += counted;
    }
    sum = own;
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        const uint32_t left = __shfl_up_sync(~0u, sum, distance);
        sum += lane >= distance ? left : 0;
    }
    if (lane == 31)
        tile.sums[warp] = sum;
    __syncthreads();
    for (uint32_t w = 0; w < warp; w++)
        earlier += tile.sums[w];
    if (range < 1u << BITS)
        tile.start[range] = earlier + sum - own;
    __syncthreads();
}

/* Computes offsets and counts of all ranges from the sums over (range, tile). One block calls
 * it. */
static __device__ __forceinline__ void reach_partition_report(uint32_t ranges, uint32_t tiles,
                                                              const uint64_t *places,
                                                              uint64_t count, uint64_t *offsets,
                                                              uint64_t *counts)
{
    for (uint32_t r = threadIdx.x; r < ranges; r += REACH_PARTITION_THREADS) {
        const uint64_t begin = places[(uint64_t)r * tiles];
        const uint64_t end = r + 1 < ranges ? places[(uint64_t)(r + 1) * tiles] : count;
        if (offsets)
            offsets[r] = begin;
        if (offsets && r + 1 == ranges)
            offsets[ranges] = count;
        if (counts)
            counts[r] = end - begin;
    }
}

/* The payloads. get(i) returns the payload of key i, which is i itself if `in` is NULL. */
template <class Payload> struct reach_partition_payload {
    const Payload *in; /* NULL if the payloads are positions */
    Payload *out;
    __device__ __forceinline__ Payload get(uint64_t i) const
    {
        return in ? in[i] : (Payload)i;
    }
};
template <> struct reach_partition_payload<reach_partition_nothing> {
};

/* Moves one tile. `places` has the exclusive sums of the counts of reach_partition_count. Warp w
 * processes the keys from w * 32 * ITEMS of the tile, in rows of 32, so that ranks follow the
 * input. */
template <uint32_t BITS, class Key, class Payload, class In, class Where>
__global__ void __launch_bounds__(REACH_PARTITION_THREADS, REACH_PARTITION_BLOCKS)
    reach_partition_move(const __grid_constant__ reach_ranges ranges, In in, Where where,
                         reach_partition_payload<Payload> payload, Key *out, uint64_t count,
                         const uint64_t *places, uint64_t *offsets, uint64_t *counts)
{
    constexpr uint32_t ITEMS = reach_partition_shape<Key, Payload>::items;
    __shared__ reach_partition_tile<BITS, Key, Payload> tile;
    const uint32_t lane = threadIdx.x % 32, below = (1u << lane) - 1;
    const uint64_t begin = (uint64_t)blockIdx.x * tile.size;
    const uint32_t filled = reach_partition_filled(count, begin, tile.size);
    const uint32_t mine = (threadIdx.x / 32) * (32 * ITEMS) + lane;
    uint16_t *const before = tile.before[threadIdx.x / 32];
    Key key[ITEMS];
    uint32_t rank[ITEMS]; /* range << 16 | rank among the keys of this warp and range */
#pragma unroll
    for (uint32_t k = 0; k < ITEMS; k++)
        key[k] = mine + k * 32 < filled ? in(begin + mine + k * 32) : Key();
    reach_partition_bounds<BITS>(ranges, tile.first);
    for (uint32_t r = lane; r < 1u << BITS; r += 32)
        before[r] = 0;
    for (uint32_t r = threadIdx.x; r < ranges.count; r += REACH_PARTITION_THREADS)
        tile.goal[r] = places[(uint64_t)r * gridDim.x + blockIdx.x];
    if (blockIdx.x == 0)
        reach_partition_report(ranges.count, gridDim.x, places, count, offsets, counts);
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < ITEMS; k++) {
        const bool valid = mine + k * 32 < filled;
        const uint32_t range = reach_find_range(tile.first, BITS, ranges.count, where(key[k]));
        const uint32_t same = reach_partition_same<BITS>(range, valid);
        const uint32_t seen = before[range];
        rank[k] = range << 16 | (seen + __popc(same & below));
        __syncwarp();
        if (valid && (same & below) == 0)
            before[range] = (uint16_t)(seen + __popc(same));
        __syncwarp();
    }
    __syncthreads();
    reach_partition_sums<BITS>(tile);
#pragma unroll
    for (uint32_t k = 0; k < ITEMS; k++) {
        const uint32_t range = rank[k] >> 16;
        const uint32_t at = tile.start[range] + before[range] + (rank[k] & 0xffff);
        if (mine + k * 32 < filled) {
            tile.range[at] = (uint8_t)range;
            tile.key[at] = key[k];
            if constexpr (reach_partition_shape<Key, Payload>::has_payload)
                tile.payload[at] = payload.get(begin + mine + k * 32);
        }
    }
    __syncthreads();
    for (uint32_t at = threadIdx.x; at < filled; at += REACH_PARTITION_THREADS) {
        const uint32_t range = tile.range[at];
        const uint64_t goal = tile.goal[range] + (at - tile.start[range]);
        out[goal] = tile.key[at];
        if constexpr (reach_partition_shape<Key, Payload>::has_payload)
            payload.out[goal] = tile.payload[at];
    }
}

/* ---- on the host -------------------------------------------------------------------------------
 */

template <class... Parameters, class... Arguments>
static cudaError_t reach_partition_launch(void (*kernel)(Parameters...), uint32_t blocks,
                                          cudaStream_t stream, Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(REACH_PARTITION_THREADS);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

/* All arguments and derived sizes of a call. */
template <class Key, class Payload, class In, class Where> struct reach_partition_call {
    In in;
    Where where;
    reach_partition_payload<Payload> payload;
    Key *out;
    uint64_t count;
    const reach_ranges *ranges;
    uint64_t *offsets, *counts;
    cudaStream_t stream;

    template <uint32_t BITS>
    cudaError_t run(uint64_t *places, uint32_t tiles, void *scan, size_t scan_bytes)
    {
        constexpr uint32_t ITEMS = reach_partition_shape<Key, Payload>::items;
        cudaError_t result =
            reach_partition_launch(reach_partition_count<BITS, ITEMS, In, Where>, tiles, stream,
                                   *ranges, in, where, count, places);
        if (result == cudaSuccess)
            result = cub::DeviceScan::ExclusiveSum(scan, scan_bytes, places, places,
                                                   (int)(tiles * ranges->count), stream);
        if (result == cudaSuccess)
            result = reach_partition_launch(reach_partition_move<BITS, Key, Payload, In, Where>,
                                            tiles, stream, *ranges, in, where, payload, out, count,
                                            places, offsets, counts);
        return result;
    }

    /* Uses the smallest of these values of BITS that suffices for the ranges. */
    cudaError_t run_bits(uint64_t *places, uint32_t tiles, void *scan, size_t scan_bytes)
    {
        switch (reach_search_bits(ranges->count)) {
        case 0:
        case 1:
            return run<1>(places, tiles, scan, scan_bytes);
        case 2:
            return run<2>(places, tiles, scan, scan_bytes);
        case 3:
            return run<3>(places, tiles, scan, scan_bytes);
        case 4:
        case 5:
            return run<5>(places, tiles, scan, scan_bytes);
        default:
            return run<8>(places, tiles, scan, scan_bytes);
        }
    }
};

/* Partitions the keys in(0), in(1), .. of any origin by the index where(key). The device calls both
 * functors; they must return the same each time. The functions below are for keys in memory. */
template <class Key, class Payload, class In, class Where>
static cudaError_t reach_partition_computed(void *temp, size_t &temp_bytes, In in, Where where,
                                            Key *keys_out, reach_partition_payload<Payload> payload,
                                            uint64_t count, const reach_ranges &ranges,
                                            uint64_t *offsets_out, uint64_t *counts_out,
                                            cudaStream_t stream)
{
    const uint64_t size = reach_partition_shape<Key, Payload>::tile;
    const uint64_t tiles = count ? (count - 1) / size + 1 : 1;
    if (ranges.count < 1 || ranges.count > REACH_RANGE_MAX || tiles > INT_MAX / ranges.count)
        return cudaErrorInvalidValue;
    const uint64_t places_bytes = (tiles * ranges.count * sizeof(uint64_t) + 255) / 256 * 256;
    size_t scan_bytes = 0;
    const cudaError_t result =
        cub::DeviceScan::ExclusiveSum(nullptr, scan_bytes, (uint64_t *)nullptr, (uint64_t *)nullptr,
                                      (int)(tiles * ranges.count), stream);
    if (result != cudaSuccess)
        return result;
    if (!temp) {
        temp_bytes = places_bytes + scan_bytes;
        return cudaSuccess;
    }
    if (temp_bytes < places_bytes + scan_bytes || (count && !keys_out))
        return cudaErrorInvalidValue;
    reach_partition_call<Key, Payload, In, Where> call = {
        in, where, payload, keys_out, count, &ranges, offsets_out, counts_out, stream};
    return call.run_bits((uint64_t *)temp, (uint32_t)tiles, (char *)temp + places_bytes,
                         scan_bytes);
}

/* Partitions keys alone. Keys are integers of 4 or 8 bytes: indices in the units of `ranges` (rows,
 * words, ..). `offsets_out[ranges.count + 1]` and `counts_out[ranges.count]` are on the device;
 * either may be NULL. Several threads may call any of the functions at the same time, each
 * with its own workspace. */
template <class Key>
static cudaError_t reach_partition_keys(void *temp, size_t &temp_bytes, const Key *keys_in,
                                        Key *keys_out, uint64_t count, const reach_ranges &ranges,
                                        uint64_t *offsets_out, uint64_t *counts_out,
                                        cudaStream_t stream = 0)
{
    if (temp && count && !keys_in)
        return cudaErrorInvalidValue;
    return reach_partition_computed<Key, reach_partition_nothing>(
        temp, temp_bytes, reach_partition_array<Key>{keys_in}, reach_partition_itself(), keys_out,
        reach_partition_payload<reach_partition_nothing>(), count, ranges, offsets_out, counts_out,
        stream);
}

/* Partitions keys with a payload of at most 8 bytes per key. */
template <class Key, class Payload>
static cudaError_t reach_partition_pairs(void *temp, size_t &temp_bytes, const Key *keys_in,
                                         Key *keys_out, const Payload *payloads_in,
                                         Payload *payloads_out, uint64_t count,
                                         const reach_ranges &ranges, uint64_t *offsets_out,
                                         uint64_t *counts_out, cudaStream_t stream = 0)
{
    if (temp && count && (!keys_in || !payloads_in || !payloads_out))
        return cudaErrorInvalidValue;
    return reach_partition_computed<Key, Payload>(
        temp, temp_bytes, reach_partition_array<Key>{keys_in}, reach_partition_itself(), keys_out,
        reach_partition_payload<Payload>{payloads_in, payloads_out}, count, ranges, offsets_out,
        counts_out, stream);
}

/* Partitions keys, each with its position in the input. Position must be an integer type that can
 * count the keys. */
template <class Key, class Position>
static cudaError_t reach_partition_positions(void *temp, size_t &temp_bytes, const Key *keys_in,
                                             Key *keys_out, Position *positions_out, uint64_t count,
                                             const reach_ranges &ranges, uint64_t *offsets_out,
                                             uint64_t *counts_out, cudaStream_t stream = 0)
{
    if (count && (uint64_t)(Position)(count - 1) != count - 1)
        return cudaErrorInvalidValue;
    if (temp && count && (!keys_in || !positions_out))
        return cudaErrorInvalidValue;
    return reach_partition_computed<Key, Position>(
        temp, temp_bytes, reach_partition_array<Key>{keys_in}, reach_partition_itself(), keys_out,
        reach_partition_payload<Position>{nullptr, positions_out}, count, ranges, offsets_out,
        counts_out, stream);
}

#endif
