/* measure.c: one measurement of one GPU.
 *
 *     start worker, open GPU, begin run
 *     while campaign_next(all observations so far) has probes:
 *         submit a probe, store the observation before, await the next, ...
 *     store the rest, derive, check, finish run
 *
 * Storing an observation waits for the disk for the duration of a short probe. So it is done while
 * the GPU runs the next probe. Within a step, the next probe is submitted before the answer of a
 * probe is awaited. If the step has fillers (campaign.h), they are submitted behind its probes. The
 * GPU runs them while the campaign chooses, and the next step begins with their answers. Results
 * are derived only from observations that are stored, or kept in memory because the disk cannot be
 * written (store/store_queue.h).
 *
 * Each observation is classified as it arrives (analysis/disturbance.h). A disturbed observation is
 * stored and excluded. Its probe is repeated after a pause that grows, because a neighbor's burst
 * may be over by then. Neither the campaign nor the analysis gets the observation. A probe without
 * a clean answer ends the run as disturbed. Too many probes that needed more than one attempt also
 * end the run as disturbed.
 */
#include "measure/measure.h"

#include "analysis/analysis.h"
#include "analysis/disturbance.h"
#include "base/clock.h"
#include "base/log.h"
#include "campaign/campaign.h"
#include "fingerprint/fingerprint_check.h"
#include "fingerprint/fingerprint_json.h"
#include "measure/knowledge.h"
#include "measure/times.h"
#include "store/store_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MEASURE_ATTEMPTS = 2, /* attempts of a measurement that is disturbed */
    MEASURE_ATTEMPTS_SHARED =
        9,             /* attempts at depth quick, if other processes had the GPU in between */
    MEASURE_TRIES = 4, /* attempts of one probe in one measurement */
    MEASURE_MAX_EXCLUDED = 48, /* limit of disturbed observations in one measurement */
    MEASURE_MAX_QUEUE = CAMPAIGN_MAX_SPECS * MEASURE_TRIES,
    MEASURE_MAX_STEPS = 4096,    /* more than any campaign has */
    MEASURE_DEADLINE_MS = 30000, /* deadline of one probe, unless the options set another (gpu.h) */
};

/* Time for messages and a loaded machine, in addition to a probe's time on the device. */
#define MEASURE_PROBE_SLACK (30 * NSEC_PER_SEC)
/* At depth quick, another attempt begins only if the measurement then ends within this time. The
 * next attempt is expected to take as long as the last attempt. */
#define MEASURE_QUICK_BUDGET (10 * NSEC_PER_SEC)
/* The pause before a probe is repeated; it doubles for each repetition. */
#define MEASURE_PAUSE (5 * NSEC_PER_MSEC)

enum { FILLER = -1 };

/* A probe that was submitted and is not answered yet. */
struct pending {
    struct probe_spec spec;
    int place; /* index in the step, or FILLER */
};

/* A measurement: state of all attempts, and the current attempt. */
struct attempt {
    const struct measure_request *request;
    struct knowledge knowledge; /* shared by all attempts */
    nsec_t probe_deadline_ns;
    struct fingerprint measured;
    struct worker *worker;
    struct observation_set set;
    struct campaign_step step; /* has 70 KiB, which is too much for the stack */
    struct campaign_memo memo;
    struct pending pending[WORKER_MAX_PENDING]; /* the oldest is first */
    uint32_t pending_count;
    uint32_t fillers;       /* number of the step's fillers that were submitted */
    struct store_run *run;  /* owned; NULL if it has not begun */
    size_t stored;          /* number of stored observations of the set */
    size_t stored_excluded; /* number of stored excluded observations */
    struct assessment last; /* assessment of the latest observation */
    int number;             /* number of the attempt, from 1 */
    bool shared;            /* other processes had the GPU during the latest observation */
    struct measure_times times;
};

