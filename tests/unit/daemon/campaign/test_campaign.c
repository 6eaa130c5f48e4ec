/* test_campaign.c: the requests of a plan, for any answers. The plan ends, it never requests the
 * same probe twice, its progress never falls, and it keeps no state. The GPUs are on paper
 * (paper_gpu.h). */
#include "analysis/sharing/confirm.h"
#include "analysis/structure/traces.h"
#include "analysis/throughput/throughput.h"
#include "base/units.h"
#include "campaign/campaign.h"
#include "tests/share.h"
#include "tests/unit/support/paper_gpu.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum {
    MOST_VOTES = 24
}; /* largest number of rounds with one pivot, because a round may be repeated for more votes */

struct watch {
    bool confirmed; /* whether some conclusions are not confirmed, so that a part is done again */
    double progress;
    uint32_t steps;
    enum depth depth;
    bool sharing_seen[PROBE_KIND_COUNT];
    struct observation_set fillers; /* all fillers that were requested, without results */
};

static bool is_sharing(const struct probe_spec *spec)
{
    return spec->kind == PROBE_ROUND || spec->kind == PROBE_PAIRS;
}

static bool is_confirmation(const struct probe_spec *spec)
{
    return spec->kind == PROBE_CHASE && spec->point_count == 2;
}

/* Returns how often this probe was requested. A probe of pairs in other rows is a different
 * probe. */
static uint32_t times_asked(const struct observation_set *set, const struct probe_spec *spec)
{
    uint32_t n = 0;
    for (size_t i = 0; i < set->count; i++)
        n += probe_same(&set->items[i].spec, spec);
    return n;
}

/* Checks that each filler of a step can be run, has not been run, and is not part of the step
 * itself. */
static void watch_fillers(const struct observation_set *set, const struct campaign_step *step,
                          struct watch *w)
{
    struct err err = {0};

    assert_true(step->spec_count + step->filler_count <= CAMPAIGN_MAX_SPECS);
    assert_true(step->spec_count > 0 || step->filler_count == 0);
    for (uint32_t i = 0; i < step->filler_count; i++) {
        const struct probe_spec *const filler = &step->specs[step->spec_count + i];
        struct observation named = {.spec = *filler};
        if (probe_check(filler, &set->limits, &err) != STATUS_OK)
            fail_msg("beside \"%s\" a filler that cannot be asked: %s", step->message, err.text);
        assert_int_equal(times_asked(set, filler), 0);
        for (uint32_t k = 0; k < step->spec_count + i; k++)
            assert_false(probe_same(filler, &step->specs[k]));
        if (times_asked(&w->fillers, filler) == 0)
            assert_int_equal(observation_set_add(&w->fillers, &named, NULL), STATUS_OK);
    }
}

/* Checks the properties that hold for every step of every plan. */
static void watch_step(const struct observation_set *set, const struct campaign_step *step,
                       void *data)
{
    struct watch *w = data;
    struct err err = {0};
    assert_true(step->spec_count <= CAMPAIGN_MAX_SPECS);
    assert_true((step->progress >= w->progress || w->confirmed) && step->progress <= 1);
    w->confirmed = w->confirmed || strcmp(step->message, "what was found, once more") == 0;
    assert_true(strlen(step->message) > 0 && strlen(step->message) < sizeof step->message);
    w->progress = step->progress;
    w->steps += 1;
    for (uint32_t i = 0; i < step->spec_count; i++) {
        const struct probe_spec *spec = &step->specs[i];
        if (probe_check(spec, &set->limits, &err) != STATUS_OK)
            fail_msg("step \"%s\" asks what cannot be asked: %s", step->message, err.text);
        w->sharing_seen[spec->kind] = true;
        const uint32_t times = times_asked(set, spec);
        if (times > 0 && !(is_sharing(spec) && times < MOST_VOTES) &&
            !(is_confirmation(spec) && times < CONFIRM_MOST_ASKED) &&
            !(trace_is(spec) &&
              times < TRACE_MAX_ATTEMPTS)) /* pages without a clear result are traced again */
            fail_msg("step \"%s\" asks for the %u. time", step->message, times + 1);
        for (uint32_t k = 0; k < i; k++)
            if (probe_same(spec, &step->specs[k]))
                fail_msg("step \"%s\" asks the same twice", step->message);
    }
    watch_fillers(set, step, w);
    if (step->spec_count == 0)
        assert_float_equal(step->progress, 1, 1e-9);

    /* The plan keeps no state, so the same observations give the same request. */
    struct campaign_step *again = calloc(1, sizeof *again);
    assert_non_null(again);
    assert_int_equal(campaign_next(set, w->depth, NULL, again, NULL), STATUS_OK);
    assert_int_equal(again->spec_count, step->spec_count);
    assert_int_equal(again->filler_count, step->filler_count);
    assert_memory_equal(again->specs, step->specs,
                        (step->spec_count + step->filler_count) * sizeof step->specs[0]);
    assert_string_equal(again->message, step->message);
    free(again);
}

