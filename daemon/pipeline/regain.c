/* regain.c: what the store has lost, or could not take, is measured again. */
#include "pipeline/lane.h"

#include "base/log.h"

/* Has the last job of this GPU failed because nothing could be written? */
static bool regain_failed_for_the_store(const struct snapshot_gpu *gpu)
{
    const enum status s = gpu->last_error.status;

    return gpu->state == GPU_STATE_FAILED &&
           (s == STATUS_FULL || s == STATUS_READ_ONLY || s == STATUS_IO || s == STATUS_CORRUPT);
}

/* A measurement under way ends after what was lost; one that waits is joined. The mutex is held. */
static void regain_queue(struct lane *lane)
{
    struct pipeline *p = lane->pipeline;
    struct err err = {0};
    struct job job;

    if (lane->slot != JOBS_NONE && p->jobs.items[lane->slot].kind == JOB_MEASURE) {
        return;
    }
    log_info("gpu %u %s is measured again", lane->index, lane->identity.uuid);
    if (lane_queue(lane, JOB_MEASURE, DEPTH_FULL, &job, &err)) {
        log_warning("gpu %u cannot be measured: %s", lane->index, err.text);
    }
}

void pipeline_regain(struct pipeline *p)
{
    pthread_mutex_lock(&p->mutex);
    const uint32_t count = p->measure_unknown ? p->lane_count : 0;

    pthread_mutex_unlock(&p->mutex);
    const struct snapshot *s = snapshot_acquire(p->cell);

    for (uint32_t i = 0; i < count && i < s->gpu_count; i++) {
        struct lane *lane = &p->lanes[i];
        struct err err = {0};
        bool lacks = false;

        /* The disk is asked without the mutex. */
        if (store_lacks_fingerprint(p->store, lane->identity.uuid, &lacks, &err)) {
            log_warning("gpu %u: what the store has is not known: %s", i, err.text);
        }
        pthread_mutex_lock(&p->mutex);
        if ((lacks || regain_failed_for_the_store(&s->gpus[i])) && !p->stopping) {
            regain_queue(lane);
        }
        pthread_mutex_unlock(&p->mutex);
    }
    snapshot_release(s);
}
