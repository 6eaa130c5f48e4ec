/* cache.h: rendered documents, so that an answer costs no rendering. A document made from the
 * snapshot lives until the next generation; one made from nothing that changes lives as long as
 * the server. Used by the serving thread alone.
 */
#ifndef REACH_API_CACHE_H
#define REACH_API_CACHE_H

#include "api/handlers/reply.h"
#include "base/identity.h"

/* One document each. */
enum cache_slot {
    CACHE_INDEX = 0,
    CACHE_HEALTH,
    CACHE_OPENAPI,
    CACHE_LASTING_COUNT, /* those above never change */
    CACHE_NODE = CACHE_LASTING_COUNT,
    CACHE_GPUS,
    CACHE_FINGERPRINTS,                             /* of all GPUs */
    CACHE_GPU,                                      /* plus the index of the GPU */
    CACHE_FINGERPRINT = CACHE_GPU + REACH_MAX_GPUS, /* likewise */
    CACHE_SLOT_COUNT = CACHE_FINGERPRINT + REACH_MAX_GPUS
};

struct cache;

struct cache *cache_new(void); /* NULL without memory */
void cache_free(struct cache *take);

/* Forgets what was made from another generation. */
void cache_renew(struct cache *cache, uint64_t generation);

/* Without a cache (NULL) nothing is kept, and what is given to it is freed. */
/* NULL where nothing is kept. Borrowed until the next call that changes the cache. */
struct document *cache_get(const struct cache *cache, uint32_t slot);
void cache_keep(struct cache *cache, uint32_t slot, struct document *take);

/* The answer to a GET of this request target, where it is remembered; borrowed likewise. */
struct document *cache_find(const struct cache *cache, const char *target);
/* Remembers it until the next generation, or until another target takes its place. */
void cache_remember(struct cache *cache, const char *target, struct document *document);

#endif
