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
#define PIPELINE_LIST_DEADLINE (30 * NSEC_PER_SEC)
#define LANE_PUBLISH_AGAIN     (100 * NSEC_PER_MSEC)
#define LANE_LONGEST_PAUSE     (3600 * NSEC_PER_SEC) /* before what failed is tried again */

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

static void lane_hung(void *self, int pid)
{
    struct lane *lane = self;

    pthread_mutex_lock(&lane->pipeline->mutex);
    lane->hung_pid = pid;
    pthread_mutex_unlock(&lane->pipeline->mutex);
}

static bool pipeline_hurried(void *self)
{
    struct pipeline *p = self;

    pthread_mutex_lock(&p->mutex);
    const bool stopping = p->stopping;

    pthread_mutex_unlock(&p->mutex);
    return stopping;
}

static bool lane_hurried(void *self)
{
    return pipeline_hurried(((struct lane *)self)->pipeline);
}

/* Logs what a measurement left out, and which parts of what is served are older. */
static void lane_log_result(const struct lane *lane, const struct fingerprint *fp)
{
    char when[32], name[PART_NAME_BYTES];

    for (uint32_t i = 0; i < fp->conditions.note_count; i++) {
        log_info("gpu %u: %s", lane->index, fp->conditions.notes[i]);
    }

    for (uint32_t part = 0; part < PART_COUNT; part++) {
        if (fp->kept[part].id[0]) {
            log_debug("gpu %u: %s is kept from %s of %s", lane->index,
                      fingerprint_part_name((enum fingerprint_part)part, name), fp->kept[part].id,
                      clock_rfc3339(fp->kept[part].taken_at, when, sizeof when));
        }
    }
}

/* The job under way has ended well. `take` is what is known of the GPU now. The mutex is held. */
static void lane_done(struct lane *lane, const struct measure_result *result,
                      struct fingerprint *take)
{
    struct pipeline *p = lane->pipeline;
    struct job *job = &p->jobs.items[lane->slot];
    struct lane_news news = {
        .state = jobs_queued(&p->jobs, job->uuid) ? GPU_STATE_QUEUED : GPU_STATE_READY,
        .has_error = true, /* none any more */
        .fingerprint = take,
    };

