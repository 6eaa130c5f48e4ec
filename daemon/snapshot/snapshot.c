/* snapshot.c: shares views through one pointer, one mutex and one counter per view.
 *
 *     cell -> view 7 (refs 3: the cell and two readers)     view 6 (refs 1: a slow reader)
 *
 * The view must not be freed between a reader's load of the pointer and its increment of the
 * counter. So both happen under the mutex, which is held for some twenty nanoseconds and never
 * while waiting. Reading and releasing need no lock: a published view never changes, and the
 * counter is atomic. The thread that brings the counter to zero frees the view.
 */
#include "snapshot/snapshot.h"

#include "types/name_of.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The header before every snapshot in memory. */
struct holder {
    atomic_uint refs;
    struct snapshot view; /* the last member, because it ends in a flexible array */
};

struct snapshot_cell {
    pthread_mutex_t mutex;
    struct holder *newest; /* the newest view, guarded by the mutex; the cell holds one reference */
    _Atomic uint64_t generation; /* generation of the newest view */
    int watch_fd;                /* eventfd that reports publications; -1 if there is no watcher */
};

NAME_FUNCTION(
    gpu_state_name, enum gpu_state, [GPU_STATE_UNKNOWN] = "unknown", [GPU_STATE_QUEUED] = "queued",
    [GPU_STATE_MEASURING] = "measuring", [GPU_STATE_READY] = "ready", [GPU_STATE_FAILED] = "failed",
    [GPU_STATE_LOST] = "lost", [GPU_STATE_CHECKING] = "checking", [GPU_STATE_STALE] = "stale")

uint32_t snapshot_missing(const struct snapshot_gpu *gpu, const char *out[SNAPSHOT_TOPICS])
{
    static const struct {
        const char *name;
        enum depth depth; /* the lowest depth whose measurements cover the topic */
    } topics[SNAPSHOT_TOPICS] = {{"levels", DEPTH_QUICK},
                                 {"groups", DEPTH_QUICK},
                                 {"throughput", DEPTH_FULL},
                                 {"caches", DEPTH_FULL},
                                 {"memory", DEPTH_FULL}};
    uint32_t count = 0;

    for (uint32_t i = 0; i < SNAPSHOT_TOPICS && !identity_is_divided(&gpu->identity); i++)
        if (!gpu->has_fingerprint || gpu->fingerprint.depth < topics[i].depth)
            out[count++] = topics[i].name;
    return count;
}

/* Published views are const to their readers, but the counter before them is not. */
static struct holder *holder_of(const struct snapshot *s)
{
    return (struct holder *)((uintptr_t)s - offsetof(struct holder, view));
}

struct snapshot *snapshot_draft(uint32_t gpu_count)
{
    struct holder *h;

    h = calloc(1, sizeof(*h) + gpu_count * sizeof(struct snapshot_gpu));
    if (!h)
        return NULL;
    atomic_init(&h->refs, 1);
    h->view.gpu_count = gpu_count;
    return &h->view;
}

struct snapshot *snapshot_draft_copy(const struct snapshot *from)
{
    struct snapshot *const s = snapshot_draft(from->gpu_count);

    if (s)
        memcpy(s, from, sizeof(*from) + from->gpu_count * sizeof(from->gpus[0]));
    return s;
}

void snapshot_discard(struct snapshot *take)
{
    if (take)
        free(holder_of(take));
}

void snapshot_release(const struct snapshot *take)
{
    struct holder *h;

    if (!take)
        return;
    h = holder_of(take);
    /* Release order completes the reads of this thread; acquire order makes them visible to the
     * last thread. */
    if (atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) == 1)
        free(h);
}

struct snapshot_cell *snapshot_cell_new(void)
{
    struct snapshot_cell *cell = calloc(1, sizeof(*cell));
    struct snapshot *empty = snapshot_draft(0);

    if (!cell || !empty) {
        snapshot_discard(empty);
        free(cell);
        return NULL;
    }
    pthread_mutex_init(&cell->mutex, NULL);
    empty->generation = 1;
    atomic_init(&cell->generation, 1);
    cell->watch_fd = -1;
    cell->newest = holder_of(empty);
    return cell;
}

void snapshot_cell_free(struct snapshot_cell *take)
{
    if (!take)
        return;
    snapshot_release(&take->newest->view);
    pthread_mutex_destroy(&take->mutex);
    if (take->watch_fd >= 0)
        close(take->watch_fd);
    free(take);
}

int snapshot_cell_watch(struct snapshot_cell *cell)
{
    if (cell->watch_fd < 0)
        cell->watch_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return cell->watch_fd;
}

uint64_t snapshot_generation(struct snapshot_cell *cell)
{
    return atomic_load(&cell->generation);
}

const struct snapshot *snapshot_acquire(struct snapshot_cell *cell)
{
    struct holder *h;

    pthread_mutex_lock(&cell->mutex);
    h = cell->newest;
    atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&cell->mutex);
    return &h->view;
}

void snapshot_publish(struct snapshot_cell *cell, struct snapshot *take)
{
    struct holder *const h = holder_of(take);
    struct holder *before;
    const uint64_t one = 1;

    pthread_mutex_lock(&cell->mutex);
    before = cell->newest;
    take->generation = before->view.generation + 1;
    cell->newest = h;
    atomic_store(&cell->generation, take->generation);
    pthread_mutex_unlock(&cell->mutex);
    snapshot_release(&before->view);
    if (cell->watch_fd >= 0 && write(cell->watch_fd, &one, sizeof(one)) < 0)
        return; /* a full counter keeps the descriptor readable */
}

const struct snapshot_gpu *snapshot_find(const struct snapshot *s, const char *uuid_or_index)
{
    unsigned long index;
    char *end;

    if (!uuid_or_index || uuid_or_index[0] == '\0')
        return NULL;
    index = strtoul(uuid_or_index, &end, 10);
    /* An index has digits without a leading zero, and is neither a UUID nor a typing error. */
    if (isdigit((unsigned char)uuid_or_index[0]) && *end == '\0' &&
        (uuid_or_index[0] != '0' || end == uuid_or_index + 1))
        return index < s->gpu_count ? &s->gpus[index] : NULL;
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        if (identity_is_same_uuid(s->gpus[i].identity.uuid, uuid_or_index))
            return &s->gpus[i];
    }
    return NULL;
}
