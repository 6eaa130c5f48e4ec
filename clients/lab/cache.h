/* cache.h: the tags of a set-associative structure with least-recently-used replacement: a data
 * cache, a TLB, a victim tag array. Looking up and filling are apart, because time passes between
 * them; sim_tlb.h, which counts, does both at once.
 *
 * A tag is a line number, a page number, or whatever else names an entry: 1 to 2^32 - 1. A set is
 * chosen by the low bits of the tag. A slot names an entry, which keeps it until it is evicted;
 * what is known of the entry stands in arrays with that index. One thread at a time.
 */
#ifndef REACH_CLIENTS_LAB_CACHE_H
#define REACH_CLIENTS_LAB_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { LAB_NO_SLOT = UINT32_MAX };

struct lab_cache {
    uint32_t sets, ways;
    uint32_t now;      /* counts uses: the stamp of the newest */
    uint32_t *tags;    /* of each set, 0: empty; then when each of them was used last. A set of 8
                        * takes one line of the host's cache */
    uint64_t *ready;   /* the cycle from which its content is there */
    uint16_t *history; /* of a TLB entry: the warps that used it; the owner's business */
    uint8_t *owner;    /* the warp that brought it */
};

/* Empty. `sets` is a power of two. NULL: no memory. */
struct lab_cache *lab_cache_new(uint32_t sets, uint32_t ways);
void lab_cache_free(struct lab_cache *take);

static inline uint32_t lab_cache_first(const struct lab_cache *c, uint32_t tag)
{
    return (tag & (c->sets - 1)) * (2 * c->ways);
}

/* When the slot was used last. */
static inline uint32_t *lab_cache_used(const struct lab_cache *c, uint32_t slot)
{
    return &c->tags[slot + c->ways];
}

/* The slot that holds the tag, or LAB_NO_SLOT. Changes nothing. */
static inline uint32_t lab_cache_find(const struct lab_cache *c, uint32_t tag)
{
    const uint32_t first = lab_cache_first(c, tag);
    const uint32_t *set = c->tags + first;
    uint32_t way = 0;
#ifdef __SSE2__
    const __m128i wanted = _mm_set1_epi32((int)tag);
    if (c->ways == 8) { /* with one branch, as in which half it is cannot be foreseen */
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

/* Which of `count` tags, at most 32, are there, a bit each; their slots one after the other. There
 * must be room for a slot more. */
static inline uint32_t lab_cache_find_all(const struct lab_cache *c, const uint32_t *tags,
                                          uint32_t count, uint16_t *out_slots)
{
    uint32_t found = 0;
#ifdef __SSE2__
    /* Without a branch for each: whether a tag is there cannot be foreseen. */
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

/* How many entries of its set were used after this one: 0 is the newest. */
uint32_t lab_cache_depth(const struct lab_cache *c, uint32_t slot);

/* The slot becomes the newest of its set. */
static inline void lab_cache_use(struct lab_cache *c, uint32_t slot)
{
    *lab_cache_used(c, slot) = ++c->now;
}

/* Puts a tag that is not there over the oldest of its set, as the newest. `*out_evicted` is the tag
 * that was in the slot, 0 if none; the arrays still have what was known of it. */
uint32_t lab_cache_fill(struct lab_cache *c, uint32_t tag, uint32_t *out_evicted);

#endif
