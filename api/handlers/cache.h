/* cache.h: keeps rendered documents, so that most answers need no rendering. A document made from
 * the snapshot lives until the next generation; a document that never changes lives as long as the
 * server. Only the serving thread uses the cache.
 */
#pragma once

#include "api/handlers/document.h"
#include "types/identity.h"

/* Each slot has one document. */
enum cache_slot {
    CACHE_INDEX = 0,
    CACHE_HEALTH,
    CACHE_OPENAPI,
    CACHE_LASTING_COUNT, /* the slots above never change */
    CACHE_NODE = CACHE_LASTING_COUNT,
    CACHE_GPUS,
    CACHE_FINGERPRINTS, /* one document with the fingerprints of all GPUs */
    CACHE_GPU,          /* first of the slots of the GPUs, in the order of their indices */
    CACHE_FINGERPRINT = CACHE_GPU + REACH_MAX_GPUS, /* likewise */
    CACHE_SLOT_COUNT = CACHE_FINGERPRINT + REACH_MAX_GPUS
};

struct cache;

struct cache *cache_new(void); /* returns NULL if memory runs out */
void cache_free(struct cache *take);

/* Drops the documents of other generations. */
void cache_renew(struct cache *cache, uint64_t generation);

/* Returns the document of a slot, borrowed until the next call that changes the cache. Returns NULL
 * if the slot is empty, or if `cache` is NULL. */
struct document *cache_get(const struct cache *cache, uint32_t slot);
/* Puts a document into a slot. Does nothing if `cache` is NULL. */
void cache_put(struct cache *cache, uint32_t slot, struct document *document);

/* Returns the answer to a GET of this request target, borrowed until the next call that changes the
 * cache. Returns NULL if the cache has no such answer. */
struct document *cache_find(const struct cache *cache, const char *target);
/* Stores an answer until the next generation, or until another target takes its place. */
void cache_remember(struct cache *cache, const char *target, struct document *document);
