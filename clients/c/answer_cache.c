/* answer_cache.c: a small table, searched from end to end; the least recently used one makes room.
 */
#include "clients/c/answer_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 32 };

struct entry {
    char *target; /* owned; NULL: free */
    char tag[HTTP_TAG_BYTES];
    char *body; /* owned */
    size_t bytes;
    uint64_t confirmed_ms;
    char gpu_uuid[REACH_UUID_BYTES];
    char fingerprint_id[REACH_UUID_BYTES];
    bool stale;
    uint64_t used;
};

struct answer_cache {
    pthread_mutex_t lock;
    uint64_t uses; /* guarded by lock, as the next */
    struct entry entries[MAX_ENTRIES];
};

struct answer_cache *answer_cache_new(void)
{
    struct answer_cache *cache = calloc(1, sizeof(*cache));

    if (cache)
        pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

static void clear(struct entry *e)
{
    free(e->target);
    free(e->body);
    *e = (struct entry){.target = NULL};
}

void answer_cache_free(struct answer_cache *take)
{
    if (!take)
        return;
    for (int i = 0; i < MAX_ENTRIES; i++)
        clear(&take->entries[i]);
    pthread_mutex_destroy(&take->lock);
    free(take);
}

static struct entry *find(struct answer_cache *cache, const char *target)
{
    for (int i = 0; i < MAX_ENTRIES; i++) {
        if (cache->entries[i].target && strcmp(cache->entries[i].target, target) == 0)
            return &cache->entries[i];
    }
    return NULL;
}

void answer_cache_tag(struct answer_cache *cache, const char *target, char *out)
{
    const struct entry *e;

    pthread_mutex_lock(&cache->lock);
    e = find(cache, target);
    memcpy(out, e ? e->tag : "", e ? sizeof(e->tag) : 1);
    pthread_mutex_unlock(&cache->lock);
}

char *answer_cache_copy(struct answer_cache *cache, const char *target, const char *tag,
                        size_t *out_bytes, uint64_t *confirmed_ms)
{
    char *copy = NULL;
    struct entry *e;

    pthread_mutex_lock(&cache->lock);
    e = find(cache, target);
    if (e && (!tag || strcmp(e->tag, tag) == 0))
        copy = malloc(e->bytes + 1);
    if (copy) {
        if (tag)
            e->confirmed_ms = *confirmed_ms;
        e->used = ++cache->uses;
        memcpy(copy, e->body, e->bytes + 1);
        *out_bytes = e->bytes;
        *confirmed_ms = e->confirmed_ms;
    }
    pthread_mutex_unlock(&cache->lock);
    return copy;
}

/* Drops what contradicts the provenance. The lock is held. */
static void learn(struct answer_cache *cache, const struct reach_provenance *provenance)
{
    for (int i = 0; i < MAX_ENTRIES; i++) {
        struct entry *e = &cache->entries[i];
        if (e->target && strcmp(e->gpu_uuid, provenance->gpu_uuid) == 0 &&
            (strcmp(e->fingerprint_id, provenance->fingerprint_id) != 0 ||
             e->stale != provenance->stale))
            clear(e);
    }
}

void answer_cache_learn(struct answer_cache *cache, const struct reach_provenance *provenance)
{
    pthread_mutex_lock(&cache->lock);
    learn(cache, provenance);
    pthread_mutex_unlock(&cache->lock);
}

/* A free entry, or the least recently used one, then cleared. The lock is held. */
static struct entry *make_room(struct answer_cache *cache)
{
    struct entry *oldest = &cache->entries[0];

    for (int i = 0; i < MAX_ENTRIES; i++) {
        struct entry *e = &cache->entries[i];
        if (!e->target)
            return e;
        if (e->used < oldest->used)
            oldest = e;
    }
    clear(oldest);
    return oldest;
}

/* Fills an empty entry; false without memory, and it stays empty. */
static bool fill(struct entry *e, const char *target, const char *tag,
                 const struct reach_answer *answer)
{
    const struct reach_provenance *p = &answer->provenance;

    e->target = strdup(target);
    e->body = malloc(answer->bytes + 1);
    if (!e->target || !e->body) {
        clear(e);
        return false;
    }
    memcpy(e->body, answer->body, answer->bytes + 1);
    e->bytes = answer->bytes;
    e->confirmed_ms = answer->confirmed_ms;
    snprintf(e->tag, sizeof(e->tag), "%s", tag);
    snprintf(e->gpu_uuid, sizeof(e->gpu_uuid), "%s", p->gpu_uuid);
    snprintf(e->fingerprint_id, sizeof(e->fingerprint_id), "%s", p->fingerprint_id);
    e->stale = p->stale;
    return true;
}

void answer_cache_put(struct answer_cache *cache, const char *target, const char *tag,
                      const struct reach_answer *answer)
{
    struct entry *e;

    pthread_mutex_lock(&cache->lock);
    learn(cache, &answer->provenance);
    e = find(cache, target);
    if (e)
        clear(e);
    else
        e = make_room(cache);
    if (fill(e, target, tag, answer))
        e->used = ++cache->uses;
    pthread_mutex_unlock(&cache->lock);
}

void answer_cache_drop(struct answer_cache *cache, const char *target)
{
    struct entry *e;

    pthread_mutex_lock(&cache->lock);
    e = find(cache, target);
    if (e)
        clear(e);
    pthread_mutex_unlock(&cache->lock);
}
