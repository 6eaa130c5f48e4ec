/* test_window_level.c: finds the level that limits a window, for given sharing. */
#include "analysis/sharing/window_level.h"
#include "base/units.h"
#include "tests/unit/support/paper_gpu.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

enum { SMS = 24 };

static void nothing_asked_is_nothing_known(void **state)
{
    const struct sharing_estimate s = {0};

    (void)state;
    assert_int_equal(sharing_derive(&s, SMS), SHARED_UNKNOWN);
}

static void a_conflict_outweighs_all(void **state)
{
    struct sharing_estimate s = {.rounds = SMS, .lone_pivots = SMS, .conflict = true};

    (void)state;
    assert_int_equal(sharing_derive(&s, SMS), SHARED_UNKNOWN);
    s = (struct sharing_estimate){.rounds = 3, .whole_gpu = true, .conflict = true};
    assert_int_equal(sharing_derive(&s, SMS), SHARED_UNKNOWN);
    s = (struct sharing_estimate){.rounds = 3, .grouped_sms = SMS, .conflict = true};
    assert_int_equal(sharing_derive(&s, SMS), SHARED_UNKNOWN);
}

/* A level is private if the SMs of a sample evict entries of no other SM. A smaller sample is not
 * enough, and one eviction proves that the level is not private. */
static void private_needs_a_sample(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < SHARING_SAMPLE; n++) {
        const struct sharing_estimate few = {.rounds = n, .lone_pivots = n, .grouped_sms = n};
        assert_int_equal(sharing_derive(&few, SMS), SHARED_UNKNOWN);
    }
    struct sharing_estimate s = {
        .rounds = SHARING_SAMPLE, .lone_pivots = SHARING_SAMPLE, .grouped_sms = SHARING_SAMPLE};
    assert_int_equal(sharing_derive(&s, SMS), SHARED_SM);
    s.lone_pivots -= 1;
    assert_int_equal(sharing_derive(&s, SMS), SHARED_UNKNOWN);
    s = (struct sharing_estimate){.rounds = 4, .lone_pivots = 4, .grouped_sms = 4};
    assert_int_equal(sharing_derive(&s, 4),
                     SHARED_SM); /* the sample contains all SMs of this GPU */
}

static void all_or_groups(void **state)
{
    struct sharing_estimate s = {.rounds = 1, .whole_gpu = true, .grouped_sms = SMS};

    (void)state;
    assert_int_equal(sharing_derive(&s, SMS), SHARED_GPU);
    s = (struct sharing_estimate){.rounds = 3, .grouped_sms = SMS};
    assert_int_equal(sharing_derive(&s, SMS), SHARED_GROUP);
    s.grouped_sms = SMS - 1;
    assert_int_equal(sharing_derive(&s, SMS), SHARED_UNKNOWN);
}

/* Measures a GPU on paper and returns its structure. */
static struct structure structure_of(struct paper_gpu *gpu)
{
    struct observation_set set;
    struct structure s;
    paper_gpu_begin(gpu, &set);
    assert_int_equal(paper_gpu_measure(gpu, DEPTH_QUICK, NULL, NULL, &set), STATUS_OK);
    structure_estimate(&set, &s);
    observation_set_free(&set);
    return s;
}

static void the_outermost_group_level_limits_windows(void **state)
{
    struct paper_gpu gpu;

    (void)state;
    paper_gpu_init(&gpu);
    const struct structure s = structure_of(&gpu);
    assert_int_equal(s.level_count, 2);
    assert_int_equal(s.shared_by[0], SHARED_SM);
    assert_int_equal(s.shared_by[1], SHARED_GROUP);
    assert_int_equal(s.window_level, 1);
    const struct maybe_u64 reach = structure_reach_bytes(&s);
    assert_true(IS_KNOWN(reach));
    assert_int_equal(reach.v, 600 * 32 * MIB);
    const struct maybe_u64 window = structure_recommended_bytes(&s);
    assert_true(IS_KNOWN(window));
    assert_int_equal(window.v, 599 * 32 * MIB);
}

/* If no level is shared by groups, the outermost private level limits a window. */
static void a_private_level_limits_where_no_group_does(void **state)
{
    struct paper_gpu gpu;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_share(&gpu, 1, gpu.sm_count);
    const struct structure s = structure_of(&gpu);
    assert_int_equal(s.shared_by[1], SHARED_GPU);
    assert_int_equal(s.window_level, 0);
    assert_int_equal(structure_reach_bytes(&s).v, 16 * 2 * MIB);
}

static void what_all_share_no_window_helps(void **state)
{
    struct paper_gpu gpu;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_share(&gpu, 1, gpu.sm_count);
    gpu.levels[0] = gpu.levels[1];
    gpu.level_count = 1;
    const struct structure s = structure_of(&gpu);
    assert_int_equal(s.shared_by[0], SHARED_GPU);
    assert_int_equal(s.window_level, -1);
    const struct maybe_u64 reach = structure_reach_bytes(&s);
    assert_false(IS_KNOWN(reach));
    assert_int_equal(reach.v, 0);
    assert_false(IS_KNOWN(structure_recommended_bytes(&s)));
}

static void no_level_is_beyond_memory(void **state)
{
    const struct structure s = {.window_level = -1};

    (void)state;
    assert_int_equal(structure_reach_bytes(&s).known, MAYBE_NOT_OBSERVABLE);
    assert_int_equal(structure_reach_bytes(&s).reason, REASON_BEYOND_MEMORY);
}

static void a_window_level_that_is_not_refined_has_no_reach(void **state)
{
    struct structure s = {.level_count = 1, .window_level = 0};

    (void)state;
    s.levels[0] = (struct level_estimate){.entry_known = true, .entry_bytes = 2 * MIB};
    assert_int_equal(structure_reach_bytes(&s).known, MAYBE_UNKNOWN);
    s.levels[0].lo_pages = 100;
    assert_int_equal(structure_reach_bytes(&s).known, MAYBE_UNKNOWN);
    s.levels[0].hi_pages = 101;
    assert_int_equal(structure_reach_bytes(&s).known, MAYBE_UNKNOWN);
    s.levels[0].counted = true;
    assert_int_equal(structure_reach_bytes(&s).v, 200 * MIB);
    assert_int_equal(structure_recommended_bytes(&s).v, 198 * MIB);
    s.levels[0].lo_pages = 1; /* the level has one entry, and the margin takes it */
    assert_false(IS_KNOWN(structure_recommended_bytes(&s)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_asked_is_nothing_known),
        cmocka_unit_test(a_conflict_outweighs_all),
        cmocka_unit_test(private_needs_a_sample),
        cmocka_unit_test(all_or_groups),
        cmocka_unit_test(the_outermost_group_level_limits_windows),
        cmocka_unit_test(a_private_level_limits_where_no_group_does),
        cmocka_unit_test(what_all_share_no_window_helps),
        cmocka_unit_test(no_level_is_beyond_memory),
        cmocka_unit_test(a_window_level_that_is_not_refined_has_no_reach),
    };
    return cmocka_run_group_tests_name("window level", tests, NULL, NULL);
}
