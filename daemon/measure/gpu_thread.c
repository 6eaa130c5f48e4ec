/* gpu_thread.c: one GPU's thread: its measurements one after the other, and what is published about
 * it. It sleeps on its condition until a measurement is queued for its GPU. See gpu_thread.h.
 */
#include "measure/gpu_thread.h"

#include "base/log.h"
#include "measure/measure.h"
#include "measure/verify.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* cuInit on a node of eight GPUs takes seconds, on one with a sick GPU much longer. */
#define PIPELINE_LIST_DEADLINE   (30 * NSEC_PER_SEC)
#define GPU_THREAD_PUBLISH_AGAIN (100 * NSEC_PER_MSEC)
#define GPU_THREAD_LONGEST_PAUSE (3600 * NSEC_PER_SEC) /* before what failed is tried again */

static void gpu_thread_progress(void *self, double progress, const char *message)
{
    struct gpu_thread *thread = self;
    struct pipeline *p = thread->pipeline;

    pthread_mutex_lock(&p->mutex);
    struct measurement *measurement = &p->queue.items[thread->slot];

    if (progress > measurement->progress) {
        measurement->progress = progress < 1.0 ? progress : 1.0;
    }
    snprintf(measurement->message, sizeof measurement->message, "%s", message);
    pthread_mutex_unlock(&p->mutex);
    log_debug("gpu %u: %3.0f%% %s", thread->index, progress * 100.0, message);
}

static bool gpu_thread_attach(void *self, struct worker *worker)
{
    struct gpu_thread *thread = self;
    struct pipeline *p = thread->pipeline;

    pthread_mutex_lock(&p->mutex);
    bool go_on = !p->stopping && !thread->cancelled;

    thread->worker = worker;
    pthread_mutex_unlock(&p->mutex);
    return go_on;
}

static void gpu_thread_hung(void *self, int pid)
{
    struct gpu_thread *thread = self;

    pthread_mutex_lock(&thread->pipeline->mutex);
    thread->hung_pid = pid;
    pthread_mutex_unlock(&thread->pipeline->mutex);
}

static bool pipeline_is_stopping(void *self)
{
    struct pipeline *p = self;

    pthread_mutex_lock(&p->mutex);
    const bool stopping = p->stopping;

    pthread_mutex_unlock(&p->mutex);
    return stopping;
}

static bool gpu_thread_hurried(void *self)
{
    return pipeline_is_stopping(((struct gpu_thread *)self)->pipeline);
}

/* Logs what a measurement left out, and which parts of what is served are older. */
static void gpu_thread_log_result(const struct gpu_thread *thread, const struct fingerprint *fp)
{
    char when[32], name[PART_NAME_BYTES];

    for (uint32_t i = 0; i < fp->conditions.note_count; i++) {
        log_info("gpu %u: %s", thread->index, fp->conditions.notes[i]);
    }

    for (uint32_t part = 0; part < PART_COUNT; part++) {
        if (fp->kept[part].id[0]) {
            log_debug("gpu %u: %s is kept from %s of %s", thread->index,
                      fingerprint_part_name((enum fingerprint_part)part, name), fp->kept[part].id,
                      clock_rfc3339(fp->kept[part].taken_at, when, sizeof when));
        }
    }
}

/* The measurement under way has ended well. `take` is what is known of the GPU now. The mutex is
 * held. */
static void gpu_thread_done(struct gpu_thread *thread, const struct measure_result *result,
                            struct fingerprint *take)
{
    struct pipeline *p = thread->pipeline;
    struct measurement *measurement = &p->queue.items[thread->slot];
    struct gpu_update update = {
        .state =
            queue_count_waiting(&p->queue, measurement->uuid) ? GPU_STATE_QUEUED : GPU_STATE_READY,
        .has_error = true, /* none any more */
        .fingerprint = take,
    };

    thread->retry_at = thread->retry_pause = 0;
    measurement->state = MEASUREMENT_DONE;
    measurement->ended_at =
        clock_wall_seconds(); /* at once: whoever sees the state sees the time */
    measurement->progress = 1.0;
    memcpy(measurement->fingerprint_id, result->id, sizeof measurement->fingerprint_id);
    memcpy(update.fingerprint_id, result->known_id, sizeof update.fingerprint_id);
    snprintf(measurement->message, sizeof measurement->message,
             "measured in %u ms, %u ms of it probing", take->duration_ms, take->probe_ms);
    log_info("gpu %u %s: %s, depth %s, measured in %u ms", thread->index, measurement->uuid,
             result->id, depth_name(measurement->depth), take->duration_ms);
    gpu_thread_log_result(thread, take);
    gpu_thread_publish(thread, &update);
}

