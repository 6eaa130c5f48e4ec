/* recheck.c: see recheck.h.
 *
 * The observations are not stored: nothing is concluded from them but whether to measure again, and
 * what that measurement sees is.
 */
#include "pipeline/recheck.h"

#include "analysis/disturbance.h"
#include "base/clock.h"
#include "base/log.h"
#include "plan/check_plan.h"

#include <stdio.h>
#include <stdlib.h>

enum { RECHECK_TRIES = 3, RECHECK_LOOKS = 2 };

#define RECHECK_PROBE_DEADLINE (60 * NSEC_PER_SEC)

struct recheck {
    const struct measure_request *request;
    const struct fingerprint *fp;
    struct worker *worker;
    struct observation_set set;
    struct plan_step step; /* too much for the stack */
};

/* One probe, up to three times until it is clean. What is not is set aside. */
static enum status recheck_probe(struct recheck *r, const struct probe_spec *spec, struct err *err)
{
    bool clean = false;

    for (int i = 0; i < RECHECK_TRIES && !clean; i++) {
        struct observation o = {0};
        enum status status = worker_run(r->worker, spec, RECHECK_PROBE_DEADLINE, &o, err);

        if (status) {
            return status;
        }
        if (spec == &r->step.specs[0]) {
            check_plan_place(r->fp, &o.result, &r->step);
        }
        disturbance_judge(&o, &o.judgement);
        clean = o.judgement.verdict == VERDICT_CLEAN;
        status = observation_set_add(&r->set, &o, err);
        if (status) {
            return status;
        }
    }
    return STATUS_OK;
}

/* Asks everything once. */
static enum status recheck_look(struct recheck *r, struct check *out, struct err *err)
{
    const struct gpu_limits limits = r->set.limits;
    const struct gpu_identity gpu = r->set.gpu;

    observation_set_free(&r->set);
    r->set.limits = limits;
    r->set.gpu = gpu;
    for (uint32_t i = 0; i < r->step.spec_count; i++) {
        enum status status = recheck_probe(r, &r->step.specs[i], err);

        if (status) {
            return status;
        }
    }
    check_observations(r->fp, &r->set, out);
    /* Beside somebody else nothing that looks changed is believed, and what was not answered is not
     * known to hold. */
    const bool missing = r->set.count < r->step.spec_count;

    if (r->set.aside.count > 0 && (missing || out->result != CHECK_HOLDS)) {
        out->result = CHECK_UNSURE;
        snprintf(out->sentence, sizeof out->sentence, "%s",
                 r->set.aside.items[r->set.aside.count - 1].judgement.sentence);
    }
    return STATUS_OK;
}

/* One look, and a second one where the first has found a change: a measurement is dear. */
static enum status recheck_twice(struct recheck *r, struct check *out, nsec_t *probe_ns,
                                 struct err *err)
{
    enum status status = STATUS_OK;
    nsec_t start = clock_monotonic();

    check_plan(r->fp, &r->set.limits, &r->step);
    r->request->progress(r->request->self, 0.5, r->step.sentence);
    for (int i = 0; i < RECHECK_LOOKS && !status; i++) {
        struct check before = *out;

        status = recheck_look(r, out, err);
        if (i == 0) {
            *probe_ns = clock_monotonic() - start;
        } else if (!status && out->result != CHECK_CHANGED) {
            *out = before;
            out->result = CHECK_UNSURE;
        }
        if (out->result != CHECK_CHANGED) {
            break;
        }
    }
    return status;
}

static enum status recheck_open(struct recheck *r, struct check *out, struct err *err)
{
    const struct measure_request *q = r->request;
    enum status status = worker_start(q->executable, q->gpu, &r->worker, err);

    if (status) {
        return status;
    }
    if (!q->attach(q->self, r->worker)) {
        return err_set(err, STATUS_CANCELLED, "the daemon is stopping");
    }
    status = worker_open(r->worker, q->uuid,
                         q->open_deadline_ns ? q->open_deadline_ns : MEASURE_OPEN_DEADLINE,
                         &r->set.gpu, &r->set.limits, err);
    if (!status) {
        check_identity(&r->fp->gpu, &r->set.gpu, out);
    }
    return status;
}

enum status recheck_gpu(const struct measure_request *request, const struct fingerprint *fp,
                        struct check *out, nsec_t *probe_ns, struct err *err)
{
    struct recheck *r = calloc(1, sizeof *r);

    *probe_ns = 0;
    *out = (struct check){.result = CHECK_UNSURE};
    if (!r) {
        return err_set(err, STATUS_NO_MEMORY, "no memory for a check");
    }
    r->request = request;
    r->fp = fp;
    request->progress(request->self, 0.0, "opening the GPU");
    enum status status = recheck_open(r, out, err);

    if (!status && out->result == CHECK_HOLDS) {
        status = recheck_twice(r, out, probe_ns, err);
    }
    const enum status left = measure_leave(request, r->worker, status ? err : NULL);

    status = status && left ? left : status;
    observation_set_free(&r->set);
    free(r);
    return status;
}