/* Stores the items that are not stored yet. */
static enum status measure_store_items(struct attempt *a, const struct observation *items,
                                       size_t count, size_t *stored, struct err *err)
{
    enum status status = STATUS_OK;

    while (*stored < count && !status) {
        status = store_run_observe(a->request->store, a->run, &items[*stored], err);
        *stored += !status;
    }
    return status;
}

static enum status measure_store(struct attempt *a, struct err *err)
{
    const struct observation_list *excluded = &a->set.excluded;
    const nsec_t start = clock_monotonic();
    enum status status = measure_store_items(a, a->set.items, a->set.count, &a->stored, err);

    if (!status)
        status = measure_store_items(a, excluded->items, excluded->count, &a->stored_excluded, err);
    a->times.store_ns += clock_monotonic() - start;
    return status;
}

/* Awaits the oldest observation and classifies it. */
static enum status measure_await(struct attempt *a, struct err *err)
{
    const nsec_t start = clock_monotonic();
    struct observation o = {0};
    enum status status = worker_await(a->worker, a->probe_deadline_ns, &o, err);

    a->times.await_ns += clock_monotonic() - start;
    if (status)
        return status;
    measure_times_add(&a->times, &o);
    disturbance_classify(&o, &o.assessment);
    a->last = o.assessment;
    return observation_set_add(&a->set, &o, err);
}

/* Returns whether the probe of the last observation, which was not clean, may be repeated. Waits a
 * little first. */
static enum status measure_repeat(struct attempt *a, uint32_t tries, struct err *err)
{
    const struct timespec pause = {.tv_nsec = (long)(tries * MEASURE_PAUSE)};
    const struct assessment *why = &a->last;

    log_info("gpu %s: %s, repeating the probe: %s", a->request->uuid, verdict_name(why->verdict),
             why->message);
    if (tries >= MEASURE_TRIES)
        return err_set(err, STATUS_DISTURBED,
                       "a probe was repeated %d times, the last observation was %s: %s",
                       MEASURE_TRIES, verdict_name(why->verdict), why->message);
    if (a->set.excluded.count > MEASURE_MAX_EXCLUDED)
        return err_set(err, STATUS_DISTURBED,
                       "%zu of %zu observations were not clean; the last reason: %s",
                       a->set.excluded.count, a->set.excluded.count + a->set.count, why->message);
    nanosleep(&pause, NULL);
    return STATUS_OK;
}

/* Submits a probe; there must be room for it. */
static enum status measure_submit(struct attempt *a, const struct probe_spec *spec, int place,
                                  struct err *err)
{
    a->pending[a->pending_count++] = (struct pending){*spec, place};
    return worker_submit(a->worker, spec, a->probe_deadline_ns, err);
}

/* Returns the pending probe with this spec, or NULL if there is none. */
static struct pending *measure_find_pending(struct attempt *a, const struct probe_spec *spec)
{
    for (uint32_t i = 0; i < a->pending_count; i++)
        if (probe_same(&a->pending[i].spec, spec))
            return &a->pending[i];
    return NULL;
}

/* Submits the step's fillers while there is room. */
static enum status measure_fill(struct attempt *a, struct err *err)
{
    const struct campaign_step *step = &a->step;
    enum status status = STATUS_OK;

    while (!status && a->fillers < step->filler_count && a->pending_count < WORKER_MAX_PENDING)
        status = measure_submit(a, &step->specs[step->spec_count + a->fillers++], FILLER, err);
    return status;
}

/* Stores the observations that have arrived, and awaits the oldest pending probe. `*out_place` is
 * its index in the step, or FILLER. */
static enum status measure_take(struct attempt *a, int *out_place, struct err *err)
{
    enum status status = measure_store(a, err);

    status = status ? status : measure_await(a, err);
    *out_place = a->pending[0].place;
    a->pending_count--;
    memmove(&a->pending[0], &a->pending[1], a->pending_count * sizeof a->pending[0]);
    return status;
}

