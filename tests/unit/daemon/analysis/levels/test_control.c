/* test_control.c: the control detects evicted entries, and it reports none if none are evicted. Two
 * sweeps that disagree do not confirm each other. Cases are random, and the seed is printed. */
#include "analysis/levels/control.h"
#include "analysis/levels/levels.h"
#include "base/rng.h"
#include "base/units.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct rng rng;
static const struct gpu_limits limits = {
    .range_bytes = 16 * GIB, .backing_bytes = GIB, .granule_bytes = 2 * MIB, .sm_count = 4};

static uint32_t about(double cycles)
{
    return (uint32_t)(cycles + 3 * (rng_unit(&rng) - 0.5) + 3 * (rng_unit(&rng) - 0.5) +
                      (rng_below(&rng, 400) == 0 ? 200 : 0));
}

/* A control on a quiet GPU: pages beyond 16 take 10 cycles more. One load in 400 is an outlier, so
 * four outliers in a row are unlikely. */
static struct observation new_control(void)
{
    struct observation o = {.result = {.sm_count = 4}};

    assert_true(control_test(&limits, 0, &o.spec));
    o.result.value_count = probe_value_count(&o.spec, 4);
    o.result.values = calloc(o.result.value_count, sizeof o.result.values[0]);
    assert_non_null(o.result.values);
    for (uint32_t p = 0; p < o.spec.point_count; p++)
        for (uint32_t k = 0; k < o.spec.samples; k++)
            o.result.values[p * o.spec.samples + k] = about(o.spec.points[p] > 16 ? 276 : 266);
    return o;
}

static void a_quiet_gpu_takes_nothing_away(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct observation o = new_control();

        assert_true(control_is(&o.spec));
        assert_int_equal(control_flushes(&o), 0);
        observation_free(&o);
    }
}

static void a_flush_is_seen_at_any_moment(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct observation o = new_control();
        const uint32_t p = (uint32_t)rng_below(&rng, o.spec.point_count);
        const uint32_t pages = (uint32_t)o.spec.points[p];
        const uint32_t at = (uint32_t)rng_below(&rng, o.spec.samples - pages);

        for (uint32_t k = at; k < at + pages; k++)
            o.result.values[p * o.spec.samples + k] += 90;
        assert_true(control_flushes(&o) > 0);
        observation_free(&o);
    }
}

/* These levels replace at random, so in every lap some loads hit and some miss. */
static void misses_at_random_are_no_flush(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct observation o = new_control();

        for (uint32_t p = 2; p < o.spec.point_count; p++)
            for (uint32_t k = 0; k < o.spec.samples; k++)
                o.result.values[p * o.spec.samples + k] += rng_below(&rng, 2) ? 90 : 0;
        assert_int_equal(control_flushes(&o), 0);
        observation_free(&o);
    }
}

/* For each rise in the control, the sweep must have found a level. */
static void climbs_need_levels(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct observation_set set = {.limits = limits};
        struct observation o = new_control();
        struct err err = {0};
        const struct level_estimate near = {.sweep = {.last_fit_pages = 8, .full_pages = 11}};
        const struct level_estimate far = {.sweep = {.last_fit_pages = 90, .full_pages = 107}};
        const struct level_estimate wide = {.sweep = {.last_fit_pages = 13, .full_pages = 107}};
        const struct level_estimate both[] = {near, far};

        for (uint32_t p = 1; p < o.spec.point_count; p++)
            for (uint32_t k = 0; k < o.spec.samples; k++)
                o.result.values[p * o.spec.samples + k] += p == 1 ? 40 : p == 2 ? 30 : 82;
        assert_int_equal(observation_set_add(&set, &o, &err), STATUS_OK);
        assert_true(control_is_explained(&set, both, 2));
        assert_false(control_is_explained(&set, &near, 1));
        assert_false(control_is_explained(&set, &far, 1));
        assert_false(control_is_explained(&set, &wide, 1));
        assert_false(control_is_explained(&set, NULL, 0));
        observation_set_free(&set);
        assert_true(control_is_explained(&set, NULL, 0));
    }
}

/* Two rises at neighboring footprints are two levels if all loads of the footprint between the
 * rises differ from the loads at both rises. The rises are one level if some pages of that
 * footprint hit and some miss. */
static void neighboring_climbs_are_two_if_a_plateau_is_between(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct observation_set two = {.limits = limits};
        struct observation_set one = {.limits = limits};
        struct observation plateau = new_control();
        struct observation mixture = new_control();
        struct err err = {0};
        const double share = 0.35 + 0.3 * rng_unit(&rng);
        const struct level_estimate wide = {.sweep = {.last_fit_pages = 13, .full_pages = 45}};
        const struct level_estimate both[] = {{.sweep = {.last_fit_pages = 9, .full_pages = 11}},
                                              wide};

        for (uint32_t k = 0; k < plateau.spec.samples; k++) {
            const uint32_t n = plateau.spec.samples;
            const bool misses = rng_unit(&rng) < share;

            plateau.result.values[n + k] = about(266 + 13);
            mixture.result.values[n + k] = about(266 + (misses ? 56 : 0));
            for (uint32_t p = 2; p < plateau.spec.point_count; p++)
                plateau.result.values[p * n + k] = mixture.result.values[p * n + k] =
                    about(266 + 56);
        }
        assert_int_equal(observation_set_add(&two, &plateau, &err), STATUS_OK);
        assert_int_equal(observation_set_add(&one, &mixture, &err), STATUS_OK);
        assert_true(control_is_explained(&two, both, 2));
        assert_false(control_is_explained(&two, &wide, 1));
        assert_true(control_is_explained(&one, &wide, 1));
        observation_set_free(&two);
        observation_set_free(&one);
    }
}

