/* cuda_probe.c: see cuda_probe.h. The latency probes are here; cuda_cache.h, cuda_read.h and
 * cuda_onchip.h have the others. */
#include "gpu/cuda/cuda_probe.h"

#include "base/stats.h"
#include "gpu/cuda/cuda_cache.h"
#include "gpu/cuda/cuda_gather.h"
#include "gpu/cuda/cuda_onchip.h"
#include "gpu/cuda/cuda_read.h"
#include "kernels/abi.h"

#include <stdlib.h>
#include <string.h>

#define LINE_QUANTILE 0.9

/* Launches a latency probe whose page 0 is at `base`; its values are in the scratch memory
 * afterwards. */
static enum status run_walk(struct cuda_probe *p, const struct probe_spec *spec, cu_deviceptr base,
                            struct err *err)
{
    static const enum cuda_kernel kernels[PROBE_KIND_COUNT] = {[PROBE_CHASE] = KERNEL_CHASE,
                                                               [PROBE_ROUND] = KERNEL_ROUND,
                                                               [PROBE_PAIRS] = KERNEL_PAIRS,
                                                               [PROBE_SIDES] = KERNEL_SIDES};
    const bool chase = spec->kind == PROBE_CHASE;
    const bool round = spec->kind == PROBE_ROUND;
    struct reach_walk_args args = {
        .grid = cuda_launch_grid(p),
        .base = base,
        .stride_bytes = spec->stride_bytes,
        .points = p->scratch + CUDA_AT_TABLE,
        .pivots = p->scratch + CUDA_AT_TABLE,
        .values = p->scratch + CUDA_AT_VALUES,
        .count = chase   ? spec->point_count
                 : round ? spec->repeats
                         : spec->sm_count,
        .samples = spec->samples,
        .laps = spec->warm_laps,
        .sm = spec->sms[0],
        .slice_pages = spec->slice_pages,
        .flush_pages = spec->flush_pages,
        .thrash_pages = spec->thrash_pages,
        .repeats = spec->repeats,
        .has_reference = probe_has_reference(spec),
    };
    uint32_t pivots[REACH_MAX_SMS];
    enum status s = STATUS_OK;

    for (uint32_t i = 0; i < spec->sm_count; i++)
        pivots[i] = spec->sms[i];
    if (chase)
        s = cuda_launch_put(p, spec->points, spec->point_count * sizeof spec->points[0], err);
    else if (!round)
        s = cuda_launch_put(p, pivots, spec->sm_count * sizeof pivots[0], err);
    if (s != STATUS_OK)
        return s;
    return cuda_launch(p, kernels[spec->kind], CUDA_WARP, &args, err);
}

uint32_t cuda_probe_choose_line(const uint32_t *cycles)
{
    double best_cycles = 0;
    uint32_t best = 0;

    for (uint32_t line = 0; line < CUDA_LINES; line++) {
        uint32_t own[CUDA_LINE_LAPS];
        for (uint32_t lap = 0; lap < CUDA_LINE_LAPS; lap++)
            own[lap] = cycles[lap * CUDA_LINES + line];
        const double high = stats_quantile_u32(own, CUDA_LINE_LAPS, LINE_QUANTILE);
        if (line == 0 || high < best_cycles) {
            best = line;
            best_cycles = high;
        }
    }
    return best;
}

/* Finds the best line for this SM, once per SM. */
static enum status find_line(struct cuda_probe *p, struct cuda_arena *arena, uint16_t sm,
                             struct err *err)
{
    const struct probe_spec spec = {.kind = PROBE_CHASE,
                                    .stride_bytes = CUDA_LINE_STEP_BYTES,
                                    .point_count = 1,
                                    .points = {CUDA_LINES},
                                    .samples = CUDA_LINES * CUDA_LINE_LAPS,
                                    .warm_laps = 1,
                                    .sm_count = 1,
                                    .sms = {sm}};
    uint32_t cycles[CUDA_LINES * CUDA_LINE_LAPS];
    enum status s;

    if (arena->kind != ARENA_ALIAS ||
        arena->line.handle_bytes < (uint64_t)CUDA_LINES * CUDA_LINE_STEP_BYTES ||
        (arena->line_known && arena->line_sm == sm))
        return STATUS_OK;
    s = run_walk(p, &spec, arena->line.base, err);
    if (s == STATUS_OK)
        s = cuda_launch_read(p, CUDA_AT_VALUES, cycles, sizeof cycles, err);
    if (s != STATUS_OK)
        return s;
    arena->line_offset = (uint64_t)cuda_probe_choose_line(cycles) * CUDA_LINE_STEP_BYTES;
    arena->line_known = true;
    arena->line_sm = sm;
    return STATUS_OK;
}

/* Returns the number of pages that a latency probe touches. */
static uint64_t pages_of(const struct probe_spec *spec, uint32_t sm_count)
{
    const uint64_t bytes = probe_range_bytes(spec, sm_count) - spec->base_bytes;
    return (bytes + spec->stride_bytes - 1) / spec->stride_bytes;
}

