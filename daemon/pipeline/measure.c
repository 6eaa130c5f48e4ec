/* measure.c: one measurement of one GPU.
 *
 *     start worker, open GPU, begin run
 *     while plan_next(all observations so far) has probes:
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
#include "pipeline/measure.h"

#include "analysis/analysis.h"
#include "analysis/disturbance.h"
#include "base/clock.h"
#include "base/log.h"
#include "pipeline/knowledge.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <time.h>

enum {
    MEASURE_ATTEMPTS = 2,   /* a disturbed measurement is repeated once */
    MEASURE_TRIES = 4,      /* of one probe, in one measurement */
    MEASURE_MAX_ASIDE = 48, /* disturbed observations that one measurement puts up with */
    MEASURE_MAX_QUEUE = PLAN_MAX_SPECS * MEASURE_TRIES,
    MEASURE_MAX_STEPS = 4096,    /* no plan is this long; one that is does not end */
    MEASURE_DEADLINE_MS = 30000, /* of one probe, where the options do not say (gpu.h) */
};

/* On top of what a probe may take on the device: the way there and back, a loaded machine. */
#define MEASURE_PROBE_SLACK (30 * NSEC_PER_SEC)
/* Before a probe is asked for the second time; before the third twice as long. */
#define MEASURE_PAUSE (5 * NSEC_PER_MSEC)

struct measurement {
    const struct measure_request *request;
    struct knowledge *knowledge; /* borrowed: that of all attempts */
    struct fingerprint measured;
    struct worker *worker;
    struct observation_set set;
    struct plan_step step; /* 70 KiB: too much for the stack */
    int64_t run;           /* 0: not begun */
    size_t stored;         /* of the set's observations */
    size_t stored_aside;   /* of those set aside */
    struct judgement last; /* of the observation taken last */
    nsec_t probe_deadline_ns;
};

/* Stores what is not stored yet. */
static enum status measure_store(struct measurement *m, struct err *err)
{
    struct store *store = m->request->store;
    enum status status = STATUS_OK;

    while (m->stored < m->set.count && !status) {
        status = store_add_observation(store, m->run, &m->set.items[m->stored], NULL, err);
        m->stored += !status;
    }
    while (m->stored_aside < m->set.aside.count && !status) {
        status =
            store_add_observation(store, m->run, &m->set.aside.items[m->stored_aside], NULL, err);
        m->stored_aside += !status;
    }
    return status;
}

/* Takes the answer to the oldest question and judges it. */
static enum status measure_take(struct measurement *m, struct err *err)
{
    struct observation o = {0};
    enum status status = worker_take(m->worker, m->probe_deadline_ns, &o, err);

    if (status) {
        return status;
    }
    disturbance_judge(&o, &o.judgement);
    m->last = o.judgement;
    return observation_set_add(&m->set, &o, err);
}

/* A question's answer was not clean: may it be asked again? Waits a little before. */
static enum status measure_again(struct measurement *m, uint32_t tries, struct err *err)
{
    const struct timespec pause = {.tv_nsec = (long)(tries * MEASURE_PAUSE)};
    const struct judgement *why = &m->last;

    log_info("gpu %s: %s, asked again: %s", m->request->uuid, verdict_name(why->verdict),
             why->sentence);
    if (tries >= MEASURE_TRIES) {
        return err_set(err, STATUS_DISTURBED, "asked %d times, the last answer was %s: %s",
                       MEASURE_TRIES, verdict_name(why->verdict), why->sentence);
    }
    if (m->set.aside.count > MEASURE_MAX_ASIDE) {
        return err_set(err, STATUS_DISTURBED, "%zu of %zu answers were not clean, the last: %s",
                       m->set.aside.count, m->set.aside.count + m->set.count, why->sentence);
    }
    nanosleep(&pause, NULL);
    return STATUS_OK;
}

/* Asks all of a step's probes, one ahead; those without a clean answer again, behind the others. */
static enum status measure_step(struct measurement *m, struct err *err)
{
    const struct plan_step *step = &m->step;
    uint8_t queue[MEASURE_MAX_QUEUE];
    uint32_t tries[PLAN_MAX_SPECS] = {0};
    uint32_t asked = 0, taken = 0, queued = step->spec_count;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < queued; i++) {
        queue[i] = (uint8_t)i;
    }
    while (taken < queued && !status) {
        while (!status && asked < queued && asked - taken < WORKER_MAX_ASKED) {
            status = worker_ask(m->worker, &step->specs[queue[asked]], m->probe_deadline_ns, err);
            asked++;
        }
        status = status ? status : measure_store(m, err);
        status = status ? status : measure_take(m, err);
        if (!status && m->last.verdict != VERDICT_CLEAN) {
            status = measure_again(m, ++tries[queue[taken]], err);
            queue[queued++] = queue[taken];
        }
        taken++;
    }
    return status;
}

/* Asks the plan until it has nothing left to ask. */
static enum status measure_probe(struct measurement *m, struct err *err)
{
    const struct measure_request *r = m->request;

    for (uint32_t i = 0; i < MEASURE_MAX_STEPS; i++) {
        enum status status = plan_next(&m->set, r->depth, &m->step, err);

        if (status || m->step.spec_count == 0) {
            return status;
        }
        r->progress(r->self, m->step.fraction, m->step.sentence);
        status = measure_step(m, err);
        if (status) {
            return status;
        }
    }
    return err_set(err, STATUS_INTERNAL, "the plan does not end after %d steps", MEASURE_MAX_STEPS);
}

