/* gpu_thread.c: the thread of one GPU, which runs its measurements one after the other and
 * publishes their results. It sleeps on its condition until a measurement is queued for its GPU.
 * See gpu_thread.h. */
#include "measure/gpu_thread.h"

#include "base/log.h"
#include "base/memory_trim.h"
#include "fingerprint/parts.h"
#include "measure/check_schedule.h"
#include "measure/gpu_thread_publish.h"
#include "measure/measure.h"
#include "measure/pipeline_state.h"
#include "worker/reap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than twice the time that the worker gives each GPU (gpu_options.identify_ms). */
#define PIPELINE_LIST_DEADLINE (60 * NSEC_PER_SEC)
#define GPU_THREAD_LONGEST_POLL                                                                    \
    (600 * NSEC_PER_SEC) /* longest pause between two polls for lost GPUs */
#define GPU_THREAD_PUBLISH_AGAIN (100 * NSEC_PER_MSEC)
#define GPU_THREAD_LONGEST_PAUSE                                                                   \
    (3600 * NSEC_PER_SEC) /* longest pause before a retry after a failure */
#define GPU_THREAD_LONGEST_BUSY                                                                    \
    (600 * NSEC_PER_SEC) /* longest pause before a retry beside other work */

static void gpu_thread_progress(void *self, double progress, const char *message)
{
    struct gpu_thread *thread = self;
    struct pipeline *p = thread->pipeline;

    pthread_mutex_lock(&p->mutex);
    struct measurement *measurement = &p->queue.items[thread->slot];

    if (progress > measurement->progress)
        measurement->progress = progress < 1.0 ? progress : 1.0;
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
    ((struct gpu_thread *)self)->hung_pid = pid;
}

static bool pipeline_is_stopping(void *self)
{
    struct pipeline *p = self;

    pthread_mutex_lock(&p->mutex);
    const bool stopping = p->stopping;

    pthread_mutex_unlock(&p->mutex);
    return stopping;
}

static bool gpu_thread_is_stopping(void *self)
{
    return pipeline_is_stopping(((struct gpu_thread *)self)->pipeline);
}

/* Logs the gaps of a measurement, and the served parts that are older. */
static void gpu_thread_log_result(const struct gpu_thread *thread, const struct fingerprint *fp)
{
    char when[32], name[PART_NAME_BYTES];

    for (uint32_t i = 0; i < fp->conditions.note_count; i++)
        log_info("gpu %u: %s", thread->index, fp->conditions.notes[i]);

    for (uint32_t part = 0; part < PART_COUNT; part++) {
        if (fp->kept[part].id[0])
            log_debug("gpu %u: the part %s is kept from fingerprint %s of %s", thread->index,
                      fingerprint_part_name((enum fingerprint_part)part, name), fp->kept[part].id,
                      clock_rfc3339(fp->kept[part].taken_at, when, sizeof when));
    }
}

/* Returns whether the daemon measures this GPU by itself, and a part that depth full determines is
 * missing. */
static bool lacks_full(const struct gpu_thread *thread, const struct fingerprint *fp)
{
    return thread->pipeline->options.measure_unknown && fp->depth < DEPTH_FULL;
}

/* Queues the full measurement that adds to the results of a quick measurement, unless its next
 * attempt has a time already. The mutex is held. */
static void gpu_thread_complete(struct gpu_thread *thread, const struct fingerprint *fp)
{
    struct measurement measurement;

    if (!lacks_full(thread, fp)) {
        thread->retry_at = thread->retry_pause = 0;
    } else if (thread->retry_at == 0) {
        thread->retry_pause = 0;
        if (gpu_thread_queue(thread, MEASUREMENT_NEW, DEPTH_FULL, &measurement, NULL))
            log_warning("gpu %u lacks a full measurement, and its queue is full", thread->index);
    }
}

/* Returns GPU_STATE_QUEUED if a measurement is queued for the GPU, otherwise `state`. The mutex is
 * held. */
static enum gpu_state gpu_thread_queued_or(const struct gpu_thread *thread, enum gpu_state state)
{
    return queue_count_waiting(&thread->pipeline->queue, thread->identity.uuid) ? GPU_STATE_QUEUED
                                                                                : state;
}

