/* measure.c: one measurement of one GPU.
 *
 *     start worker, open GPU, begin run
 *     while campaign_next(all observations so far) has probes:
 *         ask, store what came before, take, ...
 *     store the rest, conclude, check, finish run
 *
 * Storing an observation waits for the disk, as long as a short probe takes. So it is done while
 * the GPU is at the next probe, and within a step one question more is always on its way. The GPU
 * waits only where the plan must think; nothing is concluded from what is not stored yet.
 *
 * Each observation is judged as it comes (analysis/disturbance.h). One that something else had a
 * hand in is stored and set aside, and its question is asked again, after a pause that grows: a
 * neighbour's burst may be over by then. Neither plan nor analysis ever sees it. A question that
 * gets no clean answer, or too many that needed more than one, end the run as disturbed.
 */
#include "measure/measure.h"

#include "analysis/analysis.h"
#include "analysis/disturbance.h"
#include "base/clock.h"
#include "base/log.h"
#include "measure/knowledge.h"
#include "campaign/campaign.h"

#include <stdlib.h>
#include <time.h>

enum {
    MEASURE_ATTEMPTS = 2,      /* a disturbed measurement is repeated once */
    MEASURE_TRIES = 4,         /* of one probe, in one measurement */
    MEASURE_MAX_EXCLUDED = 48, /* disturbed observations that one measurement puts up with */
    MEASURE_MAX_QUEUE = CAMPAIGN_MAX_SPECS * MEASURE_TRIES,
    MEASURE_MAX_STEPS = 4096,    /* no plan is this long; one that is does not end */
    MEASURE_DEADLINE_MS = 30000, /* of one probe, where the options do not say (gpu.h) */
};

/* On top of what a probe may take on the device: the way there and back, a loaded machine. */
#define MEASURE_PROBE_SLACK (30 * NSEC_PER_SEC)
/* Before a probe is asked for the second time; before the third twice as long. */
#define MEASURE_PAUSE (5 * NSEC_PER_MSEC)

struct attempt {
    const struct measure_request *request;
    struct knowledge *knowledge; /* borrowed: that of all attempts */
    struct fingerprint measured;
    struct worker *worker;
    struct observation_set set;
    struct campaign_step step; /* 70 KiB: too much for the stack */
    int64_t run;               /* 0: not begun */
    size_t stored;             /* of the set's observations */
    size_t stored_excluded;    /* of those set aside */
    struct assessment last;    /* of the observation taken last */
    nsec_t probe_deadline_ns;
};

/* Stores what is not stored yet. */
static enum status measure_store(struct attempt *a, struct err *err)
{
    struct store *store = a->request->store;
    enum status status = STATUS_OK;

    while (a->stored < a->set.count && !status) {
        status = store_add_observation(store, a->run, &a->set.items[a->stored], NULL, err);
        a->stored += !status;
    }
    while (a->stored_excluded < a->set.excluded.count && !status) {
        status = store_add_observation(store, a->run, &a->set.excluded.items[a->stored_excluded],
                                       NULL, err);
        a->stored_excluded += !status;
    }
    return status;
}

/* Takes the answer to the oldest question and judges it. */
static enum status measure_take(struct attempt *a, struct err *err)
{
    struct observation o = {0};
    enum status status = worker_await(a->worker, a->probe_deadline_ns, &o, err);

    if (status) {
        return status;
    }
    disturbance_classify(&o, &o.assessment);
    a->last = o.assessment;
    return observation_set_add(&a->set, &o, err);
}

/* A question's answer was not clean: may it be asked again? Waits a little before. */
static enum status measure_repeat(struct attempt *a, uint32_t tries, struct err *err)
{
    const struct timespec pause = {.tv_nsec = (long)(tries * MEASURE_PAUSE)};
    const struct assessment *why = &a->last;

    log_info("gpu %s: %s, asked again: %s", a->request->uuid, verdict_name(why->verdict),
             why->message);
    if (tries >= MEASURE_TRIES) {
        return err_set(err, STATUS_DISTURBED, "asked %d times, the last answer was %s: %s",
                       MEASURE_TRIES, verdict_name(why->verdict), why->message);
    }
    if (a->set.excluded.count > MEASURE_MAX_EXCLUDED) {
        return err_set(err, STATUS_DISTURBED, "%zu of %zu answers were not clean, the last: %s",
                       a->set.excluded.count, a->set.excluded.count + a->set.count, why->message);
    }
    nanosleep(&pause, NULL);
    return STATUS_OK;
}

