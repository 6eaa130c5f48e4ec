/* pipeline.c: starts and stops the threads (gpu_thread.c, discover.c), and passes them requests. */
#include "measure/pipeline.h"

#include "base/log.h"
#include "measure/discover.h"
#include "measure/gpu_thread.h"
#include "measure/hotplug.h"
#include "measure/order.h"
#include "measure/pipeline_state.h"
#include "measure/start.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PIPELINE_REDISCOVER_MS = 30 * 1000, /* pause between polls for a lost GPU */
    PIPELINE_RETRY_MS = 60 * 1000,      /* pause after a measurement that failed */
    PIPELINE_BUSY_MS = 1000,            /* pause after a measurement that other work disturbed */
    /* A cold driver that compiles PTX for a new chip takes tens of seconds. */
    PIPELINE_OPEN_MS = 120 * 1000,
    /* A probe under way is finished first, and a driver that is slow to close does not hang. */
    PIPELINE_GRACE_MS = 60 * 1000
};

/* Makes everything but the threads. */
static enum status pipeline_make(const struct pipeline_options *options, struct store *store,
                                 struct snapshot_cell *cell, struct pipeline **out, struct err *err)
{
    struct pipeline *p = calloc(1, sizeof *p);

    *out = p;
    if (!p)
        return err_no_memory(err, "the pipeline");
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->discovery.wake, NULL);
    p->store = store;
    p->cell = cell;
    p->options = *options;
    p->merge = pipeline_merge;
    if (!options->rediscover_ms)
        p->options.rediscover_ms = PIPELINE_REDISCOVER_MS;
    if (!options->retry_ms)
        p->options.retry_ms = PIPELINE_RETRY_MS;
    if (!options->busy_ms)
        p->options.busy_ms = PIPELINE_BUSY_MS;
    if (!options->open_ms)
        p->options.open_ms = PIPELINE_OPEN_MS;
    if (!options->grace_ms)
        p->options.grace_ms = PIPELINE_GRACE_MS;
    return STATUS_OK;
}

enum status pipeline_start(const struct pipeline_options *options, struct store *store,
                           struct snapshot_cell *cell, struct pipeline **out, struct err *err)
{
    enum status status = pipeline_make(options, store, cell, out, err);

    if (!status && options->stored_only) {
        status = discover_stored(*out, err);
    } else if (!status) {
        status = pipeline_publish_expected(*out, err);
        if (!status && options->discover_later)
            status = discover_start(*out, err);
        else if (!status)
            (void)discover_once(*out);
    }
    if (status) {
        pipeline_stop(*out);
        *out = NULL;
    }
    return status;
}

/* Ends the threads: first the thread that may start others. */
static void pipeline_end_threads(struct pipeline *p)
{
    pthread_mutex_lock(&p->mutex);
    p->stopping = true;
    if (p->discovery.worker)
        worker_cancel(p->discovery.worker);
    pthread_cond_signal(&p->discovery.wake);
    for (uint32_t i = 0; i < p->gpu_thread_count; i++) {
        if (p->threads[i].worker)
            worker_cancel(p->threads[i].worker);
        pthread_cond_signal(&p->threads[i].wake);
    }
    pthread_mutex_unlock(&p->mutex);
    if (p->discovery.started)
        pthread_join(p->discovery.pthread, NULL);
    for (uint32_t i = 0; i < p->gpu_thread_count; i++) { /* the threads wake each other */
        if (p->threads[i].started)
            pthread_join(p->threads[i].pthread, NULL);
    }
    for (uint32_t i = 0; i < p->gpu_thread_count; i++) {
        if (p->threads[i].started)
            pthread_cond_destroy(&p->threads[i].wake);
        free(p->threads[i].pending.fingerprint);
    }
}

void pipeline_stop(struct pipeline *take)
{
    if (!take)
        return;
    pipeline_end_threads(take);
    pthread_cond_destroy(&take->discovery.wake);
    pthread_mutex_destroy(&take->mutex);
    free(take);
}

/* Returns whether the GPU is divided. The error then lists the instances of the GPU. The
 * mutex is held. */
static bool pipeline_is_divided(struct pipeline *p, const struct gpu_thread *thread,
                                struct err *err)
{
    const struct snapshot *const s = snapshot_acquire(p->cell);
    const struct snapshot_gpu *const gpu = gpu_thread_find(thread, s);
    const bool divided = gpu && identity_is_divided(&gpu->identity);

    if (divided)
        *err = gpu->last_error;
    snapshot_release(s);
    return divided;
}

enum status pipeline_submit(struct pipeline *p, const char *uuid, enum depth depth,
                            struct measurement *out, struct err *err)
{
    enum status status = STATUS_OK;

    if ((unsigned)depth >= DEPTH_COUNT)
        return err_set(err, STATUS_INVALID_ARGUMENT, "unknown depth");
    if (p->options.stored_only)
        return err_set_hint(err, STATUS_NOT_SUPPORTED,
                            "Start reachd without --no-gpus on the host of the GPU.",
                            "this daemon serves what is stored and measures nothing (--no-gpus)");
    pthread_mutex_lock(&p->mutex);
    struct gpu_thread *const thread = pipeline_find_thread(p, uuid);

    if (!thread)
        status = err_set(err, STATUS_NOT_FOUND, "there is no GPU %.63s", uuid);
    else if (pipeline_is_divided(p, thread, err))
        status = err->status;
    else
        status = gpu_thread_queue(thread, MEASUREMENT_NEW, depth, out, err);
    pthread_mutex_unlock(&p->mutex);
    return status;
}