/* Ends the running measurement as `state` and sets its time, because both are read together. The
 * mutex is held. */
static struct measurement *gpu_thread_end(struct gpu_thread *thread, enum measurement_state state)
{
    struct measurement *measurement = &thread->pipeline->queue.items[thread->slot];

    measurement->state = state;
    measurement->ended_at = clock_wall_seconds();
    if (state == MEASUREMENT_DONE) {
        measurement->progress = 1.0;
        thread->lost = false;
        thread->rediscover_pause = 0;
    }
    return measurement;
}

/* Handles the success of the running measurement. Takes result->known. The mutex is held. */
static void gpu_thread_done(struct gpu_thread *thread, const struct measure_result *result)
{
    struct measurement *measurement = gpu_thread_end(thread, MEASUREMENT_DONE);
    const struct fingerprint *fp = result->known;
    struct gpu_update update = {
        .has_error = true, /* STATUS_OK: the GPU has no error any more */
        .fingerprint = result->known,
    };

    gpu_thread_complete(thread, fp);
    update.state = gpu_thread_queued_or(thread, GPU_STATE_READY);
    memcpy(measurement->fingerprint_id, result->known_id, sizeof measurement->fingerprint_id);
    memcpy(measurement->measured_id, result->id, sizeof measurement->measured_id);
    memcpy(update.fingerprint_id, result->known_id, sizeof update.fingerprint_id);
    snprintf(measurement->message, sizeof measurement->message,
             "measured in %u ms, %u ms of it probing", fp->duration_ms, fp->probe_ms);
    log_info("gpu %u %s: %s, depth %s, measured in %u ms; served as %s", thread->index,
             measurement->uuid, result->id, depth_name(measurement->depth), fp->duration_ms,
             result->known_id);
    gpu_thread_log_result(thread, fp);
    gpu_thread_publish(thread, &update);
}

/* Returns whether the GPU cannot be measured at present. The driver does not show the GPU, is
 * unloaded, has no usable GPU, or hangs in a call. The thread polls until that has changed
 * (rediscover_ms). */
static bool is_gone(enum status status)
{
    return status == STATUS_NOT_FOUND || status == STATUS_NO_DRIVER || status == STATUS_GPU_HUNG;
}

/* Returns whether other work on the GPU is the reason of the failure, and not the GPU itself. */
static bool is_busy(enum status status)
{
    return status == STATUS_GPU_BUSY || status == STATUS_GPU_NO_MEMORY ||
           status == STATUS_DISTURBED || status == STATUS_INCONCLUSIVE;
}

/* Returns whether the fingerprint must be checked. A GPU that fails under a probe may have been
 * reset, changed or removed. */
static bool is_doubtful(enum status status)
{
    return status == STATUS_GPU_LOST || status == STATUS_GPU_FAULT || status == STATUS_DEADLINE;
}

/* Returns whether the failure may pass in a second, or in an hour. */
static bool may_pass(enum status status)
{
    return is_busy(status) || is_doubtful(status) || status == STATUS_NO_MEMORY;
}

/* Sets the time of the next attempt, after a pause that doubles. Beside other work the first pause
 * is shorter, because a load may change within seconds, and the GPU may have no results until then.
 * The mutex is held. */
static void gpu_thread_set_retry(struct gpu_thread *thread, enum measurement_kind kind, bool busy)
{
    const struct pipeline *p = thread->pipeline;
    const nsec_t first = (busy ? p->options.busy_ms : p->options.retry_ms) * NSEC_PER_MSEC;
    const nsec_t longest = busy ? GPU_THREAD_LONGEST_BUSY : GPU_THREAD_LONGEST_PAUSE;
    const nsec_t twice = 2 * thread->retry_pause;
    const nsec_t pause = twice > first ? twice : first;

    thread->retry_pause = pause < longest ? pause : longest;
    thread->retry_at = clock_monotonic() + thread->retry_pause;
    thread->retry_kind = kind;
    log_info("gpu %u %s will be %s again in %llu s", thread->index, thread->identity.uuid,
             kind == MEASUREMENT_CHECK ? "checked" : "measured",
             (unsigned long long)((thread->retry_pause + NSEC_PER_SEC - 1) / NSEC_PER_SEC));
}

