/* reach_cuco_set.cuh: hash sets of cuCollections (cuco) that are longer than the TLB reaches, in
 * windows. It is header only and needs reach_key_windows.cuh and cuco, which is not part of reachd.
 *
 * A set of cuco probes all its slots, so a range of slots is not a scope. Here each window has its
 * own set in its part of one allocation. A hash of the key chooses the window. Only the SMs of the
 * window serve its keys, with the ref's own insert, contains and find. `Ref` is a static_set_ref
 * with these operators. Versions of cuco differ in how a ref is made over some memory, so the
 * caller makes it; docs/jobs.md has an example.
 */
#ifndef REACH_CUCO_SET_CUH
#define REACH_CUCO_SET_CUH

#include "reach_key_windows.cuh"

#include <cooperative_groups.h>
#include <cuco/static_set_ref.cuh>
#include <vector>

enum { REACH_SET_PART_BYTES = 256 }; /* parts of windows begin at multiples of this length */

/* Chooses windows, for keys that are numbers. Keys that compare equal must have the same hash. */
struct reach_key_hash {
    template <class Key> __host__ __device__ uint64_t operator()(const Key &key) const
    {
        return reach_mix_key((uint64_t)key);
    }
};

/* The view of a set that is passed to kernels by value. */
template <class Ref, class Hash> struct reach_set_parts {
    reach_table table;
    const Ref *refs; /* one for each window; in device memory */
    uint64_t items;  /* number of REACH_SET_PART_BYTES in all windows */
    Hash hash;
};

/* Calls work(tile, i, key) for each key of this window. All lanes of a tile call it together,
 * because the operations of a ref require it. i is the index of the key in the input. */
template <class Ref, class Hash, class InputIt, class Work>
static __device__ __forceinline__ void reach_set_scan(const reach_set_parts<Ref, Hash> &parts,
                                                      const reach_me &me, InputIt first,
                                                      uint64_t count, Work work)
{
    namespace cg = cooperative_groups;
    using key_type = typename Ref::key_type;
    const auto tile = cg::tiled_partition<Ref::cg_size>(cg::this_thread_block());
    const reach_items mine =
        reach_items_between(me.first_byte, me.length_bytes, REACH_SET_PART_BYTES, parts.items);
    const auto is_mine = [&](const key_type &key) {
        return reach_has_item(mine, reach_item_of_hash(parts.hash(key), parts.items));
    };
    const auto in_tiles = [&](uint64_t i, const key_type &key, bool is_valid) {
        for (uint32_t left = tile.ballot(is_valid); left; left &= left - 1) {
            const int lane = __ffs((int)left) - 1;
            work(tile, tile.shfl(i, lane), tile.shfl(key, lane));
        }
    };
    reach_scan_my_keys<key_type>(parts.table, me, first, count, is_mine, in_tiles);
}

/* Inserts the keys. `inserted`, if it is not NULL, is increased by the number of keys that were not
 * in the set. */
template <class Ref, class Hash, class InputIt>
__global__ void __launch_bounds__(REACH_KEY_THREADS)
    reach_set_insert(const __grid_constant__ reach_set_parts<Ref, Hash> parts, InputIt first,
                     uint64_t count, unsigned long long *inserted)
{
    unsigned long long mine = 0;
    reach_me me;

    if (!reach_enter(parts.table, &me))
        return;
    Ref ref = parts.refs[me.window];
    reach_set_scan(parts, me, first, count,
                   [&](const auto &tile, uint64_t, const typename Ref::key_type &key) {
                       mine += ref.insert(tile, key) && tile.thread_rank() == 0;
                   });
    if (inserted && mine)
        atomicAdd(inserted, mine);
}

/* Each key belongs to one window, so each output is written once. */
template <class Ref, class Hash, class InputIt, class OutputIt>
__global__ void __launch_bounds__(REACH_KEY_THREADS)
    reach_set_contains(const __grid_constant__ reach_set_parts<Ref, Hash> parts, InputIt first,
                       uint64_t count, OutputIt out)
{
    reach_me me;

    if (!reach_enter(parts.table, &me))
        return;
    const Ref ref = parts.refs[me.window];
    reach_set_scan(parts, me, first, count,
                   [&](const auto &tile, uint64_t i, const typename Ref::key_type &key) {
                       const bool found = ref.contains(tile, key);
                       if (tile.thread_rank() == 0)
                           *(out + i) = found;
                   });
}

template <class Ref, class Hash, class InputIt, class OutputIt>
__global__ void __launch_bounds__(REACH_KEY_THREADS)
    reach_set_find(const __grid_constant__ reach_set_parts<Ref, Hash> parts, InputIt first,
                   uint64_t count, OutputIt out)
{
    reach_me me;

    if (!reach_enter(parts.table, &me))
        return;
    const Ref ref = parts.refs[me.window];
    reach_set_scan(parts, me, first, count,
                   [&](const auto &tile, uint64_t i, const typename Ref::key_type &key) {
                       const auto found = ref.find(tile, key);
                       if (tile.thread_rank() == 0)
                           *(out + i) = found == ref.end() ? ref.empty_key_sentinel() : *found;
                   });
}

