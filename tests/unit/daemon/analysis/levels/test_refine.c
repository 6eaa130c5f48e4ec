/* test_refine.c: changes the loads of refinements as a change of the SM clock does, on a GPU on
 * paper (paper_gpu.h). */
#include "analysis/levels/refine.h"
#include "analysis/levels/levels.h"
#include "analysis/levels/refine_plan.h"
#include "analysis/sharing/confirm.h"
#include "base/units.h"
#include "tests/unit/support/paper_gpu.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { HITS_BELOW = 310 }; /* cycles; hits take 300, and misses of level 1 take 320 */

static void measure(struct paper_gpu *gpu, struct observation_set *out)
{
    paper_gpu_init(gpu);
    paper_gpu_begin(gpu, out);
    assert_int_equal(paper_gpu_measure(gpu, DEPTH_QUICK, NULL, NULL, out), STATUS_OK);
}

/* Returns the first observation after `o` that has the reference of this level, or NULL. */
static struct observation *next_of(const struct observation_set *set, const struct observation *o,
                                   const struct level_estimate *level)
{
    while ((o = observation_next(set, o, PROBE_CHASE)) &&
           (o->spec.stride_bytes != level->entry_bytes ||
            o->spec.points[0] != refine_plan_reference(level)))
        ;
    return o ? &set->items[o - set->items] : NULL;
}

/* Adds cycles to the loads of all points after the reference that take `from` cycles or more. */
static void add_cycles(struct observation *o, uint32_t from, int cycles)
{
    for (size_t i = o->spec.samples; i < o->result.value_count; i++)
        if (o->result.values[i] >= from)
            o->result.values[i] = (uint32_t)((int)o->result.values[i] + cycles);
}

static void slower_hits_are_not_misses(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct level_estimate before[LEVELS_MAX], after[LEVELS_MAX];

    (void)state;
    measure(&gpu, &set);
    assert_int_equal(levels_estimate(&set, before), 2);
    assert_in_range(before[1].sat_hi_pages, 630, 650);
    for (int more = 1; more <= 3; more++) {
        for (struct observation *o = NULL; (o = next_of(&set, o, &before[1]));)
            add_cycles(o, 0, 1);
        assert_int_equal(levels_estimate(&set, after), 2);
        assert_true(after[1].counted);
        assert_int_equal(after[1].sat_hi_pages, before[1].sat_hi_pages);
        assert_int_equal(after[1].sat_lo_pages, before[1].sat_lo_pages);
    }
    observation_set_free(&set);
}

/* The clock may change so much within a point that its hits are slower than the threshold. A third
 * of the loads are such hits. */
static void two_kinds_of_loads_confirm_no_saturation(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct level_estimate before[LEVELS_MAX], after[LEVELS_MAX];

    (void)state;
    measure(&gpu, &set);
    assert_int_equal(levels_estimate(&set, before), 2);
    assert_true(before[1].sat_votes > 0);
    for (struct observation *o = NULL; (o = next_of(&set, o, &before[1]));)
        for (uint32_t p = 1; p < o->spec.point_count; p++)
            for (uint32_t i = 0; o->spec.points[p] == before[1].sat_hi_pages && i < o->spec.samples;
                 i++)
                o->result.values[(size_t)p * o->spec.samples + i] = i % 3 ? 780 : 480;
    assert_int_equal(levels_estimate(&set, after), 2);
    assert_int_equal(after[1].sat_hi_pages, before[1].sat_hi_pages);
    assert_int_equal(after[1].sat_votes, 0);
    observation_set_free(&set);
}

/* The reference of the farther level has 10 pages and fits the nearer level of 16, which all other
 * walks overflow. A miss would then cost the misses of both levels. */
static void a_small_reference_shows_slower_hits(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct level_estimate level = {
        .penalty_cycles = 320,
        .entry_known = true,
        .entry_bytes = 32 * MIB,
        .at_entry = {32 * MIB, .last_fit_pages = 11, .first_miss_pages = 81, .full_pages = 640},
        .separation = 1};
    struct probe_spec spec;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    assert_int_equal(refine_plan_reference(&level), 10);
    assert_true(refine_plan_next(&level, &gpu.limits, 0, &spec));
    paper_gpu_ask(&gpu, &spec, &set);
    refine_derive(&set, &level);
    assert_true(level.merged);
    assert_false(level.counted);
    observation_set_free(&set);
}