/* Schedules another attempt after a failure. A fingerprint that the failure makes doubtful is
 * checked. If the daemon measures by itself, a GPU whose fingerprint is missing, stale or
 * incomplete is measured. The mutex is held. */
static void gpu_thread_plan_retry(struct gpu_thread *thread, enum status status)
{
    const struct pipeline *p = thread->pipeline;
    const struct snapshot *s = snapshot_acquire(p->cell);
    const struct snapshot_gpu *gpu = gpu_thread_find(thread, s);
    const bool known = gpu && gpu->has_fingerprint && !gpu->fingerprint_stale;
    const bool lacks = known ? lacks_full(thread, &gpu->fingerprint) : p->options.measure_unknown;

    snapshot_release(s);
    if (known && p->options.check_known && is_doubtful(status))
        gpu_thread_set_retry(thread, MEASUREMENT_CHECK, false);
    else if (lacks && may_pass(status))
        gpu_thread_set_retry(thread, MEASUREMENT_NEW, is_busy(status));
    else
        thread->retry_at = 0;
}

/* Returns the depth of the next measurement by the daemon. A GPU without results is measured at
 * depth quick, so that it serves a placement soon. The mutex is held. */
static enum depth gpu_thread_next_depth(const struct gpu_thread *thread)
{
    const struct snapshot *s = snapshot_acquire(thread->pipeline->cell);
    const struct snapshot_gpu *gpu = gpu_thread_find(thread, s);
    const enum depth depth = gpu && !gpu->has_fingerprint ? DEPTH_QUICK : DEPTH_FULL;

    snapshot_release(s);
    return depth;
}

/* Returns the state of a GPU after a measurement without a result. `why` is the error of the
 * measurement; if it is NULL, the latest error of the GPU counts. A GPU that is only busy has not
 * failed: its results are valid, or another attempt is due. The mutex is held. */
static enum gpu_state gpu_thread_state(const struct gpu_thread *thread, const struct err *why)
{
    const struct snapshot *s = snapshot_acquire(thread->pipeline->cell);
    const struct snapshot_gpu *gpu = gpu_thread_find(thread, s);
    const enum status error = why ? why->status : gpu ? gpu->last_error.status : STATUS_OK;
    const bool failed = error && !is_busy(error);
    const enum gpu_state state = thread->lost || !gpu     ? GPU_STATE_LOST
                                 : gpu->fingerprint_stale ? GPU_STATE_STALE
                                 : failed                 ? GPU_STATE_FAILED
                                 : gpu->has_fingerprint   ? GPU_STATE_READY
                                 : !error                 ? GPU_STATE_UNKNOWN
                                 : thread->retry_at       ? GPU_STATE_QUEUED
                                                          : GPU_STATE_FAILED;

    snapshot_release(s);
    return thread->lost ? state : gpu_thread_queued_or(thread, state);
}

/* Publishes that a measurement was cancelled. Such a measurement has no result about the GPU. The
 * mutex is held. */
static void gpu_thread_publish_cancelled(struct gpu_thread *thread, const struct measurement *m)
{
    gpu_thread_publish(thread, &(struct gpu_update){.state = gpu_thread_state(thread, NULL)});
    log_info("gpu %u %s: %s is cancelled", thread->index, m->uuid, m->id);
}

/* Handles the failure of the running measurement. The last good fingerprint does not change. The
 * mutex is held. */
static void gpu_thread_failed(struct gpu_thread *thread, const struct err *why)
{
    struct measurement *measurement = gpu_thread_end(thread, MEASUREMENT_FAILED);
    struct gpu_update update = {.has_error = true, .error = *why};

    measurement->error = *why;
    if (thread->cancelled && why->status == STATUS_CANCELLED) {
        queue_end_cancelled(measurement, why, measurement->ended_at);
        gpu_thread_publish_cancelled(thread, measurement);
        return;
    }
    thread->lost = is_gone(why->status);
    gpu_thread_plan_retry(thread, why->status);
    snprintf(measurement->message, sizeof measurement->message, "failed: %.140s", why->text);
    update.state = gpu_thread_state(thread, why);
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
    if (queue_count_waiting(queue, uuid) >= QUEUE_MAX_WAITING)
        return err_set(err, STATUS_FULL, "%d measurements already wait for this GPU",
                       QUEUE_MAX_WAITING);
    slot = queue_add(queue, uuid, kind, depth, clock_wall_seconds());
    if (slot == QUEUE_NONE)
        return err_set(err, STATUS_FULL, "%d measurements are under way on this node", QUEUE_MAX);
    *out = queue->items[slot];
    if (thread->slot == QUEUE_NONE)
        gpu_thread_publish(thread, &(struct gpu_update){.state = GPU_STATE_QUEUED});
    pthread_cond_signal(&thread->wake);
    return STATUS_OK;
}