/* Awaits all pending probes. */
static enum status measure_drain(struct attempt *a, struct err *err)
{
    enum status status = STATUS_OK;
    int place;

    while (!status && a->pending_count > 0)
        status = measure_take(a, &place, err);
    return status;
}

/* Omits the step's fillers that are already pending. */
static void measure_drop_known(struct attempt *a)
{
    struct probe_spec *const fillers = &a->step.specs[a->step.spec_count];
    uint32_t kept = 0;

    for (uint32_t i = 0; i < a->step.filler_count; i++)
        if (!measure_find_pending(a, &fillers[i]))
            fillers[kept++] = fillers[i];
    a->step.filler_count = kept;
}

/* Assigns the indices of the step's probes. Probes that are pending as fillers need not be
 * submitted. */
static uint32_t measure_queue_step(struct attempt *a, uint8_t *queue)
{
    uint32_t queued = 0;

    for (uint32_t i = 0; i < a->step.spec_count; i++) {
        struct pending *known = measure_find_pending(a, &a->step.specs[i]);

        if (known)
            known->place = (int)i;
        else
            queue[queued++] = (uint8_t)i;
    }
    return queued;
}

/* Runs all of a step's probes. The next probe is submitted before an answer is awaited. Probes
 * without a clean answer run again, after the others. A filler without a clean answer is repeated
 * by the campaign. */
static enum status measure_step(struct attempt *a, struct err *err)
{
    const struct campaign_step *step = &a->step;
    uint8_t queue[MEASURE_MAX_QUEUE];
    uint32_t tries[CAMPAIGN_MAX_SPECS] = {0};
    uint32_t open = step->spec_count;
    uint32_t queued = measure_queue_step(a, queue), asked = 0;
    enum status status = STATUS_OK;

    measure_drop_known(a);
    a->fillers = 0;
    while (open > 0 && !status) {
        int place = FILLER;

        while (!status && asked < queued && a->pending_count < WORKER_MAX_PENDING) {
            status = measure_submit(a, &step->specs[queue[asked]], queue[asked], err);
            asked++;
        }
        if (asked == queued)
            status = status ? status : measure_fill(a, err);
        status = status ? status : measure_take(a, &place, err);
        if (status || place == FILLER)
            continue;
        /* The campaign requests a probe of other memory again, and omits it in the end. */
        if (a->last.verdict != VERDICT_CLEAN && step->specs[place].memory == MEMORY_DEVICE) {
            status = measure_repeat(a, ++tries[place], err);
            queue[queued++] = (uint8_t)place;
        } else {
            open--;
        }
    }
    return status ? status : measure_fill(a, err);
}

/* Reports the progress, and the effect of other processes on the duration. */
static void measure_report(const struct attempt *a)
{
    const struct measure_request *r = a->request;
    char message[sizeof a->step.message + 96];
    int used = snprintf(message, sizeof message, "%s", a->step.message);

    if (a->number > 1)
        used += snprintf(message + used, sizeof message - (size_t)used, ", attempt %d", a->number);
    if (a->set.interrupted > 0)
        snprintf(message + used, sizeof message - (size_t)used,
                 "; other processes interrupted it %zu times", a->set.interrupted);
    r->progress(r->self, a->step.progress, message);
}

/* Runs the steps of the campaign until it has no probe left. */
static enum status measure_probe(struct attempt *a, struct err *err)
{
    const struct measure_request *r = a->request;

    for (uint32_t i = 0; i < MEASURE_MAX_STEPS; i++) {
        const nsec_t start = clock_monotonic();
        enum status status = campaign_next(&a->set, r->depth, &a->memo, &a->step, err);

        a->times.choose_ns += clock_monotonic() - start;
        a->times.steps++;
        if (status || (a->step.spec_count == 0 && a->pending_count == 0))
            return status;
        if (a->step.spec_count > 0)
            measure_report(a);
        status = a->step.spec_count > 0 ? measure_step(a, err) : measure_drain(a, err);
        if (status)
            return status;
    }
    return err_set(err, STATUS_INTERNAL, "the campaign does not end after %d steps",
                   MEASURE_MAX_STEPS);
}

