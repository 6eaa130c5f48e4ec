/* cuda_cache.c: see cuda_cache.h. */
#include "gpu/cuda/cuda_cache.h"

#include "kernels/abi.h"

_Static_assert(CUDA_AT_CLAIMED + REACH_MAX_SMS * sizeof(uint32_t) <= CUDA_AT_POSITIONS,
               "the claims");
_Static_assert(CUDA_AT_TABLE + PROBE_MAX_POINTS * sizeof(struct reach_cache_point) <= CUDA_AT_LINES,
               "the points");
_Static_assert((int)REACH_PATH_L1 == (int)PATH_L1 &&
                   (int)REACH_PATH_READ_ONLY == (int)PATH_READ_ONLY &&
                   (int)REACH_PATH_CONSTANT == (int)PATH_CONSTANT &&
                   (int)REACH_PATH_NONE == (int)PATH_NONE &&
                   (int)REACH_SWEEP_ELEMENTS == (int)PROBE_SWEEP_ELEMENTS &&
                   (int)REACH_CONSTANT_BYTES == (int)PROBE_CONSTANT_BYTES,
               "paths");

/* The shared memory of a CACHE block that the driver and the kernel's own variables take. */
enum { CACHE_TAKEN_BYTES = 1024 + 256 };

unsigned cuda_cache_most_shared(const struct cuda_probe *p)
{
    return p->shared_block_bytes - CACHE_TAKEN_BYTES;
}

/* Returns the dynamic shared memory of a CACHE block. It has room for the cycles, and for the
 * shared memory that the spec requests, minus the part that the driver and the kernel take. On
 * H200s a preferred division is not enough: a block that requested little memory got 64 KiB instead
 * of 32. */
static unsigned cache_shared(const struct cuda_probe *p, const struct probe_spec *spec)
{
    const uint64_t cycles = spec->samples * sizeof(uint16_t);
    const uint64_t most = cuda_cache_most_shared(p);
    const uint64_t asked =
        spec->shared_bytes > CACHE_TAKEN_BYTES ? spec->shared_bytes - CACHE_TAKEN_BYTES : 0;
    const uint64_t bytes = asked < most ? asked : most;

    return (unsigned)(bytes > cycles ? bytes : cycles);
}

/* Divides the array of an SM so that shared memory has `bytes`. The driver takes a percentage of
 * the maximum and chooses the smallest division with at least that percentage. A percentage that is
 * rounded up selects the next division. The percentage is a hint: a launch gets the memory that it
 * needs. */
static enum status set_carveout(const struct cuda_probe *p, uint64_t bytes, struct err *err)
{
    const uint64_t percent = bytes * 100 / p->sm_shared_bytes;

    return CUDA_CALL(p->api, err, cuFuncSetAttribute, p->kernels[KERNEL_CACHE],
                     CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                     percent < 100 ? (int)percent : 100);
}

/* Checks that each SM of the spec had a block. Two blocks may share one SM here, so another SM may
 * have no block. */
static enum status check_claims(const struct cuda_probe *p, const struct probe_spec *spec,
                                struct err *err)
{
    uint32_t claimed[REACH_MAX_SMS];
    enum status s = cuda_launch_read(p, CUDA_AT_CLAIMED, claimed, sizeof claimed, err);

    for (uint32_t i = 0; s == STATUS_OK && i < spec->sm_count; i++)
        if (!claimed[spec->sms[i]])
            s = err_set(err, STATUS_GPU_BUSY,
                        "no block of a launch of %u ran on SM %u; another process may use this SM",
                        p->sm_count, spec->sms[i]);
    return s;
}

enum status cuda_cache_run(const struct cuda_probe *p, const struct probe_spec *spec,
                           cu_deviceptr base, struct err *err)
{
    enum { CACHE_ATTEMPTS = 4 };
    const unsigned shared_bytes = cache_shared(p, spec);
    const struct cuda_shape shape = {
        .threads = REACH_CACHE_THREADS, .blocks = p->sm_count, .shared_bytes = shared_bytes};
    const uint64_t behind = probe_cache_behind(spec);
    struct reach_cache_point points[PROBE_MAX_POINTS];
    struct reach_cache_args args = {
        .grid = cuda_launch_grid(p),
        .claimed = p->scratch + CUDA_AT_CLAIMED,
        .base = base,
        .stride_bytes = spec->stride_bytes,
        .points = p->scratch + CUDA_AT_TABLE,
        .values = p->scratch + CUDA_AT_VALUES,
        .sink = p->scratch + CUDA_AT_SINK,
        .sweep_base = base + behind,
        .sweep_bytes = spec->sweep_bytes,
        .touch_bytes = spec->touch_bytes,
        .evict_from = behind + spec->sweep_bytes,
        .evict_bytes = spec->evict_bytes,
        .count = spec->point_count,
        .samples = spec->samples,
        .laps = spec->warm_laps,
        .path = (uint32_t)spec->path,
        .warm_path = (uint32_t)spec->warm_path,
        .sweep_footprint = spec->sweep_footprint,
        .rehearse = 1,
    };
    enum status s;

    for (uint32_t i = 0; i < spec->point_count; i++)
        points[i] = (struct reach_cache_point){
            .elements = spec->points[i],
            .step = spec->scattered ? probe_scatter_step(spec->points[i]) : 1,
            .sm = spec->sms[i % spec->sm_count]};
    s = cuda_launch_put(p, points, spec->point_count * sizeof points[0], err);
    if (s == STATUS_OK)
        s = set_carveout(p, shared_bytes + CACHE_TAKEN_BYTES, err);
    for (int k = 0; k < CACHE_ATTEMPTS && s == STATUS_OK; k++) {
        s = cuda_launch_shape(p, KERNEL_CACHE, shape, &args, err);
        if (s != STATUS_OK)
            return s;
        s = check_claims(p, spec, err);
        if (s != STATUS_GPU_BUSY)
            return s;
        s = k + 1 < CACHE_ATTEMPTS ? STATUS_OK : s;
    }
    return s;
}