enum status gpu_thread_cancel(struct gpu_thread *thread, int slot, struct err *err)
{
    struct measurement *measurement = &thread->pipeline->queue.items[slot];
    struct err why = {0};

    /* The thread keeps the slot for a moment after the end. */
    if (measurement->state == MEASUREMENT_DONE || measurement->state == MEASUREMENT_FAILED)
        return err_set(err, STATUS_CONFLICT, "%s has already ended with state %s", measurement->id,
                       measurement_state_name(measurement->state));
    if (slot == thread->slot) {
        thread->cancelled = true;
        snprintf(measurement->message, sizeof measurement->message, "is being cancelled");
        if (thread->worker)
            worker_cancel(thread->worker);
        return STATUS_OK;
    }
    err_set(&why, STATUS_CANCELLED, "cancelled before the start");
    queue_end_cancelled(measurement, &why, clock_wall_seconds());
    if (thread->slot == QUEUE_NONE)
        gpu_thread_publish_cancelled(thread, measurement);
    return STATUS_OK;
}

/* An abandoned worker still uses the driver, so a second worker would hang as well. */
static bool gpu_thread_still_hangs(int *hung_pid, struct err *err)
{
    if (*hung_pid && reap_is_abandoned(*hung_pid)) {
        err_set(err, STATUS_GPU_HUNG, "the measurement process %d still hangs in the driver",
                *hung_pid);
        return true;
    }
    *hung_pid = 0;
    return false;
}

/* The pipeline and the list that receive each GPU that the driver lists. */
struct collector {
    struct pipeline *pipeline;
    struct gpu_listing *listing;
};

static void gpu_thread_found(void *self, const struct gpu_listed *gpu)
{
    const struct collector *const f = self;
    struct gpu_listing *const l = f->listing;

    if (!gpu->identity.uuid[0]) {
        l->unnamed++;
        l->why_unnamed = gpu->error;
        log_warning("a GPU cannot be identified: %s", gpu->error.text);
    } else if (l->count < REACH_MAX_GPUS) {
        l->gpus[l->count++] = *gpu;
        f->pipeline->merge(f->pipeline, l);
    } else {
        log_warning("gpu %s is not served: the limit is %d GPUs", gpu->identity.uuid,
                    REACH_MAX_GPUS);
    }
}

void gpu_thread_list_gpus(struct pipeline *p, struct worker **slot, int *hung_pid,
                          struct gpu_listing *out)
{
    const struct worker_timeouts timeouts = {.grace_ns = p->options.grace_ms * NSEC_PER_MSEC,
                                             .stopping_ns = MEASURE_GRACE_STOPPING,
                                             .stopping = pipeline_is_stopping,
                                             .self = p};
    struct collector collector = {.pipeline = p, .listing = out};
    struct worker *worker = NULL;
    struct err *const why = &out->why;

    *out = (struct gpu_listing){.count = 0};
    enum status status = gpu_thread_still_hangs(hung_pid, why)
                             ? STATUS_GPU_HUNG
                             : worker_start(p->options.executable, &p->options.gpu, &worker, why);

