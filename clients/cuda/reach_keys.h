/* reach_keys.h: keys that are hashed over an allocation in windows, such as the keys of a Bloom
 * filter or a hash set. It maps keys and items (blocks, runs of slots) to windows.
 * reach_key_windows.cuh includes this header. C, C++, host and device compile the same lines
 * (tests/unit/clients/cuda/test_keys.c). Only the declarations of reach.h are used. Any thread may
 * call the functions. */
#ifndef REACH_KEYS_H
#define REACH_KEYS_H

#include "reach_ranges.h"

/* Returns a 64-bit hash of a number. It is a bijection: the finalizer of MurmurHash3 (Appleby).
 * Each bit of the number changes each bit of the hash with a chance of about a half. */
REACH_INLINE uint64_t reach_mix_key(uint64_t key)
{
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdull;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ull;
    return key ^ key >> 33;
}

/* Returns the high half of a product of 128 bits. */
REACH_INLINE uint64_t reach_high_product(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
    return __umul64hi(a, b);
#else
    return (uint64_t)((unsigned __int128)a * b >> 64);
#endif
}

/* Maps a hash of 64 bits to an item below `items`, each equally often. The item is the high bits of
 * hash times items, so a window gets keys in proportion to its length. The hash is multiplied by an
 * odd number first (Fibonacci hashing, Knuth, TAOCP 3, 6.4). A structure that also derives the
 * place within the window from the high bits therefore uses the whole window. */
REACH_INLINE uint64_t reach_item_of_hash(uint64_t hash, uint64_t items)
{
    return reach_high_product(hash * 0x9e3779b97f4a7c15ull, items);
}

/* Returns an odd number of items, at most one less than `items`, which must be at least 1. It is
 * for structures such as cuco's default policy. This policy computes an item as hash % items, and
 * takes more bits from the low end of the hash. If `items` were a power of two, these bits would be
 * equal for all keys of an item. */
REACH_INLINE uint64_t reach_odd_items(uint64_t items)
{
    return items - (items % 2 == 0);
}

/* Returns the items that begin in [first_byte, first_byte + length_bytes) of an allocation of
 * `items` items. */
REACH_INLINE struct reach_items reach_items_between(uint64_t first_byte, uint64_t length_bytes,
                                                    uint64_t item_bytes, uint64_t items)
{
    const uint64_t next = reach_first_item(first_byte + length_bytes, item_bytes);
    const uint64_t end = next < items ? next : items;
    struct reach_items between;

    between.first = reach_first_item(first_byte, item_bytes);
    between.count = end > between.first ? end - between.first : 0;
    return between;
}

/* Returns whether the windows serve all keys. They must be of one allocation and cover all of its
 * `bytes` in order, each with SMs and at least one item of `item_bytes`. */
static inline bool reach_windows_serve_all(const struct reach_windows *windows, uint64_t bytes,
                                           uint64_t item_bytes)
{
    uint64_t end = 0;
    bool good = windows->window_count > 0 && windows->allocation_count == 1 && item_bytes > 0;

    for (uint32_t w = 0; good && w < windows->window_count; w++) {
        const struct reach_window *window = &windows->window[w];
        const struct reach_items items = reach_items_between(
            window->first_byte, window->length_bytes, item_bytes, bytes / item_bytes);

        good = window->first_byte == end && window->sm_count > 0 && items.count > 0;
        end += window->length_bytes;
    }
    return good && end == bytes;
}

#endif
