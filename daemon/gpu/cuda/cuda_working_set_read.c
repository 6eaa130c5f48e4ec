/* cuda_working_set_read.c: runs WORKING_SET_READ on the device. If granules have sides, one launch
 * first finds the side of each granule. Then there is a launch for each set and repeat.
 *
 * In the scratch memory the bits of the granules lie at CUDA_AT_VALUES, followed by the cycles from
 * which they were derived. The counts of each read are at the same place as the counts of READ.
 */
#include "gpu/cuda/cuda_probe.h"
#include "gpu/cuda/cuda_read.h"

#include "kernels/abi.h"

#include <stdlib.h>

enum { NS_PER_US = 1000, WARM_DIVISOR = 2, WORD_BITS = 32, LEAST_WARM_NS = 150000 };

/* Writes the side of each SM to the table. Without sides, all SMs are on the first side. */
static enum status put_sides(const struct cuda_probe *p, const struct probe_spec *spec,
                             struct err *err)
{
    struct reach_working_set_sm sms[REACH_MAX_SMS] = {{0}};
    uint32_t count[2] = {0, 0};

    for (uint32_t i = 0; i < p->sm_count; i++) {
        const uint16_t id = p->sm_ids[i];
        const bool first = probe_sm_position(spec->sms, spec->sm_count, id) < spec->sm_count;
        sms[id].side = spec->set_read == SET_READ_NEAR && !first;
        sms[id].rank = count[sms[id].side]++;
    }
    for (uint32_t i = 0; i < p->sm_count; i++)
        sms[p->sm_ids[i]].side_sms = count[sms[p->sm_ids[i]].side];
    if (spec->set_read == SET_READ_NEAR && count[1] == 0)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: sms has every SM of this GPU; sms must have the SMs of one side");
    return cuda_launch_put(p, sms, sizeof sms, err);
}

enum status cuda_working_set_read(const struct cuda_probe *p, const struct cuda_arena *arena,
                                  const struct probe_spec *spec, struct probe_result *out,
                                  struct err *err)
{
    const bool near = spec->set_read == SET_READ_NEAR;
    const uint64_t granules = near ? probe_largest_point(spec) / spec->stride_bytes : 0;
    const uint64_t run_ns = (uint64_t)spec->duration_us * NS_PER_US;
    const enum cuda_kernel kernel = probe_access_bytes(spec) == (uint32_t)PROBE_BLOCK_BYTES
                                        ? KERNEL_WORKING_SET_BLOCKS
                                        : KERNEL_WORKING_SET_LINES;
    struct reach_working_set_args args = {
        .grid = cuda_launch_grid(p),
        .base = arena->bulk.base + spec->base_bytes,
        .sms = p->scratch + CUDA_AT_TABLE,
        .bits = p->scratch + CUDA_AT_VALUES,
        .cycles = p->scratch + CUDA_AT_VALUES + (granules / WORD_BITS + 1) * sizeof(uint32_t),
        .lines = p->scratch + CUDA_AT_LINES,
        .started = p->scratch + CUDA_AT_STARTED,
        .ended = p->scratch + CUDA_AT_ENDED,
        .sink = p->scratch + CUDA_AT_SINK,
        .warm_ns = run_ns / WARM_DIVISOR > LEAST_WARM_NS ? run_ns / WARM_DIVISOR : LEAST_WARM_NS,
        .run_ns = run_ns,
        .granules = (uint32_t)granules,
        .granule_bits = (uint32_t)__builtin_ctzll(spec->stride_bytes),
        .own = spec->set_read == SET_READ_OWN,
    };
    uint32_t *values = NULL;
    enum status s = cuda_probe_values(p, spec, &values, err);

    if (s == STATUS_OK)
        s = put_sides(p, spec, err);
    if (s == STATUS_OK && near)
        s = cuda_launch(p, KERNEL_WORKING_SET_SORT, REACH_READ_THREADS, &args, err);
    for (uint32_t k = 0; s == STATUS_OK && k < spec->point_count * spec->repeats; k++) {
        args.set_bytes = spec->points[k / spec->repeats];
        args.granules = near ? (uint32_t)(args.set_bytes / spec->stride_bytes) : 0;
        args.seed = spec->seed + k;
        s = cuda_launch(p, kernel, REACH_READ_THREADS, &args, err);
        if (s == STATUS_OK)
            s = cuda_read_row(p, values + (size_t)k * (1 + p->sm_count), err);
    }
    if (s != STATUS_OK) {
        free(values);
        return s;
    }
    cuda_probe_name_sms(p, out);
    out->values = values;
    out->value_count = probe_value_count(spec, p->sm_count);
    return STATUS_OK;
}
