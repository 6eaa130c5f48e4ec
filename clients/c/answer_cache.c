/* answer_cache.c: a small table with linear search; the least recently used entry is replaced.
 */
#include "clients/c/answer_cache.h"

#include "clients/c/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 32 };

struct entry {
    char *target; /* owned; NULL if the entry is free */
    char tag[HTTP_TAG_BYTES];
    struct answer_content *content; /* held */
    uint64_t confirmed_ms;
    uint64_t used;
};

/* The lock of the process guards the table. */
struct answer_cache {
    uint64_t uses;
    struct entry entries[MAX_ENTRIES];
};

struct answer_cache *answer_cache_new(void)
{
    process_start();
    return calloc(1, sizeof(struct answer_cache));
}

static void clear(struct entry *e)
{
    free(e->target);
    answer_content_release(e->content);
    *e = (struct entry){.target = NULL};
}

void answer_cache_free(struct answer_cache *take)
{
    if (!take)
        return;
    for (int i = 0; i < MAX_ENTRIES; i++)
        clear(&take->entries[i]);
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

    process_lock();
    e = find(cache, target);
    memcpy(out, e ? e->tag : "", e ? sizeof(e->tag) : 1);
    process_unlock();
}

struct answer_content *answer_cache_get(struct answer_cache *cache, const char *target,
                                        const char *tag, uint64_t *confirmed_ms)
{
    struct answer_content *content = NULL;
    struct entry *e;

    process_lock();
    e = find(cache, target);
    if (e && (!tag || strcmp(e->tag, tag) == 0)) {
        content = e->content;
        answer_content_hold(content);
        if (tag)
            e->confirmed_ms = *confirmed_ms;
        e->used = ++cache->uses;
        *confirmed_ms = e->confirmed_ms;
    }
    process_unlock();
    return content;
}

/* Drops the entries that contradict the provenance. The lock is held. */
static void learn(struct answer_cache *cache, const struct reach_provenance *provenance)
{
    for (int i = 0; i < MAX_ENTRIES; i++) {
        struct entry *e = &cache->entries[i];
        const struct reach_provenance *p = e->target ? &e->content->provenance : NULL;
        if (p && strcmp(p->gpu_uuid, provenance->gpu_uuid) == 0 &&
            (strcmp(p->fingerprint_id, provenance->fingerprint_id) != 0 ||
             p->stale != provenance->stale))
            clear(e);
    }
}

void answer_cache_learn(struct answer_cache *cache, const struct reach_provenance *provenance)
{
    process_lock();
    learn(cache, provenance);
    process_unlock();
}

/* Returns a free entry, or the least recently used one after clearing it. The lock is held. */
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

/* Fills an empty entry. If memory runs out, the entry stays empty. */
static void fill(struct entry *e, const char *target, const char *tag,
                 const struct reach_answer *answer)
{
    e->target = strdup(target);
    if (!e->target)
        return;
    answer_content_hold(answer->content);
    e->content = answer->content;
    e->confirmed_ms = answer->confirmed_ms;
    snprintf(e->tag, sizeof(e->tag), "%s", tag);
}

void answer_cache_put(struct answer_cache *cache, const char *target, const char *tag,
                      const struct reach_answer *answer)
{
    struct entry *e;

    process_lock();
    learn(cache, &answer->provenance);
    e = find(cache, target);
    if (e)
        clear(e);
    else
        e = make_room(cache);
    fill(e, target, tag, answer);
    e->used = ++cache->uses;
    process_unlock();
}

void answer_cache_drop(struct answer_cache *cache, const char *target)
{
    struct entry *e;

    process_lock();
    e = find(cache, target);
    if (e)
        clear(e);
    process_unlock();
}
