/* reach_cuco.cuh: Bloom filters of cuCollections (cuco) that are longer than the TLB reaches, in
 * scopes and in windows. It is header only and needs reach_key_windows.cuh, reach_scopes.cuh and
 * cuco, which is not part of reachd. Compile with --extended-lambda, which cuco requires.
 * reach_cuco_set.cuh has sets.
 *
 * Scopes need no change in cuco: call cuco once per scope, with a predicate.
 *
 *     reach_for_each_scope(scopes, [&](const reach_pass &pass) {
 *         const auto test = reach_bloom_scope_test(pass, policy, blocks);
 *         filter.add_if_async(first, last, first, test, stream);
 *         filter.contains_if_async(first, last, first, test, reach_or_output<bool>{found}, stream);
 *     });
 *
 * reach_windowed_bloom_filter works in windows. Each window has its own bloom_filter_ref of cuco
 * over its part of one allocation, and the SMs of the window serve its keys alone. */
#ifndef REACH_CUCO_CUH
#define REACH_CUCO_CUH

#include "reach_key_windows.cuh"
#include "reach_scopes.cuh"

#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuco/bloom_filter_ref.cuh>
#include <cuco/extent.cuh>

/* ---- scopes ------------------------------------------------------------------------------------
 */

/* Returns the block of the filter that holds a key. It works in device code only, because policies
 * hash there. */
template <class Policy, class Extent> struct reach_bloom_block {
    Policy policy;
    Extent blocks;

    template <class Key> __host__ __device__ uint64_t operator()(const Key &key) const
    {
#ifdef __CUDA_ARCH__
        return (uint64_t)policy.block_index(policy.hash(key), blocks);
#else
        (void)key;
        return 0;
#endif
    }
};

/* Returns the predicate of one scope for a filter of `blocks` blocks at the start of allocation
 * `i`. */
template <class Policy, class Extent>
static inline reach_key_in_scope<reach_bloom_block<Policy, Extent>>
reach_bloom_scope_test(const reach_pass &pass, const Policy &policy, Extent blocks, uint32_t i = 0)
{
    const uint64_t block_bytes = sizeof(typename Policy::word_type) * Policy::words_per_block;
    return reach_scope_test_of(pass, block_bytes, reach_bloom_block<Policy, Extent>{policy, blocks},
                               i);
}

/* An output of contains_if that collects the results of several scopes. contains_if writes false
 * for keys that its predicate excludes, which must not overwrite the result of another scope. All
 * outputs must be false before the first scope. */
template <class Found> struct reach_or_output {
    Found *at;

    __host__ __device__ reach_or_output operator+(uint64_t i) const
    {
        return {at + i};
    }
    __host__ __device__ const reach_or_output &operator*() const
    {
        return *this;
    }
    __host__ __device__ const reach_or_output &operator=(bool found) const
    {
        if (found)
            *at = found;
        return *this;
    }
};

/* ---- windows -----------------------------------------------------------------------------------
 */

/* The view of a filter that is passed to kernels by value. */
template <class Key, class Policy> struct reach_bloom_parts {
    using word = typename Policy::word_type;
    using extent = cuco::extent<size_t>;
    using ref = cuco::bloom_filter_ref<Key, extent, cuda::thread_scope_device, Policy>;
    static constexpr uint64_t block_bytes = sizeof(word) * Policy::words_per_block;
    static_assert(sizeof(typename Policy::hash_result_type) == 8,
                  "windows are chosen by a hash of 64 bits");
    static_assert(sizeof(word) == 4 || sizeof(word) == 8, "words have 32 or 64 bits");

    reach_table table;
    word *words;
    uint64_t blocks; /* blocks of all windows */
    Policy policy;
};

/* Returns the filter of the calling thread's window. */
template <class Parts>
static __device__ __forceinline__ typename Parts::ref reach_bloom_ref(const Parts &parts,
                                                                      const reach_items &mine)
{
    return typename Parts::ref{parts.words +
                                   mine.first * (Parts::block_bytes / sizeof(typename Parts::word)),
                               typename Parts::extent{(size_t)reach_odd_items(mine.count)},
                               {},
                               parts.policy};
}

