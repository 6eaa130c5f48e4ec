/* paper_gpu.c: see paper_gpu.h. */
#include "tests/unit/support/paper_gpu.h"

#include "base/units.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTLIER_CYCLES 500

void paper_gpu_share(struct paper_gpu *gpu, uint32_t level, uint32_t size)
{
    for (uint32_t i = 0; i < gpu->sm_count; i++)
        gpu->levels[level].group_of_sm[i] = (uint16_t)(i / size);
}

void paper_gpu_init(struct paper_gpu *out)
{
    *out = (struct paper_gpu){
        .sm_count = 12,
        .hit_cycles = 300,
        .rng = {.state = 1},
        .plateau_gbps = 1000,
        .limits = {.arena = ARENA_SIMULATED,
                   .range_bytes = 256 * GIB,
                   .backing_bytes = GIB,
                   .granule_bytes = 2 * MIB,
                   .device_memory_bytes = GIB,
                   .free_bytes = 80 * GIB,
                   .sm_count = 12},
        .l2_cache_bytes = 40 * MIB,
        .level_count = 2,
        .levels = {{.entry_bytes = 2 * MIB, .fits = 16, .saturated = 17, .penalty_cycles = 20},
                   {.entry_bytes = 32 * MIB, .fits = 600, .saturated = 640, .penalty_cycles = 300}},
    };
    for (uint32_t i = 0; i < out->sm_count; i++)
        out->sm_ids[i] = (uint16_t)i;
    paper_gpu_share(out, 0, 1);
    for (uint32_t i = 0; i < out->sm_count; i++)
        out->levels[1].group_of_sm[i] = (uint16_t)(i / 2 % 3);
}

void paper_gpu_partition(const struct paper_gpu *gpu, uint32_t level, struct sm_partition *out)
{
    const uint16_t *groups = gpu->levels[level].group_of_sm;
    out->group_count = 0;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        out->group_of_sm[id] = FINGERPRINT_NO_GROUP;
    for (uint32_t i = 0; i < gpu->sm_count; i++) {
        uint16_t number = FINGERPRINT_NO_GROUP;
        for (uint32_t k = 0; k < i; k++)
            if (groups[k] == groups[i])
                number = out->group_of_sm[gpu->sm_ids[k]];
        if (number == FINGERPRINT_NO_GROUP)
            number = (uint16_t)out->group_count++;
        out->group_of_sm[gpu->sm_ids[i]] = number;
    }
}

/* ---- one load ---- */

static uint32_t cycles_of(struct paper_gpu *gpu, double cycles)
{
    cycles += gpu->noise_cycles * (2 * rng_unit(&gpu->rng) - 1);
    if (gpu->outlier_share > 0 && rng_unit(&gpu->rng) < gpu->outlier_share)
        cycles += OUTLIER_CYCLES * rng_unit(&gpu->rng);
    return (uint32_t)lround(cycles);
}

/* Returns the number of entries of this level that `pages` pages touch. */
static double touched(const struct paper_level *l, uint64_t pages, uint64_t stride)
{
    const double each = stride < l->entry_bytes ? (double)stride / (double)l->entry_bytes : 1;
    return ceil((double)pages * each);
}

/* Returns the number of missing entries in a cyclic walk. */
static double missing(const struct paper_level *l, double entries)
{
    const double share = (entries - l->fits) / (double)(l->saturated - l->fits);
    return entries * (share < 0 ? 0 : share > 1 ? 1 : share);
}

/* The first page of an entry may miss. The other pages hit, because the first page has loaded the
 * entry. */
static bool page_misses(const struct paper_level *l, uint64_t page, uint64_t pages, uint64_t stride)
{
    const uint64_t first = page * stride / l->entry_bytes;
    const bool brings = page == 0 || (page - 1) * stride / l->entry_bytes != first;
    const uint64_t entry = stride < l->entry_bytes ? first : page;
    return brings && (double)entry + 0.5 < missing(l, touched(l, pages, stride));
}

/* ---- the probes ---- */

static void answer_chase(struct paper_gpu *gpu, const struct probe_spec *spec, uint32_t *values)
{
    for (uint32_t p = 0; p < spec->point_count; p++)
        for (uint32_t i = 0; i < spec->samples; i++) {
            const uint64_t page = i % spec->points[p];
            double cycles = gpu->hit_cycles;
            for (uint32_t k = 0; k < gpu->level_count; k++) {
                if (!page_misses(&gpu->levels[k], page, spec->points[p], spec->stride_bytes))
                    break;
                cycles += gpu->levels[k].penalty_cycles;
            }
            *values++ = cycles_of(gpu, cycles);
        }
}

/* Returns the cycles of a load of the slice. The load misses a level that `primed` pages overflow.
 * It also misses a level that its SM shares with the pivot, if the pivot walks too many pages
 * (`thrash` > 0). */
static double slice_cycles(const struct paper_gpu *gpu, const struct probe_spec *spec, uint32_t sm,
                           uint32_t pivot, uint64_t primed, uint64_t thrash)
{
    double cycles = gpu->hit_cycles;
    for (uint32_t k = 0; k < gpu->level_count; k++) {
        const struct paper_level *l = &gpu->levels[k];
        const bool theirs = l->group_of_sm[sm] == l->group_of_sm[pivot];
        if (touched(l, primed, spec->stride_bytes) < l->saturated &&
            !(theirs && touched(l, thrash, spec->stride_bytes) >= l->saturated))
            break;
        cycles += l->penalty_cycles;
    }
    return cycles;
}

