/* arrivals.c: GPUs that come, go or change while the daemon runs. Each list of the driver after the
 * first one is merged with what is published:
 *
 *     listed, and not known          a new GPU: a thread of its own, as at the start
 *     listed, and lost               it is back: checked, or measured if it has no fingerprint
 *     listed with another identity   (driver, SMs, memory) what was measured is stale
 *     listed, and divided by MIG     nothing is served of it; its instances are GPUs of their own
 *     listed, and whole again        as the store knows it: what was measured of it is checked
 *     not listed                     lost; what was measured is served as of a lost GPU
 *
 * A GPU with a measurement under way is left alone: the measurement ends with the truth. The driver
 * is asked when somebody says so (SIGHUP) and while a GPU is lost; an idle daemon asks nobody.
 */
#include "measure/gpu_thread.h"

#include "analysis/check.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The index of a UUID in the newest view, or its number of GPUs. */
static uint32_t index_of(const struct snapshot *s, const char *uuid)
{
    const struct snapshot_gpu *const gpu = snapshot_find(s, uuid);

    return gpu ? (uint32_t)(gpu - s->gpus) : s->gpu_count;
}

static bool is_listed(const struct gpu_identity *gpus, uint32_t count, const char *uuid)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcasecmp(gpus[i].uuid, uuid) == 0)
            return true;
    }
    return false;
}

/* Is a GPU that was divided whole again? */
static bool is_whole_again(const struct gpu_identity *was, const struct gpu_identity *now)
{
    return identity_is_divided(was) && !identity_is_divided(now);
}

/* The listed GPUs that have no place yet, or of which nothing was served while they were divided,
 * as the store knows them. The mutex is not held. */
static enum status find_arrivals(struct pipeline *p, const struct gpu_identity *gpus,
                                 uint32_t count, struct snapshot **out, struct err *err)
{
    struct gpu_identity arrivals[REACH_MAX_GPUS];
    const struct snapshot *const s = snapshot_acquire(p->cell);
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = index_of(s, gpus[i].uuid);
        if (at < s->gpu_count && !is_whole_again(&s->gpus[at].identity, &gpus[i]))
            continue;
        if (at < s->gpu_count || s->gpu_count + n < REACH_MAX_GPUS)
            arrivals[n++] = gpus[i];
        else
            log_warning("gpu %s is not served: there is room for %d", gpus[i].uuid, REACH_MAX_GPUS);
    }
    snapshot_release(s);
    return pipeline_draft(p, arrivals, n, out, err);
}

/* The driver shows a GPU that is known. True: `gpu` has changed, and `thread` has something to do
 * if the options want it. The mutex is held. */
static bool merge_listed(struct gpu_thread *thread, const struct gpu_identity *now,
                         struct snapshot_gpu *gpu)
{
    struct check check;

    if (is_whole_again(&gpu->identity, now))
        return false; /* it is among the arrivals */
    check_identity(&gpu->identity, now, &check);
    if (!thread->lost && check.result != CHECK_CHANGED)
        return false;
    log_info("gpu %u %s %s%s", thread->index, now->uuid,
             thread->lost ? "is back" : "has changed: ", thread->lost ? "" : check.message);
    thread->lost = false;
    thread->retry_at = thread->retry_pause = thread->rediscover_at = 0;
    gpu->identity = *now;
    gpu->last_error = (struct err){.status = STATUS_OK};
    if (identity_is_divided(now)) {
        gpu->has_fingerprint = gpu->fingerprint_stale = false;
        gpu->fingerprint_id[0] = '\0';
    }
    if (gpu->has_fingerprint)
        check_identity(&gpu->fingerprint.gpu, now, &check);
    if (gpu->has_fingerprint && check.result == CHECK_CHANGED) {
        gpu->fingerprint_stale = true;
        err_set_hint(&gpu->last_error, STATUS_CONFLICT, MEASURE_AGAIN_HINT, "%s; measure again",
                     check.message);
    }
    gpu->state = pipeline_idle_state(gpu);
    return true;
}