enum status measure_open(const struct measure_request *r, struct worker **out,
                         struct gpu_identity *identity, struct gpu_limits *limits, struct err *err)
{
    enum status status;

    r->progress(r->self, 0.0, "opening the GPU");
    status = worker_start(r->executable, r->gpu, out, err);
    if (!status && !r->attach(r->self, *out))
        status = err_set(err, STATUS_CANCELLED, "cancelled, or the daemon is stopping");
    return status ? status : worker_open(*out, r->uuid, r->open_deadline_ns, identity, limits, err);
}

/* Opens the GPU and begins a run in the store. */
static enum status measure_begin(struct attempt *a, struct err *err)
{
    const struct measure_request *r = a->request;
    enum status status = measure_open(r, &a->worker, &a->set.gpu, &a->set.limits, err);

    return status ? status
                  : store_run_begin(r->store, &a->set.gpu, &a->set.limits, r->depth,
                                    clock_wall_seconds(), &a->run, err);
}

static uint32_t measure_ms(nsec_t from, nsec_t to)
{
    return (uint32_t)((to - from + NSEC_PER_MSEC / 2) / NSEC_PER_MSEC);
}

/* Merges the measurement with the known results. Computes the ids of both fingerprints before
 * anything is stored, so that stored results can be published. */
static enum status measure_join(struct attempt *a, struct measure_result *out, struct err *err)
{
    enum status status = fingerprint_check(&a->measured, err);

    if (status) {
        err_prefix(err, "the derived fingerprint breaks its own rules");
        return status;
    }
    status = knowledge_join(&a->knowledge, &a->measured, !observation_set_is_shared(&a->set),
                            out->known, err);
    status = status ? status : fingerprint_id(&a->measured, out->id, err);
    return status ? status : fingerprint_id(out->known, out->known_id, err);
}

/* Derives a fingerprint from all observations and stores it. */
static enum status measure_derive(struct attempt *a, nsec_t start, nsec_t opened,
                                  struct measure_result *out, struct err *err)
{
    const struct measure_request *r = a->request;
    struct fingerprint *fp = &a->measured;
    nsec_t probed = clock_monotonic();
    enum status status = measure_store(a, err);

    status = status ? status : analysis_derive(&a->set, r->depth, fp, err);
    if (status)
        return status;
    fp->taken_at = clock_wall_seconds();
    fp->probe_ms = measure_ms(opened, probed);
    fp->duration_ms = measure_ms(start, clock_monotonic());
    fp->device_memory_bytes = a->set.limits.device_memory_bytes;
    status = measure_join(a, out, err);
    status = status ? status : store_run_finish(r->store, a->run, fp, out->known, err);
    if (!status)
        a->run = NULL;
    return status;
}

/* Ends the run with its reason. The observations of a failed run are kept, because they show why it
 * failed.
 */
static void measure_fail(struct attempt *a, const struct err *why)
{
    struct err err = {0};
    const bool complete = measure_store(a, &err) == STATUS_OK;
    const bool ended = store_run_fail(a->request->store, a->run, why, &err) == STATUS_OK;

    a->run = NULL;
    if (!complete || !ended)
        log_warning("gpu %s: a failed measurement is not stored completely: %s", a->request->uuid,
                    err.text);
}

enum status measure_abandon(const struct measure_request *request, struct worker *take,
                            struct err *err)
{
    const struct worker_timeouts timeouts = {
        .grace_ns = request->grace_ns,
        .stopping_ns = MEASURE_GRACE_STOPPING,
        .stopping = request->stopping,
        .self = request->self,
    };

