/* test_sweep.c: finds steps in one footprint sweep, from hand-made rows of cycles. */
#include "analysis/levels/sweep.h"
#include "base/rng.h"
#include "tests/unit/support/paper_gpu.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { POINTS = 32, SAMPLES = 256, MOST_OUTLIERS = 8 };

/* Makes a sweep of 2, 4, 6 .. pages, in which every load takes `cycles`. */
static void begin_sweep(struct observation *out, uint32_t cycles)
{
    *out = (struct observation){.spec = {.kind = PROBE_CHASE,
                                         .stride_bytes = 1 << 21,
                                         .point_count = POINTS,
                                         .samples = SAMPLES,
                                         .warm_laps = 1,
                                         .sm_count = 1}};
    out->result.value_count = (size_t)POINTS * SAMPLES;
    out->result.values = calloc(out->result.value_count, sizeof *out->result.values);
    assert_non_null(out->result.values);
    for (uint32_t p = 0; p < POINTS; p++)
        out->spec.points[p] = 2 * (p + 1);
    for (size_t i = 0; i < out->result.value_count; i++)
        out->result.values[i] = cycles;
}

/* Adds `cycles` to one load in `every` of the points from `first` on. */
static void lift(struct observation *o, uint32_t first, uint32_t every, uint32_t cycles)
{
    for (uint32_t p = first; p < POINTS; p++)
        for (uint32_t i = 0; i < SAMPLES; i += every)
            o->result.values[(size_t)p * SAMPLES + i] += cycles;
}

/* Adds uniform noise, and 1 % outliers of up to 500 cycles, but no more than MOST_OUTLIERS to a
 * point. If 4 % of the loads of a point are outliers, the point counts as one with misses. */
static void disturb(struct observation *o, struct rng *rng, uint32_t noise)
{
    uint32_t outliers = 0;

    for (size_t i = 0; i < o->result.value_count; i++) {
        outliers = i % SAMPLES == 0 ? 0 : outliers;
        o->result.values[i] += (uint32_t)rng_below(rng, 2 * noise + 1);
        if (rng_unit(rng) < 0.01 && outliers++ < MOST_OUTLIERS)
            o->result.values[i] += (uint32_t)rng_below(rng, 500);
    }
}

static void a_flat_sweep_has_no_step(void **state)
{
    struct observation o;
    struct sweep_step steps[SWEEP_MAX_STEPS];
    struct rng rng = {.state = paper_seed("a flat sweep", 11)};

    (void)state;
    begin_sweep(&o, 300);
    assert_int_equal(sweep_find_steps(&o, false, steps), 0);
    for (int round = 0; round < 200; round++) {
        observation_free(&o);
        begin_sweep(&o, 300);
        disturb(&o, &rng, (uint32_t)rng_below(&rng, 6));
        assert_int_equal(sweep_find_steps(&o, false, steps), 0);
    }
    observation_free(&o);
}

static void a_step_has_its_ends_and_its_height(void **state)
{
    struct observation o;
    struct sweep_step steps[SWEEP_MAX_STEPS];

    (void)state;
    begin_sweep(&o, 300);
    lift(&o, 10, 1, 55);
    assert_int_equal(sweep_find_steps(&o, false, steps), 1);
    assert_int_equal(steps[0].last_fit_pages, 20);
    assert_int_equal(steps[0].first_miss_pages, 22);
    assert_int_equal(steps[0].full_pages, 22);
    assert_float_equal(steps[0].penalty_cycles, 55, 0.5);
    assert_float_equal(steps[0].share, 1, 1e-9);
    observation_free(&o);
}

/* Between the plateaus, more and more loads miss. The step begins with the first load that
 * misses. */
static void a_slope_belongs_to_the_step(void **state)
{
    struct observation o;
    struct sweep_step steps[SWEEP_MAX_STEPS];

    (void)state;
    begin_sweep(&o, 300);
    for (uint32_t p = 8; p < POINTS; p++)
        for (uint32_t i = 0; i < SAMPLES; i++)
            if (i * 4 < SAMPLES * (p - 7))
                o.result.values[(size_t)p * SAMPLES + i] += 100;
    assert_int_equal(sweep_find_steps(&o, false, steps), 1);
    assert_int_equal(steps[0].last_fit_pages, 16);
    assert_int_equal(steps[0].first_miss_pages, 18);
    assert_int_equal(steps[0].full_pages, 24);
    observation_free(&o);
}