/* The driver does not show a GPU any more. The mutex is held. */
static bool merge_absent(struct gpu_thread *thread, struct snapshot_gpu *gpu)
{
    if (thread->lost)
        return false;
    thread->lost = true;
    thread->retry_at = 0;
    gpu->state = GPU_STATE_LOST;
    err_set(&gpu->last_error, STATUS_NOT_FOUND, "the driver shows no GPU %s", gpu->identity.uuid);
    log_warning("gpu %u: %s", thread->index, gpu->last_error.text);
    pthread_cond_signal(&thread->wake); /* to look for it from time to time */
    return true;
}

/* Known GPUs: `changed` says which of them are to be queued. Were any published otherwise? The
 * mutex is held. */
static bool merge_known(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count,
                        struct snapshot *draft, bool changed[REACH_MAX_GPUS])
{
    bool any = false;

    for (uint32_t i = 0; i < p->gpu_thread_count; i++) {
        if (p->threads[i].slot == QUEUE_NONE &&
            !is_listed(gpus, count, draft->gpus[i].identity.uuid))
            any = merge_absent(&p->threads[i], &draft->gpus[i]) || any;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = index_of(draft, gpus[i].uuid);
        if (at >= p->gpu_thread_count || p->threads[at].slot != QUEUE_NONE)
            continue;
        changed[at] = merge_listed(&p->threads[at], &gpus[i], &draft->gpus[at]);
        any = any || changed[at];
    }
    return any;
}

/* Starts the threads of new GPUs, which end up behind the others. Were there any? The mutex is
 * held.
 */
static bool merge_arrivals(struct pipeline *p, const struct snapshot *arrivals,
                           struct snapshot *draft, bool changed[REACH_MAX_GPUS])
{
    struct err err = {0};
    bool any = false;

    for (uint32_t i = 0; i < arrivals->gpu_count; i++) {
        const struct gpu_identity *const now = &arrivals->gpus[i].identity;
        const uint32_t at = draft->gpu_count;
        const uint32_t known = index_of(draft, now->uuid);
        if (known < at) { /* whole again, or another list had it a moment ago */
            changed[known] = is_whole_again(&draft->gpus[known].identity, now) &&
                             p->threads[known].slot == QUEUE_NONE;
            if (changed[known]) {
                p->threads[known].lost = false;
                draft->gpus[known] = arrivals->gpus[i];
            }
            any = any || changed[known];
            continue;
        }
        if (at == REACH_MAX_GPUS || pipeline_start_thread(p, at, now, &err)) {
            log_error("gpu %s is not served: %s", now->uuid, err.text);
            return any;
        }
        log_info("gpu %u %s has arrived: %s, %u SMs", at, now->uuid, now->name, now->sm_count);
        draft->gpus[at] = arrivals->gpus[i];
        draft->gpu_count++;
        changed[at] = any = true;
    }
    return any;
}

/* A copy of the newest view with room for `more` GPUs, which it does not count yet. The mutex is
 * held. */
static struct snapshot *copy_with_room(struct pipeline *p, uint32_t more)
{
    const struct snapshot *const now = snapshot_acquire(p->cell);
    struct snapshot *const draft = snapshot_draft(now->gpu_count + more);

    if (draft)
        memcpy(draft, now, sizeof(*now) + now->gpu_count * sizeof(now->gpus[0]));
    snapshot_release(now);
    return draft;
}

/* The mutex is held. */
static void merge(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count,
                  const struct snapshot *arrivals)
{
    bool changed[REACH_MAX_GPUS] = {false};
    struct snapshot *const draft = copy_with_room(p, arrivals->gpu_count);

    if (!draft) {
        log_error("no memory for a snapshot; an older one stays published");
        return;
    }
    const bool known = merge_known(p, gpus, count, draft, changed);
    const bool arrived = merge_arrivals(p, arrivals, draft, changed);

    if (known || arrived)
        pipeline_publish_and_queue(p, draft, changed);
    else
        snapshot_discard(draft);
}

void pipeline_merge(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count)
{
    struct snapshot *arrivals = NULL;
    struct err err = {0};

    if (find_arrivals(p, gpus, count, &arrivals, &err)) {
        log_error("the list of the driver is not read: %s", err.text);
        return;
    }
    pthread_mutex_lock(&p->mutex);
    if (!p->stopping)
        merge(p, gpus, count, arrivals);
    pthread_mutex_unlock(&p->mutex);
    snapshot_discard(arrivals);
}