/* Calls work(i, key, hash, is_mine) for all keys. All 32 lanes of a warp call it together, also
 * past the end. */
template <class Key, class Policy, class InputIt, class Work>
static __device__ __forceinline__ void reach_bloom_scan(const reach_bloom_parts<Key, Policy> &parts,
                                                        const reach_me &me, const reach_items &mine,
                                                        InputIt first, uint64_t count, Work work)
{
    reach_scan_keys<Key>(parts.table, me, first, count,
                         [&](uint64_t i, const Key &key, bool is_valid) {
                             const uint64_t hash = parts.policy.hash(key);
                             const uint64_t block = reach_item_of_hash(hash, parts.blocks);
                             work(i, key, hash, is_valid && reach_has_item(mine, block));
                         });
}

/* Sets bits of a word. From sm_80 on, the sector of the word leaves the L2 early. The next keys are
 * unlikely to use the sector, and the keys that every window reads stay in the L2 longer. */
template <class Word>
static __device__ __forceinline__ void reach_bloom_set(Word *at, Word bits, uint64_t leaves_early)
{
#if __CUDA_ARCH__ >= 800
    if constexpr (sizeof(Word) == 4)
        asm volatile("red.relaxed.gpu.global.or.b32.L2::cache_hint [%0], %1, %2;" ::"l"(
                         __cvta_generic_to_global(at)),
                     "r"(bits), "l"(leaves_early)
                     : "memory");
    else
        asm volatile("red.relaxed.gpu.global.or.b64.L2::cache_hint [%0], %1, %2;" ::"l"(
                         __cvta_generic_to_global(at)),
                     "l"(bits), "l"(leaves_early)
                     : "memory");
#else
    (void)leaves_early;
    cuda::atomic_ref<Word, cuda::thread_scope_device>{*at}.fetch_or(bits,
                                                                    cuda::memory_order_relaxed);
#endif
}

