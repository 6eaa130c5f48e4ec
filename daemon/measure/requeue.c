/* requeue.c: what the store has lost, or could not take, is measured again. */
#include "measure/gpu_thread.h"

#include "base/log.h"

/* Has the last measurement of this GPU failed because nothing could be written? */
static bool requeue_failed_for_the_store(const struct snapshot_gpu *gpu)
{
    const enum status s = gpu->last_error.status;

    return gpu->state == GPU_STATE_FAILED &&
           (s == STATUS_FULL || s == STATUS_READ_ONLY || s == STATUS_IO || s == STATUS_CORRUPT);
}

/* A measurement under way ends after what was lost; one that waits is joined. The mutex is held. */
static void requeue_gpu(struct gpu_thread *thread)
{
    struct pipeline *p = thread->pipeline;
    struct err err = {0};
    struct measurement measurement;

    if (thread->slot != QUEUE_NONE && p->queue.items[thread->slot].kind == MEASUREMENT_NEW) {
        return;
    }
    log_info("gpu %u %s is measured again", thread->index, thread->identity.uuid);
    if (gpu_thread_queue(thread, MEASUREMENT_NEW, DEPTH_FULL, &measurement, &err)) {
        log_warning("gpu %u cannot be measured: %s", thread->index, err.text);
    }
}

void pipeline_requeue(struct pipeline *p)
{
    pthread_mutex_lock(&p->mutex);
    const uint32_t count = p->measure_unknown ? p->gpu_thread_count : 0;

    pthread_mutex_unlock(&p->mutex);
    const struct snapshot *s = snapshot_acquire(p->cell);

    for (uint32_t i = 0; i < count && i < s->gpu_count; i++) {
        struct gpu_thread *thread = &p->threads[i];
        struct err err = {0};
        bool lacks = false;

        /* The disk is asked without the mutex. */
        if (store_lacks_fingerprint(p->store, thread->identity.uuid, &lacks, &err)) {
            log_warning("gpu %u: what the store has is not known: %s", i, err.text);
        }
        pthread_mutex_lock(&p->mutex);
        if ((lacks || requeue_failed_for_the_store(&s->gpus[i])) && !p->stopping) {
            requeue_gpu(thread);
        }
        pthread_mutex_unlock(&p->mutex);
    }
    snapshot_release(s);
}