/* At a stride of half an entry, every second load misses. At a sixteenth of an entry, one load in
 * sixteen misses, and no median rises. */
static void a_stride_shorter_than_the_entry_lifts_a_share(void **state)
{
    (void)state;
    for (uint32_t every = 2; every <= 16; every *= 2) {
        struct observation o;
        struct sweep_step steps[SWEEP_MAX_STEPS];
        begin_sweep(&o, 300);
        lift(&o, 16, every, 200);
        assert_int_equal(sweep_find_steps(&o, false, steps), 1);
        assert_int_equal(steps[0].last_fit_pages, 32);
        assert_float_equal(steps[0].share, 1.0 / every, 1e-9);
        assert_float_equal(steps[0].penalty_cycles, 200, 0.5);
        observation_free(&o);
    }
}

static void steps_come_in_order(void **state)
{
    struct observation o;
    struct sweep_step steps[SWEEP_MAX_STEPS];

    (void)state;
    begin_sweep(&o, 300);
    lift(&o, 6, 1, 10);
    lift(&o, 16, 1, 60);
    lift(&o, 26, 1, 250);
    assert_int_equal(sweep_find_steps(&o, false, steps), 3);
    assert_int_equal(steps[0].last_fit_pages, 12);
    assert_int_equal(steps[1].last_fit_pages, 32);
    assert_int_equal(steps[2].last_fit_pages, 52);
    assert_float_equal(steps[0].penalty_cycles, 10, 0.5);
    assert_float_equal(steps[1].penalty_cycles, 60, 0.5);
    assert_float_equal(steps[2].penalty_cycles, 250, 0.5);
    observation_free(&o);
}

/* A staircase has more steps than the array: the first ones are found, and nothing is written
 * past it. */
static void never_more_steps_than_there_is_room_for(void **state)
{
    struct observation o;
    struct sweep_step steps[SWEEP_MAX_STEPS + 1];

    (void)state;
    memset(steps, 0x5a, sizeof steps);
    const struct sweep_step untouched = steps[SWEEP_MAX_STEPS];
    begin_sweep(&o, 300);
    for (uint32_t p = 2; p < POINTS; p += 2)
        lift(&o, p, 1, 40);
    assert_int_equal(sweep_find_steps(&o, false, steps), SWEEP_MAX_STEPS);
    assert_memory_equal(&steps[SWEEP_MAX_STEPS], &untouched, sizeof untouched);
    observation_free(&o);
}

/* Neither a point that a neighbor slows down nor a fall is a level. */
static void a_lone_point_and_a_fall_are_no_steps(void **state)
{
    struct observation o;
    struct sweep_step steps[SWEEP_MAX_STEPS];

    (void)state;
    begin_sweep(&o, 300);
    for (uint32_t i = 0; i < SAMPLES; i++)
        o.result.values[12 * SAMPLES + i] += 400;
    assert_int_equal(sweep_find_steps(&o, false, steps), 0);
    observation_free(&o);

    begin_sweep(&o, 300);
    for (size_t i = (size_t)16 * SAMPLES; i < o.result.value_count; i++)
        o.result.values[i] -= 50;
    assert_int_equal(sweep_find_steps(&o, false, steps), 0);
    observation_free(&o);
}

/* Returns whether the steps of a sweep explain its rises. */
static bool is_explained(const struct observation *o, uint32_t *out_steps)
{
    struct sweep_step steps[SWEEP_MAX_STEPS];

    *out_steps = sweep_find_steps(o, false, steps);
    return sweep_is_explained(o, steps, *out_steps);
}

/* The SM clock changes at each point behind a rise of 80 cycles, so that no two neighbors are
 * alike. There is no step, and the sweep is not explained. On an H200 beside matrix products, such
 * a sweep lacked a level. */