    pthread_mutex_lock(&p->mutex);
    if (!status && p->stopping)
        status = err_set(why, STATUS_CANCELLED, "the daemon is stopping");
    *slot = worker;
    pthread_mutex_unlock(&p->mutex);
    status = status
                 ? status
                 : worker_list(worker, PIPELINE_LIST_DEADLINE, gpu_thread_found, &collector, why);
    pthread_mutex_lock(&p->mutex);
    *slot = NULL;
    pthread_mutex_unlock(&p->mutex);
    if (worker) {
        *hung_pid = worker_stop(worker, &timeouts);
    }
    if (!status && out->count == 0 && out->unnamed)
        *why = out->why_unnamed;
    else if (!status && out->count == 0)
        err_set(why, STATUS_NO_DRIVER, "the driver shows no GPU");
    out->complete = !status && out->count > 0;
}

/* Carries out the measurement in thread->slot. The mutex is not held. */
static enum status gpu_thread_measure(struct gpu_thread *thread, struct measure_request *request,
                                      struct err *err)
{
    struct measure_result result = {.known = calloc(1, sizeof *result.known)};
    struct pipeline *p = thread->pipeline;

    if (!result.known)
        return err_no_memory(err, "a fingerprint");
    const struct snapshot *s = snapshot_acquire(p->cell);
    const struct snapshot_gpu *gpu = gpu_thread_find(thread, s);

    request->known = gpu && gpu->has_fingerprint ? &gpu->fingerprint : NULL;
    request->known_stale = gpu && gpu->fingerprint_stale;
    const enum status status = measure_gpu(request, &result, err);

    snapshot_release(s);
    if (status) {
        free(result.known);
        return status;
    }
    pthread_mutex_lock(&p->mutex);
    gpu_thread_done(thread, &result);
    pthread_mutex_unlock(&p->mutex);
    return STATUS_OK;
}

/* Handles the success of a check, which has found the fingerprint `fp` valid or not. The mutex is
 * held. */
static void gpu_thread_checked(struct gpu_thread *thread, const struct fingerprint *fp,
                               const struct check *check, nsec_t probe_ns)
{
    struct measurement *measurement = gpu_thread_end(thread, MEASUREMENT_DONE);
    const bool changed = check->result == CHECK_CHANGED;
    struct gpu_update update = {.has_error = true, .stale = changed};
    struct measurement again;

    snprintf(measurement->message, sizeof measurement->message,
             "%s: %.100s%s%u levels and groups in %llu ms", check_result_name(check->result),
             check->message, changed ? "; " : "", check->looked_at,
             (unsigned long long)(probe_ns / NSEC_PER_MSEC));
    if (changed)
        err_set_hint(&update.error, STATUS_CONFLICT, MEASURE_AGAIN_HINT, "%s", check->message);
    if (changed && thread->pipeline->options.measure_unknown &&
        gpu_thread_queue(thread, MEASUREMENT_NEW, DEPTH_FULL, &again, NULL))
        log_warning("gpu %u is stale, and the queue of the GPU is full", thread->index);
    if (!changed)
        gpu_thread_complete(thread, fp);
    update.state = gpu_thread_queued_or(thread, changed ? GPU_STATE_STALE : GPU_STATE_READY);
    gpu_thread_publish(thread, &update);
    log_info("gpu %u %s: %s", thread->index, measurement->uuid, measurement->message);
}

/* Carries out the check in thread->slot. The mutex is not held. */
static enum status gpu_thread_check(struct gpu_thread *thread,
                                    const struct measure_request *request, struct err *err)
{
    struct pipeline *p = thread->pipeline;
    const struct snapshot *s = snapshot_acquire(p->cell);
    struct check check = {0};
    nsec_t probe_ns = 0;
    const struct snapshot_gpu *const gpu = gpu_thread_find(thread, s);
    enum status status = gpu ? verify_gpu(request, &gpu->fingerprint, &check, NULL, &probe_ns, err)
                             : err_set(err, STATUS_CANCELLED, "the GPU is no longer listed");

    if (!status && check.result == CHECK_UNSURE)
        status = err_set(err, STATUS_DISTURBED, "the check was inconclusive: %s", check.message);
    if (!status) {
        pthread_mutex_lock(&p->mutex);
        gpu_thread_checked(thread, &gpu->fingerprint, &check, probe_ns);
        pthread_mutex_unlock(&p->mutex);
    }
    snapshot_release(s);
    return status;
}

/* Returns whether there may be a GPU that the driver does not identify. Calls for such a GPU may
 * hang. */
