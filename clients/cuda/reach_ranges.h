/* reach_ranges.h: the scopes and windows of libreach's answers (reach.h) as values for kernels. It
 * has bounds in items (rows of a table, buckets, words), the search of an index among them, and one
 * pass over a scope. reach_scopes.cuh and reach_partition.cuh include this header. C, C++, host and
 * device compile the same lines (tests/unit/clients/cuda/test_ranges.c). Only the declarations of
 * reach.h are used, no function of libreach. Any thread may call the functions.
 *
 * An item belongs to the range in which its first byte lies.
 */
#ifndef REACH_RANGES_H
#define REACH_RANGES_H

#include "reach.h"

#include <string.h>

#ifdef __CUDACC__
#define REACH_INLINE static __host__ __device__ __forceinline__
#else
#define REACH_INLINE static inline
#endif

enum { REACH_RANGE_MAX = 256 }; /* at least REACH_WINDOW_MAX and REACH_SCOPE_MAX */

/* ---- ranges of one allocation ------------------------------------------------------------------
 */

/* Range r begins at item first[r] and ends at first[r + 1]. Items below first[0] belong to range 0,
 * and items past the end belong to the last range. So every index has a range. */
struct reach_ranges {
    uint32_t count;                  /* 1 .. REACH_RANGE_MAX */
    uint64_t first[REACH_RANGE_MAX]; /* ascending; equal ones leave a range empty */
};

/* A run of `count` items that begins at item `first`. */
struct reach_items {
    uint64_t first, count;
};

/* Returns the first item that begins at `byte` or later. */
REACH_INLINE uint64_t reach_first_item(uint64_t byte, uint64_t item_bytes)
{
    return byte / item_bytes + (byte % item_bytes != 0);
}

REACH_INLINE bool reach_has_item(struct reach_items items, uint64_t item)
{
    return item - items.first < items.count;
}

/* Makes ranges of items of `item_bytes` that begin at these bytes of an allocation. Returns false,
 * with an empty `*out`, if the number of ranges is 0 or too large, if bytes do not ascend, or if
 * item_bytes is 0. */
REACH_INLINE bool reach_ranges_make(struct reach_ranges *out, const uint64_t *first_bytes,
                                    uint32_t count, uint64_t item_bytes)
{
    bool good = count >= 1 && count <= REACH_RANGE_MAX && item_bytes > 0;

    memset(out, 0, sizeof *out);
    for (uint32_t r = 0; good && r < count; r++) {
        good = r == 0 || first_bytes[r] >= first_bytes[r - 1];
        out->first[r] = reach_first_item(first_bytes[r], item_bytes);
    }
    out->count = good ? count : 0;
    return good;
}

/* Makes ranges from the parts of allocation `i` of windows or scopes. Fails like
 * reach_ranges_make. */
static inline bool reach_ranges_of_parts(struct reach_ranges *out, const struct reach_extent *parts,
                                         uint32_t count, uint32_t allocation_count, uint32_t i,
                                         uint64_t item_bytes)
{
    uint64_t first_bytes[REACH_RANGE_MAX];

    for (uint32_t r = 0; r < count && r < REACH_RANGE_MAX; r++)
        first_bytes[r] = i < allocation_count ? parts[r * allocation_count + i].first_byte : 0;
    return reach_ranges_make(out, first_bytes, i < allocation_count ? count : 0, item_bytes);
}

static inline bool reach_ranges_of_windows(struct reach_ranges *out,
                                           const struct reach_windows *windows, uint32_t i,
                                           uint64_t item_bytes)
{
    return reach_ranges_of_parts(out, windows->part, windows->window_count,
                                 windows->allocation_count, i, item_bytes);
}

static inline bool reach_ranges_of_scopes(struct reach_ranges *out,
                                          const struct reach_scopes *scopes, uint32_t i,
                                          uint64_t item_bytes)
{
    return reach_ranges_of_parts(out, scopes->range, scopes->scope_count, scopes->allocation_count,
                                 i, item_bytes);
}

/* ---- search ------------------------------------------------------------------------------------
 */

/* Returns the number of steps of a search among `count` ranges, the least with 2^bits >= count. */
REACH_INLINE uint32_t reach_search_bits(uint32_t count)
{
    uint32_t bits = 0;

    while (1u << bits < count)
        bits++;
    return bits;
}

/* Returns the range of `at`. `first` has 2^bits elements; elements from `count` on must be
 * UINT64_MAX. */
REACH_INLINE uint32_t reach_find_range(const uint64_t *first, uint32_t bits, uint32_t count,
                                       uint64_t at)
{
    uint32_t range = 0;

    for (uint32_t step = 1u << bits >> 1; step; step >>= 1)
        range += at >= first[range + step] ? step : 0;
    return range < count ? range : count - 1;
}

/* ---- one scope ---------------------------------------------------------------------------------
 */

/* The memory that one pass may access in each allocation. The struct is passed to kernels by
 * value. */
struct reach_pass {
    uint32_t index; /* number of this pass, 0 .. of - 1 */
    uint32_t of;    /* number of passes */
    uint32_t allocation_count;
    struct reach_extent part[REACH_ALLOCATION_MAX];
};

/* Returns the pass of a scope. `index` must be below scope_count. */
static inline struct reach_pass reach_scopes_pass(const struct reach_scopes *scopes, uint32_t index)
{
    struct reach_pass pass;

    memset(&pass, 0, sizeof pass);
    pass.index = index;
    pass.of = scopes->scope_count;
    pass.allocation_count = scopes->allocation_count;
    for (uint32_t i = 0; i < scopes->allocation_count && i < REACH_ALLOCATION_MAX; i++)
        pass.part[i] = scopes->range[index * scopes->allocation_count + i];
    return pass;
}

/* Returns the items of allocation `i` that belong to a pass, with which a kernel compares its
 * indices. */
REACH_INLINE struct reach_items reach_pass_items(const struct reach_pass *pass, uint32_t i,
                                                 uint64_t item_bytes)
{
    const struct reach_extent part = pass->part[i];
    struct reach_items items;

    items.first = reach_first_item(part.first_byte, item_bytes);
    items.count = reach_first_item(part.first_byte + part.length_bytes, item_bytes) - items.first;
    return items;
}

#endif
