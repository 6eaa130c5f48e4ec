/* lane.c: one GPU's thread: its jobs one after the other, and what is published about it. It sleeps
 * on its condition until a job is queued for its GPU. See lane.h.
 */
#include "pipeline/lane.h"

#include "base/log.h"
#include "pipeline/measure.h"
#include "pipeline/recheck.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* cuInit on a node of eight GPUs takes seconds, on one with a sick GPU much longer. */
#define PIPELINE_LIST_DEADLINE       (30 * NSEC_PER_SEC)
#define PIPELINE_LIST_GRACE          (5 * NSEC_PER_SEC)
#define PIPELINE_LIST_GRACE_STOPPING (250 * NSEC_PER_MSEC)
#define LANE_PUBLISH_AGAIN           (100 * NSEC_PER_MSEC)

/* Adds to what is owed; the later word counts. A fingerprint changes hands. */
static void lane_add_news(struct lane_news *owed, const struct lane_news *news)
{
    owed->any = true;
    owed->state = news->state;
    owed->stale = owed->stale || news->stale;
    if (news->has_error) {
        owed->has_error = true;
        owed->error = news->error;
    }
    if (news->fingerprint) {
        free(owed->fingerprint);
        owed->fingerprint = news->fingerprint;
        memcpy(owed->fingerprint_id, news->fingerprint_id, sizeof owed->fingerprint_id);
        owed->stale = false;
    }
}

static void lane_apply(const struct lane_news *news, struct snapshot_gpu *gpu)
{
    gpu->state = news->state;
    if (news->has_error) {
        gpu->last_error = news->error;
    }
    if (news->fingerprint) {
        gpu->fingerprint_stale = false;
        gpu->has_fingerprint = true;
        gpu->fingerprint = *news->fingerprint;
        memcpy(gpu->fingerprint_id, news->fingerprint_id, sizeof gpu->fingerprint_id);
        gpu->identity = gpu->fingerprint.gpu;
    }
    gpu->fingerprint_stale = gpu->fingerprint_stale || news->stale;
}

/* Publishes what is owed. Without memory an older view stays published and the lane's thread tries
 * again. The mutex is held, so that no publication loses another. */
static void lane_publish_owed(struct lane *lane)
{
    struct snapshot_cell *cell = lane->pipeline->cell;
    const struct snapshot *current = snapshot_acquire(cell);
    struct snapshot *draft = snapshot_draft_copy(current);

    snapshot_release(current);
    if (!draft) {
        log_error("gpu %u: no memory for a snapshot; an older one stays published", lane->index);
        pthread_cond_signal(&lane->wake);
        return;
    }
    lane_apply(&lane->owed, &draft->gpus[lane->index]);
    snapshot_publish(cell, draft);
    free(lane->owed.fingerprint);
    lane->owed = (struct lane_news){.any = false};
}

/* Publishes the news of one lane. The mutex is held. */
static void lane_publish(struct lane *lane, const struct lane_news *news)
{
    lane_add_news(&lane->owed, news);
    lane_publish_owed(lane);
}

void lane_forget(struct lane *lane)
{
    free(lane->owed.fingerprint);
    lane->owed.fingerprint = NULL;
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
    bool go_on = !p->stopping && !lane->cancelled;

    lane->worker = worker;
    pthread_mutex_unlock(&p->mutex);
    return go_on;
}

static bool lane_hurried(void *self)
{
    const struct lane *lane = self;

    pthread_mutex_lock(&lane->pipeline->mutex);
    bool stopping = lane->pipeline->stopping;

    pthread_mutex_unlock(&lane->pipeline->mutex);
    return stopping;
}

/* The job under way has ended well. The mutex is held. */
static void lane_done(struct lane *lane, struct fingerprint *take, const char *id)
{
    struct pipeline *p = lane->pipeline;
    struct job *job = &p->jobs.items[lane->slot];
    struct lane_news news = {
        .state = jobs_queued(&p->jobs, job->uuid) ? GPU_STATE_QUEUED : GPU_STATE_READY,
        .has_error = true, /* none any more */
        .fingerprint = take,
    };

    job->state = JOB_DONE;
    job->ended_at = clock_wall_seconds(); /* at once: whoever sees the state sees the time */
    job->fraction = 1.0;
    memcpy(job->fingerprint_id, id, sizeof job->fingerprint_id);
    memcpy(news.fingerprint_id, id, sizeof news.fingerprint_id);
    snprintf(job->sentence, sizeof job->sentence, "measured in %u ms, %u ms of it probing",
             take->duration_ms, take->probe_ms);
    log_info("gpu %u %s: %s, depth %s, measured in %u ms", lane->index, job->uuid, id,
             depth_name(job->depth), take->duration_ms);
    lane_publish(lane, &news);
}

