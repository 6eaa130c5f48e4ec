/* any_observation.c: see any_observation.h. */
#include "tests/unit/support/any_observation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct maybe_u32 any_u32(struct rng *r)
{
    switch (rng_below(r, 3)) {
    case 0:
        return KNOWN_U32((uint32_t)rng_next(r));
    case 1:
        return UNKNOWN_U32((enum reason)(1 + rng_below(r, REASON_COUNT - 1)));
    default:
        return NOT_OBSERVABLE_U32((enum reason)(1 + rng_below(r, REASON_COUNT - 1)));
    }
}

static struct maybe_u64 any_u64(struct rng *r)
{
    if (rng_below(r, 2))
        return KNOWN_U64(rng_next(r) >> 1);
    return UNKNOWN_U64(REASON_NOT_REPORTED);
}

static void any_points(struct rng *r, uint64_t least, struct probe_spec *spec)
{
    spec->point_count = (uint32_t)(1 + rng_below(r, 6));
    for (uint32_t i = 0; i < spec->point_count; i++)
        spec->points[i] = least + (rng_next(r) >> (20 + rng_below(r, 30)));
}

static void any_read(struct rng *r, struct probe_spec *spec)
{
    any_points(r, 1 << 20, spec);
    spec->repeats = (uint32_t)(1 + rng_below(r, 4));
    spec->duration_us = (uint32_t)(100 + rng_below(r, 99000));
    spec->seed = (uint32_t)rng_next(r);
    spec->window_count = (uint32_t)(1 + rng_below(r, PROBE_MAX_WINDOWS));
    spec->window_sms = (uint32_t)(1 + rng_below(r, REACH_MAX_SMS));
    for (uint32_t i = 1; i < spec->window_sms; i++)
        spec->window_of_sm[i] = rng_below(r, 4) == 0 ? (uint16_t)PROBE_SM_IDLE
                                                     : (uint16_t)rng_below(r, spec->window_count);
}

/* In half of the cases the access is the access of the curve. */
static void any_access(struct rng *r, struct probe_spec *spec)
{
    if (rng_below(r, 2))
        return;
    spec->access = (enum access)rng_below(r, ACCESS_COUNT);
    spec->transaction_bytes = spec->access == ACCESS_READ && rng_below(r, 2) ? 512 : 32;
}

static void any_runs(struct rng *r, struct probe_spec *spec)
{
    if (rng_below(r, 3))
        return;
    spec->point_count = 1;
    spec->base_bytes = 0;
    memset(spec->points + 1, 0, sizeof spec->points - sizeof spec->points[0]);
    spec->run_bytes = 1 + rng_below(r, spec->points[0] / 4);
    spec->scattered_bytes = spec->run_bytes * rng_below(r, 5);
}

static void any_ascending_sms(struct rng *r, struct probe_spec *spec)
{
    spec->sm_count = (uint32_t)(1 + rng_below(r, 5));
    for (uint32_t i = 0; i < spec->sm_count; i++)
        spec->sms[i] = (uint16_t)(i * 100 + rng_below(r, 100));
}

static struct probe_spec any_chip_spec(struct rng *r, enum probe_kind kind)
{
    struct probe_spec spec = {.kind = kind};

    if (kind == PROBE_CONCURRENCY) {
        any_read(r, &spec);
        spec.region_bytes = (1 + rng_below(r, 1 << 20)) << 20;
        for (uint32_t i = 0; i < spec.point_count; i++)
            spec.points[i] = probe_concurrency((uint32_t)(1 + rng_below(r, PROBE_MAX_WARPS)),
                                               1u << rng_below(r, 6));
        return spec;
    }
    spec.samples = (uint32_t)(8 * (1 + rng_below(r, 50)));
    spec.repeats = (uint32_t)(1 + rng_below(r, 4));
    if (kind == PROBE_PEER) {
        spec.cluster_sms = (uint32_t)(2 + rng_below(r, PROBE_MAX_CLUSTER - 1));
        return spec;
    }
    any_points(r, 1, &spec);
    spec.transaction_bytes = 4u << rng_below(r, 3);
    for (uint32_t i = 0; i < spec.point_count; i++)
        spec.points[i] = spec.transaction_bytes * (1 + rng_below(r, 8));
    spec.warps = (uint32_t)(1 + rng_below(r, PROBE_MAX_WARPS));
    spec.in_flight = 1u << rng_below(r, 4);
    any_ascending_sms(r, &spec);
    return spec;
}

/* Constant memory is small, so it is neither swept nor touched. */
static void any_cache(struct rng *r, struct probe_spec *spec)
{
    spec->path = spec->warm_path = (enum probe_path)rng_below(r, PATH_COUNT);
    any_points(r, 1, spec);
    for (uint32_t i = 0; i < spec->point_count; i++)
        spec->points[i] = 1 + spec->points[i] % (spec->path == PATH_CONSTANT ? 100 : 1000);
    spec->stride_bytes = PROBE_WORD_BYTES * (1 + rng_below(r, 100));
    spec->base_bytes = 0;
    spec->samples = (uint32_t)(1 + rng_below(r, 50));
    spec->warm_laps = (uint32_t)rng_below(r, 4);
    spec->scattered = (uint32_t)rng_below(r, 2);
    spec->shared_bytes = rng_below(r, 100000);
    spec->evict_bytes = rng_below(r, 100) * PROBE_LINE_BYTES;
    if (spec->path != PATH_CONSTANT) {
        spec->sweep_footprint = (uint32_t)rng_below(r, 3);
        spec->sweep_bytes = spec->sweep_footprint ? 0 : rng_below(r, 1 << 20);
        spec->touch_bytes = rng_below(r, 3) * PROBE_LINE_BYTES;
    }
    any_ascending_sms(r, spec);
}