/* Asks all of a step's probes, one ahead; those without a clean answer again, behind the others. */
static enum status measure_step(struct attempt *a, struct err *err)
{
    const struct campaign_step *step = &a->step;
    uint8_t queue[MEASURE_MAX_QUEUE];
    uint32_t tries[CAMPAIGN_MAX_SPECS] = {0};
    uint32_t asked = 0, taken = 0, queued = step->spec_count;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < queued; i++) {
        queue[i] = (uint8_t)i;
    }
    while (taken < queued && !status) {
        while (!status && asked < queued && asked - taken < WORKER_MAX_PENDING) {
            status =
                worker_submit(a->worker, &step->specs[queue[asked]], a->probe_deadline_ns, err);
            asked++;
        }
        status = status ? status : measure_store(a, err);
        status = status ? status : measure_take(a, err);
        if (!status && a->last.verdict != VERDICT_CLEAN) {
            status = measure_repeat(a, ++tries[queue[taken]], err);
            queue[queued++] = queue[taken];
        }
        taken++;
    }
    return status;
}

/* Asks the plan until it has nothing left to ask. */
static enum status measure_probe(struct attempt *a, struct err *err)
{
    const struct measure_request *r = a->request;

    for (uint32_t i = 0; i < MEASURE_MAX_STEPS; i++) {
        enum status status = campaign_next(&a->set, r->depth, &a->step, err);

        if (status || a->step.spec_count == 0) {
            return status;
        }
        r->progress(r->self, a->step.progress, a->step.message);
        status = measure_step(a, err);
        if (status) {
            return status;
        }
    }
    return err_set(err, STATUS_INTERNAL, "the plan does not end after %d steps", MEASURE_MAX_STEPS);
}

/* Starts the worker, opens the GPU in it and begins a run in the store. */
static enum status measure_begin(struct attempt *a, struct err *err)
{
    const struct measure_request *r = a->request;
    enum status status = worker_start(r->executable, r->gpu, &a->worker, err);

    if (status) {
        return status;
    }
    if (!r->attach(r->self, a->worker)) {
        return err_set(err, STATUS_CANCELLED, "cancelled, or the daemon is stopping");
    }
    status = worker_open(a->worker, r->uuid,
                         r->open_deadline_ns ? r->open_deadline_ns : MEASURE_OPEN_DEADLINE,
                         &a->set.gpu, &a->set.limits, err);
    if (status) {
        return status;
    }
    return store_begin_run(r->store, &a->set.gpu, &a->set.limits, r->depth, clock_wall_seconds(),
                           &a->run, err);
}

static uint32_t measure_ms(nsec_t from, nsec_t to)
{
    return (uint32_t)((to - from + NSEC_PER_MSEC / 2) / NSEC_PER_MSEC);
}

/* No probe was disturbed, and no other process had the GPU open as far as the driver reports it. */
static bool measure_was_quiet(const struct attempt *a)
{
    const struct maybe_u32 *others = &a->measured.conditions.other_processes;

    return a->set.excluded.count == 0 && !(IS_KNOWN(*others) && others->v > 0);
}

/* Joins what was measured with what is known, and names both. The names are made before anything is
 * kept: what is stored can then be published. */
static enum status measure_join(struct attempt *a, struct measure_result *out, struct err *err)
{
    enum status status = fingerprint_check(&a->measured, err);

    if (status) {
        err_prefix(err, "the conclusion breaks its own rules");
        return status;
    }
    status = knowledge_join(a->knowledge, &a->measured, measure_was_quiet(a), &out->known, err);
    status = status ? status : fingerprint_id(&a->measured, out->id, err);
    return status ? status : fingerprint_id(&out->known, out->known_id, err);
}

/* From all observations to a stored fingerprint. */
static enum status measure_derive(struct attempt *a, nsec_t start, nsec_t opened,
                                  struct measure_result *out, struct err *err)
{
    const struct measure_request *r = a->request;
    struct fingerprint *fp = &a->measured;
    nsec_t probed = clock_monotonic();
    enum status status = measure_store(a, err);