static struct watch run(struct paper_gpu *gpu, enum depth depth)
{
    struct observation_set set;
    struct watch w = {.depth = depth};
    paper_gpu_begin(gpu, &set);
    const enum status status = paper_gpu_measure(gpu, depth, watch_step, &w, &set);
    assert_true(status == STATUS_OK || status == STATUS_DISTURBED);
    if (status == STATUS_OK)
        assert_float_equal(w.progress, 1, 1e-9);
    observation_set_free(&set);
    observation_set_free(&w.fillers);
    return w;
}

static void begins_with_a_warm_up(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct campaign_step step;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    assert_int_equal(campaign_next(&set, DEPTH_QUICK, NULL, &step, NULL), STATUS_OK);
    assert_int_equal(step.spec_count, 1);
    assert_int_equal(step.specs[0].kind, PROBE_READ);
    assert_float_equal(step.progress, 0, 1e-9);
}

static void every_depth_ends(void **state)
{
    (void)state;
    for (int depth = DEPTH_QUICK; depth < DEPTH_COUNT; depth++) {
        struct paper_gpu gpu;
        paper_gpu_init(&gpu);
        const struct watch w = run(&gpu, (enum depth)depth);
        assert_true(w.steps > 5);
        assert_true(w.sharing_seen[PROBE_ROUND] && w.sharing_seen[PROBE_PAIRS]);
    }
}

/* A deeper measurement requests all probes of a shallower one in the same order, and more. */
static void deeper_begins_like_shallower(void **state)
{
    struct paper_gpu gpu;
    struct observation_set quick;
    struct observation_set matrix;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &quick);
    paper_gpu_begin(&gpu, &matrix);
    assert_int_equal(paper_gpu_measure(&gpu, DEPTH_QUICK, NULL, NULL, &quick), STATUS_OK);
    assert_int_equal(paper_gpu_measure(&gpu, DEPTH_MATRIX, NULL, NULL, &matrix), STATUS_OK);
    assert_true(matrix.count > quick.count);
    for (size_t i = 0; i < quick.count; i++)
        assert_memory_equal(&quick.items[i].spec, &matrix.items[i].spec,
                            sizeof quick.items[i].spec);
    observation_set_free(&quick);
    observation_set_free(&matrix);
}

/* At depth matrix every SM has been a pivot at the window level. */
static void the_matrix_has_every_row(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    bool row[REACH_MAX_SMS] = {false};

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    assert_int_equal(paper_gpu_measure(&gpu, DEPTH_MATRIX, NULL, NULL, &set), STATUS_OK);
    for (size_t i = 0; i < set.count; i++) {
        const struct probe_spec *spec = &set.items[i].spec;
        if (spec->kind == PROBE_PAIRS && spec->stride_bytes == gpu.levels[1].entry_bytes)
            for (uint32_t p = 0; p < spec->sm_count; p++)
                row[spec->sms[p]] = true;
    }
    for (uint32_t i = 0; i < gpu.sm_count; i++)
        assert_true(row[gpu.sm_ids[i]]);
    observation_set_free(&set);
}

/* The number of rounds grows with the number of groups, not with the number of SMs. */
static void rounds_follow_groups_not_sms(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    uint32_t rounds = 0;

    (void)state;
    paper_gpu_init(&gpu);
    gpu.sm_count = 64;
    gpu.limits.sm_count = 64;
    for (uint32_t i = 0; i < gpu.sm_count; i++)
        gpu.sm_ids[i] = (uint16_t)i;
    paper_gpu_share(&gpu, 0, 1);
    for (uint32_t i = 0; i < gpu.sm_count; i++)
        gpu.levels[1].group_of_sm[i] = (uint16_t)(i / 2 % 8);
    paper_gpu_begin(&gpu, &set);
    assert_int_equal(paper_gpu_measure(&gpu, DEPTH_QUICK, NULL, NULL, &set), STATUS_OK);
    for (size_t i = 0; i < set.count; i++)
        rounds += set.items[i].spec.kind == PROBE_ROUND;
    assert_in_range(rounds, 8, 20);
    observation_set_free(&set);
}

