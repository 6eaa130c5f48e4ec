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

/* The mutex is held. */
static void regain_one(struct lane *lane, const struct snapshot_gpu *gpu)
{
    struct pipeline *p = lane->pipeline;
    struct err err = {0};
    struct job job;
    bool lacks = false;

    if (store_lacks_fingerprint(p->store, lane->identity.uuid, &lacks, &err)) {
        log_warning("gpu %u: what the store has is not known: %s", lane->index, err.text);
        return;
    }
    if (!(lacks || regain_failed_for_the_store(gpu)) || lane->slot != JOBS_NONE ||
        jobs_queued(&p->jobs, lane->identity.uuid) > 0) {
        return;
    }
    log_info("gpu %u %s is measured again", lane->index, lane->identity.uuid);
    if (lane_queue(lane, JOB_MEASURE, DEPTH_FULL, &job, &err)) {
        log_warning("gpu %u cannot be measured: %s", lane->index, err.text);
    }
}

void pipeline_regain(struct pipeline *p)
{
    const struct snapshot *s = snapshot_acquire(p->cell);

    pthread_mutex_lock(&p->mutex);
    for (uint32_t i = 0; i < p->lane_count && i < s->gpu_count && p->measure_unknown; i++) {
        regain_one(&p->lanes[i], &s->gpus[i]);
    }
    pthread_mutex_unlock(&p->mutex);
    snapshot_release(s);
}
