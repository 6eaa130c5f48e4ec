/* start.c: starts the threads of the discovered GPUs, publishes their fingerprints from the store,
 * and queues measurements that are missing or were lost. */
#include "measure/start.h"

#include "analysis/check.h"
#include "base/log.h"
#include "measure/gpu_thread.h"
#include "measure/gpu_thread_publish.h"
#include "measure/order.h"
#include "measure/pipeline_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The stack of a thread. It is a small part of the default of 8 MiB, and ten times the need of the
 * deepest call. */
#define PIPELINE_STACK_BYTES ((size_t)2 << 20)

enum { MOST_STORED = 256 }; /* GPUs that are read from the store */

enum gpu_state pipeline_idle_state(const struct snapshot_gpu *gpu)
{
    return !gpu->has_fingerprint    ? GPU_STATE_UNKNOWN
           : gpu->fingerprint_stale ? GPU_STATE_STALE
                                    : GPU_STATE_READY;
}

/* Fills in one GPU of the first snapshot from the store. */
static void pipeline_recall(struct pipeline *p, const struct gpu_identity *identity,
                            struct snapshot_gpu *out)
{
    struct err err = {0};
    struct check check;
    bool lacks = false;

    out->identity = *identity;
    out->state = pipeline_idle_state(out);
    if (identity_is_divided(identity))
        return; /* the results of the whole GPU do not apply now */
    const enum status status =
        store_recall(p->store, identity->uuid, &out->fingerprint, out->fingerprint_id, &err);

    if (status) {
        fingerprint_init(&out->fingerprint);
        if (status != STATUS_NOT_FOUND) {
            out->last_error = err;
            log_warning("gpu %s: cannot read a fingerprint from the store: %s", identity->uuid,
                        err.text);
        }
        return;
    }
    out->has_fingerprint = true;
    check_identity(&out->fingerprint.gpu, identity, &check);
    (void)store_lacks_fingerprint(p->store, identity->uuid, &lacks, NULL);
    out->fingerprint_stale = check.result == CHECK_CHANGED || lacks;
    out->state = pipeline_idle_state(out);
    if (out->fingerprint_stale) {
        err_set_hint(&out->last_error, STATUS_CONFLICT, MEASURE_AGAIN_HINT, "%s; measure again",
                     lacks ? "a newer fingerprint was damaged in the store" : check.message);
        log_warning("gpu %s: %s: %s", identity->uuid, out->fingerprint_id, out->last_error.text);
    }
}

enum status pipeline_draft(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count,
                           struct snapshot **out, struct err *err)
{
    struct snapshot *draft = *out = snapshot_draft(count);

    if (!draft)
        return err_no_memory(err, "a snapshot of %u GPUs", count);
    snprintf(draft->source, sizeof draft->source, "%s",
             p->options.gpu.simulated && p->options.gpu.simulated[0] ? "simulated" : "cuda");
    draft->expected_gpus = p->options.expected_gpus;
    for (uint32_t i = 0; i < count; i++)
        pipeline_recall(p, &gpus[i], &draft->gpus[i]);
    return STATUS_OK;
}

/* Returns a place for a thread: a new one, or the place of a thread that has ended. Returns NULL if
 * there is none. */
static struct gpu_thread *free_place(struct pipeline *p)
{
    for (uint32_t i = 0; i < p->gpu_thread_count; i++) {
        struct gpu_thread *const thread = &p->threads[i];
        if (thread->started && !thread->ended)
            continue;
        if (thread->started) {
            pthread_join(thread->pthread, NULL); /* the thread does not lock the mutex any more */
            pthread_cond_destroy(&thread->wake);
            free(thread->pending.fingerprint);
        }
        memset(thread, 0, sizeof *thread);
        return thread;
    }
    return p->gpu_thread_count < sizeof p->threads / sizeof p->threads[0]
               ? &p->threads[p->gpu_thread_count++]
               : NULL;
}

enum status pipeline_start_thread(struct pipeline *p, const struct gpu_identity *identity,
                                  bool expected, struct err *err)
{
    struct gpu_thread *thread = free_place(p);
    pthread_attr_t attributes;

    if (!thread)
        return err_set(err, STATUS_FULL,
                       "cannot serve another GPU: too many GPUs were added and removed");
    thread->pipeline = p;
    thread->index = UINT32_MAX;
    thread->identity = *identity;
    thread->expected = expected;
    thread->slot = QUEUE_NONE;
    pthread_cond_init(&thread->wake, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PIPELINE_STACK_BYTES);
    int error = pthread_create(&thread->pthread, &attributes, gpu_thread_main, thread);

    pthread_attr_destroy(&attributes);
    if (error) {
        pthread_cond_destroy(&thread->wake);
        return err_set(err, STATUS_NO_MEMORY, "cannot create the thread of GPU %s: %s",
                       identity->uuid, strerror(error));
    }
    thread->started = true;
    return STATUS_OK;
}