/* If the range has little memory behind it, only the throughput probes are left out. */
static void throughput_needs_memory(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    uint32_t reads = 0;

    (void)state;
    paper_gpu_init(&gpu);
    gpu.limits.backing_bytes = gpu.l2_cache_bytes;
    paper_gpu_begin(&gpu, &set);
    assert_int_equal(paper_gpu_measure(&gpu, DEPTH_FULL, NULL, NULL, &set), STATUS_OK);
    for (size_t i = 0; i < set.count; i++)
        reads += set.items[i].spec.kind == PROBE_READ;
    assert_int_equal(reads, 1); /* the warm-up */
    observation_set_free(&set);
}

static bool is_rate(const struct probe_spec *spec)
{
    return spec->kind == PROBE_READ && !probe_is_line_read(spec);
}

/* Depth full requests each kind of access once naive and once by group. No shallower depth does. */
static void other_kinds_of_access_are_asked_at_full(void **state)
{
    (void)state;
    for (int depth = DEPTH_QUICK; depth < DEPTH_COUNT; depth++) {
        const uint64_t reach = 600 * 32 * MIB;
        struct paper_gpu gpu;
        struct observation_set set;
        uint32_t naive = 0;
        uint32_t by_group = 0;
        paper_gpu_init(&gpu);
        paper_gpu_begin(&gpu, &set);
        set.gpu.memory_bytes = 40 * GIB;
        assert_int_equal(paper_gpu_measure(&gpu, (enum depth)depth, NULL, NULL, &set), STATUS_OK);
        for (size_t i = 0; i < set.count; i++) {
            const struct probe_spec *spec = &set.items[i].spec;
            if (!is_rate(spec))
                continue;
            assert_int_equal(spec->points[spec->point_count - 1], 40 * GIB);
            if (spec->window_count > 1) {
                by_group++;
                assert_int_equal(spec->window_count, 3);
                assert_int_equal(spec->point_count, 1);
                continue;
            }
            naive++;
            assert_in_range(spec->point_count, 3, 6);
            assert_int_equal(spec->points[0], reach);
            for (uint32_t p = 1; p < spec->point_count; p++)
                assert_true(spec->points[p] > spec->points[p - 1]);
        }
        assert_int_equal(naive, depth == DEPTH_QUICK ? 0 : RATE_KINDS);
        assert_int_equal(by_group, depth == DEPTH_QUICK ? 0 : RATE_KINDS);
        observation_set_free(&set);
    }
}

/* Plans are made for any number of levels, of any size, with any sharing, with noise. */
static void random_paper(struct rng *rng, struct paper_gpu *out)
{
    uint64_t entry = (uint64_t)64 * KIB << rng_below(rng, 6);
    uint32_t fits = 4 + (uint32_t)rng_below(rng, 100);
    paper_gpu_init(out);
    out->rng.state = rng_next(rng);
    out->noise_cycles = 5 * rng_unit(rng);
    out->outlier_share = 0.01 * rng_unit(rng);
    out->sm_count = 1 + (uint32_t)rng_below(rng, 100);
    out->limits.sm_count = out->sm_count;
    out->limits.granule_bytes = (uint64_t)64 * KIB << rng_below(rng, 6);
    out->limits.range_bytes = GIB << rng_below(rng, 11);
    out->limits.backing_bytes = (uint64_t)128 * MIB << rng_below(rng, 4);
    out->level_count = 1 + (uint32_t)rng_below(rng, PAPER_MAX_LEVELS);
    for (uint32_t i = 0; i < out->sm_count; i++)
        out->sm_ids[i] = (uint16_t)(i == 0 ? 0 : out->sm_ids[i - 1] + 1 + rng_below(rng, 2));
    for (uint32_t k = 0; k < out->level_count; k++) {
        struct paper_level *l = &out->levels[k];
        const uint64_t groups = 1 + rng_below(rng, out->sm_count);
        *l = (struct paper_level){.entry_bytes = entry,
                                  .fits = fits,
                                  .saturated = fits + 1 + (uint32_t)rng_below(rng, fits),
                                  .penalty_cycles = 3 + (double)rng_below(rng, 400)};
        for (uint32_t i = 0; i < out->sm_count; i++)
            l->group_of_sm[i] = (uint16_t)rng_below(rng, groups);
        entry <<= rng_below(rng, 6);
        fits = fits * (1 + (uint32_t)rng_below(rng, 20));
        fits = fits > 10000 ? 10000 : fits;
    }
}

