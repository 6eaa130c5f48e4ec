/* mosaic_tlb.c: see mosaic_tlb.h. Each entry is in a list of its set by age, and in a chain by the
 * hash of its key. So the time of a lookup does not depend on the size of the set. */
#include "clients/lab/papers/mosaic/mosaic_tlb.h"

#include <stdlib.h>

enum { NONE = UINT16_MAX };
static const uint32_t NO_KEY = UINT32_MAX;

struct node {
    uint32_t key;
    uint16_t older, younger; /* neighbors by age in the set; NONE at the ends */
    uint16_t chain;          /* next entry with the same hash */
};

struct mosaic_tlb {
    uint32_t ways, sets, hash_mask;
    uint16_t *oldest, *youngest; /* oldest and youngest entry of each set */
    uint16_t *chains;            /* first entry of each hash */
    struct node *nodes;          /* nodes; set s begins at s * ways */
};

static uint32_t key_hash(const struct mosaic_tlb *t, uint32_t key)
{
    return (key * 0x9e3779b1u) >> 7 & t->hash_mask;
}

struct mosaic_tlb *mosaic_tlb_new(uint32_t entries, uint32_t ways)
{
    struct mosaic_tlb *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->ways = ways;
    t->sets = entries / ways;
    t->hash_mask = 15;
    while (t->hash_mask < 2 * entries)
        t->hash_mask = 2 * t->hash_mask + 1;
    t->oldest = calloc(t->sets, sizeof *t->oldest);
    t->youngest = calloc(t->sets, sizeof *t->youngest);
    t->chains = malloc((t->hash_mask + 1) * sizeof *t->chains);
    t->nodes = calloc(entries, sizeof *t->nodes);
    if (!t->oldest || !t->youngest || !t->chains || !t->nodes) {
        mosaic_tlb_free(t);
        return NULL;
    }
    for (uint32_t i = 0; i <= t->hash_mask; i++)
        t->chains[i] = NONE;
    for (uint32_t i = 0; i < entries; i++) {
        const uint32_t way = i % ways;
        t->nodes[i].key = NO_KEY;
        t->nodes[i].older = way == 0 ? NONE : (uint16_t)(i - 1);
        t->nodes[i].younger = way == ways - 1 ? NONE : (uint16_t)(i + 1);
        t->nodes[i].chain = NONE;
        t->oldest[i / ways] = (uint16_t)(i - way);
        t->youngest[i / ways] = (uint16_t)(i - way + ways - 1);
    }
    return t;
}

void mosaic_tlb_free(struct mosaic_tlb *take)
{
    if (!take)
        return;
    free(take->nodes);
    free(take->chains);
    free(take->youngest);
    free(take->oldest);
    free(take);
}

static uint32_t node_set(const struct mosaic_tlb *t, uint32_t node)
{
    return t->sets == 1 ? 0 : node / t->ways;
}

static void make_youngest(struct mosaic_tlb *t, uint16_t at)
{
    const uint32_t set = node_set(t, at);
    struct node *n = &t->nodes[at];
    if (n->younger == NONE)
        return;
    if (n->older == NONE)
        t->oldest[set] = n->younger;
    else
        t->nodes[n->older].younger = n->younger;
    t->nodes[n->younger].older = n->older;
    n->older = t->youngest[set];
    n->younger = NONE;
    t->nodes[n->older].younger = at;
    t->youngest[set] = at;
}

static uint16_t find_key(const struct mosaic_tlb *t, uint32_t key)
{
    uint16_t at = t->chains[key_hash(t, key)];
    while (at != NONE && t->nodes[at].key != key)
        at = t->nodes[at].chain;
    return at;
}

bool mosaic_tlb_hit(struct mosaic_tlb *t, uint32_t key)
{
    const uint16_t at = find_key(t, key);
    if (at == NONE)
        return false;
    make_youngest(t, at);
    return true;
}

static void unchain(struct mosaic_tlb *t, uint16_t at)
{
    uint16_t *link = &t->chains[key_hash(t, t->nodes[at].key)];
    while (*link != at)
        link = &t->nodes[*link].chain;
    *link = t->nodes[at].chain;
}

void mosaic_tlb_fill(struct mosaic_tlb *t, uint32_t key)
{
    if (mosaic_tlb_hit(t, key))
        return;
    const uint16_t at = t->oldest[key % t->sets];
    if (t->nodes[at].key != NO_KEY)
        unchain(t, at);
    t->nodes[at].key = key;
    t->nodes[at].chain = t->chains[key_hash(t, key)];
    t->chains[key_hash(t, key)] = at;
    make_youngest(t, at);
}