/* Runs a latency probe or a CACHE. Copies its values, and the number of its interrupted
 * stretches. */
static enum status run_latency(struct cuda_probe *p, struct cuda_arena *arena,
                               const struct cuda_memory *memory, const struct probe_spec *spec,
                               uint32_t *values, size_t count, uint32_t *out_interruptions,
                               struct err *err)
{
    uint32_t away[REACH_AWAY_WORDS] = {0};
    const bool elsewhere = spec->memory != MEMORY_DEVICE;
    cu_deviceptr base = memory->range.base + spec->base_bytes;
    enum status s = STATUS_OK;

    if (spec->kind == PROBE_CHASE && !elsewhere)
        s = find_line(p, arena, spec->sms[0], err);
    if (spec->kind == PROBE_SIDES || spec->kind == PROBE_CACHE)
        base = arena->bulk.base + spec->base_bytes; /* this launch needs many lines, not one */
    else if (s == STATUS_OK && !elsewhere)
        s = cuda_arena_latency_base(arena, spec->base_bytes, spec->stride_bytes,
                                    pages_of(spec, p->sm_count), &base, err);
    if (s == STATUS_OK)
        s = spec->kind == PROBE_CACHE ? cuda_cache_run(p, spec, base, err)
                                      : run_walk(p, spec, base, err);
    if (s == STATUS_OK)
        s = cuda_launch_read(p, CUDA_AT_AWAY, away, sizeof away, err);
    *out_interruptions = away[REACH_AWAY_INTERRUPTED] + away[REACH_AWAY_GIVEN_UP];
    return s == STATUS_OK ? cuda_launch_read(p, CUDA_AT_VALUES, values, count * sizeof *values, err)
                          : s;
}

void cuda_probe_name_sms(const struct cuda_probe *probe, struct probe_result *out)
{
    out->sm_count = probe->sm_count;
    memcpy(out->sm_ids, probe->sm_ids, sizeof out->sm_ids);
}

enum status cuda_probe_values(const struct cuda_probe *probe, const struct probe_spec *spec,
                              uint32_t **out, struct err *err)
{
    const size_t count = probe_value_count(spec, probe->sm_count);

    /* If the GPU lacks an SM of the spec, no kernel writes the values of that SM. */
    for (uint32_t k = 0; spec->kind != PROBE_READ && k < spec->sm_count; k++)
        if (probe_sm_position(probe->sm_ids, probe->sm_count, spec->sms[k]) == probe->sm_count)
            return err_set(err, STATUS_INVALID_ARGUMENT, "this GPU has no SM with id %u",
                           spec->sms[k]);
    if (count * sizeof **out > CUDA_SCRATCH_BYTES - CUDA_AT_VALUES)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "the answer would have %zu values; split the probe", count);
    *out = calloc(count, sizeof **out);
    return *out ? STATUS_OK : err_no_memory(err, "%zu values", count);
}

enum status cuda_probe_run(struct cuda_probe *probe, struct cuda_arena *arena,
                           const struct cuda_memory *memory, const struct probe_spec *spec,
                           struct probe_result *out, struct err *err)
{
    const size_t count = probe_value_count(spec, probe->sm_count);
    const struct cuda_read_range range =
        spec->memory == MEMORY_DEVICE
            ? (struct cuda_read_range){arena->bulk.base, arena->bulk.handle_bytes, 0, 0}
            : (struct cuda_read_range){
                  memory->range.base, memory->range.period_bytes, arena->bulk.base,
                  arena->plain ? arena->range_bytes : arena->bulk.handle_bytes};
    const bool watches =
        spec->kind == PROBE_CHASE || spec->kind == PROBE_ROUND || spec->kind == PROBE_PAIRS;
    uint32_t interruptions = 0;
    uint32_t *values = NULL;
    enum status s = cuda_probe_values(probe, spec, &values, err);

    if (s != STATUS_OK)
        return s;
    if (spec->kind == PROBE_SHARED)
        s = cuda_onchip_shared(probe, spec, values, count, err);
    else if (spec->kind == PROBE_PEER)
        s = cuda_onchip_peer(probe, spec, values, err);
    else if (spec->kind != PROBE_READ && spec->kind != PROBE_CONCURRENCY)
        s = run_latency(probe, arena, memory, spec, values, count, &interruptions, err);
    else if (spec->memory == MEMORY_HOST_GATHERED)
        s = cuda_gather_run(probe, memory, spec, values, err);
    else if (spec->run_bytes > 0)
        s = cuda_read_scattered(probe, arena, spec, values, err);
    else
        s = cuda_read_run(probe, &range, spec, values, err);
    if (s != STATUS_OK) {
        free(values);
        return s;
    }
    cuda_probe_name_sms(probe, out);
    if (watches)
        out->conditions.interruptions = KNOWN_U32(interruptions);
    out->values = values;
    out->value_count = count;
    return STATUS_OK;
}