static void assert_penalty(const struct observation_set *set, double cycles, uint32_t votes)
{
    struct level_estimate levels[LEVELS_MAX];

    assert_int_equal(levels_estimate(set, levels), 2);
    assert_true(levels[0].counted);
    assert_float_equal(levels_penalty(&levels[0]).v, cycles, 0);
    assert_int_equal(levels[0].penalty_votes, votes);
}

/* Beside other processes, no single walk decides about a penalty. */
static void one_walk_with_other_misses_does_not_count(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct probe_spec spec;
    struct level_estimate levels[LEVELS_MAX];
    uint32_t walks = 0;

    (void)state;
    measure(&gpu, &set);
    set.others = 1;
    assert_int_equal(levels_estimate(&set, levels), 2);
    assert_true(refine_plan_penalty(&levels[0], &set.limits, 0, &spec));
    paper_gpu_ask(&gpu, &spec, &set);
    for (struct observation *o = NULL; (o = next_of(&set, o, &levels[0])); walks++) {
        add_cycles(o, HITS_BELOW, -4);
        assert_penalty(&set, 20, 2);
        add_cycles(o, HITS_BELOW - 4, 4);
    }
    assert_true(walks > 2);
    observation_set_free(&set);
}

static void a_penalty_that_no_two_walks_show_is_walked_again(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct probe_spec spec;
    struct level_estimate levels[LEVELS_MAX];
    int more = 0;

    (void)state;
    measure(&gpu, &set);
    assert_int_equal(levels_estimate(&set, levels), 2);
    for (struct observation *o = NULL; (o = next_of(&set, o, &levels[0]));)
        add_cycles(o, HITS_BELOW, more += 4);
    assert_int_equal(levels_estimate(&set, levels), 2);
    assert_int_equal(confirm_penalty(&set, &levels[0], 0, &spec), CONFIRMATION_DONE);
    set.others = 1;
    for (uint32_t votes = 1; votes <= 2; votes++) {
        assert_int_equal(levels_estimate(&set, levels), 2);
        assert_int_equal(levels[0].penalty_votes, 1);
        assert_int_equal(confirm_penalty(&set, &levels[0], 0, &spec), CONFIRMATION_OPEN);
        paper_gpu_ask(&gpu, &spec, &set);
    }
    assert_penalty(&set, 20, 2);
    assert_int_equal(levels_estimate(&set, levels), 2);
    assert_int_equal(confirm_penalty(&set, &levels[0], 0, &spec), CONFIRMATION_DONE);
    observation_set_free(&set);
}

static void a_penalty_that_never_agrees_is_refuted(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct probe_spec spec;
    struct level_estimate levels[LEVELS_MAX];
    uint32_t asked = 0;

    (void)state;
    measure(&gpu, &set);
    set.others = 1;
    assert_int_equal(levels_estimate(&set, levels), 2);
    for (int more = 0; asked <= CONFIRM_MOST_ASKED; asked++) {
        for (struct observation *o = next_of(&set, NULL, &levels[0]); o;
             o = next_of(&set, o, &levels[0]), more += 4)
            if (asked == 0 || !next_of(&set, o, &levels[0]))
                add_cycles(o, HITS_BELOW, more);
        assert_int_equal(levels_estimate(&set, levels), 2);
        if (confirm_penalty(&set, &levels[0], 0, &spec) != CONFIRMATION_OPEN)
            break;
        paper_gpu_ask(&gpu, &spec, &set);
    }
    assert_in_range(asked, 1, CONFIRM_MOST_ASKED);
    assert_int_equal(confirm_penalty(&set, &levels[0], 0, &spec), CONFIRMATION_REFUTED);
    observation_set_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slower_hits_are_not_misses),
        cmocka_unit_test(two_kinds_of_loads_confirm_no_saturation),
        cmocka_unit_test(a_small_reference_shows_slower_hits),
        cmocka_unit_test(one_walk_with_other_misses_does_not_count),
        cmocka_unit_test(a_penalty_that_no_two_walks_show_is_walked_again),
        cmocka_unit_test(a_penalty_that_never_agrees_is_refuted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
