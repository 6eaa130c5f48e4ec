/* cache.h: the tags of a set-associative structure with least-recently-used replacement: a data
 * cache, a TLB or a victim tag array. Lookup and fill are separate calls, because time passes
 * between them. (sim_tlb.h, which has no clock, does both in one call.)
 *
 * A tag is the number of a line or a page, from 1 to 2^32 - 1. Its low bits select the set. An
 * entry keeps its slot until it is evicted. Arrays with data of entries are indexed by slot. Only
 * one thread may use a cache at a time. */
#ifndef REACH_CLIENTS_LAB_PAPERS_ENGINE_CACHE_H
#define REACH_CLIENTS_LAB_PAPERS_ENGINE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { LAB_NO_SLOT = UINT32_MAX };

struct lab_cache {
    uint32_t sets, ways;
    uint32_t now;      /* number of uses, and stamp of the newest use */
    uint32_t *tags;    /* tags of each set (0 is empty), followed by the stamps of their last use. A
                          set of 8 fills one line of the host's cache */
    uint64_t *ready;   /* by slot: cycle in which the content is available */
    uint16_t *history; /* by slot of a TLB: warps that used the entry; set by the owner */
    uint8_t *owner;    /* by slot: warp that filled it */
};

/* Returns an empty cache, or NULL if out of memory. `sets` is a power of two. */
struct lab_cache *lab_cache_new(uint32_t sets, uint32_t ways);
void lab_cache_free(struct lab_cache *take);

static inline uint32_t lab_cache_first(const struct lab_cache *c, uint32_t tag)
{
    return (tag & (c->sets - 1)) * (2 * c->ways);
}

/* Returns the stamp of the last use of a slot. */
static inline uint32_t *lab_cache_used(const struct lab_cache *c, uint32_t slot)
{
    return &c->tags[slot + c->ways];
}

/* Returns the slot of a tag, or LAB_NO_SLOT. Does not change the cache. */
static inline uint32_t lab_cache_find(const struct lab_cache *c, uint32_t tag)
{
    const uint32_t first = lab_cache_first(c, tag);
    const uint32_t *set = c->tags + first;
    uint32_t way = 0;
#ifdef __SSE2__
    const __m128i wanted = _mm_set1_epi32((int)tag);
    if (c->ways == 8) { /* one branch for both halves, because the half is not predictable */
        const __m128i low = _mm_cmpeq_epi32(_mm_loadu_si128((const void *)set), wanted);
        const __m128i high = _mm_cmpeq_epi32(_mm_loadu_si128((const void *)(set + 4)), wanted);
        const uint32_t equal = (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(low)) |
                               (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(high)) << 4;
        return equal != 0 ? first + (uint32_t)__builtin_ctz(equal) : LAB_NO_SLOT;
    }
    for (; way + 4 <= c->ways; way += 4) {
        const __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(set + way));
        const int equal = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, wanted)));
        if (equal != 0)
            return first + way + (uint32_t)__builtin_ctz((uint32_t)equal);
    }
#endif
    while (way < c->ways && set[way] != tag)
        way++;
    return way < c->ways ? first + way : LAB_NO_SLOT;
}

/* Finds `count` tags, at most 32. Returns a mask of the tags that are present, and writes their
 * slots in order. out_slots needs room for one more slot. */
static inline uint32_t lab_cache_find_all(const struct lab_cache *c, const uint32_t *tags,
                                          uint32_t count, uint16_t *out_slots)
{
    uint32_t found = 0;
#ifdef __SSE2__
    /* There is no branch per tag, because hits are not predictable. */
    for (uint32_t i = 0; c->ways == 4 && i < count; i++) {
        const uint32_t first = lab_cache_first(c, tags[i]);
        const __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(c->tags + first));
        const __m128i equal = _mm_cmpeq_epi32(four, _mm_set1_epi32((int)tags[i]));
        const uint32_t way = (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(equal));
        *out_slots = (uint16_t)(first + (uint32_t)__builtin_ctz(way | 16));
        out_slots += way != 0;
        found |= (uint32_t)(way != 0) << i;
    }
    if (c->ways == 4)
        return found;
#endif
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slot = lab_cache_find(c, tags[i]);
        *out_slots = (uint16_t)slot;
        out_slots += slot != LAB_NO_SLOT;
        found |= (uint32_t)(slot != LAB_NO_SLOT) << i;
    }
    return found;
}

/* Returns the number of entries of the set that were used after this one. */
uint32_t lab_cache_depth(const struct lab_cache *c, uint32_t slot);

/* Makes the slot the most recently used of its set. */
static inline void lab_cache_use(struct lab_cache *c, uint32_t slot)
{
    *lab_cache_used(c, slot) = ++c->now;
}

/* Replaces the least recently used entry of the set by a tag that is not in the cache. Sets
 * `*out_evicted` to the replaced tag, or to 0 if the slot was empty. Returns the slot. Other arrays
 * still contain the data of the replaced entry. */
uint32_t lab_cache_fill(struct lab_cache *c, uint32_t tag, uint32_t *out_evicted);

#endif