static struct probe_spec any_spec(struct rng *r)
{
    struct probe_spec spec = {.kind = (enum probe_kind)rng_below(r, PROBE_KIND_COUNT),
                              .base_bytes = rng_below(r, 1 << 20) * PROBE_LINE_BYTES};

    if (spec.kind == PROBE_READ) {
        any_read(r, &spec);
        any_access(r, &spec);
        any_runs(r, &spec);
        return spec;
    }
    if (spec.kind >= PROBE_SHARED)
        return any_chip_spec(r, spec.kind);
    if (spec.kind == PROBE_CACHE) {
        any_cache(r, &spec);
        return spec;
    }
    spec.stride_bytes = (1 + rng_below(r, 1 << 20)) * PROBE_LINE_BYTES;
    if (spec.kind == PROBE_MEANS || spec.kind == PROBE_MEAN_PAIRS) {
        spec.base_bytes = 0;
        if (spec.kind == PROBE_MEANS) {
            any_points(r, 1, &spec);
            for (uint32_t i = 0; i < spec.point_count; i++)
                spec.points[i] = 1 + spec.points[i] % (1 << 20);
        } else
            spec.thrash_pages = (uint32_t)(1 + rng_below(r, UINT32_MAX));
        return spec;
    }
    if (spec.kind == PROBE_WORKING_SET_READ) {
        spec.stride_bytes = (uint64_t)PROBE_BLOCK_BYTES << rng_below(r, 8);
        spec.transaction_bytes = rng_below(r, 2) ? 128 : 512;
        spec.set_read = (enum set_read)rng_below(r, SET_READ_COUNT);
        any_points(r, 1 << 20, &spec);
        for (uint32_t i = 0; i < spec.point_count; i++)
            spec.points[i] = (1 << 20) + spec.points[i] % (1 << 24);
        spec.repeats = (uint32_t)(1 + rng_below(r, 4));
        spec.duration_us = (uint32_t)(100 + rng_below(r, 1000));
        spec.seed = (uint32_t)rng_next(r);
        spec.sm_count = spec.set_read == SET_READ_NEAR ? (uint32_t)(1 + rng_below(r, 5)) : 0;
        for (uint32_t i = 0; i < spec.sm_count; i++)
            spec.sms[i] = (uint16_t)(i * 100 + rng_below(r, 100));
        return spec;
    }
    spec.warm_laps = (uint32_t)(1 + rng_below(r, 16));
    spec.sm_count = spec.kind == PROBE_PAIRS ? (uint32_t)(1 + rng_below(r, 5)) : 1;
    if (spec.kind == PROBE_SIDES) {
        spec.samples = (uint32_t)(1 + rng_below(r, 50));
        spec.repeats = (uint32_t)(1 + rng_below(r, 4));
        any_ascending_sms(r, &spec);
        return spec;
    }
    for (uint32_t i = 0; i < spec.sm_count; i++)
        spec.sms[i] = (uint16_t)rng_below(r, REACH_MAX_SMS);
    if (spec.kind == PROBE_CHASE) {
        any_points(r, 1, &spec);
        spec.samples = (uint32_t)(1 + rng_below(r, 50));
        return spec;
    }
    spec.slice_pages = (uint32_t)(1 + rng_below(r, PROBE_MAX_SLICE));
    spec.flush_pages = (uint32_t)rng_below(r, (1 << 20) + 1);
    spec.thrash_pages = (uint32_t)(1 + rng_below(r, UINT32_MAX));
    if (spec.kind == PROBE_ROUND)
        spec.repeats = (uint32_t)(1 + rng_below(r, 4));
    return spec;
}

struct observation any_observation(struct rng *r)
{
    struct observation o = {.spec = any_spec(r)};
    struct probe_result *const result = &o.result;

    for (uint16_t id = 0; id < REACH_MAX_SMS && result->sm_count < 20; id++) {
        if (rng_below(r, 8) == 0)
            result->sm_ids[result->sm_count++] = id;
    }
    if (result->sm_count == 0)
        result->sm_count = 1;
    result->value_count = probe_value_count(&o.spec, result->sm_count);
    result->values = calloc(result->value_count, sizeof(*result->values));
    assert_non_null(result->values);
    for (size_t i = 0; i < result->value_count; i++)
        result->values[i] = (uint32_t)(rng_next(r) >> rng_below(r, 64));
    result->conditions = (struct probe_conditions){
        .started_at = (int64_t)rng_below(r, 4000000000u),
        .duration_ns = rng_next(r) >> 20,
        .arena = (enum arena_kind)rng_below(r, 3),
        .range_bytes = rng_next(r) >> 10,
        .backing_bytes = rng_next(r) >> 30,
        .device_memory_bytes = rng_next(r) >> 30,
        .sm_clock_khz = any_u32(r),
        .memory_clock_khz = any_u32(r),
        .temperature_celsius = any_u32(r),
        .other_processes = any_u32(r),
        .throttle_reasons = any_u64(r),
        .sm_clock_before_khz = any_u32(r),
        .busy_percent_before = any_u32(r),
        .concurrent_processes = any_u32(r),
        .interruptions = any_u32(r),
        .uncorrected_errors = any_u64(r),
        .xid = any_u64(r),
        .pcie_generation = any_u32(r),
    };
    o.assessment.verdict = (enum verdict)rng_below(r, 3);
    if (o.assessment.verdict != VERDICT_CLEAN)
        snprintf(o.assessment.message, sizeof(o.assessment.message), "reason %u",
                 (unsigned)rng_below(r, 1000));
    return o;
}