static bool is_beside_bad_gpu(const struct gpu_thread *thread)
{
    struct pipeline *p = thread->pipeline;
    const struct snapshot *s = snapshot_acquire(p->cell);
    bool any = s->discovering || s->source_error.status != STATUS_OK;

    for (uint32_t i = 0; i < s->gpu_count; i++)
        any = any || s->gpus[i].unidentified;
    snapshot_release(s);
    return any;
}

/* Returns the request of a measurement or a check. `*gpu` gets the options of the GPU, which the
 * request borrows. */
static struct measure_request gpu_thread_request(struct gpu_thread *thread, struct gpu_options *gpu)
{
    const struct pipeline *const p = thread->pipeline;

    *gpu = p->options.gpu;
    gpu->alone = is_beside_bad_gpu(thread);
    return (struct measure_request){.executable = p->options.executable,
                                    .gpu = gpu,
                                    .store = p->store,
                                    .uuid = thread->identity.uuid,
                                    .self = thread,
                                    .progress = gpu_thread_progress,
                                    .attach = gpu_thread_attach,
                                    .stopping = gpu_thread_is_stopping,
                                    .hung = gpu_thread_hung,
                                    .open_deadline_ns = p->options.open_ms * NSEC_PER_MSEC,
                                    .grace_ns = p->options.grace_ms * NSEC_PER_MSEC};
}

/* Carries out the measurement in thread->slot. The mutex is not held. */
static void gpu_thread_work(struct gpu_thread *thread, const struct measurement *measurement)
{
    struct pipeline *p = thread->pipeline;
    struct gpu_options gpu;
    struct measure_request request = gpu_thread_request(thread, &gpu);
    struct err err = {0};

    request.depth = measurement->depth;
    if (!gpu_thread_still_hangs(&thread->hung_pid, &err))
        err.status = measurement->kind == MEASUREMENT_CHECK
                         ? gpu_thread_check(thread, &request, &err)
                         : gpu_thread_measure(thread, &request, &err);
    pthread_mutex_lock(&p->mutex);
    if (err.status)
        gpu_thread_failed(thread, &err);
    thread->slot = QUEUE_NONE;
    thread->cancelled = false;
    if (measurement->depth == DEPTH_MEMORY || err.status)
        pipeline_wake_all(p); /* another thread may have to poll now */
    pthread_mutex_unlock(&p->mutex);
    memory_trim(); /* observations are large and measurements rare, so unused pages are returned */
    memory_trim_stack();
}

/* Sleeps until the thread is woken or `until` has come. Returns whether that time has come. An
 * `until` of 0 means no time limit. The mutex is held. */
static bool gpu_thread_wait(struct gpu_thread *thread, nsec_t until)
{
    const struct timespec at = clock_timespec(until ? until : UINT64_MAX);
    struct pipeline *p = thread->pipeline;

    return pthread_cond_clockwait(&thread->wake, &p->mutex, CLOCK_MONOTONIC, &at) == ETIMEDOUT &&
           !p->stopping && !thread->removed;
}

/* ---- quick checks (check-every) ---- */

static void ignore_progress(void *self, double progress, const char *message)
{
    (void)self;
    (void)progress;
    (void)message;
}

/* Logs a finding that has begun or ended. */
static void log_finding(const struct gpu_thread *thread, const char *before, const char *now,
                        const char *what)
{
    if (now[0] && !before[0])
        log_warning("gpu %u %s: %s", thread->index, thread->identity.uuid, now);
    else if (!now[0] && before[0])
        log_info("gpu %u %s: %s is as before", thread->index, thread->identity.uuid, what);
}

/* Publishes a quick check that was made or put off. The mutex is held. */
static void publish_check(struct gpu_thread *thread, const struct snapshot_gpu *gpu,
                          const struct snapshot_check *now)
{
    const enum gpu_state state = thread->pending.any ? thread->pending.state : gpu->state;

    gpu_thread_publish(thread,
                       &(struct gpu_update){.has_check = true, .check = *now, .state = state});
}

/* Handles the result of a quick check. A change of levels or groups is left to a check, which marks
 * the fingerprint as stale. The mutex is held. */