/* Returns whether this GPU can be forgotten. `thread` is NULL if this daemon serves stored results
 * only. */
static enum status pipeline_check_forget(const struct snapshot *s, const char *uuid,
                                         const struct gpu_thread *thread, bool stored_only,
                                         struct err *err)
{
    const struct snapshot_gpu *const gpu = snapshot_find(s, uuid);

    if (!gpu)
        return err_set(err, STATUS_NOT_FOUND, "there is no GPU %.63s", uuid);
    if (stored_only)
        return STATUS_OK;
    if (s->discovering || (thread && thread->expected))
        return err_set_hint(err, STATUS_CONFLICT, "Wait until GET /v1/gpus returns \"done\".",
                            "the driver has not yet answered whether GPU %s is there", uuid);
    if (gpu->state != GPU_STATE_LOST || (thread && thread->slot != QUEUE_NONE))
        return err_set_hint(err, STATUS_CONFLICT,
                            "Only a GPU whose state is lost can be forgotten.", "GPU %s is %s",
                            uuid, gpu_state_name(gpu->state));
    return STATUS_OK;
}

/* Removes a GPU from the published list. The mutex is held. */
static enum status pipeline_drop(struct pipeline *p, const char *uuid, struct err *err)
{
    const struct snapshot *const now = snapshot_acquire(p->cell);
    const struct snapshot_gpu *const gpu = snapshot_find(now, uuid);
    struct snapshot *draft = snapshot_draft_copy(now);
    bool none[REACH_MAX_GPUS] = {false};
    enum status status = draft ? STATUS_OK : err_no_memory(err, "a snapshot");

    if (draft && gpu) {
        pipeline_remove(p, draft, (uint32_t)(gpu - now->gpus));
        draft = pipeline_sort(p, draft, none);
        snapshot_publish(p->cell, draft);
        pipeline_wake_all(p);
        draft = NULL;
    }
    snapshot_discard(draft);
    snapshot_release(now);
    return status;
}

enum status pipeline_forget(struct pipeline *p, const char *uuid, struct err *err)
{
    const struct snapshot *const s = snapshot_acquire(p->cell);

    pthread_mutex_lock(&p->mutex);
    enum status status =
        pipeline_check_forget(s, uuid, pipeline_find_thread(p, uuid), p->options.stored_only, err);
    pthread_mutex_unlock(&p->mutex);
    snapshot_release(s);
    status = status ? status : store_forget(p->store, uuid, err);
    if (status)
        return status;
    pthread_mutex_lock(&p->mutex);
    status = pipeline_drop(p, uuid, err);
    pthread_mutex_unlock(&p->mutex);
    log_info("gpu %s is forgotten", uuid);
    return status;
}

/* Returns the slot of a measurement, or QUEUE_NONE. The mutex is held. */
static int pipeline_find(struct pipeline *p, const char *id, struct err *err)
{
    const int slot = queue_find(&p->queue, id);

    if (slot == QUEUE_NONE)
        err_set(err, STATUS_NOT_FOUND,
                "there is no measurement %.40s; the last %d measurements are kept", id, QUEUE_MAX);
    return slot;
}

enum status pipeline_cancel(struct pipeline *p, const char *id, struct measurement *out,
                            struct err *err)
{
    pthread_mutex_lock(&p->mutex);
    const int slot = pipeline_find(p, id, err);
    enum status status = slot == QUEUE_NONE ? STATUS_NOT_FOUND : STATUS_OK;

    if (slot != QUEUE_NONE) {
        struct gpu_thread *const thread = pipeline_find_thread(p, p->queue.items[slot].uuid);

        status = thread ? gpu_thread_cancel(thread, slot, err)
                        : err_set(err, STATUS_CONFLICT,
                                  "the GPU of the measurement is no longer listed");
        *out = p->queue.items[slot];
    }
    pthread_mutex_unlock(&p->mutex);
    return status;
}

enum status pipeline_measurement(struct pipeline *p, const char *id, struct measurement *out,
                                 struct err *err)
{
    pthread_mutex_lock(&p->mutex);
    const int slot = pipeline_find(p, id, err);

    if (slot != QUEUE_NONE) {
        *out = p->queue.items[slot];
    }
    pthread_mutex_unlock(&p->mutex);
    return slot == QUEUE_NONE ? STATUS_NOT_FOUND : STATUS_OK;
}

void pipeline_count_measurements(struct pipeline *p, struct measurement_counts *out)
{
    pthread_mutex_lock(&p->mutex);
    queue_count(&p->queue, out);
    pthread_mutex_unlock(&p->mutex);
}

bool pipeline_is_alive(struct pipeline *p, char *out_stuck, size_t size)
{
    bool all = true;

    pthread_mutex_lock(&p->mutex);
    if (p->discovery.started && !p->discovery.ended) {
        all = heartbeat_is_alive(&p->discovery.heartbeat);
        snprintf(out_stuck, size, "the thread that discovers GPUs");
        pthread_cond_signal(&p->discovery.wake);
    }
    for (uint32_t i = 0; i < p->gpu_thread_count; i++) {
        if (!p->threads[i].started || p->threads[i].removed)
            continue;
        if (!heartbeat_is_alive(&p->threads[i].heartbeat) && all) {
            all = false;
            snprintf(out_stuck, size, "the thread of GPU %u", p->threads[i].index);
        }
        pthread_cond_signal(&p->threads[i].wake);
    }
    pthread_mutex_unlock(&p->mutex);
    return all;
}
