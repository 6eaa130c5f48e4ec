/* kept.c: a small table, searched from end to end; the one that was used longest ago makes room. */
#include "clients/c/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 32 };

struct entry {
    char *path; /* owned; NULL: free */
    char tag[WIRE_TAG_BYTES];
    struct reach_basis *answer; /* owned; more follows it */
    size_t bytes;
    uint64_t used;
};

struct kept {
    pthread_mutex_t lock;
    uint64_t uses; /* guarded by lock, as the next */
    struct entry entries[SLOTS];
};

struct kept *kept_new(void)
{
    struct kept *kept = calloc(1, sizeof(*kept));

    if (kept)
        pthread_mutex_init(&kept->lock, NULL);
    return kept;
}

static void clear(struct entry *e)
{
    free(e->path);
    free(e->answer);
    *e = (struct entry){.path = NULL};
}

void kept_free(struct kept *take)
{
    if (!take)
        return;
    for (int i = 0; i < SLOTS; i++)
        clear(&take->entries[i]);
    pthread_mutex_destroy(&take->lock);
    free(take);
}

static struct entry *find(struct kept *kept, const char *path)
{
    for (int i = 0; i < SLOTS; i++) {
        if (kept->entries[i].path && strcmp(kept->entries[i].path, path) == 0)
            return &kept->entries[i];
    }
    return NULL;
}

void kept_tag(struct kept *kept, const char *path, char *out)
{
    const struct entry *e;

    pthread_mutex_lock(&kept->lock);
    e = find(kept, path);
    memcpy(out, e ? e->tag : "", e ? sizeof(e->tag) : 1);
    pthread_mutex_unlock(&kept->lock);
}

void *kept_copy(struct kept *kept, const char *path, const char *tag, uint64_t now_ms)
{
    struct reach_basis *copy = NULL;
    struct entry *e;

    pthread_mutex_lock(&kept->lock);
    e = find(kept, path);
    if (e && tag && strcmp(e->tag, tag) != 0)
        e = NULL;
    if (e) {
        if (tag)
            e->answer->confirmed_ms = now_ms;
        e->used = ++kept->uses;
        copy = malloc(e->bytes);
    }
    if (copy) {
        memcpy(copy, e->answer, e->bytes);
        copy->kept = !tag;
    }
    pthread_mutex_unlock(&kept->lock);
    return copy;
}

/* Throws away what contradicts the basis. The lock is held. */
static void learn(struct kept *kept, const struct reach_basis *basis)
{
    for (int i = 0; i < SLOTS; i++) {
        struct entry *e = &kept->entries[i];
        if (e->path && strcmp(e->answer->gpu_uuid, basis->gpu_uuid) == 0 &&
            (strcmp(e->answer->fingerprint_id, basis->fingerprint_id) != 0 ||
             e->answer->stale != basis->stale))
            clear(e);
    }
}

void kept_learn(struct kept *kept, const struct reach_basis *basis)
{
    pthread_mutex_lock(&kept->lock);
    learn(kept, basis);
    pthread_mutex_unlock(&kept->lock);
}

/* A free slot, or the one that was used longest ago, then freed. The lock is held. */
static struct entry *make_room(struct kept *kept)
{
    struct entry *oldest = &kept->entries[0];

    for (int i = 0; i < SLOTS; i++) {
        struct entry *e = &kept->entries[i];
        if (!e->path)
            return e;
        if (e->used < oldest->used)
            oldest = e;
    }
    clear(oldest);
    return oldest;
}

/* Fills an empty slot; false without memory, and it stays empty. */
static bool fill(struct entry *e, const char *path, const char *tag, const void *answer,
                 size_t bytes)
{
    e->path = strdup(path);
    e->answer = malloc(bytes);
    if (!e->path || !e->answer) {
        clear(e);
        return false;
    }
    memcpy(e->answer, answer, bytes);
    e->bytes = bytes;
    strncpy(e->tag, tag, sizeof(e->tag) - 1);
    return true;
}

void kept_put(struct kept *kept, const char *path, const char *tag, const void *answer,
              size_t bytes)
{
    struct entry *e;

    pthread_mutex_lock(&kept->lock);
    learn(kept, answer);
    e = find(kept, path);
    if (e)
        clear(e);
    else
        e = make_room(kept);
    if (fill(e, path, tag, answer, bytes))
        e->used = ++kept->uses;
    pthread_mutex_unlock(&kept->lock);
}

void kept_drop(struct kept *kept, const char *path)
{
    struct entry *e;

    pthread_mutex_lock(&kept->lock);
    e = find(kept, path);
    if (e)
        clear(e);
    pthread_mutex_unlock(&kept->lock);
}