    lane->retry_at = lane->retry_pause = 0;
    job->state = JOB_DONE;
    job->ended_at = clock_wall_seconds(); /* at once: whoever sees the state sees the time */
    job->fraction = 1.0;
    memcpy(job->fingerprint_id, result->id, sizeof job->fingerprint_id);
    memcpy(news.fingerprint_id, result->known_id, sizeof news.fingerprint_id);
    snprintf(job->sentence, sizeof job->sentence, "measured in %u ms, %u ms of it probing",
             take->duration_ms, take->probe_ms);
    log_info("gpu %u %s: %s, depth %s, measured in %u ms", lane->index, job->uuid, result->id,
             depth_name(job->depth), take->duration_ms);
    lane_log_result(lane, take);
    lane_publish(lane, &news);
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
static void lane_plan_retry(struct lane *lane, enum status status)
{
    struct pipeline *p = lane->pipeline;
    const struct snapshot *s = snapshot_acquire(p->cell);
    const struct snapshot_gpu *gpu = &s->gpus[lane->index];
    const bool known = gpu->has_fingerprint && !gpu->fingerprint_stale;

    snapshot_release(s);
    if (known || !p->measure_unknown || !may_pass(status)) {
        lane->retry_at = 0;
        return;
    }
    const nsec_t pause = lane->retry_pause ? 2 * lane->retry_pause : p->retry_ns;

    lane->retry_pause = pause < LANE_LONGEST_PAUSE ? pause : LANE_LONGEST_PAUSE;
    lane->retry_at = clock_monotonic() + lane->retry_pause;
    log_info("gpu %u %s is measured again in %llu s", lane->index, lane->identity.uuid,
             (unsigned long long)((lane->retry_pause + NSEC_PER_SEC - 1) / NSEC_PER_SEC));
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
        .state = is_gone(why->status)               ? GPU_STATE_LOST
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
    lane->lost = is_gone(why->status);
    lane_plan_retry(lane, why->status);
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

/* A worker that was left alone has the driver still: a second one would hang as well. */
static bool lane_still_hangs(struct pipeline *p, int *hung_pid, struct err *err)
{
    pthread_mutex_lock(&p->mutex);
    const int pid = *hung_pid;

    pthread_mutex_unlock(&p->mutex);
    if (pid == 0) {
        return false;
    }
    if (worker_is_left(pid)) {
        err_set(err, STATUS_GPU_HUNG, "the measurement process %d still hangs in the driver", pid);
        return true;
    }
    pthread_mutex_lock(&p->mutex);
    *hung_pid = 0;
    pthread_mutex_unlock(&p->mutex);
    return false;
}

/* Ends the worker that has listed GPUs, or leaves it alone where it hangs. */
static void lane_end_list(struct pipeline *p, struct worker *take, int *hung_pid)
{
    const struct worker_patience patience = {.grace_ns = p->grace_ns ? p->grace_ns : MEASURE_GRACE,
                                             .hurried_ns = MEASURE_GRACE_STOPPING,
                                             .hurried = pipeline_hurried,
                                             .self = p};
    const int pid = worker_leave(take, &patience);

    if (pid) {
        pthread_mutex_lock(&p->mutex);
        *hung_pid = pid;
        pthread_mutex_unlock(&p->mutex);
    }
}

uint32_t lane_list_gpus(struct pipeline *p, struct worker **slot, int *hung_pid,
                        struct gpu_identity *out, struct err *why)
{
    struct worker *worker = NULL;
    uint32_t count = 0;
    enum status status = lane_still_hangs(p, hung_pid, why)
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
    lane_end_list(p, worker, hung_pid);
    if (!status && count == 0) {
        status = err_set(why, STATUS_NO_DRIVER, "the driver shows no GPU");
    }
    return status ? 0 : count;
}

/* What is served for this GPU, in `*out`; false if there is nothing. `*doubted`: it is stale. */
static bool lane_known(struct lane *lane, struct fingerprint *out, bool *doubted)
{
    const struct snapshot *s = snapshot_acquire(lane->pipeline->cell);
    const struct snapshot_gpu *gpu = &s->gpus[lane->index];
    const bool known = gpu->has_fingerprint;

    *doubted = gpu->fingerprint_stale;
    if (known) {
        *out = gpu->fingerprint;
    }
    snapshot_release(s);
    return known;
}

/* Carries out the measurement in lane->slot; `*take` is room for what is known. The mutex is not
 * held. */
static enum status lane_measure(struct lane *lane, struct measure_request *request,
                                struct fingerprint *take, struct err *err)
{
    struct pipeline *p = lane->pipeline;
    struct measure_result *result = calloc(1, sizeof *result);
    enum status status = STATUS_NO_MEMORY;

    if (!result) {
        err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
        goto out;
    }
    request->known = lane_known(lane, take, &request->known_doubted) ? take : NULL;
    status = measure_gpu(request, result, err);
    if (status) {
        goto out;
    }
    *take = result->known;
    pthread_mutex_lock(&p->mutex);
    lane->lost = false;
    lane_done(lane, result, take);
    pthread_mutex_unlock(&p->mutex);
    take = NULL;
out:
    free(result);
    free(take);
    return status;
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
        err_set_hint(&why, STATUS_CONFLICT, MEASURE_AGAIN_HINT, "%s", check->sentence);
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
    struct measure_request request = {.executable = p->executable,
                                      .gpu = &p->gpu,
                                      .store = p->store,
                                      .uuid = lane->identity.uuid,
                                      .depth = job->depth,
                                      .self = lane,
                                      .progress = lane_progress,
                                      .attach = lane_attach,
                                      .hurried = lane_hurried,
                                      .hung = lane_hung,
                                      .open_deadline_ns = p->open_ns,
                                      .grace_ns = p->grace_ns};
    struct fingerprint *fp = calloc(1, sizeof *fp);
    struct err err = {0};

    if (!fp) {
        err_set(&err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    }
    if (lane_still_hangs(p, &lane->hung_pid, &err) || !fp) {
        free(fp);
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
    uint32_t count = gpus ? lane_list_gpus(p, &lane->worker, &lane->hung_pid, gpus, &why) : 0;

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

/* Sleeps until there is work or it is time to measure again. The mutex is held. */
static void lane_sleep_and_retry(struct lane *lane)
{
    const struct timespec at = {.tv_sec = (time_t)(lane->retry_at / NSEC_PER_SEC),
                                .tv_nsec = (long)(lane->retry_at % NSEC_PER_SEC)};
    struct job job;

    if (pthread_cond_clockwait(&lane->wake, &lane->pipeline->mutex, CLOCK_MONOTONIC, &at) ==
            ETIMEDOUT &&
        !lane->pipeline->stopping) {
        lane->retry_at = 0;
        (void)lane_queue(lane, JOB_MEASURE, DEPTH_FULL, &job, NULL);
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
    if (!lane->lost && lane->retry_at) {
        lane_sleep_and_retry(lane);
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
