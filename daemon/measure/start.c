/* start.c: starts the threads of the discovered GPUs, publishes what the store knows of them, and
 * queues what is missing or was lost. */
#include "measure/gpu_thread.h"

#include "analysis/check.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

/* A small part of the 8 MiB that a thread gets otherwise, and still ten times what the
 * deepest call under it needs. */
#define PIPELINE_STACK_BYTES ((size_t)2 << 20)

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
        return; /* what it was as a whole is not true of it now */
    const enum status status =
        store_recall(p->store, identity->uuid, &out->fingerprint, out->fingerprint_id, &err);

    if (status) {
        fingerprint_init(&out->fingerprint);
        if (status != STATUS_NOT_FOUND) {
            out->last_error = err;
            log_warning("gpu %s: no fingerprint from the store: %s", identity->uuid, err.text);
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
        return err_set(err, STATUS_NO_MEMORY, "no memory for a snapshot of %u GPUs", count);
    snprintf(draft->source, sizeof draft->source, "%s",
             p->options.gpu.simulated && p->options.gpu.simulated[0] ? "simulated" : "cuda");
    for (uint32_t i = 0; i < count; i++)
        pipeline_recall(p, &gpus[i], &draft->gpus[i]);
    return STATUS_OK;
}

enum status pipeline_start_thread(struct pipeline *p, uint32_t index,
                                  const struct gpu_identity *identity, struct err *err)
{
    struct gpu_thread *thread = &p->threads[index];
    pthread_attr_t attributes;

    thread->pipeline = p;
    thread->index = index;
    thread->identity = *identity;
    thread->slot = QUEUE_NONE;
    pthread_cond_init(&thread->wake, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PIPELINE_STACK_BYTES);
    int error = pthread_create(&thread->pthread, &attributes, gpu_thread_main, thread);

    pthread_attr_destroy(&attributes);
    if (error) {
        pthread_cond_destroy(&thread->wake);
        return err_set(err, STATUS_NO_MEMORY, "cannot create the thread of GPU %u: %s", index,
                       strerror(error));
    }
    thread->started = true;
    p->gpu_thread_count = index + 1;
    return STATUS_OK;
}

/* Is there a fingerprint that a check can confirm? */
static bool pipeline_can_check(const struct snapshot_gpu *gpu)
{
    return gpu->has_fingerprint && !gpu->fingerprint_stale;
}

static bool pipeline_will_queue(const struct pipeline *p, const struct snapshot_gpu *gpu)
{
    if (identity_is_divided(&gpu->identity))
        return false;
    return pipeline_can_check(gpu) ? p->options.check_known : p->options.measure_unknown;
}

/* A GPU that is divided by MIG says so, and names its instances. */
static void pipeline_explain_divided(const struct snapshot *s, struct snapshot_gpu *gpu)
{
    char names[300] = "";
    size_t n = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct gpu_identity *const other = &s->gpus[i].identity;
        if (s->gpus[i].state == GPU_STATE_LOST || identity_is_divided(other) || !other->mig ||
            strcmp(other->pci_bus_id, gpu->identity.pci_bus_id) != 0)
            continue;
        if (n < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", count ? ", " : ": ",
                                  other->uuid);
        count++;
    }
    err_set_hint(&gpu->last_error, STATUS_NOT_SUPPORTED,
                 "Ask for one of its instances: GET /v1/gpus lists them (MIG-..).",
                 "it is divided by MIG, and %u of its instances can be used%s", count, names);
}

/* Queues a full measurement for every GPU of `which` without a valid fingerprint, and a check for
 * all others. The mutex is held. */
static void pipeline_begin(struct pipeline *p, const bool which[REACH_MAX_GPUS])
{
    const struct snapshot *s = snapshot_acquire(p->cell);

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct snapshot_gpu *gpu = &s->gpus[i];
        const bool check = pipeline_can_check(gpu);
        struct measurement measurement;
        struct err err = {0};

        if (which[i] && pipeline_will_queue(p, gpu) &&
            gpu_thread_queue(&p->threads[i], check ? MEASUREMENT_CHECK : MEASUREMENT_NEW,
                             DEPTH_FULL, &measurement, &err)) {
            log_warning("gpu %u cannot be %s: %s", i, check ? "checked" : "measured", err.text);
            gpu_thread_publish(&p->threads[i],
                               &(struct gpu_update){.state = pipeline_idle_state(gpu)});
        }
    }
    snapshot_release(s);
}

