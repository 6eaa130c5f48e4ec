/* test_levels.c: finds TLB levels from footprint walks over a GPU on paper (paper_gpu.h). */
#include "analysis/levels/levels.h"
#include "base/units.h"
#include "tests/unit/support/paper_gpu.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

/* Makes all probes that the level searches request, and returns the levels. */
static uint32_t levels_of(struct paper_gpu *gpu, struct level_estimate *out)
{
    struct observation_set set;
    paper_gpu_begin(gpu, &set);
    assert_int_equal(paper_gpu_measure(gpu, DEPTH_QUICK, NULL, NULL, &set), STATUS_OK);
    const uint32_t n = levels_estimate(&set, out);
    observation_set_free(&set);
    return n;
}

static void check_level(const struct level_estimate *found, const struct paper_level *l)
{
    assert_true(found->entry_known);
    assert_int_equal(found->entry_bytes, l->entry_bytes);
    assert_int_equal(found->lo_pages, l->fits);
    assert_int_equal(found->hi_pages, l->fits + 1);
    assert_float_equal(found->penalty_cycles, l->penalty_cycles, 2);
    assert_in_range(found->sat_hi_pages, l->fits + 1, l->saturated + l->saturated / 64 + 1);
    assert_true(found->separation > 0.9);
}

static void nothing_seen_is_no_level(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct level_estimate levels[LEVELS_MAX];

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    assert_int_equal(levels_estimate(&set, levels), 0);
    gpu.level_count = 1;
    gpu.levels[0].fits = 1u << 30; /* no footprint in the range exceeds the level */
    gpu.levels[0].saturated = gpu.levels[0].fits + 1;
    assert_int_equal(levels_of(&gpu, levels), 0);
    observation_set_free(&set);
}

static void two_levels_come_back(void **state)
{
    struct paper_gpu gpu;
    struct level_estimate levels[LEVELS_MAX];

    (void)state;
    paper_gpu_init(&gpu);
    assert_int_equal(levels_of(&gpu, levels), 2);
    check_level(&levels[0], &gpu.levels[0]);
    check_level(&levels[1], &gpu.levels[1]);
}

/* Entries are as long as the stride of the sweep, longer, or shorter by a factor of up to 32. */
static void the_entry_is_found_at_any_length(void **state)
{
    (void)state;
    for (uint64_t entry = 2 * MIB; entry <= 512 * MIB; entry *= 2) {
        struct paper_gpu gpu;
        struct level_estimate levels[LEVELS_MAX];
        paper_gpu_init(&gpu);
        gpu.level_count = 1;
        gpu.levels[0] = gpu.levels[1];
        gpu.levels[0].entry_bytes = entry;
        gpu.levels[0].fits = (uint32_t)(entry > 128 * MIB ? 100 : 300);
        gpu.levels[0].saturated = gpu.levels[0].fits + 20;
        assert_int_equal(levels_of(&gpu, levels), 1);
        check_level(&levels[0], &gpu.levels[0]);
    }
}

/* The structure is the same under noise and outliers, for any number of entries. */
static void noise_does_not_change_the_levels(void **state)
{
    struct rng rng = {.state = paper_seed("levels under noise", 21)};

    (void)state;
    for (int round = 0; round < 60; round++) {
        struct paper_gpu gpu;
        struct level_estimate levels[LEVELS_MAX];
        paper_gpu_init(&gpu);
        gpu.rng.state = rng_next(&rng);
        gpu.noise_cycles = 5 * rng_unit(&rng);
        gpu.outlier_share = 0.01 * rng_unit(&rng);
        gpu.levels[0].fits = 8 + (uint32_t)rng_below(&rng, 40);
        gpu.levels[0].saturated = gpu.levels[0].fits + 1 + (uint32_t)rng_below(&rng, 8);
        gpu.levels[0].penalty_cycles = 20 + (double)rng_below(&rng, 50);
        gpu.levels[1].fits = 300 + (uint32_t)rng_below(&rng, 900);
        gpu.levels[1].saturated = gpu.levels[1].fits + 1 + (uint32_t)rng_below(&rng, 100);
        gpu.levels[1].penalty_cycles = 60 + (double)rng_below(&rng, 400);
        assert_int_equal(levels_of(&gpu, levels), 2);
        for (int k = 0; k < 2; k++) {
            assert_true(levels[k].entry_known);
            assert_int_equal(levels[k].entry_bytes, gpu.levels[k].entry_bytes);
            if (levels[k].counted)
                assert_in_range(levels[k].lo_pages, gpu.levels[k].fits, gpu.levels[k].fits + 1);
            assert_float_equal(levels[k].penalty_cycles, gpu.levels[k].penalty_cycles, 3);
        }
    }
}