static uint32_t position_of(const struct paper_gpu *gpu, uint16_t sm_id)
{
    uint32_t i = 0;
    while (i < gpu->sm_count && gpu->sm_ids[i] != sm_id)
        i++;
    assert_true(i < gpu->sm_count);
    return i;
}

/* Rounds and pairs have the same axes: the outer one is the repeat of a round, or the pivot of
 * pairs. */
static void answer_slices(struct paper_gpu *gpu, const struct probe_spec *spec, uint32_t *values)
{
    const bool round = spec->kind == PROBE_ROUND;
    const uint64_t slices = (uint64_t)spec->slice_pages * (round ? gpu->sm_count : 1);
    for (uint32_t outer = 0; outer < (round ? spec->repeats : spec->sm_count); outer++) {
        const uint32_t pivot = position_of(gpu, spec->sms[round ? 0 : outer]);
        for (uint32_t half = 0; half < 2; half++)
            for (uint32_t sm = 0; sm < gpu->sm_count; sm++)
                for (uint32_t i = 0; i < spec->slice_pages; i++)
                    *values++ = cycles_of(gpu, slice_cycles(gpu, spec, sm, pivot,
                                                            slices + spec->flush_pages,
                                                            half == 1 ? spec->thrash_pages : 0));
    }
}

static void answer_read(struct paper_gpu *gpu, const struct probe_spec *spec, uint32_t *values)
{
    const struct paper_level *l = &gpu->levels[gpu->level_count - 1];
    const double ns = spec->duration_us * 1000.0;
    const double all = gpu->plateau_gbps * ns / PROBE_LINE_BYTES / gpu->sm_count;
    for (uint32_t p = 0; p < spec->point_count; p++)
        for (uint32_t r = 0; r < spec->repeats; r++) {
            *values++ = (uint32_t)ns;
            for (uint32_t i = 0; i < gpu->sm_count; i++) {
                const uint32_t w = spec->window_of_sm[gpu->sm_ids[i]];
                uint64_t first = 0;
                uint64_t length = 0;
                if (w != PROBE_SM_IDLE)
                    probe_window(spec, gpu->sm_ids, gpu->sm_count, spec->points[p], w, &first,
                                 &length);
                const bool inside = length <= (uint64_t)l->fits * l->entry_bytes;
                *values++ = length == 0 ? 0 : (uint32_t)(inside ? all : all / 4);
            }
        }
}

void paper_gpu_answer(struct paper_gpu *gpu, const struct probe_spec *spec, struct observation *out)
{
    struct err err = {0};
    *out = (struct observation){.spec = *spec};
    if (probe_check(spec, &gpu->limits, &err) != STATUS_OK)
        fail_msg("a probe that cannot be made was asked for: %s", err.text);
    out->result.sm_count = gpu->sm_count;
    memcpy(out->result.sm_ids, gpu->sm_ids, sizeof out->result.sm_ids);
    out->result.value_count = probe_value_count(spec, gpu->sm_count);
    out->result.values = calloc(out->result.value_count, sizeof *out->result.values);
    out->result.conditions.arena = gpu->limits.arena;
    out->result.conditions.started_at = 1700000000;
    assert_non_null(out->result.values);
    if (spec->kind == PROBE_CHASE)
        answer_chase(gpu, spec, out->result.values);
    else if (spec->kind == PROBE_READ)
        answer_read(gpu, spec, out->result.values);
    else
        answer_slices(gpu, spec, out->result.values);
}

/* ---- measurements ---- */

void paper_gpu_begin(const struct paper_gpu *gpu, struct observation_set *out)
{
    *out = (struct observation_set){.limits = gpu->limits};
    (void)snprintf(out->gpu.uuid, sizeof out->gpu.uuid, "SIM-on-paper");
    (void)snprintf(out->gpu.name, sizeof out->gpu.name, "on paper");
    out->gpu.origin = ORIGIN_SIMULATED;
    out->gpu.sm_count = gpu->sm_count;
    out->gpu.memory_bytes = 80 * GIB;
    out->gpu.l2_cache_bytes = gpu->l2_cache_bytes;
}

void paper_gpu_ask(struct paper_gpu *gpu, const struct probe_spec *spec,
                   struct observation_set *set)
{
    struct observation o;
    paper_gpu_answer(gpu, spec, &o);
    assert_int_equal(observation_set_add(set, &o, NULL), STATUS_OK);
}

enum status paper_gpu_measure(struct paper_gpu *gpu, enum depth depth, paper_step_fn on_step,
                              void *data, struct observation_set *set)
{
    struct campaign_step *step = calloc(1, sizeof *step);
    struct campaign_memo memo = {.known = false};
    enum status status = STATUS_OK;
    uint32_t steps = 0;
    assert_non_null(step);
    for (;;) {
        status = campaign_next(set, depth, &memo, step, NULL);
        if (status == STATUS_OK && on_step)
            on_step(set, step, data);
        if (status != STATUS_OK || step->spec_count == 0)
            break;
        if (++steps > PAPER_MAX_STEPS)
            fail_msg("the plan does not end: %s", step->message);
        for (uint32_t i = 0; i < step->spec_count; i++)
            paper_gpu_ask(gpu, &step->specs[i], set);
    }
    free(step);
    return status;
}

uint64_t paper_seed(const char *what, uint64_t otherwise)
{
    const char *text = getenv("REACH_SEED");
    const uint64_t seed = text && *text ? strtoull(text, NULL, 0) : otherwise;
    print_message("# %s: REACH_SEED=%llu\n", what, (unsigned long long)seed);
    return seed;
}