    if (!take)
        return STATUS_OK;
    request->attach(request->self, NULL);
    const int pid = worker_stop(take, &timeouts);

    if (pid == 0)
        return STATUS_OK;
    request->hung(request->self, pid);
    return err_set(err, STATUS_GPU_HUNG,
                   "the measurement process %d hangs in the driver and is abandoned", pid);
}

/* Stops the worker, and ends the run if it failed. A hung worker is the more important failure. */
static enum status measure_end(struct attempt *a, enum status status, struct err *err)
{
    if (status && a->run)
        measure_fail(a, err);
    const enum status left = measure_abandon(a->request, a->worker, status ? err : NULL);

    a->shared = observation_set_is_shared(&a->set);
    observation_set_free(&a->set);
    return status && left ? left : status;
}

static enum status measure_attempt(struct attempt *a, struct measure_result *out, struct err *err)
{
    nsec_t start = clock_monotonic();

    a->worker = NULL;
    a->run = NULL;
    a->stored = a->stored_excluded = 0;
    a->pending_count = 0;
    a->times = (struct measure_times){0};
    a->memo.known = false;
    enum status status = measure_begin(a, err);
    nsec_t opened = clock_monotonic();

    a->times.open_ns = opened - start;
    status = status ? status : measure_probe(a, err);
    const nsec_t probed = clock_monotonic();

    status = status ? status : measure_derive(a, start, opened, out, err);
    const nsec_t derived = clock_monotonic();

    a->times.probe_ns = probed - opened;
    a->times.derive_ns = derived - probed;
    status = measure_end(a, status, err);
    a->times.close_ns = clock_monotonic() - derived;
    measure_times_log(&a->times, a->request->uuid);
    return status;
}

/* Returns whether another attempt may begin after an attempt that ended with this status. If an
 * attempt contradicts the known results, one more attempt is allowed, because only a second attempt
 * can confirm it. Beside other processes several attempts are allowed, because chance and time
 * slices have a greater effect. Their total time stays below the limit of a quick measurement. */
static bool is_worth_another(const struct attempt *a, enum status status, nsec_t began,
                             nsec_t attempt_began)
{
    const nsec_t now = clock_monotonic();
    const bool in_time = now - began + (now - attempt_began) < MEASURE_QUICK_BUDGET;

    if (status != STATUS_DISTURBED && status != STATUS_INCONCLUSIVE)
        return false;
    if (a->number < MEASURE_ATTEMPTS + (a->knowledge.suspected ? 1 : 0))
        return true;
    return a->request->depth == DEPTH_QUICK && a->shared && in_time &&
           a->number < MEASURE_ATTEMPTS_SHARED;
}

enum status measure_gpu(const struct measure_request *request, struct measure_result *out,
                        struct err *err)
{
    const uint32_t deadline_ms = request->gpu->deadline_ms;
    struct attempt *a = calloc(1, sizeof *a);
    const nsec_t began = clock_monotonic();
    struct err local = {0};
    nsec_t attempt_began;
    enum status status;
    bool again;

    if (!a)
        return err_no_memory(err, "a measurement");
    a->request = request;
    a->knowledge.known = request->known;
    a->knowledge.doubted = request->known_stale;
    a->probe_deadline_ns =
        (deadline_ms ? deadline_ms : MEASURE_DEADLINE_MS) * NSEC_PER_MSEC + MEASURE_PROBE_SLACK;
    do {
        attempt_began = clock_monotonic();
        local = (struct err){0};
        a->number++;
        status = measure_attempt(a, out, &local);
        again = is_worth_another(a, status, began, attempt_began);
        if (status == STATUS_DISTURBED || status == STATUS_INCONCLUSIVE)
            log_warning("gpu %s: attempt %d is %s: %s", request->uuid, a->number,
                        status_info(status)->slug, local.text);
    } while (again);
    free(a);
    if (status && err)
        *err = local; /* the error with its hint */
    return status;
}