/* The driver does not show it, or does not come back from a call: nothing can be measured until
 * that has changed, which is looked for now and then. */
static bool is_gone(enum status status)
{
    return status == STATUS_NOT_FOUND || status == STATUS_GPU_HUNG;
}

/* What may be otherwise in a minute, or in an hour. */
static bool may_pass(enum status status)
{
    return status == STATUS_GPU_BUSY || status == STATUS_GPU_NO_MEMORY ||
           status == STATUS_GPU_LOST || status == STATUS_GPU_FAULT || status == STATUS_DEADLINE ||
           status == STATUS_DISTURBED || status == STATUS_INCONCLUSIVE ||
           status == STATUS_NO_MEMORY;
}

/* A GPU that the daemon measures by itself, and about which nothing true is known, is measured
 * again after a pause that doubles. The mutex is held. */
static void gpu_thread_plan_retry(struct gpu_thread *thread, enum status status)
{
    struct pipeline *p = thread->pipeline;
    const struct snapshot *s = snapshot_acquire(p->cell);
    const struct snapshot_gpu *gpu = &s->gpus[thread->index];
    const bool known = gpu->has_fingerprint && !gpu->fingerprint_stale;

    snapshot_release(s);
    if (known || !p->measure_unknown || !may_pass(status)) {
        thread->retry_at = 0;
        return;
    }
    const nsec_t pause = thread->retry_pause ? 2 * thread->retry_pause : p->retry_ns;

    thread->retry_pause = pause < GPU_THREAD_LONGEST_PAUSE ? pause : GPU_THREAD_LONGEST_PAUSE;
    thread->retry_at = clock_monotonic() + thread->retry_pause;
    log_info("gpu %u %s is measured again in %llu s", thread->index, thread->identity.uuid,
             (unsigned long long)((thread->retry_pause + NSEC_PER_SEC - 1) / NSEC_PER_SEC));
}

/* A check that could not be had says nothing against the fingerprint. */
static bool is_unsure(const struct measurement *measurement, const struct err *why)
{
    return measurement->kind == MEASUREMENT_CHECK && why->status == STATUS_DISTURBED;
}

/* What this GPU is while nothing waits and nothing is under way. The mutex is held. */
static enum gpu_state gpu_thread_at_rest(const struct gpu_thread *thread)
{
    const struct snapshot *s = snapshot_acquire(thread->pipeline->cell);
    const struct snapshot_gpu *gpu = &s->gpus[thread->index];
    enum gpu_state state = thread->lost                          ? GPU_STATE_LOST
                           : gpu->fingerprint_stale              ? GPU_STATE_STALE
                           : gpu->last_error.status != STATUS_OK ? GPU_STATE_FAILED
                           : gpu->has_fingerprint                ? GPU_STATE_READY
                                                                 : GPU_STATE_UNKNOWN;

    snapshot_release(s);
    return queue_count_waiting(&thread->pipeline->queue, thread->identity.uuid) ? GPU_STATE_QUEUED
                                                                                : state;
}

/* The measurement under way was cancelled: nothing was learnt about the GPU. The mutex is held. */
static void gpu_thread_gave_up(struct gpu_thread *thread, const struct err *why)
{
    struct measurement *measurement = &thread->pipeline->queue.items[thread->slot];

    queue_end_cancelled(measurement, why, clock_wall_seconds());
    gpu_thread_publish(thread, &(struct gpu_update){.state = gpu_thread_at_rest(thread)});
    log_info("gpu %u %s: %s is cancelled", thread->index, measurement->uuid, measurement->id);
}

/* The measurement under way has failed. The last good fingerprint stays as it is. The mutex is
 * held. */