static void gpu_thread_looked(struct gpu_thread *thread, const struct check *check,
                              const struct quick_look *quick)
{
    const struct snapshot *const s = snapshot_acquire(thread->pipeline->cell);
    const struct snapshot_gpu *const gpu = gpu_thread_find(thread, s);
    struct snapshot_check now = {.checked_at = clock_wall_seconds()};
    struct measurement measurement;

    if (gpu && gpu->state != GPU_STATE_LOST) {
        /* Another driver or serial number is found before any probe, and is no drift. */
        const bool changed = check->result == CHECK_CHANGED && quick->gpu_ns > 0;
        const char *const drift = changed ? check->message : quick->drift.speed;

        snprintf(now.drift, sizeof now.drift, "%s", drift);
        snprintf(now.link, sizeof now.link, "%s", quick->drift.link);
        log_finding(thread, gpu->check.drift, now.drift, "its speed");
        log_finding(thread, gpu->check.link, now.link, "its PCIe link");
        log_debug("gpu %u: %s, by a quick check of %llu us", thread->index,
                  check_result_name(check->result),
                  (unsigned long long)(quick->gpu_ns / NSEC_PER_USEC));
        publish_check(thread, gpu, &now);
    }
    snapshot_release(s);
    thread->unchecked[0] = '\0';
    if (check->result == CHECK_CHANGED)
        (void)gpu_thread_queue(thread, MEASUREMENT_CHECK, DEPTH_FULL, &measurement, NULL);
}

/* Handles a quick check that was not made. A GPU that is in use is checked later. Any other reason
 * is logged once. If the GPU may be lost, a check finds out. The mutex is held. */
static void gpu_thread_unchecked(struct gpu_thread *thread, const struct err *why)
{
    const bool busy = why->status == STATUS_GPU_BUSY || why->status == STATUS_CANCELLED ||
                      why->status == STATUS_GPU_NO_MEMORY;
    const struct snapshot *const s = snapshot_acquire(thread->pipeline->cell);
    const struct snapshot_gpu *const gpu = gpu_thread_find(thread, s);
    struct measurement measurement;

    if (gpu && gpu->state != GPU_STATE_LOST) {
        struct snapshot_check now = gpu->check;

        now.put_off_at = clock_wall_seconds();
        snprintf(now.put_off, sizeof now.put_off, "%.159s", why->text);
        publish_check(thread, gpu, &now);
    }
    snapshot_release(s);

    if (busy)
        log_debug("gpu %u is not checked: %s", thread->index, why->text);
    else if (strcmp(thread->unchecked, why->text) != 0)
        log_warning("gpu %u %s cannot be checked: %s", thread->index, thread->identity.uuid,
                    why->text);
    snprintf(thread->unchecked, sizeof thread->unchecked, "%s", busy ? "" : why->text);
    if (is_gone(why->status) || is_doubtful(why->status))
        (void)gpu_thread_queue(thread, MEASUREMENT_CHECK, DEPTH_FULL, &measurement, NULL);
}

/* Makes a quick check, and sets the time of the next one. The mutex is held, and released
 * meanwhile. */
static void gpu_thread_quick_check(struct gpu_thread *thread)
{
    struct pipeline *const p = thread->pipeline;
    const struct snapshot *const s = snapshot_acquire(p->cell);
    const struct snapshot_gpu *const gpu = gpu_thread_find(thread, s);
    struct quick_look quick = {.gpu_ns = 0};
    struct check check = {.result = CHECK_HOLDS};
    struct gpu_options options;
    struct err err = {0};
    nsec_t probe_ns = 0;

    pthread_mutex_unlock(&p->mutex);
    struct measure_request request = gpu_thread_request(thread, &options);
    const bool possible = gpu && gpu->has_fingerprint && !gpu->fingerprint_stale;

    options.idle_only = true;
    request.progress = ignore_progress;
    if (possible && !gpu_thread_still_hangs(&thread->hung_pid, &err))
        err.status = verify_gpu(&request, &gpu->fingerprint, &check, &quick, &probe_ns, &err);
    snapshot_release(s);
    memory_trim();
    memory_trim_stack();
    pthread_mutex_lock(&p->mutex);
    thread->check_at = check_schedule_next(clock_monotonic(),
                                           p->options.check_every_s * NSEC_PER_SEC, quick.gpu_ns);
    if (possible && err.status)
        gpu_thread_unchecked(thread, &err);
    else if (possible)
        gpu_thread_looked(thread, &check, &quick);
}

