/* cache.c: the order of use is a stamp for each slot, so what stands beside a tag never moves. */
#include "clients/lab/cache.h"

#include <stdlib.h>

struct lab_cache *lab_cache_new(uint32_t sets, uint32_t ways)
{
    const size_t slots = (size_t)sets * ways;
    struct lab_cache *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct lab_cache){.sets = sets, .ways = ways};
    c->tags = calloc(slots, sizeof *c->tags);
    c->used = calloc(slots, sizeof *c->used);
    c->ready = calloc(slots, sizeof *c->ready);
    c->history = calloc(slots, sizeof *c->history);
    c->owner = calloc(slots, sizeof *c->owner);
    if (c->tags && c->used && c->ready && c->history && c->owner)
        return c;
    lab_cache_free(c);
    return NULL;
}

void lab_cache_free(struct lab_cache *take)
{
    if (!take)
        return;
    free(take->owner);
    free(take->history);
    free(take->ready);
    free(take->used);
    free(take->tags);
    free(take);
}

uint32_t lab_cache_depth(const struct lab_cache *c, uint32_t slot)
{
    const uint32_t first = slot - slot % c->ways;
    uint32_t newer = 0;
    for (uint32_t i = first; i < first + c->ways; i++)
        newer += c->used[i] > c->used[slot];
    return newer;
}

uint32_t lab_cache_fill(struct lab_cache *c, uint32_t tag, uint32_t *out_evicted)
{
    const uint32_t first = lab_cache_first(c, tag);
    uint32_t oldest = first;
    for (uint32_t i = first + 1; i < first + c->ways; i++)
        oldest = c->used[i] < c->used[oldest] ? i : oldest;
    *out_evicted = c->tags[oldest];
    c->tags[oldest] = tag;
    lab_cache_use(c, oldest);
    return oldest;
}

void lab_cache_drop(struct lab_cache *c, uint32_t tag)
{
    const uint32_t slot = lab_cache_find(c, tag);
    if (slot == LAB_NO_SLOT)
        return;
    c->tags[slot] = 0;
    c->used[slot] = 0;
}