static void any_gpu_ends(void **state)
{
    struct rng rng = {.state = paper_seed("any GPU", 61)};

    (void)state;
    for (int round = 0; round < (int)test_part(100, 40, 12); round++) {
        struct paper_gpu gpu;
        random_paper(&rng, &gpu);
        (void)run(&gpu, (enum depth)(round % DEPTH_COUNT));
    }
}

struct filled {
    struct paper_gpu *gpu;
    struct observation_set set;
};

/* Runs the fillers of each step too, like the daemon does. */
static void run_fillers(const struct observation_set *set, const struct campaign_step *step,
                        void *data)
{
    struct filled *const f = data;

    assert_ptr_equal(set, &f->set);
    for (uint32_t i = 0; i < step->filler_count; i++)
        paper_gpu_ask(f->gpu, &step->specs[step->spec_count + i], &f->set);
}

static void expect_asked(const struct observation_set *set, const struct observation_set *all)
{
    for (size_t i = 0; i < set->count; i++)
        assert_true(times_asked(all, &set->items[i].spec) > 0);
}

/* A filler that was left out is requested later. If the filler was run, the measurement consists of
 * the same probes in another order. */
static void fillers_are_probes_of_later_phases(void **state)
{
    struct paper_gpu gpu;
    struct filled with = {.gpu = &gpu};
    struct observation_set without;
    struct watch w = {.depth = DEPTH_FULL};

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &without);
    paper_gpu_begin(&gpu, &with.set);
    assert_int_equal(paper_gpu_measure(&gpu, DEPTH_FULL, watch_step, &w, &without), STATUS_OK);
    assert_true(w.fillers.count > 0);
    expect_asked(&w.fillers, &without);
    assert_int_equal(paper_gpu_measure(&gpu, DEPTH_FULL, run_fillers, &with, &with.set), STATUS_OK);
    assert_int_equal(with.set.count, without.count);
    expect_asked(&without, &with.set);
    observation_set_free(&w.fillers);
    observation_set_free(&without);
    observation_set_free(&with.set);
}

static void expect_no_fillers(const struct observation_set *set, const struct campaign_step *step,
                              void *data)
{
    (void)set;
    (void)data;
    assert_int_equal(step->filler_count, 0);
}

/* If the step were interrupted, it would also wait for its fillers. */
static void beside_others_there_are_no_fillers(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    set.others = 1;
    assert_true(observation_set_is_shared(&set));
    assert_int_equal(paper_gpu_measure(&gpu, DEPTH_FULL, expect_no_fillers, NULL, &set), STATUS_OK);
    observation_set_free(&set);
}

static size_t count_sweeps(uint32_t others)
{
    struct paper_gpu gpu;
    struct observation_set set;
    size_t count = 0;

    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    set.others = others;
    assert_int_equal(paper_gpu_measure(&gpu, DEPTH_QUICK, NULL, NULL, &set), STATUS_OK);
    for (const struct observation *o = NULL; (o = observation_next(&set, o, PROBE_CHASE));)
        count += o->spec.point_count >= LEVELS_SWEEP_POINTS;
    observation_set_free(&set);
    return count;
}

/* Only a second sweep can confirm that no level is missing. */
static void beside_others_each_sweep_is_made_twice(void **state)
{
    (void)state;
    assert_true(count_sweeps(0) > 0);
    assert_int_equal(count_sweeps(1), 2 * count_sweeps(0));
}

/* Returns whether all SMs read device memory at random. A read by one group and the warm-up do
 * not count. */
static bool is_region_read(const struct probe_spec *spec)
{
    bool idle = spec->kind != PROBE_READ || spec->memory != MEMORY_DEVICE || spec->run_bytes > 0 ||
                spec->set_read != SET_READ_SAME || spec->window_sms == 0 || spec->points[0] < GIB;

    for (uint32_t i = 0; i < spec->window_sms; i++)
        idle = idle || spec->window_of_sm[i] == PROBE_SM_IDLE;
    return !idle;
}

