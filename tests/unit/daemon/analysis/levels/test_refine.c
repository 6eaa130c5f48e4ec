/* test_refine.c: changes the loads of refinements as a change of the SM clock does, on a GPU on
 * paper (paper_gpu.h). */
#include "analysis/levels/refine.h"
#include "analysis/levels/levels.h"
#include "analysis/levels/refine_plan.h"
#include "base/units.h"
#include "tests/unit/support/paper_gpu.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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

/* Adds cycles to the loads of all points after the reference. */
static void add_cycles(struct observation *o, uint32_t cycles)
{
    for (size_t i = o->spec.samples; i < o->result.value_count; i++)
        o->result.values[i] += cycles;
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
            add_cycles(o, 1);
        assert_int_equal(levels_estimate(&set, after), 2);
        assert_true(after[1].counted);
        assert_int_equal(after[1].sat_hi_pages, before[1].sat_hi_pages);
        assert_int_equal(after[1].sat_lo_pages, before[1].sat_lo_pages);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slower_hits_are_not_misses),
        cmocka_unit_test(a_small_reference_shows_slower_hits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
