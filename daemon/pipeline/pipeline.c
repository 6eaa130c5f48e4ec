/* pipeline.c: jobs, a thread for each GPU, and what is published about it.
 *
 * One mutex guards all that changes: the jobs, the workers under way, and the order of published
 * snapshots. It is never held while something waits: not for a worker, not for the disk. A lane is
 * one GPU's thread; it sleeps on its condition until a job is queued for its GPU.
 */
#include "pipeline/pipeline.h"

#include "base/clock.h"
#include "base/log.h"
#include "pipeline/jobs.h"
#include "pipeline/measure.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cuInit on a node of eight GPUs takes seconds, on one with a sick GPU much longer. */
#define PIPELINE_LIST_DEADLINE (30 * NSEC_PER_SEC)
#define PIPELINE_LIST_GRACE    (5 * NSEC_PER_SEC)
/* Of a lane: a small part of the 8 MiB that a thread gets otherwise, and still ten times what the
 * deepest call under it needs. */
#define PIPELINE_STACK_BYTES ((size_t)2 << 20)

struct lane {
    struct pipeline *pipeline;
    uint32_t index; /* in the snapshot */
    struct gpu_identity identity;
    pthread_t thread;
    bool started;
    pthread_cond_t wake;
    struct worker *worker; /* borrowed, while one is under way */
    int slot;              /* of the job under way, or JOBS_NONE */
};

struct pipeline {
    pthread_mutex_t mutex;
    struct store *store;
    struct snapshot_cell *cell;
    char *executable;
    struct gpu_options gpu;
    char **simulated; /* owned, NULL-terminated; the list in `gpu` */
    char *libcuda;    /* owned */
    bool stopping;
    struct jobs jobs;
    uint32_t lane_count;
    struct lane lanes[REACH_MAX_GPUS];
};

/* What changes in a published GPU; what is not set stays. */
struct lane_news {
    enum gpu_state state;
    const struct err *error; /* STATUS_OK inside: none any more */
    const struct fingerprint *fingerprint;
};

/* Publishes the news of one lane. The mutex is held, so that no publication loses another. */
static void lane_publish(struct lane *lane, const struct lane_news *news)
{
    struct snapshot_cell *cell = lane->pipeline->cell;
    const struct snapshot *current = snapshot_acquire(cell);
    struct snapshot *draft = snapshot_draft_copy(current);

    snapshot_release(current);
    if (!draft) {
        log_error("no memory for a snapshot; an older one stays published");
        return;
    }
    struct snapshot_gpu *gpu = &draft->gpus[lane->index];

    gpu->state = news->state;
    if (news->error) {
        gpu->last_error = *news->error;
    }
    if (news->fingerprint) {
        gpu->has_fingerprint = true;
        gpu->fingerprint = *news->fingerprint;
        fingerprint_id(&gpu->fingerprint, gpu->fingerprint_id);
        gpu->identity = gpu->fingerprint.gpu;
    }
    snapshot_publish(cell, draft);
}

static void lane_progress(void *self, double fraction, const char *sentence)
{
    struct lane *lane = self;
    struct pipeline *p = lane->pipeline;

    pthread_mutex_lock(&p->mutex);
    struct job *job = &p->jobs.items[lane->slot];

    if (fraction > job->fraction) {
        job->fraction = fraction < 1.0 ? fraction : 1.0;
    }
    snprintf(job->sentence, sizeof job->sentence, "%s", sentence);
    pthread_mutex_unlock(&p->mutex);
    log_debug("gpu %u: %3.0f%% %s", lane->index, fraction * 100.0, sentence);
}

static bool lane_attach(void *self, struct worker *worker)
{
    struct lane *lane = self;
    struct pipeline *p = lane->pipeline;

    pthread_mutex_lock(&p->mutex);
    bool go_on = !p->stopping;

    lane->worker = worker;
    pthread_mutex_unlock(&p->mutex);
    return go_on;
}

/* The job under way has ended well. The mutex is held. */
static void lane_done(struct lane *lane, const struct fingerprint *fp)
{
    struct pipeline *p = lane->pipeline;
    struct job *job = &p->jobs.items[lane->slot];
    const struct err none = {0};
    const struct lane_news news = {
        .state = jobs_queued(&p->jobs, job->uuid) ? GPU_STATE_QUEUED : GPU_STATE_READY,
        .error = &none,
        .fingerprint = fp,
    };

    job->state = JOB_DONE;
    job->fraction = 1.0;
    fingerprint_id(fp, job->fingerprint_id);
    snprintf(job->sentence, sizeof job->sentence, "measured in %u ms, %u ms of it probing",
             fp->duration_ms, fp->probe_ms);
    lane_publish(lane, &news);
    log_info("gpu %u %s: %s, depth %s, measured in %u ms", lane->index, job->uuid,
             job->fingerprint_id, depth_name(job->depth), fp->duration_ms);
}