/* Adds a sweep over `count` points that double from `first` on, with levels of 16 and 512 pages.
 * Loads of its lines take 266 + `far` cycles, and up to `wide` cycles more. From `missing` pages
 * on, each page misses the second level. */
static void add_sweep(struct observation_set *set, uint64_t first, uint32_t count, double far,
                      double wide, uint64_t missing)
{
    struct observation o = {.spec = {.kind = PROBE_CHASE,
                                     .stride_bytes = levels_sweep_stride(&limits),
                                     .point_count = count,
                                     .samples = LEVELS_SWEEP_SAMPLES,
                                     .warm_laps = 1,
                                     .sm_count = 1},
                            .result = {.sm_count = 4}};
    struct err err = {0};

    o.result.value_count = (size_t)count * o.spec.samples;
    o.result.values = calloc(o.result.value_count, sizeof o.result.values[0]);
    assert_non_null(o.result.values);
    for (uint32_t p = 0; p < count; p++) {
        o.spec.points[p] = first << p;
        for (uint32_t k = 0; k < o.spec.samples; k++)
            o.result.values[p * o.spec.samples + k] =
                about(266 + far + wide * (k % 8) / 8 + (o.spec.points[p] > 16 ? 10 : 0) +
                      (o.spec.points[p] > 512 || o.spec.points[p] >= missing ? 90 : 0));
    }
    assert_int_equal(observation_set_add(set, &o, &err), STATUS_OK);
}

static void sweeps_that_disagree_say_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct observation_set set = {.limits = limits};
        struct level_estimate levels[LEVELS_MAX];
        uint32_t asked = 0;

        add_sweep(&set, 1, 9, 0, 0, UINT64_MAX);
        add_sweep(&set, 32, 9, 0, 40, 32); /* every page was evicted before its load was timed */
        struct probe_spec near = set.items[0].spec, far = set.items[1].spec;

        assert_int_equal(levels_count_sweeps(&set, &near, &asked), 0);
        assert_int_equal(levels_count_sweeps(&set, &far, &asked), 0);
        assert_int_equal(asked, 1);
        assert_int_equal(levels_estimate(&set, levels), 0);
        add_sweep(&set, 32, 9, 0, 40, UINT64_MAX); /* once more */
        assert_int_equal(levels_count_sweeps(&set, &near, &asked), 1);
        assert_int_equal(levels_count_sweeps(&set, &far, &asked), 1);
        assert_int_equal(asked, 2);
        assert_int_equal(levels_estimate(&set, levels), 2);
        assert_int_equal(levels[1].sweep.last_fit_pages, 512);
        observation_set_free(&set);
    }
}

/* On an H200 (GPU-f4012706, 2026-11-23), a load of one line is 30 cycles faster than the median of
 * many lines. It is 21 cycles faster than all but a few lines. A sweep whose pages were evicted
 * differs by more than the distance of lines. */
static void sweeps_behind_lines_at_other_distances_agree(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        const double wide = 20 + (double)rng_below(&rng, 30);
        const double far = ((double)rng_below(&rng, 200) / 100 - 1) * wide;
        struct observation_set set = {.limits = limits};
        uint32_t asked = 0;

        add_sweep(&set, 1, 9, far < 0 ? wide - far : 0, 0, UINT64_MAX);
        add_sweep(&set, 32, 9, far < 0 ? 0 : far, wide, 64);
        struct probe_spec near = set.items[0].spec, many = set.items[1].spec;

        assert_int_equal(levels_count_sweeps(&set, &near, &asked), 0);
        add_sweep(&set, 32, 9, far < 0 ? 0 : far, wide, UINT64_MAX);
        assert_int_equal(levels_count_sweeps(&set, &near, &asked), 1);
        assert_int_equal(levels_count_sweeps(&set, &many, &asked), 1);
        observation_set_free(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_gpu_takes_nothing_away),
        cmocka_unit_test(a_flush_is_seen_at_any_moment),
        cmocka_unit_test(misses_at_random_are_no_flush),
        cmocka_unit_test(climbs_need_levels),
        cmocka_unit_test(neighboring_climbs_are_two_if_a_plateau_is_between),
        cmocka_unit_test(sweeps_that_disagree_say_nothing),
        cmocka_unit_test(sweeps_behind_lines_at_other_distances_agree),
    };
    const char *const seed = getenv("REACH_SEED");

    rng.state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    print_message("# REACH_SEED=%llu\n", (unsigned long long)rng.state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
