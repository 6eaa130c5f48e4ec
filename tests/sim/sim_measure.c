/* sim_measure.c: see sim_measure.h. */
#include "tests/sim/sim_measure.h"

#include "analysis/analysis.h"
#include "analysis/disturbance.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 4, CHANGE_ONE_IN = 8 };

/* Simulated GPUs that describe one chip: alone, and beside different neighbors. */
struct source {
    struct gpu *gpus[SIM_MEASURE_MAX_STATES];
    uint32_t count, now;
    struct rng *rng; /* NULL if the chip is always alone and probes are not judged */
};

enum status sim_open(const char *text, struct gpu **out, struct err *err)
{
    const char *const texts[] = {text, NULL};
    const struct gpu_options options = {.simulated = texts};
    struct gpu_identity id;
    uint32_t found = 0;
    const enum status s = gpu_list(&options, &id, 1, &found, err);

    return s == STATUS_OK ? gpu_open(&options, id.uuid, out, err) : s;
}

enum status sim_probe(struct gpu *gpu, struct observation_set *set, const struct probe_spec *spec,
                      struct err *err)
{
    struct observation o = {.spec = *spec};
    enum status s = probe_check(spec, &set->limits, err);

    if (s == STATUS_OK)
        s = gpu_run(gpu, &o.spec, &o.result, err);
    if (s != STATUS_OK)
        return s;
    disturbance_classify(&o, &o.assessment);
    return observation_set_add(set, &o, err);
}

static enum status open_source(const char *const *texts, uint32_t count, struct source *out,
                               struct err *err)
{
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = sim_open(texts[i], &out->gpus[i], err);
        out->count += status == STATUS_OK;
    }
    return status;
}

static void close_source(struct source *source)
{
    for (uint32_t i = 0; i < source->count; i++)
        gpu_close(source->gpus[i]);
}

static struct gpu *gpu_now(struct source *source)
{
    if (source->rng && rng_below(source->rng, CHANGE_ONE_IN) == 0)
        source->now = (uint32_t)rng_below(source->rng, source->count);
    return source->gpus[source->now];
}

/* Repeats one probe until its answer is clean. */
static enum status ask(struct source *source, const struct probe_spec *spec,
                       struct sim_measure *out)
{
    for (int i = 0; i < (source->rng ? TRIES : 1); i++) {
        struct observation o = {.spec = *spec};
        enum status status = gpu_run(gpu_now(source), &o.spec, &o.result, &out->err);

        out->probes += 1;
        if (status == STATUS_OK && source->rng)
            disturbance_classify(&o, &o.assessment);
        const bool clean = o.assessment.verdict == VERDICT_CLEAN;

        if (status == STATUS_OK)
            status = observation_set_add(&out->set, &o, &out->err);
        if (status != STATUS_OK || clean)
            return status;
    }
    return err_set(&out->err, STATUS_DISTURBED, "no clean answer");
}

static enum status carry_out(struct source *source, const struct campaign_step *step,
                             struct sim_measure *out)
{
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < step->spec_count && status == STATUS_OK; i++)
        status = ask(source, &step->specs[i], out);
    return status;
}

static enum status follow_plan(struct source *source, enum depth depth, sim_step_fn on_step,
                               void *data, struct sim_measure *out)
{
    struct campaign_step *step = calloc(1, sizeof *step);
    enum status status = step ? STATUS_OK : STATUS_NO_MEMORY;
    struct campaign_memo memo = {.known = false};
    while (status == STATUS_OK) {
        status = campaign_next(&out->set, depth, &memo, step, &out->err);
        if (status == STATUS_OK && on_step)
            on_step(&out->set, step, data);
        if (status != STATUS_OK || step->spec_count == 0)
            break;
        if (out->steps++ == SIM_MEASURE_MAX_STEPS)
            status =
                err_set(&out->err, STATUS_INTERNAL, "the plan does not end: %s", step->message);
        else
            status = carry_out(source, step, out);
    }
    free(step);
    return status;
}

static enum status measure(struct source *source, enum depth depth, sim_step_fn on_step, void *data,
                           struct sim_measure *out)
{
    enum status status;

    gpu_describe(source->gpus[0], &out->set.gpu, &out->set.limits);
    status = follow_plan(source, depth, on_step, data, out);
    if (status == STATUS_OK || status == STATUS_DISTURBED) {
        /* A campaign that gave up leaves its results, and the analysis derives a fingerprint from
         * them too. */
        enum status concluded = analysis_derive(&out->set, depth, &out->fp, &out->err);
        status = status == STATUS_OK ? concluded : status;
    }
    return status;
}

enum status sim_measure(const char *text, enum depth depth, sim_step_fn on_step, void *data,
                        struct sim_measure *out)
{
    struct source source = {.count = 0};
    enum status status;

    *out = (struct sim_measure){0};
    fingerprint_init(&out->fp);
    status = open_source(&text, 1, &source, &out->err);
    if (status == STATUS_OK)
        status = measure(&source, depth, on_step, data, out);
    close_source(&source);
    return status;
}

enum status sim_measure_beside(const char *const *texts, uint32_t count, struct rng *rng,
                               enum depth depth, struct sim_measure *out)
{
    struct source source = {.rng = rng};
    enum status status;

    *out = (struct sim_measure){0};
    fingerprint_init(&out->fp);
    status = open_source(texts, count, &source, &out->err);
    if (status == STATUS_OK)
        status = measure(&source, depth, NULL, NULL, out);
    close_source(&source);
    return status;
}

void sim_measure_free(struct sim_measure *take)
{
    observation_set_free(&take->set);
}
