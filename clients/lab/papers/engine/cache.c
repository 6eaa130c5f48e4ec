/* cache.c: see cache.h. Each slot has a stamp of its last use, so entries never move. */
#include "clients/lab/papers/engine/cache.h"

#include <stdlib.h>

struct lab_cache *lab_cache_new(uint32_t sets, uint32_t ways)
{
    const size_t slots = (size_t)sets * ways * 2; /* tags[] also contains the stamps */
    struct lab_cache *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct lab_cache){.sets = sets, .ways = ways};
    c->tags = calloc(slots, sizeof *c->tags);
    c->slots = calloc(slots, sizeof *c->slots);
    if (c->tags && c->slots)
        return c;
    lab_cache_free(c);
    return NULL;
}

void lab_cache_free(struct lab_cache *take)
{
    if (!take)
        return;
    free(take->slots);
    free(take->tags);
    free(take);
}

uint32_t lab_cache_depth(const struct lab_cache *c, uint32_t slot)
{
    const uint32_t first = slot - slot % (2 * c->ways);
    const uint32_t *used = lab_cache_used(c, first);
    uint32_t newer = 0;
    for (uint32_t i = 0; i < c->ways; i++)
        newer += used[i] > *lab_cache_used(c, slot);
    return newer;
}

/* Returns the index of the lowest stamp of a set. The lowest index wins ties. */
static uint32_t oldest_way(const uint32_t *used, uint32_t ways)
{
    uint32_t oldest = 0;
    uint32_t least = used[0];
    if (ways == 4) {
        const uint32_t low = used[1] < used[0];
        const uint32_t high = 2 + (used[3] < used[2]);
        return used[high] < used[low] ? high : low;
    }
    for (uint32_t i = 1; i < ways; i++) {
        oldest = used[i] < least ? i : oldest;
        least = used[i] < least ? used[i] : least;
    }
    return oldest;
}

uint32_t lab_cache_fill(struct lab_cache *c, uint32_t tag, uint32_t *out_evicted)
{
    const uint32_t first = lab_cache_first(c, tag);
    const uint32_t slot = first + oldest_way(lab_cache_used(c, first), c->ways);
    *out_evicted = c->tags[slot];
    c->tags[slot] = tag;
    lab_cache_use(c, slot);
    return slot;
}
