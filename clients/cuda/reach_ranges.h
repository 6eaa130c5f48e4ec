/* reach_ranges.h: the scopes and windows of one or several allocations as plain values, and the
 * tests of one index against them. For reach_scopes.cuh and reach_deal.cuh; C, C++, host and device
 * compile the same lines (tests/unit/test_ranges.c). No CUDA, no libreach, no allocation, any
 * thread.
 *
 * Bytes count from the start of an allocation. An item (a row of a table, a bucket, a word) belongs
 * to the range in which its first byte lies.
 */
#ifndef REACH_RANGES_H
#define REACH_RANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define REACH_INLINE static __host__ __device__ __forceinline__
#else
#define REACH_INLINE static inline
#endif

enum {
    REACH_RANGE_MAX = 256, /* ranges; as REACH_WINDOW_MAX of reach.h */
    REACH_PART_MAX = 8     /* allocations that are accessed together */
};

/* [first, end). */
struct reach_range {
    uint64_t first, end;
};

/* ---- ranges of one allocation ------------------------------------------------------------------
 */

/* Range r begins at first[r] and ends at first[r + 1]. Indices below first[0] count as range 0,
 * those from the end of the last range on as the last one, so that every index has a range. */
struct reach_ranges {
    uint32_t count;                  /* 1 .. REACH_RANGE_MAX */
    uint64_t first[REACH_RANGE_MAX]; /* ascending; equal ones leave a range empty */
};

/* The first item that begins at `byte` or later. */
REACH_INLINE uint64_t reach_first_item(uint64_t byte, uint64_t item_bytes)
{
    return byte / item_bytes + (byte % item_bytes != 0);
}

/* Whether `at` is in [first, end). */
REACH_INLINE bool reach_in_range(struct reach_range range, uint64_t at)
{
    return at - range.first < range.end - range.first;
}

/* Ranges of items of `item_bytes` from the first bytes of windows or scopes. False, with an empty
 * `*out`, for no or too many ranges, bytes that do not ascend, or items of 0 bytes. */
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

/* ---- search ------------------------------------------------------------------------------------
 */

/* The steps of a search among `count` ranges: 2^bits >= count. */
REACH_INLINE uint32_t reach_search_bits(uint32_t count)
{
    uint32_t bits = 0;

    while (1u << bits < count)
        bits++;
    return bits;
}

/* The range of `at`. `first` has 2^bits elements, those from `count` on UINT64_MAX. */
REACH_INLINE uint32_t reach_range_of(const uint64_t *first, uint32_t bits, uint32_t count,
                                     uint64_t at)
{
    uint32_t range = 0;

    for (uint32_t step = 1u << bits >> 1; step; step >>= 1)
        range += at >= first[range + step] ? step : 0;
    return range < count ? range : count - 1;
}

/* ---- scopes of one or several allocations ------------------------------------------------------
 */

/* One scope: in each of `parts` allocations the bytes that a pass may access. Goes to kernels by
 * value.
 */
struct reach_pass {
    uint32_t index; /* 0 .. of - 1 */
    uint32_t of;
    uint32_t parts;
    struct reach_range part[REACH_PART_MAX]; /* bytes */
};

/* All scopes; together they cover each allocation once. Fill it with reach_scopes_cut, or from any
 * source of bounds, such as an answer of libreach. */
struct reach_scope_list {
    uint32_t count;                                  /* 1: everything is within the reach */
    uint32_t parts;                                  /* allocations */
    uint64_t first[REACH_PART_MAX][REACH_RANGE_MAX]; /* bytes */
    uint64_t end[REACH_PART_MAX][REACH_RANGE_MAX];
};

REACH_INLINE struct reach_pass reach_scope_pass(const struct reach_scope_list *scopes,
                                                uint32_t index)
{
    struct reach_pass pass;

    memset(&pass, 0, sizeof pass);
    pass.index = index;
    pass.of = scopes->count;
    pass.parts = scopes->parts;
    for (uint32_t p = 0; p < scopes->parts; p++) {
        pass.part[p].first = scopes->first[p][index];
        pass.part[p].end = scopes->end[p][index];
    }
    return pass;
}

/* The items of allocation `part` that belong to a scope: what a kernel compares its indices with.
 */
REACH_INLINE struct reach_range reach_pass_items(const struct reach_pass *pass, uint32_t part,
                                                 uint64_t item_bytes)
{
    struct reach_range items;

    items.first = reach_first_item(pass->part[part].first, item_bytes);
    items.end = reach_first_item(pass->part[part].end, item_bytes);
    return items;
}

/* Bound `i` of `count` equal shares of `bytes`, in whole units of `unit_bytes`. */
REACH_INLINE uint64_t reach_share_bound(uint64_t bytes, uint32_t i, uint32_t count,
                                        uint64_t unit_bytes)
{
    const uint64_t units = bytes / unit_bytes;

    return i == count ? bytes : (units / count * i + units % count * i / count) * unit_bytes;
}

/* The bytes of the longest scope. */
REACH_INLINE uint64_t reach_scopes_longest(const struct reach_scope_list *scopes)
{
    uint64_t longest = 0;

    for (uint32_t s = 0; s < scopes->count; s++) {
        uint64_t bytes = 0;
        for (uint32_t p = 0; p < scopes->parts; p++)
            bytes += scopes->end[p][s] - scopes->first[p][s];
        longest = bytes > longest ? bytes : longest;
    }
    return longest;
}

/* Cuts allocations that are accessed together into the fewest scopes of at most `scope_bytes`:
 * scope s has the same share of each, in multiples of `unit_bytes` (at least 1). Matching parts
 * suit work that accesses the same relative place of every allocation, such as keys and values of a
 * table; for other work cut one allocation. False, with no scopes, if more than REACH_RANGE_MAX
 * would be needed, or for no or too many allocations. */
REACH_INLINE bool reach_scopes_cut(struct reach_scope_list *out, uint32_t parts,
                                   const uint64_t *bytes, uint64_t scope_bytes, uint64_t unit_bytes)
{
    bool fits = false;

    memset(out, 0, sizeof *out);
    if (parts < 1 || parts > REACH_PART_MAX || unit_bytes == 0)
        return false;
    out->parts = parts;
    while (!fits && out->count < REACH_RANGE_MAX) {
        out->count++;
        for (uint32_t p = 0; p < parts; p++) {
            for (uint32_t s = 0; s < out->count; s++) {
                out->first[p][s] = reach_share_bound(bytes[p], s, out->count, unit_bytes);
                out->end[p][s] = reach_share_bound(bytes[p], s + 1, out->count, unit_bytes);
            }
        }
        fits = reach_scopes_longest(out) <= scope_bytes;
    }
    if (!fits)
        memset(out, 0, sizeof *out);
    return fits;
}

#endif