static void a_rise_without_a_plateau_is_unexplained(void **state)
{
    static const uint32_t rises[] = {80, 74, 83, 90, 78};
    struct rng rng = {.state = paper_seed("a rise without a plateau", 19)};

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct observation o;
        uint32_t steps;
        begin_sweep(&o, 300);
        lift(&o, 8, 1, 10);
        for (uint32_t i = 0; i < 5 * SAMPLES; i++)
            o.result.values[(POINTS - 5) * SAMPLES + i] += rises[i / SAMPLES];
        disturb(&o, &rng, (uint32_t)rng_below(&rng, 3));
        assert_false(is_explained(&o, &steps));
        assert_int_equal(steps, 1);
        observation_free(&o);
    }
}

/* Steps explain their own rises and slopes. One or two points at the end of the range are not
 * enough for a rise. */
static void a_step_explains_its_rise(void **state)
{
    struct rng rng = {.state = paper_seed("a step explains its rise", 20)};

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct observation o;
        uint32_t steps;
        const uint32_t at = 2 + (uint32_t)rng_below(&rng, POINTS / 2 - 2);
        const uint32_t every = 1U << rng_below(&rng, 4);
        begin_sweep(&o, 300);
        lift(&o, at, 1, 10 + (uint32_t)rng_below(&rng, 20));
        lift(&o, at + 4 + (uint32_t)rng_below(&rng, 8), every, 60 + (uint32_t)rng_below(&rng, 200));
        lift(&o, POINTS - 1 - (uint32_t)rng_below(&rng, 2), 1, 500);
        disturb(&o, &rng, (uint32_t)rng_below(&rng, 3));
        assert_true(is_explained(&o, &steps));
        assert_true(steps >= 2);
        observation_free(&o);
    }
}

/* The latencies of lines differ by up to 60 cycles. A rise below that spread comes from another
 * choice of lines, and is not a step. */
static void a_step_lost_in_the_spread_is_not_seen(void **state)
{
    struct observation o;
    struct sweep_step steps[SWEEP_MAX_STEPS];

    (void)state;
    begin_sweep(&o, 300);
    for (size_t i = 0; i < o.result.value_count; i++)
        o.result.values[i] += i % 4 * 20;
    lift(&o, 16, 1, 8);
    assert_int_equal(sweep_find_steps(&o, false, steps), 0);
    observation_free(&o);
}

/* Noise and outliers may change only the height of a step, and only by the size of the noise. */
static void noise_does_not_move_a_step(void **state)
{
    struct rng rng = {.state = paper_seed("noise", 12)};

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct observation o;
        struct sweep_step steps[SWEEP_MAX_STEPS];
        const uint32_t at = 4 + (uint32_t)rng_below(&rng, POINTS - 8);
        const uint32_t height = 30 + (uint32_t)rng_below(&rng, 400);
        begin_sweep(&o, 200 + (uint32_t)rng_below(&rng, 200));
        lift(&o, at, 1, height);
        disturb(&o, &rng, (uint32_t)rng_below(&rng, 6));
        assert_int_equal(sweep_find_steps(&o, false, steps), 1);
        assert_int_equal(steps[0].last_fit_pages, 2 * at);
        assert_int_equal(steps[0].first_miss_pages, 2 * at + 2);
        assert_float_equal(steps[0].penalty_cycles, height, 2);
        observation_free(&o);
    }
}

/* The order of the loads of a point and the distance of the memory have no effect. */
static void order_and_distance_do_not_matter(void **state)
{
    struct rng rng = {.state = paper_seed("order and distance", 13)};

    (void)state;
    for (int round = 0; round < 50; round++) {
        struct observation o;
        struct sweep_step before[SWEEP_MAX_STEPS];
        struct sweep_step after[SWEEP_MAX_STEPS];
        begin_sweep(&o, 300);
        lift(&o, 5 + (uint32_t)rng_below(&rng, 8), 1, 40);
        lift(&o, 18 + (uint32_t)rng_below(&rng, 8), 2, 150);
        disturb(&o, &rng, 3);
        const uint32_t n = sweep_find_steps(&o, false, before);
        for (uint32_t p = 0; p < POINTS; p++) {
            uint32_t *row = o.result.values + (size_t)p * SAMPLES;
            for (uint32_t i = SAMPLES - 1; i > 0; i--) {
                const uint32_t k = (uint32_t)rng_below(&rng, i + 1);
                const uint32_t swap = row[i];
                row[i] = row[k];
                row[k] = swap;
            }
            for (uint32_t i = 0; i < SAMPLES; i++)
                row[i] += 77;
        }
        assert_int_equal(sweep_find_steps(&o, false, after), n);
        assert_int_equal(n, 2);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(after[i].last_fit_pages, before[i].last_fit_pages);
            assert_int_equal(after[i].first_miss_pages, before[i].first_miss_pages);
            assert_int_equal(after[i].full_pages, before[i].full_pages);
            assert_float_equal(after[i].penalty_cycles, before[i].penalty_cycles, 1e-9);
            assert_float_equal(after[i].share, before[i].share, 1e-9);
        }
        observation_free(&o);
    }
}