/* Returns the argument `leaves_early` of reach_bloom_set. */
static __device__ __forceinline__ uint64_t reach_bloom_leaves_early(void)
{
    uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

/* The lanes of a tile add the keys of the tile one after the other. Each lane adds one word, so the
 * additions to a block are one request. The ref's add of one key sets the same bits. Some versions
 * of cuco also add one word per lane; in other versions each lane adds all words (commit
 * ec137e86). */
template <class Key, class Policy, class InputIt>
__global__ void __launch_bounds__(REACH_KEY_THREADS)
    reach_bloom_add(const __grid_constant__ reach_bloom_parts<Key, Policy> parts, InputIt first,
                    uint64_t count)
{
    namespace cg = cooperative_groups;
    constexpr uint32_t width = Policy::words_per_block;
    const auto tile = cg::tiled_partition<width>(cg::this_thread_block());
    reach_me me;

    if (!reach_enter(parts.table, &me))
        return;
    const reach_items mine =
        reach_items_between(me.first_byte, me.length_bytes, parts.block_bytes, parts.blocks);
    auto ref = reach_bloom_ref(parts, mine);
    const uint64_t leaves_early = reach_bloom_leaves_early();
    const auto is_mine = [&](const Key &key) {
        return reach_has_item(mine, reach_item_of_hash(parts.policy.hash(key), parts.blocks));
    };
    const auto add = [&](uint64_t, const Key &key, bool is_valid) {
        if constexpr (width == 1) {
            if (is_valid)
                ref.add(key);
        } else {
            const uint64_t hash = parts.policy.hash(key);
            const uint64_t first_word = parts.policy.block_index(hash, ref.block_extent()) * width;
            for (uint32_t left = tile.ballot(is_valid); left; left &= left - 1) {
                const int lane = __ffs((int)left) - 1;
                const uint64_t of = tile.shfl(hash, lane);
                reach_bloom_set(ref.data() + tile.shfl(first_word, lane) + tile.thread_rank(),
                                parts.policy.word_pattern(of, tile.thread_rank()), leaves_early);
            }
        }
    };
    reach_scan_my_keys<Key>(parts.table, me, first, count, is_mine, add);
}

/* Each key belongs to one window, so each output is written once. */
template <class Key, class Policy, class InputIt, class OutputIt>
__global__ void __launch_bounds__(REACH_KEY_THREADS)
    reach_bloom_contains(const __grid_constant__ reach_bloom_parts<Key, Policy> parts,
                         InputIt first, uint64_t count, OutputIt out)
{
    reach_me me;

    if (!reach_enter(parts.table, &me))
        return;
    const reach_items mine =
        reach_items_between(me.first_byte, me.length_bytes, parts.block_bytes, parts.blocks);
    const auto ref = reach_bloom_ref(parts, mine);
    reach_bloom_scan(parts, me, mine, first, count,
                     [&](uint64_t i, const Key &key, uint64_t, bool is_mine) {
                         if (is_mine)
                             *(out + i) = ref.contains(key);
                     });
}

/* A Bloom filter over memory that the caller owns, in the windows of a placement or plan. Key and
 * Policy have the meaning of cuco::bloom_filter; the policy hashes to 64 bits. The contents differ
 * from a cuco::bloom_filter over the same memory, because other blocks hold a key.
 *
 * add and contains enqueue a kernel that fills the GPU, allocate nothing and wait for nothing; they
 * can be captured in a graph. Iterators must be random access and refer to memory of the device.
 * All calls of one filter go to one stream at a time, because they share the queues of the windows.
 * No other kernel may occupy all SMs of a window, because its keys would not be served; check
 * detects this afterwards. */
template <class Key, class Policy> class reach_windowed_bloom_filter
{
  public:
    using parts_type = reach_bloom_parts<Key, Policy>;

    /* Opens the filter. `memory` is `bytes` of the current device, aligned to a block and as long
     * as all windows together. Makes a table of some KiB, and waits. The memory is not cleared.
     * Returns cudaErrorInvalidValue if the memory is not aligned, the windows leave gaps or are of
     * several allocations, or a window has no block. */
    cudaError_t open(void *memory, uint64_t bytes, const struct reach_windows *windows,
                     const Policy &policy = {})
    {
        close();
        if ((uintptr_t)memory % parts_type::block_bytes)
            return cudaErrorInvalidValue;
        const cudaError_t result = windows_.open(windows, bytes, parts_type::block_bytes);
        parts_.table = windows_.table();
        parts_.words = (typename parts_type::word *)memory;
        parts_.blocks = bytes / parts_type::block_bytes;
        parts_.policy = policy;
        return result;
    }

    void close()
    {
        windows_.close();
        parts_ = {};
    }

    cudaError_t clear(cudaStream_t stream)
    {
        return cudaMemsetAsync(parts_.words, 0, parts_.blocks * parts_type::block_bytes, stream);
    }

    template <class InputIt> cudaError_t add(InputIt first, InputIt last, cudaStream_t stream)
    {
        const uint64_t count = (uint64_t)(last - first);
        return windows_.launch(reach_bloom_add<Key, Policy, InputIt>, count, stream, parts_, first,
                               count);
    }

    template <class InputIt, class OutputIt>
    cudaError_t contains(InputIt first, InputIt last, OutputIt out, cudaStream_t stream)
    {
        const uint64_t count = (uint64_t)(last - first);
        return windows_.launch(reach_bloom_contains<Key, Policy, InputIt, OutputIt>, count, stream,
                               parts_, first, count, out);
    }

    /* Waits for the device; see reach_key_windows. */
    bool check(char *why, size_t why_bytes) const
    {
        return windows_.check(why, why_bytes);
    }

  private:
    parts_type parts_ = {};
    reach_key_windows windows_;
};

#endif