/* Changes the last region of a probe, so that its first repeat is 3 % slower than the second. */
static void disturb_last(struct observation *o)
{
    const uint32_t row = 1 + o->result.sm_count;
    uint32_t *const values = o->result.values + (o->spec.point_count - 1) * o->spec.repeats * row;

    for (uint32_t i = 1; i < row; i++)
        values[i] = (uint32_t)(values[row + i] * 0.97);
}

static bool answers_again(const struct observation *o, const struct probe_spec *first)
{
    const struct probe_spec *const s = &o->spec;

    return s->kind == PROBE_READ && s->repeats == THROUGHPUT_MORE_REPEATS && s->point_count == 1 &&
           s->points[0] == first->points[first->point_count - 1] && s->access == first->access &&
           s->transaction_bytes == first->transaction_bytes &&
           s->window_count == first->window_count &&
           memcmp(s->window_of_sm, first->window_of_sm, sizeof s->window_of_sm) == 0;
}

/* A region is read five times only if its two reads are more than 1 % apart. */
static void regions_that_disagree_are_read_again(void **state)
{
    struct campaign_step *step = calloc(1, sizeof *step);
    struct observation_set set;
    struct paper_gpu gpu;
    uint32_t disturbed = 0;
    uint32_t again = 0;

    (void)state;
    assert_non_null(step);
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    while (campaign_next(&set, DEPTH_FULL, NULL, step, NULL) == STATUS_OK && step->spec_count > 0) {
        for (uint32_t i = 0; i < step->spec_count; i++) {
            paper_gpu_ask(&gpu, &step->specs[i], &set);
            struct observation *const o = &set.items[set.count - 1];
            if (is_region_read(&o->spec) && o->spec.repeats == THROUGHPUT_REPEATS)
                disturb_last(o);
        }
    }
    for (size_t i = 0; i < set.count; i++) {
        const struct probe_spec *const s = &set.items[i].spec;
        uint32_t found = 0;
        again += is_region_read(s) && s->repeats == THROUGHPUT_MORE_REPEATS;
        if (!is_region_read(s) || s->repeats != THROUGHPUT_REPEATS)
            continue;
        disturbed++;
        for (size_t k = i + 1; k < set.count; k++)
            found += answers_again(&set.items[k], s);
        assert_int_equal(found, 1);
    }
    assert_true(disturbed > 3);
    assert_int_equal(again, disturbed);
    observation_set_free(&set);
    free(step);
}

/* If the answers of the GPU are random, the plan still ends. */
static void rubbish_ends(void **state)
{
    struct rng rng = {.state = paper_seed("rubbish", 62)};
    struct campaign_step *step = calloc(1, sizeof *step);

    (void)state;
    assert_non_null(step);
    for (int round = 0; round < (int)test_share(20, 8); round++) {
        struct paper_gpu gpu;
        struct observation_set set;
        uint32_t steps = 0;
        paper_gpu_init(&gpu);
        paper_gpu_begin(&gpu, &set);
        while (campaign_next(&set, DEPTH_FULL, NULL, step, NULL) == STATUS_OK &&
               step->spec_count > 0) {
            if (++steps > PAPER_MAX_STEPS)
                fail_msg("the plan does not end: %s", step->message);
            for (uint32_t i = 0; i < step->spec_count; i++) {
                paper_gpu_ask(&gpu, &step->specs[i], &set);
                struct probe_result *r = &set.items[set.count - 1].result;
                for (size_t v = 0; v < r->value_count; v++)
                    r->values[v] += (uint32_t)rng_below(&rng, 400 << round % 8);
            }
        }
        observation_set_free(&set);
    }
    free(step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_with_a_warm_up),
        cmocka_unit_test(every_depth_ends),
        cmocka_unit_test(deeper_begins_like_shallower),
        cmocka_unit_test(the_matrix_has_every_row),
        cmocka_unit_test(rounds_follow_groups_not_sms),
        cmocka_unit_test(throughput_needs_memory),
        cmocka_unit_test(other_kinds_of_access_are_asked_at_full),
        cmocka_unit_test(fillers_are_probes_of_later_phases),
        cmocka_unit_test(beside_others_there_are_no_fillers),
        cmocka_unit_test(beside_others_each_sweep_is_made_twice),
        cmocka_unit_test(regions_that_disagree_are_read_again),
        cmocka_unit_test(any_gpu_ends),
        cmocka_unit_test(rubbish_ends),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
