/* sim_measure.c: see sim_measure.h. */
#include "tests/sim/sim_measure.h"

#include "analysis/analysis.h"
#include "gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

static enum status carry_out(struct gpu *gpu, const struct plan_step *step, struct sim_measure *out)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < step->spec_count && status == STATUS_OK; i++) {
        struct observation o = {.spec = step->specs[i]};
        status = gpu_run(gpu, &o.spec, &o.result, &out->err);
        if (status == STATUS_OK)
            status = observation_set_add(&out->set, &o, &out->err);
        out->probes += 1;
    }
    return status;
}

static enum status follow_plan(struct gpu *gpu, enum depth depth, sim_step_fn on_step, void *data,
                               struct sim_measure *out)
{
    struct plan_step *step = calloc(1, sizeof *step);
    enum status status = step ? STATUS_OK : STATUS_NO_MEMORY;
    while (status == STATUS_OK) {
        status = plan_next(&out->set, depth, step, &out->err);
        if (status == STATUS_OK && on_step)
            on_step(&out->set, step, data);
        if (status != STATUS_OK || step->spec_count == 0)
            break;
        if (out->steps++ == SIM_MEASURE_MAX_STEPS)
            status =
                err_set(&out->err, STATUS_INTERNAL, "the plan does not end: %s", step->sentence);
        else
            status = carry_out(gpu, step, out);
    }
    free(step);
    return status;
}

enum status sim_measure(const char *text, enum depth depth, sim_step_fn on_step, void *data,
                        struct sim_measure *out)
{
    const char *const texts[] = {text, NULL};
    const struct gpu_options options = {.simulated = texts};
    struct gpu_identity id;
    struct gpu *gpu = NULL;
    uint32_t count = 0;
    enum status status;

    *out = (struct sim_measure){0};
    fingerprint_init(&out->fp);
    status = gpu_list(&options, &id, 1, &count, &out->err);
    if (status == STATUS_OK)
        status = gpu_open(&options, id.uuid, &gpu, &out->err);
    if (status != STATUS_OK)
        return status;
    gpu_describe(gpu, &out->set.gpu, &out->set.limits);
    status = follow_plan(gpu, depth, on_step, data, out);
    if (status == STATUS_OK || status == STATUS_DISTURBED) {
        /* A plan that gave up leaves what it has seen: that is concluded too. */
        enum status concluded = analysis_conclude(&out->set, depth, &out->fp, &out->err);
        status = status == STATUS_OK ? concluded : status;
    }
    gpu_close(gpu);
    return status;
}

void sim_measure_free(struct sim_measure *take)
{
    observation_set_free(&take->set);
}