    status = status ? status : analysis_derive(&a->set, r->depth, fp, err);
    if (status) {
        return status;
    }
    fp->taken_at = clock_wall_seconds();
    fp->probe_ms = measure_ms(opened, probed);
    fp->duration_ms = measure_ms(start, clock_monotonic());
    fp->device_memory_bytes = a->set.limits.device_memory_bytes;
    status = measure_join(a, out, err);
    return status ? status : store_finish_run(r->store, a->run, fp, &out->known, err);
}

/* Ends the run with its reason. What a failed run has seen is kept too: it is the more wanted. */
static void measure_fail(struct attempt *a, const struct err *why)
{
    struct err err = {0};

    if (measure_store(a, &err) || store_fail_run(a->request->store, a->run, why, &err)) {
        log_warning("run %lld cannot be kept as failed: %s", (long long)a->run, err.text);
    }
}

enum status measure_abandon(const struct measure_request *request, struct worker *take,
                            struct err *err)
{
    const struct worker_timeouts timeouts = {
        .grace_ns = request->grace_ns ? request->grace_ns : MEASURE_GRACE,
        .stopping_ns = MEASURE_GRACE_STOPPING,
        .stopping = request->stopping,
        .self = request->self,
    };

    if (!take) {
        return STATUS_OK;
    }
    request->attach(request->self, NULL);
    const int pid = worker_abandon(take, &timeouts);

    if (pid == 0) {
        return STATUS_OK;
    }
    request->hung(request->self, pid);
    return err_set(err, STATUS_GPU_HUNG,
                   "the measurement process %d hangs in the driver and is left alone", pid);
}

/* Stops the worker; ends the run where it failed. A worker that hangs is the more important update.
 */
static enum status measure_end(struct attempt *a, enum status status, struct err *err)
{
    if (status && a->run) {
        measure_fail(a, err);
    }
    const enum status left = measure_abandon(a->request, a->worker, status ? err : NULL);

    observation_set_free(&a->set);
    return status && left ? left : status;
}

static enum status measure_attempt(const struct measure_request *request,
                                   struct knowledge *knowledge, struct measure_result *out,
                                   struct err *err)
{
    struct attempt *a = calloc(1, sizeof *a);
    nsec_t start = clock_monotonic();
    uint32_t deadline_ms = request->gpu->deadline_ms;

    if (!a) {
        return err_set(err, STATUS_NO_MEMORY, "no memory for a measurement");
    }
    a->request = request;
    a->knowledge = knowledge;
    a->probe_deadline_ns =
        (deadline_ms ? deadline_ms : MEASURE_DEADLINE_MS) * NSEC_PER_MSEC + MEASURE_PROBE_SLACK;
    request->progress(request->self, 0.0, "opening the GPU");
    enum status status = measure_begin(a, err);
    nsec_t opened = clock_monotonic();

    status = status ? status : measure_probe(a, err);
    status = status ? status : measure_derive(a, start, opened, out, err);
    status = measure_end(a, status, err);
    free(a);
    return status;
}

static bool is_worth_another(enum status status)
{
    return status == STATUS_DISTURBED || status == STATUS_INCONCLUSIVE;
}

/* All attempts. The one that contradicts what is known is followed by one more than usual, since
 * only a second one can confirm it. */
static enum status measure_attempts(const struct measure_request *request,
                                    struct knowledge *knowledge, struct measure_result *out,
                                    struct err *err)
{
    enum status status = STATUS_DISTURBED;

    for (int attempt = 1; is_worth_another(status); attempt++) {
        *err = (struct err){0};
        status = measure_attempt(request, knowledge, out, err);
        if (is_worth_another(status)) {
            log_warning("gpu %s: attempt %d is %s: %s", request->uuid, attempt,
                        status_info(status)->slug, err->text);
        }
        if (attempt >= MEASURE_ATTEMPTS + (knowledge->suspected ? 1 : 0)) {
            break;
        }
    }
    return status;
}

enum status measure_gpu(const struct measure_request *request, struct measure_result *out,
                        struct err *err)
{
    struct knowledge *knowledge = calloc(1, sizeof *knowledge);
    struct err local = {0};

    if (!knowledge) {
        return err_set(err, STATUS_NO_MEMORY, "no memory for a measurement");
    }
    knowledge->known = request->known;
    knowledge->doubted = request->known_stale;
    const enum status status = measure_attempts(request, knowledge, out, &local);

    if (status) {
        err_set(err, status, "%s", local.text);
    }
    free(knowledge);
    return status;
}