static void gpu_thread_failed(struct gpu_thread *thread, const struct err *why)
{
    struct pipeline *p = thread->pipeline;
    struct measurement *measurement = &p->queue.items[thread->slot];
    const struct gpu_update update = {
        .state = is_gone(why->status)                                ? GPU_STATE_LOST
                 : is_unsure(measurement, why)                       ? GPU_STATE_READY
                 : queue_count_waiting(&p->queue, measurement->uuid) ? GPU_STATE_QUEUED
                                                                     : GPU_STATE_FAILED,
        .has_error = true,
        .error = *why,
    };

    if (thread->cancelled && why->status == STATUS_CANCELLED) {
        gpu_thread_gave_up(thread, why);
        return;
    }
    thread->lost = is_gone(why->status);
    gpu_thread_plan_retry(thread, why->status);
    measurement->state = MEASUREMENT_FAILED;
    measurement->ended_at = clock_wall_seconds();
    measurement->error = *why;
    snprintf(measurement->message, sizeof measurement->message, "failed: %.140s", why->text);
    gpu_thread_publish(thread, &update);
    log_warning("gpu %u %s: %s failed (%s): %s", thread->index, measurement->uuid, measurement->id,
                status_info(why->status)->slug, why->text);
}

enum status gpu_thread_queue(struct gpu_thread *thread, enum measurement_kind kind,
                             enum depth depth, struct measurement *out, struct err *err)
{
    struct measurement_queue *queue = &thread->pipeline->queue;
    const char *uuid = thread->identity.uuid;
    int slot = queue_waiting_like(queue, uuid, kind, depth);

    if (slot != QUEUE_NONE) {
        *out = queue->items[slot];
        return STATUS_OK;
    }
    if (queue_count_waiting(queue, uuid) >= QUEUE_MAX_WAITING) {
        return err_set(err, STATUS_FULL, "%d measurements wait for this GPU already",
                       QUEUE_MAX_WAITING);
    }
    slot = queue_add(queue, uuid, kind, depth, clock_wall_seconds());
    if (slot == QUEUE_NONE) {
        return err_set(err, STATUS_FULL, "%d measurements are under way on this node", QUEUE_MAX);
    }
    *out = queue->items[slot];
    if (thread->slot == QUEUE_NONE) {
        gpu_thread_publish(thread, &(struct gpu_update){.state = GPU_STATE_QUEUED});
    }
    pthread_cond_signal(&thread->wake);
    return STATUS_OK;
}

enum status gpu_thread_cancel(struct gpu_thread *thread, int slot, struct err *err)
{
    struct measurement *measurement = &thread->pipeline->queue.items[slot];
    struct err why = {0};

    if (slot == thread->slot) {
        thread->cancelled = true;
        snprintf(measurement->message, sizeof measurement->message, "is being cancelled");
        if (thread->worker) {
            worker_cancel(thread->worker);
        }
        return STATUS_OK;
    }
    if (measurement->state != MEASUREMENT_QUEUED) {
        return err_set(err, STATUS_CONFLICT, "%s has ended already: it is %s", measurement->id,
                       measurement_state_name(measurement->state));
    }
    err_set(&why, STATUS_CANCELLED, "cancelled before it began");
    queue_end_cancelled(measurement, &why, clock_wall_seconds());
    if (thread->slot == QUEUE_NONE) {
        gpu_thread_publish(thread, &(struct gpu_update){.state = gpu_thread_at_rest(thread)});
    }
    log_info("gpu %u %s: %s is cancelled", thread->index, measurement->uuid, measurement->id);
    return STATUS_OK;
}

/* A worker that was left alone has the driver still: a second one would hang as well. */
static bool gpu_thread_still_hangs(struct pipeline *p, int *hung_pid, struct err *err)
{
    pthread_mutex_lock(&p->mutex);
    const int pid = *hung_pid;

    pthread_mutex_unlock(&p->mutex);
    if (pid == 0) {
        return false;
    }
    if (worker_is_abandoned(pid)) {
        err_set(err, STATUS_GPU_HUNG, "the measurement process %d still hangs in the driver", pid);
        return true;
    }
    pthread_mutex_lock(&p->mutex);
    *hung_pid = 0;
    pthread_mutex_unlock(&p->mutex);
    return false;
}