/* The job under way has failed. The last good fingerprint stays as it is. The mutex is held. */
static void lane_failed(struct lane *lane, const struct err *why)
{
    struct pipeline *p = lane->pipeline;
    struct job *job = &p->jobs.items[lane->slot];
    const struct lane_news news = {
        .state = why->status == STATUS_NOT_FOUND    ? GPU_STATE_LOST
                 : jobs_queued(&p->jobs, job->uuid) ? GPU_STATE_QUEUED
                                                    : GPU_STATE_FAILED,
        .error = why,
    };

    job->state = JOB_FAILED;
    job->error = *why;
    snprintf(job->sentence, sizeof job->sentence, "failed: %.140s", why->text);
    lane_publish(lane, &news);
    log_warning("gpu %u %s: %s failed (%s): %s", lane->index, job->uuid, job->id,
                status_info(why->status)->slug, why->text);
}

/* Carries out the job in lane->slot. The mutex is not held. */
static void lane_measure(struct lane *lane, enum depth depth)
{
    struct pipeline *p = lane->pipeline;
    const struct measure_request request = {.executable = p->executable,
                                            .gpu = &p->gpu,
                                            .store = p->store,
                                            .uuid = lane->identity.uuid,
                                            .depth = depth,
                                            .self = lane,
                                            .progress = lane_progress,
                                            .attach = lane_attach};
    struct fingerprint *fp = calloc(1, sizeof *fp);
    struct err err = {0};

    if (fp) {
        err.status = measure_gpu(&request, fp, &err);
    } else {
        err_set(&err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    }
    pthread_mutex_lock(&p->mutex);
    p->jobs.items[lane->slot].ended_at = clock_wall_seconds();
    if (fp && err.status == STATUS_OK) {
        lane_done(lane, fp);
    } else {
        lane_failed(lane, &err);
    }
    lane->slot = JOBS_NONE;
    pthread_mutex_unlock(&p->mutex);
    free(fp);
    malloc_trim(0); /* observations are large and measurements rare: give the pages back */
}

static void *lane_main(void *self)
{
    struct lane *lane = self;
    struct pipeline *p = lane->pipeline;

    pthread_mutex_lock(&p->mutex);
    while (!p->stopping) {
        int slot = jobs_next(&p->jobs, lane->identity.uuid);

        if (slot == JOBS_NONE) {
            pthread_cond_wait(&lane->wake, &p->mutex);
            continue;
        }
        struct job *job = &p->jobs.items[slot];
        enum depth depth = job->depth;

        lane->slot = slot;
        job->state = JOB_RUNNING;
        job->started_at = clock_wall_seconds();
        lane_publish(lane, &(struct lane_news){.state = GPU_STATE_MEASURING});
        pthread_mutex_unlock(&p->mutex);
        lane_measure(lane, depth);
        pthread_mutex_lock(&p->mutex);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* Does a stored fingerprint describe the chip as it is now? A new driver may page differently, MIG
 * leaves a part of the SMs. */
static enum status pipeline_still_true(const struct gpu_identity *then,
                                       const struct gpu_identity *now, struct err *err)
{
    if (strcmp(then->driver_version, now->driver_version) != 0) {
        return err_set(err, STATUS_CONFLICT,
                       "measured with driver %s, and now it is %s; measure again",
                       then->driver_version, now->driver_version);
    }
    if (then->sm_count != now->sm_count || then->memory_bytes != now->memory_bytes ||
        then->mig != now->mig) {
        return err_set(err, STATUS_CONFLICT,
                       "measured when this GPU had other SMs or memory; measure again");
    }
    return STATUS_OK;
}

/* Fills in one GPU of the first snapshot from the store. */
static void pipeline_recall(struct pipeline *p, const struct gpu_identity *identity,
                            struct snapshot_gpu *out)
{
    struct err err = {0};

    out->identity = *identity;
    out->state = GPU_STATE_UNKNOWN;
    enum status status =
        store_current_fingerprint(p->store, identity->uuid, &out->fingerprint, &err);

    if (status) {
        fingerprint_init(&out->fingerprint);
        if (status != STATUS_NOT_FOUND) {
            out->last_error = err;
            log_warning("gpu %s: no fingerprint from the store: %s", identity->uuid, err.text);
        }
        return;
    }
    out->has_fingerprint = true;
    fingerprint_id(&out->fingerprint, out->fingerprint_id);
    status = pipeline_still_true(&out->fingerprint.gpu, identity, &err);
    out->state = status ? GPU_STATE_FAILED : GPU_STATE_READY;
    out->last_error = err;
    if (status) {
        log_warning("gpu %s: %s: %s", identity->uuid, out->fingerprint_id, err.text);
    }
}

/* Asks a worker which GPUs there are. Why there are none is the snapshot's to tell. */
static uint32_t pipeline_list(struct pipeline *p, struct gpu_identity *out, struct err *why)
{
    struct worker *worker = NULL;
    uint32_t count = 0;
    enum status status = worker_start(p->executable, &p->gpu, &worker, why);

    status = status ? status
                    : worker_list(worker, PIPELINE_LIST_DEADLINE, out, REACH_MAX_GPUS, &count, why);
    worker_stop(worker, PIPELINE_LIST_GRACE);
    if (!status && count == 0) {
        status = err_set(why, STATUS_NO_DRIVER, "the driver shows no GPU");
    }
    if (status) {
        log_warning("no GPUs: %s", why->text);
    }
    return status ? 0 : count;
}

static enum status pipeline_publish_first(struct pipeline *p, const struct gpu_identity *gpus,
                                          uint32_t count, const struct err *why, struct err *err)
{
    struct snapshot *draft = snapshot_draft(count);

    if (!draft) {
        return err_set(err, STATUS_NO_MEMORY, "no memory for a snapshot of %u GPUs", count);
    }
    snprintf(draft->source, sizeof draft->source, "%s", p->simulated[0] ? "simulated" : "cuda");
    draft->source_error = *why;
    for (uint32_t i = 0; i < count; i++) {
        pipeline_recall(p, &gpus[i], &draft->gpus[i]);
        log_info("gpu %u %s: %s, %u SMs, %s", i, gpus[i].uuid, gpus[i].name, gpus[i].sm_count,
                 draft->gpus[i].has_fingerprint ? draft->gpus[i].fingerprint_id : "not measured");
    }
    snapshot_publish(p->cell, draft);
    return STATUS_OK;
}

static enum status pipeline_start_lane(struct pipeline *p, uint32_t index,
                                       const struct gpu_identity *identity, struct err *err)
{
    struct lane *lane = &p->lanes[index];
    pthread_attr_t attributes;

    *lane = (struct lane){.pipeline = p, .index = index, .identity = *identity, .slot = JOBS_NONE};
    pthread_cond_init(&lane->wake, NULL);
    p->lane_count = index + 1;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PIPELINE_STACK_BYTES);
    int error = pthread_create(&lane->thread, &attributes, lane_main, lane);

    pthread_attr_destroy(&attributes);
    if (error) {
        return err_set(err, STATUS_NO_MEMORY, "no thread for GPU %u: %s", index, strerror(error));
    }
    lane->started = true;
    return STATUS_OK;
}

/* Copies the options deep. */
static enum status pipeline_copy_options(struct pipeline *p, const struct pipeline_options *options,
                                         struct err *err)
{
    size_t count = 0;

    while (options->gpu.simulated && options->gpu.simulated[count]) {
        count++;
    }
    p->simulated = calloc(count + 1, sizeof *p->simulated);
    p->executable = strdup(options->executable);
    bool complete = p->simulated && p->executable;

    for (size_t i = 0; i < count && complete; i++) {
        p->simulated[i] = strdup(options->gpu.simulated[i]);
        complete = p->simulated[i] != NULL;
    }
    if (complete && options->gpu.libcuda) {
        p->libcuda = strdup(options->gpu.libcuda);
        complete = p->libcuda != NULL;
    }
    if (!complete) {
        return err_set(err, STATUS_NO_MEMORY, "no memory for the options");
    }
    p->gpu = options->gpu;
    p->gpu.simulated = (const char *const *)p->simulated;
    p->gpu.libcuda = p->libcuda;
    return STATUS_OK;
}

/* Queues a full measurement for every GPU whose fingerprint is missing or not true any more. */
static void pipeline_measure_unknown(struct pipeline *p)
{
    const struct snapshot *s = snapshot_acquire(p->cell);

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        struct job job;
        struct err err = {0};

        if (s->gpus[i].state != GPU_STATE_READY &&
            pipeline_submit(p, s->gpus[i].identity.uuid, DEPTH_FULL, &job, &err)) {
            log_warning("gpu %u cannot be measured: %s", i, err.text);
        }
    }
    snapshot_release(s);
}

enum status pipeline_start(const struct pipeline_options *options, struct store *store,
                           struct snapshot_cell *cell, struct pipeline **out, struct err *err)
{
    struct gpu_identity *gpus = calloc(REACH_MAX_GPUS, sizeof *gpus);
    struct pipeline *p = calloc(1, sizeof *p);
    struct err why = {0};
    uint32_t count = 0;
    enum status status = STATUS_OK;

    *out = NULL;
    if (!gpus || !p) {
        status = err_set(err, STATUS_NO_MEMORY, "no memory for the pipeline");
        free(p);
        p = NULL;
        goto out;
    }
    pthread_mutex_init(&p->mutex, NULL);
    p->store = store;
    p->cell = cell;
    status = pipeline_copy_options(p, options, err);
    if (status) {
        goto out;
    }
    count = pipeline_list(p, gpus, &why);
    status = pipeline_publish_first(p, gpus, count, &why, err);
    for (uint32_t i = 0; i < count && !status; i++) {
        status = pipeline_start_lane(p, i, &gpus[i], err);
    }
    if (status) {
        goto out;
    }
    if (options->measure_unknown) {
        pipeline_measure_unknown(p);
    }
    *out = p;
    p = NULL;
out:
    pipeline_stop(p);
    free(gpus);
    return status;
}

void pipeline_stop(struct pipeline *take)
{
    if (!take) {
        return;
    }
    pthread_mutex_lock(&take->mutex);
    take->stopping = true;
    for (uint32_t i = 0; i < take->lane_count; i++) {
        if (take->lanes[i].worker) {
            worker_cancel(take->lanes[i].worker);
        }
        pthread_cond_signal(&take->lanes[i].wake);
    }
    pthread_mutex_unlock(&take->mutex);
    for (uint32_t i = 0; i < take->lane_count; i++) {
        if (take->lanes[i].started) {
            pthread_join(take->lanes[i].thread, NULL);
        }
        pthread_cond_destroy(&take->lanes[i].wake);
    }
    for (char **s = take->simulated; s && *s; s++) {
        free(*s);
    }
    free(take->simulated);
    free(take->libcuda);
    free(take->executable);
    pthread_mutex_destroy(&take->mutex);
    free(take);
}

/* Queues a job for `lane`. The mutex is held. */
static enum status lane_queue(struct lane *lane, enum depth depth, struct job *out, struct err *err)
{
    struct jobs *jobs = &lane->pipeline->jobs;
    const char *uuid = lane->identity.uuid;
    int slot = jobs_queued_like(jobs, uuid, depth);

    if (slot != JOBS_NONE) {
        *out = jobs->items[slot];
        return STATUS_OK;
    }
    if (jobs_queued(jobs, uuid) >= JOBS_MAX_QUEUED) {
        return err_set(err, STATUS_FULL, "%d measurements wait for this GPU already",
                       JOBS_MAX_QUEUED);
    }
    slot = jobs_add(jobs, uuid, depth, clock_wall_seconds());
    if (slot == JOBS_NONE) {
        return err_set(err, STATUS_FULL, "%d measurements are under way on this node", JOBS_MAX);
    }
    *out = jobs->items[slot];
    if (lane->slot == JOBS_NONE) {
        lane_publish(lane, &(struct lane_news){.state = GPU_STATE_QUEUED});
    }
    pthread_cond_signal(&lane->wake);
    return STATUS_OK;
}

enum status pipeline_submit(struct pipeline *p, const char *uuid, enum depth depth, struct job *out,
                            struct err *err)
{
    enum status status = STATUS_OK;
    uint32_t i = 0;

    if ((unsigned)depth >= DEPTH_COUNT) {
        return err_set(err, STATUS_INVALID_ARGUMENT, "there is no such depth");
    }
    while (i < p->lane_count && strcasecmp(p->lanes[i].identity.uuid, uuid) != 0) {
        i++;
    }
    if (i == p->lane_count) {
        return err_set(err, STATUS_NOT_FOUND, "there is no GPU %.63s", uuid);
    }
    pthread_mutex_lock(&p->mutex);
    status = lane_queue(&p->lanes[i], depth, out, err);
    pthread_mutex_unlock(&p->mutex);
    return status;
}

enum status pipeline_job(struct pipeline *p, const char *id, struct job *out, struct err *err)
{
    enum status status = STATUS_OK;

    pthread_mutex_lock(&p->mutex);
    int slot = jobs_find(&p->jobs, id);

    if (slot == JOBS_NONE) {
        status = err_set(err, STATUS_NOT_FOUND, "there is no job %.40s; the last %d are remembered",
                         id, JOBS_MAX);
    } else {
        *out = p->jobs.items[slot];
    }
    pthread_mutex_unlock(&p->mutex);
    return status;
}