/* Starts the worker, opens the GPU in it and begins a run in the store. */
static enum status measure_begin(struct measurement *m, struct err *err)
{
    const struct measure_request *r = m->request;
    enum status status = worker_start(r->executable, r->gpu, &m->worker, err);

    if (status) {
        return status;
    }
    if (!r->attach(r->self, m->worker)) {
        return err_set(err, STATUS_CANCELLED, "cancelled, or the daemon is stopping");
    }
    status = worker_open(m->worker, r->uuid,
                         r->open_deadline_ns ? r->open_deadline_ns : MEASURE_OPEN_DEADLINE,
                         &m->set.gpu, &m->set.limits, err);
    if (status) {
        return status;
    }
    return store_begin_run(r->store, &m->set.gpu, &m->set.limits, r->depth, clock_wall_seconds(),
                           &m->run, err);
}

static uint32_t measure_ms(nsec_t from, nsec_t to)
{
    return (uint32_t)((to - from + NSEC_PER_MSEC / 2) / NSEC_PER_MSEC);
}

/* Joins what was measured with what is known, and names both. The names are made before anything is
 * kept: what is stored can then be published. */
static enum status measure_join(struct measurement *m, struct measure_result *out, struct err *err)
{
    enum status status = fingerprint_check(&m->measured, err);

    if (status) {
        err_prefix(err, "the conclusion breaks its own rules");
        return status;
    }
    status = knowledge_join(m->knowledge, &m->measured, &out->known, err);
    status = status ? status : fingerprint_id(&m->measured, out->id, err);
    return status ? status : fingerprint_id(&out->known, out->known_id, err);
}

/* From all observations to a stored fingerprint. */
static enum status measure_conclude(struct measurement *m, nsec_t start, nsec_t opened,
                                    struct measure_result *out, struct err *err)
{
    const struct measure_request *r = m->request;
    struct fingerprint *fp = &m->measured;
    nsec_t probed = clock_monotonic();
    enum status status = measure_store(m, err);

    status = status ? status : analysis_conclude(&m->set, r->depth, fp, err);
    if (status) {
        return status;
    }
    fp->taken_at = clock_wall_seconds();
    fp->probe_ms = measure_ms(opened, probed);
    fp->duration_ms = measure_ms(start, clock_monotonic());
    fp->device_memory_bytes = m->set.limits.device_memory_bytes;
    status = measure_join(m, out, err);
    return status ? status : store_finish_run(r->store, m->run, fp, &out->known, err);
}

/* Ends the run with its reason. What a failed run has seen is kept too: it is the more wanted. */
static void measure_fail(struct measurement *m, const struct err *why)
{
    struct err err = {0};

    if (measure_store(m, &err) || store_fail_run(m->request->store, m->run, why, &err)) {
        log_warning("run %lld cannot be kept as failed: %s", (long long)m->run, err.text);
    }
}

enum status measure_leave(const struct measure_request *request, struct worker *take,
                          struct err *err)
{
    const struct worker_patience patience = {
        .grace_ns = request->grace_ns ? request->grace_ns : MEASURE_GRACE,
        .hurried_ns = MEASURE_GRACE_STOPPING,
        .hurried = request->hurried,
        .self = request->self,
    };

    if (!take) {
        return STATUS_OK;
    }
    request->attach(request->self, NULL);
    const int pid = worker_leave(take, &patience);

    if (pid == 0) {
        return STATUS_OK;
    }
    request->hung(request->self, pid);
    return err_set(err, STATUS_GPU_HUNG,
                   "the measurement process %d hangs in the driver and is left alone", pid);
}

/* Stops the worker; ends the run where it failed. A worker that hangs is the more important news.
 */
static enum status measure_end(struct measurement *m, enum status status, struct err *err)
{
    if (status && m->run) {
        measure_fail(m, err);
    }
    const enum status left = measure_leave(m->request, m->worker, status ? err : NULL);

    observation_set_free(&m->set);
    return status && left ? left : status;
}

static enum status measure_once(const struct measure_request *request, struct knowledge *knowledge,
                                struct measure_result *out, struct err *err)
{
    struct measurement *m = calloc(1, sizeof *m);
    nsec_t start = clock_monotonic();
    uint32_t deadline_ms = request->gpu->deadline_ms;

    if (!m) {
        return err_set(err, STATUS_NO_MEMORY, "no memory for a measurement");
    }
    m->request = request;
    m->knowledge = knowledge;
    m->probe_deadline_ns =
        (deadline_ms ? deadline_ms : MEASURE_DEADLINE_MS) * NSEC_PER_MSEC + MEASURE_PROBE_SLACK;
    request->progress(request->self, 0.0, "opening the GPU");
    enum status status = measure_begin(m, err);
    nsec_t opened = clock_monotonic();

    status = status ? status : measure_probe(m, err);
    status = status ? status : measure_conclude(m, start, opened, out, err);
    status = measure_end(m, status, err);
    free(m);
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
        status = measure_once(request, knowledge, out, err);
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
    knowledge->doubted = request->known_doubted;
    const enum status status = measure_attempts(request, knowledge, out, &local);

    if (status) {
        err_set(err, status, "%s", local.text);
    }
    free(knowledge);
    return status;
}
