/* cache.c: keeps an array of documents, and a table from request targets to documents.
 *
 * A placement for 132 SMs takes microseconds to calculate and to render, and monitoring and the
 * jobs of one user repeat their requests. The table has one entry for each of 256 values of a
 * target's hash. A newer target replaces an older one, so a rare request replaces at most one
 * frequent request. All documents made from a generation are dropped with it.
 */
#include "api/handlers/cache.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 256, TARGET_BYTES = 192 };

struct entry {
    uint64_t hash;
    struct document *document; /* NULL: free */
    char target[TARGET_BYTES];
};

struct cache {
    uint64_t generation;
    struct document *slots[CACHE_SLOT_COUNT];
    struct entry entries[ENTRIES];
};

struct cache *cache_new(void)
{
    return calloc(1, sizeof(struct cache));
}

static void drop_from(struct cache *cache, uint32_t first_slot)
{
    for (uint32_t i = first_slot; i < CACHE_SLOT_COUNT; i++) {
        document_free(cache->slots[i]);
        cache->slots[i] = NULL;
    }
    for (uint32_t i = 0; i < ENTRIES; i++) {
        document_free(cache->entries[i].document);
        cache->entries[i].document = NULL;
    }
}

void cache_free(struct cache *take)
{
    if (!take)
        return;
    drop_from(take, 0);
    free(take);
}

void cache_renew(struct cache *cache, uint64_t generation)
{
    if (cache->generation == generation)
        return;
    drop_from(cache, CACHE_LASTING_COUNT);
    cache->generation = generation;
}

struct document *cache_get(const struct cache *cache, uint32_t slot)
{
    return cache ? cache->slots[slot] : NULL;
}

void cache_put(struct cache *cache, uint32_t slot, struct document *document)
{
    if (!cache)
        return;
    document_free(cache->slots[slot]);
    cache->slots[slot] = document_hold(document);
}

struct document *cache_find(const struct cache *cache, const char *target)
{
    uint64_t hash = hash_quick(target, strlen(target));
    const struct entry *p = &cache->entries[hash % ENTRIES];

    return p->document && p->hash == hash && strcmp(p->target, target) == 0 ? p->document : NULL;
}

void cache_remember(struct cache *cache, const char *target, struct document *document)
{
    size_t bytes = strlen(target);
    uint64_t hash = hash_quick(target, bytes);
    struct entry *p = &cache->entries[hash % ENTRIES];

    if (bytes >= TARGET_BYTES)
        return;
    document_hold(document);
    document_free(p->document);
    p->document = document;
    p->hash = hash;
    memcpy(p->target, target, bytes + 1);
}