void pipeline_remove(struct pipeline *p, struct snapshot *draft, uint32_t index)
{
    struct gpu_thread *const thread = pipeline_find_thread(p, draft->gpus[index].identity.uuid);

    if (thread) {
        thread->removed = true;
        thread->lost = false;
        if (thread->worker)
            worker_cancel(thread->worker);
        pthread_cond_signal(&thread->wake);
    }
    draft->gpu_count--;
    memmove(&draft->gpus[index], &draft->gpus[index + 1],
            (draft->gpu_count - index) * sizeof draft->gpus[0]);
}

/* Returns whether there is a fingerprint that a check can confirm. */
static bool pipeline_can_check(const struct snapshot_gpu *gpu)
{
    return gpu->has_fingerprint && !gpu->fingerprint_stale;
}

static bool pipeline_will_queue(const struct pipeline *p, const struct snapshot_gpu *gpu)
{
    if (identity_is_divided(&gpu->identity))
        return false;
    if (pipeline_can_check(gpu) && p->options.check_known)
        return true;
    return p->options.measure_unknown &&
           (!pipeline_can_check(gpu) || gpu->fingerprint.depth < DEPTH_FULL);
}

/* Sets the error of a divided GPU. The error names the instances of the GPU. */
static void pipeline_explain_divided(const struct snapshot *s, struct snapshot_gpu *gpu)
{
    char names[300] = "";
    size_t n = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct gpu_identity *const other = &s->gpus[i].identity;
        if (s->gpus[i].state == GPU_STATE_LOST || !identity_is_instance(other) ||
            strcmp(other->pci_bus_id, gpu->identity.pci_bus_id) != 0)
            continue;
        if (n < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", count ? ", " : ": ",
                                  other->uuid);
        count++;
    }
    err_set_hint(&gpu->last_error, STATUS_NOT_SUPPORTED,
                 "Request one of the instances of the GPU that GET /v1/gpus lists.",
                 "the GPU is divided by %s, and %u of its instances can be used%s",
                 identity_division(&gpu->identity), count, names);
}

/* Queues a check for each GPU of `which` with a valid fingerprint, and a measurement for all
 * others. The measurement has depth quick if the GPU has no results, so that it serves a placement
 * soon. A fingerprint that is not checked, and lacks a full measurement, is completed. The mutex is
 * held.
 */
static void pipeline_begin(struct pipeline *p, const bool which[REACH_MAX_GPUS])
{
    const struct snapshot *s = snapshot_acquire(p->cell);

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct snapshot_gpu *gpu = &s->gpus[i];
        const bool check = pipeline_can_check(gpu) && p->options.check_known;
        const enum depth depth = gpu->has_fingerprint ? DEPTH_FULL : DEPTH_QUICK;
        struct gpu_thread *const thread =
            which[i] ? pipeline_find_thread(p, gpu->identity.uuid) : NULL;
        struct measurement measurement;
        struct err err = {0};

        if (thread && pipeline_will_queue(p, gpu) &&
            gpu_thread_queue(thread, check ? MEASUREMENT_CHECK : MEASUREMENT_NEW, depth,
                             &measurement, &err)) {
            log_warning("gpu %u cannot be %s: %s", i, check ? "checked" : "measured", err.text);
            gpu_thread_publish(thread, &(struct gpu_update){.state = pipeline_idle_state(gpu)});
        }
    }
    snapshot_release(s);
}

void pipeline_publish_and_queue(struct pipeline *p, struct snapshot *take,
                                const bool which[REACH_MAX_GPUS])
{
    /* The state is already queued, so that a client that waits for "ready" does not get it before
     * the check. */
    for (uint32_t i = 0; i < take->gpu_count; i++) {
        if (which[i] && pipeline_will_queue(p, &take->gpus[i]))
            take->gpus[i].state = GPU_STATE_QUEUED;
        if (identity_is_divided(&take->gpus[i].identity) && take->gpus[i].state != GPU_STATE_LOST)
            pipeline_explain_divided(take, &take->gpus[i]);
    }
    snapshot_publish(p->cell, take);
    pipeline_begin(p, which);
}