/* Makes all slots empty. */
template <class Key> __global__ void reach_set_fill(Key *slots, uint64_t count, Key empty)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        slots[i] = empty;
}

/* A hash set over memory that the caller owns, in the windows of a placement or plan. `Hash`
 * chooses the window of a key; it should not be the hash of `Ref`.
 *
 * clear, insert, contains and find enqueue kernels that fill the GPU, allocate nothing and wait for
 * nothing; they can be captured in a graph. Iterators must be random access and refer to memory of
 * the device. All calls of one set go to one stream at a time, because they share the queues of the
 * windows. No other kernel may occupy all SMs of a window, because the keys of that window would not be
 * served;
 * check detects this afterwards. Keys spread over the windows in proportion to the windows'
 * lengths, except for a deviation of the square root of their number. Like a set of cuco, a window
 * must not become full. */
template <class Ref, class Hash = reach_key_hash> class reach_windowed_set
{
  public:
    using key_type = typename Ref::key_type;

    reach_windowed_set() = default;
    ~reach_windowed_set()
    {
        close();
    }

    /* Opens the set. `memory` is `bytes` of the current device, aligned to REACH_SET_PART_BYTES and
     * as long as all windows together. make(part, part_bytes) returns the Ref of one window over
     * its part of that memory; the Ref may use less. Makes tables of some KiB, and waits. The
     * memory is not cleared. Returns cudaErrorInvalidValue if the memory is not aligned, the
     * windows leave gaps or are of several allocations, or a window is shorter than a part. */
    template <class Make>
    cudaError_t open(void *memory, uint64_t bytes, const struct reach_windows *windows, Make make,
                     const Hash &hash = {})
    {
        std::vector<Ref> refs;
        cudaError_t result;

        close();
        if ((uintptr_t)memory % REACH_SET_PART_BYTES)
            return cudaErrorInvalidValue;
        if ((result = windows_.open(windows, bytes, REACH_SET_PART_BYTES)) != cudaSuccess)
            return result;
        slots_ = (key_type *)memory;
        slot_count_ = bytes / sizeof(key_type);
        items_ = bytes / REACH_SET_PART_BYTES;
        hash_ = hash;
        for (uint32_t w = 0; w < windows->window_count; w++) {
            const reach_items items =
                reach_items_between(windows->window[w].first_byte, windows->window[w].length_bytes,
                                    REACH_SET_PART_BYTES, items_);
            refs.push_back(make((void *)((char *)memory + items.first * REACH_SET_PART_BYTES),
                                items.count * REACH_SET_PART_BYTES));
        }
        if ((result = cudaMalloc((void **)&refs_, refs.size() * sizeof(Ref))) != cudaSuccess ||
            (result = cudaMemcpy(refs_, refs.data(), refs.size() * sizeof(Ref),
                                 cudaMemcpyHostToDevice)) != cudaSuccess)
            close();
        return result;
    }

    void close()
    {
        windows_.close();
        cudaFree(refs_);
        refs_ = nullptr;
    }

    /* Empties the set. `empty` is the sentinel of the refs. Call it before the first insert. */
    cudaError_t clear(key_type empty, cudaStream_t stream)
    {
        reach_set_fill<<<1024, 1024, 0, stream>>>(slots_, slot_count_, empty);
        return cudaGetLastError();
    }

    /* Inserts keys. `inserted` is NULL, or a number on the device to which the count of new keys is
     * added. */
    template <class InputIt>
    cudaError_t insert(InputIt first, InputIt last, cudaStream_t stream,
                       unsigned long long *inserted = nullptr)
    {
        const uint64_t count = (uint64_t)(last - first);
        return windows_.launch(reach_set_insert<Ref, Hash, InputIt>, count, stream, parts(), first,
                               count, inserted);
    }

    /* Writes for each key whether it is in the set. */
    template <class InputIt, class OutputIt>
    cudaError_t contains(InputIt first, InputIt last, OutputIt out, cudaStream_t stream)
    {
        const uint64_t count = (uint64_t)(last - first);
        return windows_.launch(reach_set_contains<Ref, Hash, InputIt, OutputIt>, count, stream,
                               parts(), first, count, out);
    }

    /* Writes for each key the key of the set that equals it, or the sentinel of an empty slot. */
    template <class InputIt, class OutputIt>
    cudaError_t find(InputIt first, InputIt last, OutputIt out, cudaStream_t stream)
    {
        const uint64_t count = (uint64_t)(last - first);
        return windows_.launch(reach_set_find<Ref, Hash, InputIt, OutputIt>, count, stream, parts(),
                               first, count, out);
    }

    /* Waits for the device; see reach_key_windows. */
    bool check(char *why, size_t why_bytes) const
    {
        return windows_.check(why, why_bytes);
    }

  private:
    reach_set_parts<Ref, Hash> parts() const
    {
        return {windows_.table(), refs_, items_, hash_};
    }

    reach_key_windows windows_;
    Ref *refs_ = nullptr;
    key_type *slots_ = nullptr;
    uint64_t slot_count_ = 0;
    uint64_t items_ = 0;
    Hash hash_ = {};
};

#endif
