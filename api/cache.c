/* cache.c: an array of documents, and a small ring of answers.
 *
 * A placement answer for 132 SMs costs some ten microseconds to work out and to render, and
 * jobs of one user ask the same again and again. The ring keeps the last 64, found by comparing
 * hash and text; the oldest goes first. All of it is dropped with the generation it came from.
 */
#include "api/cache.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS = 64, TARGET_BYTES = 192 };

struct answer {
    uint64_t hash;
    char target[TARGET_BYTES];
    struct document *document;
};

struct cache {
    uint64_t generation;
    struct document *slots[CACHE_SLOT_COUNT];
    struct answer answers[ANSWERS];
    uint32_t next; /* place of the oldest answer */
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
    for (uint32_t i = 0; i < ANSWERS; i++) {
        document_free(cache->answers[i].document);
        cache->answers[i].document = NULL;
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

const struct document *cache_get(const struct cache *cache, uint32_t slot)
{
    return cache->slots[slot];
}

void cache_keep(struct cache *cache, uint32_t slot, struct document *take)
{
    document_free(cache->slots[slot]);
    cache->slots[slot] = take;
}

const struct document *cache_get_answer(const struct cache *cache, const char *target)
{
    uint64_t hash = hash_bytes(HASH_START, target, strlen(target));

    for (uint32_t i = 0; i < ANSWERS; i++) {
        const struct answer *a = &cache->answers[i];
        if (a->document && a->hash == hash && strcmp(a->target, target) == 0)
            return a->document;
    }
    return NULL;
}

void cache_keep_answer(struct cache *cache, const char *target, struct document *take)
{
    struct answer *a = &cache->answers[cache->next];

    document_free(a->document);
    a->document = take;
    a->hash = hash_bytes(HASH_START, target, strlen(target));
    /* A longer target is kept for this one answer, under a text that nobody asks for again. */
    snprintf(a->target, sizeof(a->target), "%s", strlen(target) < TARGET_BYTES ? target : "");
    cache->next = (cache->next + 1) % ANSWERS;
}