/* A check that could not be had says nothing against the fingerprint. */
static bool is_unsure(const struct job *job, const struct err *why)
{
    return job->kind == JOB_CHECK && why->status == STATUS_DISTURBED;
}

/* What this GPU is while nothing waits and nothing is under way. The mutex is held. */
static enum gpu_state lane_at_rest(const struct lane *lane)
{
    const struct snapshot *s = snapshot_acquire(lane->pipeline->cell);
    const struct snapshot_gpu *gpu = &s->gpus[lane->index];
    enum gpu_state state = lane->lost                            ? GPU_STATE_LOST
                           : gpu->fingerprint_stale              ? GPU_STATE_STALE
                           : gpu->last_error.status != STATUS_OK ? GPU_STATE_FAILED
                           : gpu->has_fingerprint                ? GPU_STATE_READY
                                                                 : GPU_STATE_UNKNOWN;

    snapshot_release(s);
    return jobs_queued(&lane->pipeline->jobs, lane->identity.uuid) ? GPU_STATE_QUEUED : state;
}

/* The job under way was cancelled: nothing was learnt about the GPU. The mutex is held. */
static void lane_gave_up(struct lane *lane, const struct err *why)
{
    struct job *job = &lane->pipeline->jobs.items[lane->slot];

    jobs_end_cancelled(job, why, clock_wall_seconds());
    lane_publish(lane, &(struct lane_news){.state = lane_at_rest(lane)});
    log_info("gpu %u %s: %s is cancelled", lane->index, job->uuid, job->id);
}

/* The job under way has failed. The last good fingerprint stays as it is. The mutex is held. */
static void lane_failed(struct lane *lane, const struct err *why)
{
    struct pipeline *p = lane->pipeline;
    struct job *job = &p->jobs.items[lane->slot];
    const struct lane_news news = {
        .state = why->status == STATUS_NOT_FOUND    ? GPU_STATE_LOST
                 : is_unsure(job, why)              ? GPU_STATE_READY
                 : jobs_queued(&p->jobs, job->uuid) ? GPU_STATE_QUEUED
                                                    : GPU_STATE_FAILED,
        .has_error = true,
        .error = *why,
    };

    if (lane->cancelled && why->status == STATUS_CANCELLED) {
        lane_gave_up(lane, why);
        return;
    }
    lane->lost = why->status == STATUS_NOT_FOUND;
    job->state = JOB_FAILED;
    job->ended_at = clock_wall_seconds();
    job->error = *why;
    snprintf(job->sentence, sizeof job->sentence, "failed: %.140s", why->text);
    lane_publish(lane, &news);
    log_warning("gpu %u %s: %s failed (%s): %s", lane->index, job->uuid, job->id,
                status_info(why->status)->slug, why->text);
}

enum status lane_queue(struct lane *lane, enum job_kind kind, enum depth depth, struct job *out,
                       struct err *err)
{
    struct jobs *jobs = &lane->pipeline->jobs;
    const char *uuid = lane->identity.uuid;
    int slot = jobs_queued_like(jobs, uuid, kind, depth);

    if (slot != JOBS_NONE) {
        *out = jobs->items[slot];
        return STATUS_OK;
    }
    if (jobs_queued(jobs, uuid) >= JOBS_MAX_QUEUED) {
        return err_set(err, STATUS_FULL, "%d measurements wait for this GPU already",
                       JOBS_MAX_QUEUED);
    }
    slot = jobs_add(jobs, uuid, kind, depth, clock_wall_seconds());
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

enum status lane_cancel(struct lane *lane, int slot, struct err *err)
{
    struct job *job = &lane->pipeline->jobs.items[slot];
    struct err why = {0};