/* Ends the worker that has listed GPUs, or leaves it alone where it hangs. */
static void gpu_thread_end_list(struct pipeline *p, struct worker *take, int *hung_pid)
{
    const struct worker_timeouts timeouts = {.grace_ns = p->grace_ns ? p->grace_ns : MEASURE_GRACE,
                                             .stopping_ns = MEASURE_GRACE_STOPPING,
                                             .stopping = pipeline_is_stopping,
                                             .self = p};
    const int pid = worker_abandon(take, &timeouts);

    if (pid) {
        pthread_mutex_lock(&p->mutex);
        *hung_pid = pid;
        pthread_mutex_unlock(&p->mutex);
    }
}

uint32_t gpu_thread_list_gpus(struct pipeline *p, struct worker **slot, int *hung_pid,
                              struct gpu_identity *out, struct err *why)
{
    struct worker *worker = NULL;
    uint32_t count = 0;
    enum status status = gpu_thread_still_hangs(p, hung_pid, why)
                             ? STATUS_GPU_HUNG
                             : worker_start(p->executable, &p->gpu, &worker, why);

    pthread_mutex_lock(&p->mutex);
    if (!status && p->stopping) {
        status = err_set(why, STATUS_CANCELLED, "the daemon is stopping");
    }
    *slot = worker;
    pthread_mutex_unlock(&p->mutex);
    status = status ? status
                    : worker_list(worker, PIPELINE_LIST_DEADLINE, out, REACH_MAX_GPUS, &count, why);
    pthread_mutex_lock(&p->mutex);
    *slot = NULL;
    pthread_mutex_unlock(&p->mutex);
    gpu_thread_end_list(p, worker, hung_pid);
    if (!status && count == 0) {
        status = err_set(why, STATUS_NO_DRIVER, "the driver shows no GPU");
    }
    return status ? 0 : count;
}

/* What is served for this GPU, in `*out`; false if there is nothing. `*doubted`: it is stale. */
static bool gpu_thread_known(struct gpu_thread *thread, struct fingerprint *out, bool *doubted)
{
    const struct snapshot *s = snapshot_acquire(thread->pipeline->cell);
    const struct snapshot_gpu *gpu = &s->gpus[thread->index];
    const bool known = gpu->has_fingerprint;

    *doubted = gpu->fingerprint_stale;
    if (known) {
        *out = gpu->fingerprint;
    }
    snapshot_release(s);
    return known;
}

/* Carries out the measurement in thread->slot; `*take` is room for what is known. The mutex is not
 * held. */
static enum status gpu_thread_measure(struct gpu_thread *thread, struct measure_request *request,
                                      struct fingerprint *take, struct err *err)
{
    struct pipeline *p = thread->pipeline;
    struct measure_result *result = calloc(1, sizeof *result);
    enum status status = STATUS_NO_MEMORY;

    if (!result) {
        err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
        goto out;
    }
    request->known = gpu_thread_known(thread, take, &request->known_stale) ? take : NULL;
    status = measure_gpu(request, result, err);
    if (status) {
        goto out;
    }
    *take = result->known;
    pthread_mutex_lock(&p->mutex);
    thread->lost = false;
    gpu_thread_done(thread, result, take);
    pthread_mutex_unlock(&p->mutex);
    take = NULL;
out:
    free(result);
    free(take);
    return status;
}

/* A check has ended well: the fingerprint is true, or it is not. The mutex is held. */
static void gpu_thread_checked(struct gpu_thread *thread, const struct check *check,
                               nsec_t probe_ns)
{
    struct pipeline *p = thread->pipeline;
    struct measurement *measurement = &p->queue.items[thread->slot];
    const bool changed = check->result == CHECK_CHANGED;
    struct err why = {0};
    struct measurement again;

    thread->lost = false;
    measurement->state = MEASUREMENT_DONE;
    measurement->ended_at = clock_wall_seconds();
    measurement->progress = 1.0;
    snprintf(measurement->message, sizeof measurement->message,
             "%s: %.100s%s%u levels and groups in %llu ms", check_result_name(check->result),
             check->message, changed ? "; " : "", check->looked_at,
             (unsigned long long)(probe_ns / NSEC_PER_MSEC));
    if (changed) {
        err_set_hint(&why, STATUS_CONFLICT, MEASURE_AGAIN_HINT, "%s", check->message);
    }
    if (changed && p->measure_unknown &&
        gpu_thread_queue(thread, MEASUREMENT_NEW, DEPTH_FULL, &again, NULL)) {
        log_warning("gpu %u is stale, and its queue is full", thread->index);
    }
    const struct gpu_update update = {.state = queue_count_waiting(&p->queue, measurement->uuid)
                                                   ? GPU_STATE_QUEUED
                                               : changed ? GPU_STATE_STALE
                                                         : GPU_STATE_READY,
                                      .has_error = true,
                                      .error = why,
                                      .stale = changed};

    gpu_thread_publish(thread, &update);
    log_info("gpu %u %s: %s", thread->index, measurement->uuid, measurement->message);
}

