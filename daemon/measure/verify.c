/* verify.c: see measure.h.
 *
 * The observations are not stored: they only decide whether to measure again, and the observations
 * of that measurement are stored.
 */
#include "measure/measure.h"

#include "analysis/disturbance.h"
#include "base/clock.h"
#include "campaign/verify_probes.h"

#include <stdio.h>
#include <stdlib.h>

enum { VERIFY_TRIES = 3, VERIFY_LOOKS = 2 };

#define VERIFY_PROBE_DEADLINE (60 * NSEC_PER_SEC)

struct verification {
    const struct measure_request *request;
    const struct fingerprint *fp;
    struct worker *worker;
    struct quick_look *quick; /* NULL unless the check is quick */
    struct observation_set set;
    struct campaign_step step; /* is too large for the stack */
};

/* Runs one probe, up to three times until it is clean. */
static enum status verify_probe(struct verification *r, const struct probe_spec *spec,
                                struct err *err)
{
    bool clean = false;

    for (int i = 0; i < VERIFY_TRIES && !clean; i++) {
        struct observation o = {0};
        enum status status = worker_run(r->worker, spec, VERIFY_PROBE_DEADLINE, &o, err);

        if (status)
            return status;
        if (r->quick)
            r->quick->gpu_ns += o.result.conditions.duration_ns;
        if (spec == &r->step.specs[0])
            verify_probes_place(r->fp, &o.result, &r->step);
        disturbance_classify(&o, &o.assessment);
        clean = o.assessment.verdict == VERDICT_CLEAN;
        status = observation_set_add(&r->set, &o, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

/* Runs every probe once. */
static enum status verify_once(struct verification *r, struct check *out, struct err *err)
{
    const struct gpu_limits limits = r->set.limits;
    const struct gpu_identity gpu = r->set.gpu;

    observation_set_free(&r->set);
    r->set.limits = limits;
    r->set.gpu = gpu;
    for (uint32_t i = 0; i < r->step.spec_count; i++) {
        enum status status = verify_probe(r, &r->step.specs[i], err);

        if (status)
            return status;
    }
    check_observations(r->fp, &r->set, out);
    /* While the GPU is disturbed a change is ignored. A result without a clean observation is not
     * confirmed. */
    const bool missing = r->set.count < r->step.spec_count;

    if (r->set.excluded.count > 0 && (missing || out->result != CHECK_HOLDS)) {
        out->result = CHECK_UNSURE;
        snprintf(out->message, sizeof out->message, "%s",
                 r->set.excluded.items[r->set.excluded.count - 1].assessment.message);
    }
    return STATUS_OK;
}

/* Keeps a change only if both looks have found it. */
static void verify_confirm(const struct check *before, struct check *io)
{
    if ((before->result == CHECK_CHANGED) == (io->result == CHECK_CHANGED))
        return;
    if (before->result == CHECK_CHANGED)
        *io = *before;
    io->result = CHECK_UNSURE;
}

/* Finds the drift of a quick check, and keeps only what both looks have found. Returns whether
 * there is any. */
static bool verify_drift(struct verification *r, int look)
{
    struct drift now;

    if (!r->quick)
        return false;
    drift_find(r->fp, &r->set, &now);
    if (look > 0)
        drift_confirm(&r->quick->drift, &now);
    r->quick->drift = now;
    return drift_is_any(&now);
}

/* Runs one check, and a second one if the first has found a change, because a measurement is
 * expensive. */
static enum status verify_twice(struct verification *r, struct check *out, nsec_t *probe_ns,
                                struct err *err)
{
    enum status status = STATUS_OK;
    nsec_t start = clock_monotonic();

    if (r->quick)
        (void)verify_probes_quick(r->fp, &r->set.limits, &r->step);
    else
        verify_probes(r->fp, &r->set.limits, &r->step);
    r->request->progress(r->request->self, 0.5, r->step.message);
    for (int i = 0; i < VERIFY_LOOKS && !status; i++) {
        const struct check before = *out;

        status = verify_once(r, out, err);
        if (i == 0)
            *probe_ns = clock_monotonic() - start;
        else if (!status)
            verify_confirm(&before, out);
        if (!status && !verify_drift(r, i) && out->result != CHECK_CHANGED)
            break;
    }
    return status;
}

enum status verify_gpu(const struct measure_request *request, const struct fingerprint *fp,
                       struct check *out, struct quick_look *quick, nsec_t *probe_ns,
                       struct err *err)
{
    struct verification *r = calloc(1, sizeof *r);

    *probe_ns = 0;
    *out = (struct check){.result = CHECK_UNSURE};
    if (quick)
        *quick = (struct quick_look){.gpu_ns = 0};
    if (!r)
        return err_no_memory(err, "the check of a GPU");
    r->request = request;
    r->fp = fp;
    r->quick = quick;
    enum status status = measure_open(request, &r->worker, &r->set.gpu, &r->set.limits, err);

    if (!status)
        check_identity(&fp->gpu, &r->set.gpu, out);
    if (!status && out->result == CHECK_HOLDS)
        status = verify_twice(r, out, probe_ns, err);
    const enum status left = measure_abandon(request, r->worker, status ? err : NULL);

    status = status && left ? left : status;
    observation_set_free(&r->set);
    free(r);
    return status;
}