/* A longer latency of a chip does not change the number of entries that is found. */
static void the_distance_of_memory_does_not_matter(void **state)
{
    (void)state;
    for (double cycles = 100; cycles <= 900; cycles += 200) {
        struct paper_gpu gpu;
        struct level_estimate levels[LEVELS_MAX];
        paper_gpu_init(&gpu);
        gpu.hit_cycles = cycles;
        assert_int_equal(levels_of(&gpu, levels), 2);
        check_level(&levels[0], &gpu.levels[0]);
        check_level(&levels[1], &gpu.levels[1]);
    }
}

static void the_sweep_spans_the_range(void **state)
{
    (void)state;
    for (uint64_t granule = 64 * KIB; granule <= 2 * MIB; granule *= 2)
        for (uint64_t range = GIB; range <= 4096 * GIB; range *= 2) {
            const struct gpu_limits limits = {.range_bytes = range, .granule_bytes = granule};
            const uint64_t stride = levels_sweep_stride(&limits);
            assert_true(stride >= granule);
            assert_true(stride % granule == 0 && (stride & (stride - 1)) == 0);
            assert_true(range / stride <= 8192);
            assert_true(stride == granule || range / (stride / 2) > 8192);
        }
}

static void an_entry_test_is_a_probe_that_can_be_made(void **state)
{
    const struct gpu_limits limits = {
        .range_bytes = 64 * GIB, .granule_bytes = 2 * MIB, .sm_count = 4};
    struct level_bracket b = {.stride_bytes = 32 * MIB,
                              .last_fit_pages = 100,
                              .first_miss_pages = 110,
                              .full_pages = 120};
    struct probe_spec spec;

    (void)state;
    assert_true(levels_entry_test(&b, &limits, 3, &spec));
    assert_int_equal(probe_check(&spec, &limits, NULL), STATUS_OK);
    assert_int_equal(spec.stride_bytes, 32 * MIB);
    assert_int_equal(spec.sms[0], 3);
    assert_true(spec.points[0] < b.last_fit_pages); /* this number of pages certainly hits */
    assert_true(spec.points[1] > b.full_pages);     /* this number of pages certainly misses */

    b.stride_bytes = 32 * GIB; /* the stride is out of range */
    assert_false(levels_entry_test(&b, &limits, 3, &spec));
    b.stride_bytes = LEVELS_MIN_STRIDE / 2; /* no GPU translates smaller pages */
    assert_false(levels_entry_test(&b, &limits, 3, &spec));
    b = (struct level_bracket){
        .stride_bytes = 2 * MIB, .last_fit_pages = 1, .first_miss_pages = 2, .full_pages = 2};
    assert_false(levels_entry_test(
        &b, &limits, 3, &spec)); /* too few pages for a distinction between hits and misses */
}

/* If a measurement ends early, its result has fewer values, but no other values. */
static void less_data_is_less_knowledge(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    assert_int_equal(paper_gpu_measure(&gpu, DEPTH_QUICK, NULL, NULL, &set), STATUS_OK);
    const size_t all = set.count;
    for (size_t n = 0; n <= all; n++) {
        struct level_estimate levels[LEVELS_MAX];
        set.count = n;
        const uint32_t found = levels_estimate(&set, levels);
        assert_true(found <= 2);
        for (uint32_t k = 0; k < found; k++) {
            if (levels[k].entry_known)
                assert_int_equal(levels[k].entry_bytes, gpu.levels[k].entry_bytes);
            if (levels[k].lo_pages)
                assert_true(levels[k].lo_pages <= gpu.levels[k].fits);
            if (levels[k].hi_pages)
                assert_true(levels[k].hi_pages > gpu.levels[k].fits);
        }
    }
    set.count = all;
    observation_set_free(&set);
}

static void finds_the_chase_with_these_points(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct probe_spec spec = {.kind = PROBE_CHASE,
                              .stride_bytes = 2 * MIB,
                              .point_count = 2,
                              .points = {4, 8},
                              .samples = 16,
                              .sm_count = 1};

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    assert_null(levels_find_chase(&set, &spec));
    paper_gpu_ask(&gpu, &spec, &set);
    assert_ptr_equal(levels_find_chase(&set, &spec), &set.items[0]);
    spec.points[1] = 9;
    assert_null(levels_find_chase(&set, &spec));
    spec.points[1] = 8;
    spec.stride_bytes = 4 * MIB;
    assert_null(levels_find_chase(&set, &spec));
    observation_set_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_seen_is_no_level),
        cmocka_unit_test(two_levels_come_back),
        cmocka_unit_test(the_entry_is_found_at_any_length),
        cmocka_unit_test(noise_does_not_change_the_levels),
        cmocka_unit_test(the_distance_of_memory_does_not_matter),
        cmocka_unit_test(the_sweep_spans_the_range),
        cmocka_unit_test(an_entry_test_is_a_probe_that_can_be_made),
        cmocka_unit_test(less_data_is_less_knowledge),
        cmocka_unit_test(finds_the_chase_with_these_points),
    };
    return cmocka_run_group_tests_name("levels", tests, NULL, NULL);
}