/* Carries out the check in thread->slot. The mutex is not held. */
static enum status gpu_thread_check(struct gpu_thread *thread,
                                    const struct measure_request *request, struct fingerprint *take,
                                    struct err *err)
{
    struct pipeline *p = thread->pipeline;
    const struct snapshot *s = snapshot_acquire(p->cell);
    struct check check = {0};
    nsec_t probe_ns = 0;

    *take = s->gpus[thread->index].fingerprint;
    snapshot_release(s);
    enum status status = verify_gpu(request, take, &check, &probe_ns, err);

    free(take);
    if (!status && check.result == CHECK_UNSURE) {
        status = err_set(err, STATUS_DISTURBED, "the check could not be had: %s", check.message);
    }
    if (status) {
        return status;
    }
    pthread_mutex_lock(&p->mutex);
    gpu_thread_checked(thread, &check, probe_ns);
    pthread_mutex_unlock(&p->mutex);
    return STATUS_OK;
}

/* Carries out the measurement in thread->slot. The mutex is not held. */
static void gpu_thread_work(struct gpu_thread *thread, const struct measurement *measurement)
{
    struct pipeline *p = thread->pipeline;
    struct measure_request request = {.executable = p->executable,
                                      .gpu = &p->gpu,
                                      .store = p->store,
                                      .uuid = thread->identity.uuid,
                                      .depth = measurement->depth,
                                      .self = thread,
                                      .progress = gpu_thread_progress,
                                      .attach = gpu_thread_attach,
                                      .stopping = gpu_thread_hurried,
                                      .hung = gpu_thread_hung,
                                      .open_deadline_ns = p->open_ns,
                                      .grace_ns = p->grace_ns};
    struct fingerprint *fp = calloc(1, sizeof *fp);
    struct err err = {0};

    if (!fp) {
        err_set(&err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    }
    if (gpu_thread_still_hangs(p, &thread->hung_pid, &err) || !fp) {
        free(fp);
    } else if (measurement->kind == MEASUREMENT_CHECK) {
        err.status = gpu_thread_check(thread, &request, fp, &err);
    } else {
        err.status = gpu_thread_measure(thread, &request, fp, &err);
    }
    pthread_mutex_lock(&p->mutex);
    if (err.status) {
        gpu_thread_failed(thread, &err);
    }
    thread->slot = QUEUE_NONE;
    thread->cancelled = false;
    pthread_mutex_unlock(&p->mutex);
    malloc_trim(0); /* observations are large and measurements rare: give the pages back */
}

/* Does the driver show this GPU again? The mutex is not held. */
static bool gpu_thread_is_back(struct gpu_thread *thread)
{
    struct pipeline *p = thread->pipeline;
    struct gpu_identity *gpus = calloc(REACH_MAX_GPUS, sizeof *gpus);
    struct err why = {0};
    bool found = false;
    uint32_t count =
        gpus ? gpu_thread_list_gpus(p, &thread->worker, &thread->hung_pid, gpus, &why) : 0;

    for (uint32_t i = 0; i < count; i++) {
        found = found || strcmp(gpus[i].uuid, thread->identity.uuid) == 0;
    }
    if (count == 0) {
        log_debug("gpu %u is still lost: %s", thread->index, why.text);
    }
    free(gpus);
    return found;
}

/* There was no memory to publish: waits a little, and tries again. The mutex is held. */
static void gpu_thread_sleep_and_publish(struct gpu_thread *thread)
{
    const nsec_t until = clock_monotonic() + GPU_THREAD_PUBLISH_AGAIN;
    const struct timespec at = {.tv_sec = (time_t)(until / NSEC_PER_SEC),
                                .tv_nsec = (long)(until % NSEC_PER_SEC)};

    (void)pthread_cond_clockwait(&thread->wake, &thread->pipeline->mutex, CLOCK_MONOTONIC, &at);
    if (thread->pending.any) {
        gpu_thread_publish_pending(thread);
    }
}

/* Sleeps until there is work or it is time to measure again. The mutex is held. */
static void gpu_thread_sleep_and_retry(struct gpu_thread *thread)
{
    const struct timespec at = {.tv_sec = (time_t)(thread->retry_at / NSEC_PER_SEC),
                                .tv_nsec = (long)(thread->retry_at % NSEC_PER_SEC)};
    struct measurement measurement;

    if (pthread_cond_clockwait(&thread->wake, &thread->pipeline->mutex, CLOCK_MONOTONIC, &at) ==
            ETIMEDOUT &&
        !thread->pipeline->stopping) {
        thread->retry_at = 0;
        (void)gpu_thread_queue(thread, MEASUREMENT_NEW, DEPTH_FULL, &measurement, NULL);
    }
}

/* Sleeps until there is work, or, where the GPU is lost, until it is time to look for it: then a
 * check is queued, or a measurement where there is nothing to check. The mutex is held. */
static void gpu_thread_sleep(struct gpu_thread *thread)
{
    struct pipeline *p = thread->pipeline;
    struct measurement measurement;

    if (thread->pending.any) {
        gpu_thread_sleep_and_publish(thread);
        return;
    }
    if (!thread->lost && thread->retry_at) {
        gpu_thread_sleep_and_retry(thread);
        return;
    }
    if (!thread->lost) {
        pthread_cond_wait(&thread->wake, &p->mutex);
        return;
    }
    if (thread->rediscover_at == 0) {
        thread->rediscover_at = clock_monotonic() + p->rediscover_ns;
    }
    const struct timespec at = {.tv_sec = (time_t)(thread->rediscover_at / NSEC_PER_SEC),
                                .tv_nsec = (long)(thread->rediscover_at % NSEC_PER_SEC)};

    if (pthread_cond_clockwait(&thread->wake, &p->mutex, CLOCK_MONOTONIC, &at) != ETIMEDOUT) {
        return;
    }
    thread->rediscover_at = 0;
    pthread_mutex_unlock(&p->mutex);
    bool back = gpu_thread_is_back(thread);

    pthread_mutex_lock(&p->mutex);
    if (!back || p->stopping) {
        return;
    }
    const struct snapshot *s = snapshot_acquire(p->cell);
    bool known = s->gpus[thread->index].has_fingerprint;

    snapshot_release(s);
    thread->lost = false;
    log_info("gpu %u %s is back", thread->index, thread->identity.uuid);
    if (known ? p->check_known : p->measure_unknown) {
        (void)gpu_thread_queue(thread, known ? MEASUREMENT_CHECK : MEASUREMENT_NEW, DEPTH_FULL,
                               &measurement, NULL);
    } else {
        gpu_thread_publish(
            thread, &(struct gpu_update){.state = known ? GPU_STATE_READY : GPU_STATE_UNKNOWN});
    }
}

void *gpu_thread_main(void *self)
{
    struct gpu_thread *thread = self;
    struct pipeline *p = thread->pipeline;
    char name[16];

    snprintf(name, sizeof name, "gpu-%u", thread->index);
    pthread_setname_np(pthread_self(), name);
    heartbeat_adopt(&thread->heartbeat);
    pthread_mutex_lock(&p->mutex);
    while (!p->stopping) {
        heartbeat_beat();
        int slot = queue_next(&p->queue, thread->identity.uuid);

        if (slot == QUEUE_NONE) {
            gpu_thread_sleep(thread);
            continue;
        }
        struct measurement *measurement = &p->queue.items[slot];

        thread->slot = slot;
        measurement->state = MEASUREMENT_RUNNING;
        measurement->started_at = clock_wall_seconds();
        gpu_thread_publish(thread,
                           &(struct gpu_update){.state = measurement->kind == MEASUREMENT_CHECK
                                                             ? GPU_STATE_CHECKING
                                                             : GPU_STATE_MEASURING});
        struct measurement now = *measurement;

        pthread_mutex_unlock(&p->mutex);
        gpu_thread_work(thread, &now);
        pthread_mutex_lock(&p->mutex);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}