    if (slot == lane->slot) {
        lane->cancelled = true;
        snprintf(job->sentence, sizeof job->sentence, "is being cancelled");
        if (lane->worker) {
            worker_cancel(lane->worker);
        }
        return STATUS_OK;
    }
    if (job->state != JOB_QUEUED) {
        return err_set(err, STATUS_CONFLICT, "%s has ended already: it is %s", job->id,
                       job_state_name(job->state));
    }
    err_set(&why, STATUS_CANCELLED, "cancelled before it began");
    jobs_end_cancelled(job, &why, clock_wall_seconds());
    if (lane->slot == JOBS_NONE) {
        lane_publish(lane, &(struct lane_news){.state = lane_at_rest(lane)});
    }
    log_info("gpu %u %s: %s is cancelled", lane->index, job->uuid, job->id);
    return STATUS_OK;
}

uint32_t lane_list_gpus(struct pipeline *p, struct worker **slot, struct gpu_identity *out,
                        struct err *why)
{
    struct worker *worker = NULL;
    uint32_t count = 0;
    enum status status = worker_start(p->executable, &p->gpu, &worker, why);

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
    worker_stop(worker,
                status == STATUS_CANCELLED ? PIPELINE_LIST_GRACE_STOPPING : PIPELINE_LIST_GRACE);
    if (!status && count == 0) {
        status = err_set(why, STATUS_NO_DRIVER, "the driver shows no GPU");
    }
    return status ? 0 : count;
}

/* Carries out the measurement in lane->slot. The mutex is not held. */
static enum status lane_measure(struct lane *lane, const struct measure_request *request,
                                struct fingerprint *take, struct err *err)
{
    struct pipeline *p = lane->pipeline;
    char id[FINGERPRINT_ID_BYTES];
    enum status status = measure_gpu(request, take, id, err);

    if (status) {
        free(take);
        return status;
    }
    pthread_mutex_lock(&p->mutex);
    lane->lost = false;
    lane_done(lane, take, id);
    pthread_mutex_unlock(&p->mutex);
    return STATUS_OK;
}

/* A check has ended well: the fingerprint is true, or it is not. The mutex is held. */
static void lane_checked(struct lane *lane, const struct check *check, nsec_t probe_ns)
{
    struct pipeline *p = lane->pipeline;
    struct job *job = &p->jobs.items[lane->slot];
    const bool changed = check->result == CHECK_CHANGED;
    struct err why = {0};
    struct job again;

    lane->lost = false;
    job->state = JOB_DONE;
    job->ended_at = clock_wall_seconds();
    job->fraction = 1.0;
    snprintf(job->sentence, sizeof job->sentence, "%s: %.100s%s%u levels and groups in %llu ms",
             check_result_name(check->result), check->sentence, changed ? "; " : "",
             check->looked_at, (unsigned long long)(probe_ns / NSEC_PER_MSEC));
    if (changed) {
        err_set(&why, STATUS_CONFLICT, "%s; measure again", check->sentence);
    }
    if (changed && p->measure_unknown && lane_queue(lane, JOB_MEASURE, DEPTH_FULL, &again, NULL)) {
        log_warning("gpu %u is stale, and its queue is full", lane->index);
    }
    const struct lane_news news = {.state = jobs_queued(&p->jobs, job->uuid) ? GPU_STATE_QUEUED
                                            : changed                        ? GPU_STATE_STALE
                                                                             : GPU_STATE_READY,
                                   .has_error = true,
                                   .error = why,
                                   .stale = changed};

    lane_publish(lane, &news);
    log_info("gpu %u %s: %s", lane->index, job->uuid, job->sentence);
}

/* Carries out the check in lane->slot. The mutex is not held. */
static enum status lane_check(struct lane *lane, const struct measure_request *request,
                              struct fingerprint *take, struct err *err)
{
    struct pipeline *p = lane->pipeline;
    const struct snapshot *s = snapshot_acquire(p->cell);
    struct check check = {0};
    nsec_t probe_ns = 0;

    *take = s->gpus[lane->index].fingerprint;
    snapshot_release(s);
    enum status status = recheck_gpu(request, take, &check, &probe_ns, err);