/* Sets the time of the first quick check. The mutex is held. */
static void gpu_thread_plan_check(struct gpu_thread *thread)
{
    const struct pipeline *const p = thread->pipeline;

    if (p->options.check_every_s > 0 && thread->check_at == 0)
        thread->check_at =
            check_schedule_first(clock_monotonic(), p->options.check_every_s * NSEC_PER_SEC,
                                 thread->index, p->gpu_thread_count);
}

/* Returns whether this thread polls for lost GPUs. One thread polls for all. The mutex is held. */
static bool gpu_thread_polls(const struct gpu_thread *thread)
{
    const struct pipeline *p = thread->pipeline;
    uint32_t i = 0;

    while (i < p->gpu_thread_count && !(p->threads[i].lost && !p->threads[i].removed))
        i++;
    return i < p->gpu_thread_count && &p->threads[i] == thread;
}

/* Polls for lost GPUs by a list of the driver, which may also contain new GPUs (hotplug.c). The
 * mutex is held, and released meanwhile. */
static void gpu_thread_rediscover(struct gpu_thread *thread)
{
    struct gpu_listing listing;
    struct pipeline *p = thread->pipeline;

    thread->rediscover_at = 0;
    pthread_mutex_unlock(&p->mutex);
    gpu_thread_list_gpus(p, &thread->worker, &thread->hung_pid, &listing);

    if (listing.complete)
        p->merge(p, &listing);
    else
        log_debug("gpu %u is still lost: %s", thread->index, listing.why.text);
    pthread_mutex_lock(&p->mutex);
}

/* Waits until the next poll is due; each pause is twice the pause before. The mutex is held. */
static void gpu_thread_poll(struct gpu_thread *thread)
{
    if (thread->rediscover_at == 0) {
        const nsec_t pause = thread->rediscover_pause
                                 ? 2 * thread->rediscover_pause
                                 : thread->pipeline->options.rediscover_ms * NSEC_PER_MSEC;
        thread->rediscover_pause =
            pause < GPU_THREAD_LONGEST_POLL ? pause : GPU_THREAD_LONGEST_POLL;
        thread->rediscover_at = clock_monotonic() + thread->rediscover_pause;
    }
    if (gpu_thread_wait(thread, thread->rediscover_at))
        gpu_thread_rediscover(thread);
}

/* Sleeps until a measurement is queued or something is due: an update that found no memory, another
 * measurement, a quick check, or a poll for a lost GPU. The mutex is held. */
static void gpu_thread_sleep(struct gpu_thread *thread)
{
    struct measurement measurement;

    if (thread->pending.any) {
        (void)gpu_thread_wait(thread, clock_monotonic() + GPU_THREAD_PUBLISH_AGAIN);
        if (thread->pending.any)
            gpu_thread_publish_pending(thread);
    } else if (!thread->lost) {
        gpu_thread_plan_check(thread);
        const bool retry =
            thread->retry_at && (!thread->check_at || thread->retry_at <= thread->check_at);

        if (!gpu_thread_wait(thread, retry ? thread->retry_at : thread->check_at))
            return;
        if (!retry) {
            gpu_thread_quick_check(thread);
            return;
        }
        thread->retry_at = 0;
        (void)gpu_thread_queue(thread, thread->retry_kind, gpu_thread_next_depth(thread),
                               &measurement, NULL);
    } else if (gpu_thread_polls(thread)) {
        gpu_thread_poll(thread);
    } else {
        (void)gpu_thread_wait(thread, 0);
    }
}

void *gpu_thread_main(void *self)
{
    struct gpu_thread *thread = self;
    struct pipeline *p = thread->pipeline;
    char name[16];

    snprintf(name, sizeof name, "gpu-%u", (unsigned)(thread - p->threads));
    pthread_setname_np(pthread_self(), name);
    heartbeat_adopt(&thread->heartbeat);
    pthread_mutex_lock(&p->mutex);
    while (!p->stopping && !thread->removed) {
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
    thread->ended = true;
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}
