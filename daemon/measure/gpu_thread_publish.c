/* gpu_thread_publish.c: the published state of one GPU. An update that finds no memory is pending.
 * It is merged with later updates, and published as soon as there is memory again. See
 * gpu_thread.h. */
#include "measure/gpu_thread_publish.h"

#include "base/log.h"
#include "measure/pipeline_state.h"

#include <stdlib.h>
#include <string.h>

/* Adds to the pending update; later values win. The pending update takes the fingerprint. */
static void gpu_thread_add_update(struct gpu_update *pending, const struct gpu_update *update)
{
    pending->any = true;
    pending->state = update->state;
    pending->stale = pending->stale || update->stale;
    if (update->has_error) {
        pending->has_error = true;
        pending->error = update->error;
    }
    if (update->has_check) {
        pending->has_check = true;
        pending->check = update->check;
    }
    if (update->fingerprint) {
        free(pending->fingerprint);
        pending->fingerprint = update->fingerprint;
        memcpy(pending->fingerprint_id, update->fingerprint_id, sizeof pending->fingerprint_id);
        pending->stale = false;
    }
}

static void gpu_thread_apply(const struct gpu_update *update, struct snapshot_gpu *gpu)
{
    gpu->state = update->state;
    if (update->has_error)
        gpu->last_error = update->error;
    if (update->has_check)
        gpu->check = update->check;
    if (update->fingerprint) {
        gpu->unidentified = false;
        gpu->fingerprint_stale = false;
        gpu->has_fingerprint = true;
        gpu->fingerprint = *update->fingerprint;
        memcpy(gpu->fingerprint_id, update->fingerprint_id, sizeof gpu->fingerprint_id);
        gpu->identity = gpu->fingerprint.gpu;
    }
    gpu->fingerprint_stale = gpu->fingerprint_stale || update->stale;
}

/* Returns the wall clock in seconds at which the next attempt begins, or 0 if none is scheduled. */
static int64_t gpu_thread_next_attempt_at(const struct gpu_thread *thread)
{
    const nsec_t now = clock_monotonic();

    if (thread->retry_at == 0)
        return 0;
    return clock_wall_seconds() +
           (thread->retry_at > now ? (int64_t)((thread->retry_at - now) / NSEC_PER_SEC) : 0);
}

/* Publishes the pending update. If memory runs out, an older view stays published and the GPU's
 * thread tries again. The mutex is held, so that no publication loses another. */
void gpu_thread_publish_pending(struct gpu_thread *thread)
{
    struct snapshot_cell *cell = thread->pipeline->cell;
    const struct snapshot *current = snapshot_acquire(cell);
    const struct snapshot_gpu *const gpu = gpu_thread_find(thread, current);
    struct snapshot *draft = gpu ? snapshot_draft_copy(current) : NULL;
    const size_t at = gpu ? (size_t)(gpu - current->gpus) : 0;

    snapshot_release(current);
    if (gpu && !draft) {
        log_error("gpu %u: cannot allocate a snapshot: out of memory; the previous snapshot stays "
                  "published",
                  thread->index);
        pthread_cond_signal(&thread->wake);
        return;
    }
    if (draft) {
        gpu_thread_apply(&thread->pending, &draft->gpus[at]);
        draft->gpus[at].next_attempt_at = gpu_thread_next_attempt_at(thread);
        snapshot_publish(cell, draft);
    }
    free(thread->pending.fingerprint);
    thread->pending = (struct gpu_update){.any = false};
}

void gpu_thread_publish(struct gpu_thread *thread, const struct gpu_update *update)
{
    gpu_thread_add_update(&thread->pending, update);
    gpu_thread_publish_pending(thread);
}
