/* cuda_onchip.c: see cuda_onchip.h. */
#include "gpu/cuda/cuda_onchip.h"

#include "kernels/abi.h"

enum status cuda_onchip_shared(const struct cuda_probe *p, const struct probe_spec *spec,
                               uint32_t *values, size_t count, struct err *err)
{
    struct reach_shared_args args = {
        .grid = cuda_launch_grid(p),
        .sms = p->scratch + CUDA_AT_LINES,
        .points = p->scratch + CUDA_AT_TABLE,
        .values = p->scratch + CUDA_AT_VALUES,
        .sm_count = spec->sm_count,
        .count = spec->point_count,
        .samples = spec->samples,
        .laps = spec->warm_laps,
        .repeats = spec->repeats,
        .width = spec->transaction_bytes,
        .warps = spec->warps,
        .in_flight = spec->in_flight,
    };
    uint32_t sms[REACH_MAX_SMS];
    enum status s;

    for (uint32_t i = 0; i < spec->sm_count; i++)
        sms[i] = spec->sms[i];
    s = cuda_launch_put(p, spec->points, spec->point_count * sizeof spec->points[0], err);
    if (s == STATUS_OK)
        s = CUDA_CALL(p->api, err, cuMemcpyHtoD, args.sms, sms, spec->sm_count * sizeof sms[0]);
    if (s == STATUS_OK)
        s = cuda_launch(p, KERNEL_SHARED, spec->warps * CUDA_WARP, &args, err);
    return s == STATUS_OK ? cuda_launch_read(p, CUDA_AT_VALUES, values, count * sizeof *values, err)
                          : s;
}

/* Launches all clusters that fit, once. */
static enum status run_clusters(const struct cuda_probe *p, const struct probe_spec *spec,
                                uint32_t clusters, uint32_t *rows, struct err *err)
{
    const uint32_t columns = probe_peer_columns(spec);
    const size_t bytes = (size_t)(1 + p->sm_count) * columns * sizeof *rows;
    struct reach_peer_args args = {.grid = cuda_launch_grid(p),
                                   .values = p->scratch + CUDA_AT_VALUES,
                                   .columns = columns,
                                   .samples = spec->samples,
                                   .ring_bytes = PROBE_RING_BYTES};
    enum status s = CUDA_CALL(p->api, err, cuMemsetD8, args.values, 0, bytes);

    if (s == STATUS_OK)
        s = cuda_launch_shape(p, KERNEL_PEER,
                              (struct cuda_shape){REACH_PEER_THREADS, clusters * spec->cluster_sms,
                                                  spec->cluster_sms, p->shared_bytes},
                              &args, err);
    if (s == STATUS_OK)
        s = cuda_launch_read(p, CUDA_AT_VALUES, rows, bytes, err);
    rows[0] = rows[1] = clusters;
    return s;
}

enum status cuda_onchip_peer(const struct cuda_probe *p, const struct probe_spec *spec,
                             uint32_t *values, struct err *err)
{
    const uint32_t clusters = cuda_launch_clusters(p, spec->cluster_sms);
    const size_t row_count = (size_t)(1 + p->sm_count) * probe_peer_columns(spec);
    enum status s = STATUS_OK;

    for (uint32_t r = 0; s == STATUS_OK && clusters > 0 && r < spec->repeats; r++)
        s = run_clusters(p, spec, clusters, values + r * row_count, err);
    return s;
}