static void counts_the_share_above_a_threshold(void **state)
{
    struct observation o;

    (void)state;
    begin_sweep(&o, 300);
    lift(&o, 3, 4, 100);
    assert_float_equal(sweep_share_above(&o, 2, 350), 0, 1e-9);
    assert_float_equal(sweep_share_above(&o, 3, 350), 0.25, 1e-9);
    assert_float_equal(sweep_share_above(&o, 3, 400), 0, 1e-9);
    assert_float_equal(sweep_share_above(&o, 3, 299.5), 1, 1e-9);
    assert_float_equal(sweep_share_above(&o, 3, -5), 1, 1e-9);
    observation_free(&o);
}

/* Every page has a line of its own, and the lines of the first pages are near. From `full` pages
 * on, all pages miss. */
static void fill_from_lines(struct observation *o, uint64_t full, struct rng *rng)
{
    for (uint32_t p = 0; p < POINTS; p++)
        for (uint32_t k = 0; k < SAMPLES; k++) {
            const uint64_t pages = o->spec.points[p];
            const uint64_t page = k % pages;
            const uint32_t line = (uint32_t)(page < 18 ? 276 + page % 5 : 300 + page % 9);
            const uint32_t miss = pages >= full ? 60 : 0;
            o->result.values[(size_t)p * SAMPLES + k] = line + miss + (uint32_t)rng_below(rng, 5);
        }
}

/* On an H200 without the virtual memory API, larger footprints contain lines that are farther
 * away. */
static void lines_further_away_are_no_step(void **state)
{
    struct observation o;
    struct sweep_step steps[SWEEP_MAX_STEPS];
    struct rng rng = {.state = paper_seed("lines further away", 18)};

    (void)state;
    begin_sweep(&o, 0);
    fill_from_lines(&o, UINT64_MAX, &rng);
    assert_int_equal(sweep_find_steps(&o, true, steps), 0);
    assert_int_equal(sweep_find_steps(&o, false, steps),
                     1); /* the sweep finds a step if it does not test for far lines */
    fill_from_lines(&o, 40, &rng);
    assert_int_equal(sweep_find_steps(&o, true, steps), 1);
    assert_true(steps[0].last_fit_pages <= 38 && steps[0].full_pages >= 40);
    /* The penalty is 60 cycles, and the far lines are 24 cycles slower. The sweep cannot separate
     * the two causes. */
    assert_true(steps[0].penalty_cycles >= 60 - 5 && steps[0].penalty_cycles <= 60 + 24 + 5);
    free(o.result.values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flat_sweep_has_no_step),
        cmocka_unit_test(a_step_has_its_ends_and_its_height),
        cmocka_unit_test(a_slope_belongs_to_the_step),
        cmocka_unit_test(a_stride_shorter_than_the_entry_lifts_a_share),
        cmocka_unit_test(steps_come_in_order),
        cmocka_unit_test(never_more_steps_than_there_is_room_for),
        cmocka_unit_test(a_lone_point_and_a_fall_are_no_steps),
        cmocka_unit_test(a_rise_without_a_plateau_is_unexplained),
        cmocka_unit_test(a_step_explains_its_rise),
        cmocka_unit_test(a_step_lost_in_the_spread_is_not_seen),
        cmocka_unit_test(noise_does_not_move_a_step),
        cmocka_unit_test(order_and_distance_do_not_matter),
        cmocka_unit_test(counts_the_share_above_a_threshold),
        cmocka_unit_test(lines_further_away_are_no_step),
    };
    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
