/* cache.h: the tags of a set-associative structure with least-recently-used replacement: a data
 * cache, a TLB or a victim tag array. Lookup and fill are separate calls, because time passes
 * between them. (sim_tlb.h, which has no clock, does both in one call.)
 *
 * A tag is the number of a line or a page, from 1 to 2^32 - 1. Its low bits select the set. An
 * entry keeps its slot until it is evicted. Arrays with data of entries are indexed by slot. Only
 * one thread may use a cache at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LAB_NO_SLOT = UINT32_MAX };

struct lab_cache {
    uint32_t sets, ways;
    uint32_t now;   /* number of uses, and stamp of the newest use */
    uint32_t *tags; /* tags of each set (0 is empty), followed by the stamps of their last use. A
                       set of 8 fills one line of the host's cache */
    struct lab_slot {
        uint64_t ready;   /* cycle in which the content is available */
        uint16_t history; /* of a TLB: warps that used the entry; set by the owner */
        uint8_t owner;    /* warp that filled it */
    } * slots;
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
    uint32_t slot = LAB_NO_SLOT;
    for (uint32_t way = 0; way < c->ways; way++) /* no branch, because hits are not predictable */
        slot = set[way] == tag ? first + way : slot;
    return slot;
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