    free(take);
    if (!status && check.result == CHECK_UNSURE) {
        status = err_set(err, STATUS_DISTURBED, "the check could not be had: %s", check.sentence);
    }
    if (status) {
        return status;
    }
    pthread_mutex_lock(&p->mutex);
    lane_checked(lane, &check, probe_ns);
    pthread_mutex_unlock(&p->mutex);
    return STATUS_OK;
}

/* Carries out the job in lane->slot. The mutex is not held. */
static void lane_work(struct lane *lane, const struct job *job)
{
    struct pipeline *p = lane->pipeline;
    const struct measure_request request = {.executable = p->executable,
                                            .gpu = &p->gpu,
                                            .store = p->store,
                                            .uuid = lane->identity.uuid,
                                            .depth = job->depth,
                                            .self = lane,
                                            .progress = lane_progress,
                                            .attach = lane_attach,
                                            .hurried = lane_hurried};
    struct fingerprint *fp = calloc(1, sizeof *fp);
    struct err err = {0};

    if (!fp) {
        err_set(&err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    } else if (job->kind == JOB_CHECK) {
        err.status = lane_check(lane, &request, fp, &err);
    } else {
        err.status = lane_measure(lane, &request, fp, &err);
    }
    pthread_mutex_lock(&p->mutex);
    if (err.status) {
        lane_failed(lane, &err);
    }
    lane->slot = JOBS_NONE;
    lane->cancelled = false;
    pthread_mutex_unlock(&p->mutex);
    malloc_trim(0); /* observations are large and measurements rare: give the pages back */
}

/* Does the driver show this GPU again? The mutex is not held. */
static bool lane_is_back(struct lane *lane)
{
    struct pipeline *p = lane->pipeline;
    struct gpu_identity *gpus = calloc(REACH_MAX_GPUS, sizeof *gpus);
    struct err why = {0};
    bool found = false;
    uint32_t count = gpus ? lane_list_gpus(p, &lane->worker, gpus, &why) : 0;

    for (uint32_t i = 0; i < count; i++) {
        found = found || strcmp(gpus[i].uuid, lane->identity.uuid) == 0;
    }
    if (count == 0) {
        log_debug("gpu %u is still lost: %s", lane->index, why.text);
    }
    free(gpus);
    return found;
}

/* There was no memory to publish: waits a little, and tries again. The mutex is held. */
static void lane_sleep_and_publish(struct lane *lane)
{
    const nsec_t until = clock_monotonic() + LANE_PUBLISH_AGAIN;
    const struct timespec at = {.tv_sec = (time_t)(until / NSEC_PER_SEC),
                                .tv_nsec = (long)(until % NSEC_PER_SEC)};

    (void)pthread_cond_clockwait(&lane->wake, &lane->pipeline->mutex, CLOCK_MONOTONIC, &at);
    if (lane->owed.any) {
        lane_publish_owed(lane);
    }
}

/* Sleeps until there is work, or, where the GPU is lost, until it is time to look for it: then a
 * check is queued, or a measurement where there is nothing to check. The mutex is held. */
static void lane_sleep(struct lane *lane)
{
    struct pipeline *p = lane->pipeline;
    struct job job;

    if (lane->owed.any) {
        lane_sleep_and_publish(lane);
        return;
    }
    if (!lane->lost) {
        pthread_cond_wait(&lane->wake, &p->mutex);
        return;
    }
    if (lane->look_at == 0) {
        lane->look_at = clock_monotonic() + p->look_again_ns;
    }
    const struct timespec at = {.tv_sec = (time_t)(lane->look_at / NSEC_PER_SEC),
                                .tv_nsec = (long)(lane->look_at % NSEC_PER_SEC)};

    if (pthread_cond_clockwait(&lane->wake, &p->mutex, CLOCK_MONOTONIC, &at) != ETIMEDOUT) {
        return;
    }
    lane->look_at = 0;
    pthread_mutex_unlock(&p->mutex);
    bool back = lane_is_back(lane);

    pthread_mutex_lock(&p->mutex);
    if (!back || p->stopping) {
        return;
    }
    const struct snapshot *s = snapshot_acquire(p->cell);
    bool known = s->gpus[lane->index].has_fingerprint;

    snapshot_release(s);
    lane->lost = false;
    log_info("gpu %u %s is back", lane->index, lane->identity.uuid);
    if (known ? p->check_known : p->measure_unknown) {
        (void)lane_queue(lane, known ? JOB_CHECK : JOB_MEASURE, DEPTH_FULL, &job, NULL);
    } else {
        lane_publish(lane,
                     &(struct lane_news){.state = known ? GPU_STATE_READY : GPU_STATE_UNKNOWN});
    }
}

void *lane_main(void *self)
{
    struct lane *lane = self;
    struct pipeline *p = lane->pipeline;
    char name[16];

    snprintf(name, sizeof name, "gpu-%u", lane->index);
    pthread_setname_np(pthread_self(), name);
    pulse_adopt(&lane->pulse);
    pthread_mutex_lock(&p->mutex);
    while (!p->stopping) {
        pulse_beat();
        int slot = jobs_next(&p->jobs, lane->identity.uuid);

        if (slot == JOBS_NONE) {
            lane_sleep(lane);
            continue;
        }
        struct job *job = &p->jobs.items[slot];

        lane->slot = slot;
        job->state = JOB_RUNNING;
        job->started_at = clock_wall_seconds();
        lane_publish(lane,
                     &(struct lane_news){.state = job->kind == JOB_CHECK ? GPU_STATE_CHECKING
                                                                         : GPU_STATE_MEASURING});
        struct job now = *job;

        pthread_mutex_unlock(&p->mutex);
        lane_work(lane, &now);
        pthread_mutex_lock(&p->mutex);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}