void pipeline_publish_and_queue(struct pipeline *p, struct snapshot *take,
                                const bool which[REACH_MAX_GPUS])
{
    /* Shown as queued already: a client that waits for "ready" must not see it before the check. */
    for (uint32_t i = 0; i < take->gpu_count; i++) {
        if (which[i] && pipeline_will_queue(p, &take->gpus[i]))
            take->gpus[i].state = GPU_STATE_QUEUED;
        if (identity_is_divided(&take->gpus[i].identity) && take->gpus[i].state != GPU_STATE_LOST)
            pipeline_explain_divided(take, &take->gpus[i]);
    }
    snapshot_publish(p->cell, take);
    pipeline_begin(p, which);
}

/* A measurement that is under way or queued stores what was lost. The mutex is held. */
static void requeue_gpu(struct gpu_thread *thread)
{
    struct pipeline *p = thread->pipeline;
    struct err err = {0};
    struct measurement measurement;

    if (thread->slot != QUEUE_NONE && p->queue.items[thread->slot].kind == MEASUREMENT_NEW)
        return;
    if (queue_waiting_like(&p->queue, thread->identity.uuid, MEASUREMENT_NEW, DEPTH_FULL) !=
        QUEUE_NONE)
        return;
    log_info("gpu %u %s is measured again", thread->index, thread->identity.uuid);
    if (gpu_thread_queue(thread, MEASUREMENT_NEW, DEPTH_FULL, &measurement, &err))
        log_warning("gpu %u cannot be measured: %s", thread->index, err.text);
}

void pipeline_requeue(struct pipeline *p)
{
    pthread_mutex_lock(&p->mutex);
    const uint32_t count = p->options.measure_unknown ? p->gpu_thread_count : 0;

    pthread_mutex_unlock(&p->mutex);
    const struct snapshot *s = snapshot_acquire(p->cell);

    for (uint32_t i = 0; i < count && i < s->gpu_count; i++) {
        struct gpu_thread *thread = &p->threads[i];
        struct err err = {0};
        bool lacks = false;

        /* Reads the database: without the mutex. */
        if (store_lacks_fingerprint(p->store, thread->identity.uuid, &lacks, &err))
            log_warning("gpu %u: cannot read its state: %s", i, err.text);
        pthread_mutex_lock(&p->mutex);
        if (lacks && !p->stopping && !identity_is_divided(&s->gpus[i].identity))
            requeue_gpu(thread);
        pthread_mutex_unlock(&p->mutex);
    }
    snapshot_release(s);
}

enum status pipeline_start_threads(struct pipeline *p, const struct gpu_identity *gpus,
                                   uint32_t count, struct err *err)
{
    struct snapshot *draft = NULL;
    enum status status = pipeline_draft(p, gpus, count, &draft, err);
    bool all[REACH_MAX_GPUS];

    if (status)
        return status;
    memset(all, true, sizeof all);
    for (uint32_t i = 0; i < count; i++)
        log_info("gpu %u %s: %s, %u SMs, %s", i, gpus[i].uuid, gpus[i].name, gpus[i].sm_count,
                 draft->gpus[i].has_fingerprint ? draft->gpus[i].fingerprint_id : "not measured");
    pthread_mutex_lock(&p->mutex);
    for (uint32_t i = 0; i < count && !status; i++)
        status = pipeline_start_thread(p, i, &gpus[i], err);
    if (!status) {
        pipeline_publish_and_queue(p, draft, all);
        draft = NULL;
    }
    pthread_mutex_unlock(&p->mutex);
    snapshot_discard(draft);
    if (!status) {
        pipeline_requeue(p); /* for rows that were dropped before there were threads */
    }
    return status;
}
