/* gpu.c: calls the two sources through one contract, and makes the checks that both need. */
#include "gpu/gpu.h"

#include "base/assert.h"

#include <string.h>

/* A node has either its real GPUs or, on request, simulated GPUs. They are never mixed, so that no
 * result can be mistaken for the other kind. */
static const struct gpu_ops *source_for(const struct gpu_options *options)
{
    return options->simulated && options->simulated[0] ? &sim_gpu_ops : &cuda_gpu_ops;
}

enum status gpu_find(const struct gpu_options *options, gpu_found_fn *found, void *self,
                     struct err *err)
{
    return source_for(options)->list(options, found, self, err);
}

/* The GPUs that gpu_list collects. */
struct list {
    struct gpu_identity gpus[REACH_MAX_GPUS];
    uint32_t count;
    struct err error;
};

static void collect(void *self, const struct gpu_listed *gpu)
{
    struct list *const list = self;
    uint32_t at = list->count;

    if (gpu->error.status != STATUS_OK)
        list->error = gpu->error;
    if (gpu->error.status != STATUS_OK || at == REACH_MAX_GPUS)
        return;
    for (; at > 0 && identity_compare(&list->gpus[at - 1], &gpu->identity) > 0; at--)
        list->gpus[at] = list->gpus[at - 1];
    list->gpus[at] = gpu->identity;
    list->count++;
}

enum status gpu_list(const struct gpu_options *options, struct gpu_identity *out, uint32_t max,
                     uint32_t *out_count, struct err *err)
{
    struct list list = {.count = 0};
    enum status s = gpu_find(options, collect, &list, err);

    *out_count = 0;
    if (s == STATUS_OK && list.count == 0 && list.error.status != STATUS_OK) {
        s = list.error.status;
        if (err)
            *err = list.error;
    }
    for (; s == STATUS_OK && *out_count < max && *out_count < list.count; *out_count += 1)
        out[*out_count] = list.gpus[*out_count];
    return s;
}

enum status gpu_open(const struct gpu_options *options, const char *uuid, struct gpu **out,
                     struct err *err)
{
    *out = NULL;
    if (!uuid || !uuid[0])
        return err_set(err, STATUS_INVALID_ARGUMENT, "the UUID of the GPU to open is missing");
    enum status s = source_for(options)->open(options, uuid, out, err);
    REACH_ASSERT((s == STATUS_OK) == (*out != NULL));
    return s;
}

void gpu_describe(const struct gpu *gpu, struct gpu_identity *identity, struct gpu_limits *limits)
{
    gpu->ops->describe(gpu, identity, limits);
}

enum status gpu_run(struct gpu *gpu, const struct probe_spec *spec, struct probe_result *out,
                    struct err *err)
{
    memset(out, 0, sizeof *out);
    struct gpu_limits limits;
    gpu_describe(gpu, NULL, &limits);
    enum status s = probe_check(spec, &limits, err);
    if (s != STATUS_OK)
        return s;
    s = gpu->ops->run(gpu, spec, out, err);
    if (s != STATUS_OK) {
        probe_result_free(out);
        return s;
    }
    REACH_ASSERT(out->value_count ==
                 (probe_is_absent(spec, out) ? 0 : probe_value_count(spec, out->sm_count)));
    return STATUS_OK;
}

void gpu_close(struct gpu *take)
{
    if (take)
        take->ops->close(take);
}