/* Queues another measurement of a GPU. If a measurement is running or queued, it will store the
 * lost results anyway. The mutex is held. */
static void requeue_gpu(struct gpu_thread *thread)
{
    struct pipeline *p = thread->pipeline;
    struct err err = {0};
    struct measurement measurement;

    if (thread->slot != QUEUE_NONE && p->queue.items[thread->slot].kind == MEASUREMENT_NEW)
        return;
    for (int depth = 0; depth < DEPTH_COUNT; depth++)
        if (queue_waiting_like(&p->queue, thread->identity.uuid, MEASUREMENT_NEW,
                               (enum depth)depth) != QUEUE_NONE)
            return;
    log_info("gpu %u %s is measured again", thread->index, thread->identity.uuid);
    if (gpu_thread_queue(thread, MEASUREMENT_NEW, DEPTH_FULL, &measurement, &err))
        log_warning("gpu %u cannot be measured: %s", thread->index, err.text);
}

void pipeline_requeue(struct pipeline *p)
{
    const struct snapshot *s = snapshot_acquire(p->cell);

    for (uint32_t i = 0; p->options.measure_unknown && i < s->gpu_count; i++) {
        const struct snapshot_gpu *const gpu = &s->gpus[i];
        struct err err = {0};
        bool lacks = false;

        /* Reads the database, so it runs without the mutex. */
        if (store_lacks_fingerprint(p->store, gpu->identity.uuid, &lacks, &err))
            log_warning("gpu %u: cannot read its state: %s", i, err.text);
        pthread_mutex_lock(&p->mutex);
        struct gpu_thread *const thread = pipeline_find_thread(p, gpu->identity.uuid);
        if (lacks && !p->stopping && thread && !thread->lost && !thread->expected &&
            !identity_is_divided(&gpu->identity))
            requeue_gpu(thread);
        pthread_mutex_unlock(&p->mutex);
    }
    snapshot_release(s);
}

/* Lists the real GPUs in the store. The list is empty if GPUs are simulated. */
static enum status list_expected(struct pipeline *p, struct gpu_identity out[REACH_MAX_GPUS],
                                 uint32_t *out_count, struct err *err)
{
    const bool simulated = p->options.gpu.simulated && p->options.gpu.simulated[0];
    struct gpu_identity *const all = calloc(MOST_STORED, sizeof *all);
    uint32_t count = 0;
    enum status status = STATUS_OK;

    *out_count = 0;
    if (!all)
        return err_no_memory(err, "a list of GPUs");
    if (!simulated && p->options.list_lost)
        status = store_list_gpus(p->store, all, MOST_STORED, &count, err);
    for (uint32_t i = 0; i < count; i++) {
        const char *const uuid = all[i].uuid;
        if (strncmp(uuid, "GPU-", 4) != 0 && strncmp(uuid, "MIG-", 4) != 0)
            continue; /* the GPU was simulated or imported */
        if (*out_count < REACH_MAX_GPUS)
            out[(*out_count)++] = all[i];
        else
            log_warning("gpu %s is stored and not listed: the limit is %d GPUs", uuid,
                        REACH_MAX_GPUS);
    }
    free(all);
    return status;
}

enum status pipeline_publish_expected(struct pipeline *p, struct err *err)
{
    struct gpu_identity gpus[REACH_MAX_GPUS] = {{.uuid = ""}};
    bool none[REACH_MAX_GPUS] = {false};
    struct snapshot *draft = NULL;
    uint32_t count = 0;
    struct err why = {0};

    if (list_expected(p, gpus, &count, &why))
        log_warning("the GPUs of the state file are not listed: %s", why.text);
    enum status status = pipeline_draft(p, gpus, count, &draft, err);

    if (status)
        return status;
    draft->discovering = true;
    err_set(&draft->source_error, STATUS_NOT_READY,
            "GPU discovery is running: the driver has not yet listed its GPUs");
    pthread_mutex_lock(&p->mutex);
    for (uint32_t i = 0; i < count && !status; i++) {
        draft->gpus[i].state = GPU_STATE_CHECKING;
        status = pipeline_start_thread(p, &gpus[i], true, err);
    }
    draft = pipeline_sort(p, draft, none);
    if (!status)
        snapshot_publish(p->cell, draft);
    else
        snapshot_discard(draft);
    pthread_mutex_unlock(&p->mutex);
    return status;
}
