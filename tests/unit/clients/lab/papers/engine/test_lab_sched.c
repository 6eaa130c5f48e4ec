/* test_lab_sched.c: selection of the warps that may load (CCWS, TA-CCWS, TCWS), and thread block
 * compaction with and without the common page matrix. */
#include "base/rng.h"
#include "clients/lab/papers/engine/compact.h"
#include "clients/lab/papers/engine/sched.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

static uint64_t seed(void)
{
    const char *given = getenv("TEST_SEED");
    const uint64_t s = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("TEST_SEED=%llu\n", (unsigned long long)s);
    return s;
}

/* ---- packing ---- */

static bool same_pages(const void *context, uint32_t home, uint32_t members)
{
    for (uint32_t other = 0; other < 8; other++) {
        if ((members >> other & 1) && !lab_matrix_agree(context, home, other))
            return false;
    }
    return true;
}

static void packing_loses_no_thread(void **state)
{
    (void)state;
    struct rng rng = {seed()};
    for (uint32_t round = 0; round < 1000; round++) {
        uint32_t lanes[8];
        uint32_t packed[8][LAB_LANES];
        uint32_t found[8] = {0};
        struct lab_matrix matrix = {.bits = 1};
        for (uint32_t i = 0; i < 8; i++) {
            lanes[i] = (uint32_t)(rng_next(&rng) & rng_next(&rng));
            for (uint32_t k = 0; k < 3; k++)
                matrix.count[i][k] = (uint8_t)rng_below(&rng, 2);
        }
        const uint32_t count =
            lab_compact_block(lanes, 8, round % 2 ? same_pages : NULL, &matrix, packed);
        assert_true(count <= 8);
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t lane = 0; lane < LAB_LANES; lane++) {
                if (packed[i][lane] == LAB_NO_THREAD)
                    continue;
                assert_int_equal(packed[i][lane] % LAB_LANES, lane);
                assert_false(found[packed[i][lane] / LAB_LANES] >> lane & 1);
                found[packed[i][lane] / LAB_LANES] |= 1u << lane;
            }
        }
        assert_memory_equal(found, lanes, sizeof lanes);
    }
}

static void warps_agree_after_enough_common_hits(void **state)
{
    (void)state;
    struct lab_matrix m = {.bits = 2};
    uint16_t history = 0;
    assert_true(lab_matrix_agree(&m, 5, 5));
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(lab_matrix_agree(&m, 7, 5));
        history = 0;
        lab_matrix_hit(&m, &history, 5, 10);
        lab_matrix_hit(&m, &history, 7, 10);
    }
    assert_true(lab_matrix_agree(&m, 7, 5));
    assert_false(lab_matrix_agree(&m, 5, 7));
    lab_matrix_hit(&m, &history, 9, 10 + LAB_MATRIX_CLEAR_CYCLES);
    assert_false(lab_matrix_agree(&m, 7, 5));
}

/* ---- cache-conscious scheduling ---- */

enum { WARPS = 8, ALL = (1 << WARPS) - 1 };

static struct lab_locality_state *losing(uint32_t times, uint32_t weight)
{
    const struct lab_sched_desc desc = {.locality = LAB_OF_LINES};
    struct lab_locality_state *s = lab_locality_new(&desc, WARPS);
    assert_non_null(s);
    s->instructions = 1000;
    for (uint32_t i = 0; i < times; i++) {
        lab_locality_evicted(s, 3, 77);
        lab_locality_missed(s, 3, 77, weight, 1000);
    }
    return s;
}

static void all_warps_load_until_one_loses_its_lines(void **state)
{
    (void)state;
    struct lab_locality_state *s = losing(0, 1);
    assert_int_equal(lab_locality_may_load(s, ALL, 0), ALL);
    /* A miss does not count as lost locality if the line belongs to another warp, or if it was not
     * evicted. */
    lab_locality_evicted(s, 2, 5);
    lab_locality_missed(s, 3, 5, 1, 900);
    lab_locality_missed(s, 2, 6, 1, 900);
    assert_int_equal(lab_locality_may_load(s, ALL, 1000), ALL);
    lab_locality_missed(s, 2, 5, 1, 1000);
    assert_int_equal(s->hits, 1);
    lab_locality_free(s);
}

static void who_lost_most_loads_and_the_last_of_the_others_wait(void **state)
{
    (void)state;
    /* 100 lost lines in 1000 instructions give a score of 100 x 8 x cutoff / 1000. The cutoff is 8
     * x 100. */
    struct lab_locality_state *s = losing(100, 1);
    const uint64_t score = 100 * 8 * (WARPS * 100) / 1000;
    const uint32_t others = (uint32_t)(WARPS * 100 - score + 99) /
                            100; /* the score of the last warp reaches the cutoff */
    assert_int_equal(s->score[3], score);
    const uint64_t may = lab_locality_may_load(s, ALL, 1000);
    assert_true(may >> 3 & 1);
    assert_int_equal(__builtin_popcountll(may), 1 + others);
    /* A score falls by one point in each cycle of CCWS's simulator, which is four cycles here. When
     * the score is the base score again, all warps may load. */
    assert_int_not_equal(lab_locality_may_load(s, ALL, 1000 + 2 * (score - 100)), ALL);
    assert_int_equal(lab_locality_may_load(s, ALL, 1000 + 4 * (score - 100)), ALL);
    lab_locality_free(s);
}

static void a_loss_with_a_tlb_miss_counts_as_often_as_told(void **state)
{
    (void)state;
    struct lab_locality_state *once = losing(10, 1);
    struct lab_locality_state *four = losing(10, 4);
    assert_int_equal(once->score[3], 64);
    assert_int_equal(four->score[3], 4 * 64);
    lab_locality_free(four);
    lab_locality_free(once);
}

static void a_deep_hit_counts_more(void **state)
{
    (void)state;
    const struct lab_sched_desc desc = {.locality = LAB_OF_PAGES, .depth_weights = {1, 2, 4, 8}};
    struct lab_locality_state *s = lab_locality_new(&desc, WARPS);
    assert_non_null(s);
    lab_locality_hit(s, 0, 0, 10);
    lab_locality_hit(s, 1, 3, 10);
    lab_locality_hit(
        s, 1, 7, 10); /* the hit is deeper than the list of weights, so the last weight counts */
    assert_int_equal(s->score[0], 101);
    assert_int_equal(s->score[1], 116);
    lab_locality_free(s);
}

static void a_warp_that_ended_counts_no_more(void **state)
{
    (void)state;
    struct lab_locality_state *s = losing(100, 1);
    for (uint32_t i = 0; i < 50; i++)
        lab_locality_issued(s, 3);
    lab_locality_ended(s, 3);
    assert_int_equal(s->hits, 0);
    assert_int_equal(s->instructions, 1000);
    assert_int_equal(lab_locality_may_load(s, ALL, 1000), ALL);
    /* The cutoff is computed from the number of warps that have not ended. */
    lab_locality_evicted(s, 2, 5);
    lab_locality_missed(s, 2, 5, 100, 1100);
    (void)lab_locality_may_load(s, 0xc, 1200);
    assert_int_equal(s->live, 2);
    lab_locality_free(s);
}

static void a_later_loss_may_score_less(void **state)
{
    (void)state;
    struct lab_locality_state *s = losing(100, 1);
    s->instructions = 100000;
    lab_locality_evicted(s, 3, 77);
    lab_locality_missed(s, 3, 77, 1, 1001);
    assert_int_equal(s->score[3], 101 * 8 * (WARPS * 100) / 100000);
    lab_locality_free(s);
}

/* A new warp begins with the score 0 of the warp that ended, until the new warp loses a line. At
 * first the new warp must wait. */
static void the_next_warp_in_a_place_begins_with_nothing(void **state)
{
    (void)state;
    struct lab_locality_state *s = losing(100, 1);
    lab_locality_ended(s, 0);
    assert_int_equal(s->score[0], 0);
    /* The sum of the scores, 640 for warp 3 and 100 for each of two other warps, exceeds 800. */
    assert_int_equal(lab_locality_may_load(s, ALL, 1000), 0xe);
    lab_locality_evicted(s, 0, 5);
    lab_locality_missed(s, 0, 5, 1, 1010);
    assert_int_not_equal(s->score[0], 0);
    lab_locality_free(s);
}

static void a_tag_that_was_missed_stays(void **state)
{
    (void)state;
    struct lab_locality_state *s = losing(1, 1);
    lab_locality_missed(s, 3, 77, 1, 1000);
    assert_int_equal(s->hits, 2);
    /* After eight other tags have entered its set, the tag is evicted. */
    for (uint32_t i = 1; i <= 8; i++)
        lab_locality_evicted(s, 3, 77 + 2 * i);
    lab_locality_missed(s, 3, 77, 1, 1000);
    assert_int_equal(s->hits, 2);
    lab_locality_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_loses_no_thread),
        cmocka_unit_test(warps_agree_after_enough_common_hits),
        cmocka_unit_test(all_warps_load_until_one_loses_its_lines),
        cmocka_unit_test(who_lost_most_loads_and_the_last_of_the_others_wait),
        cmocka_unit_test(a_loss_with_a_tlb_miss_counts_as_often_as_told),
        cmocka_unit_test(a_deep_hit_counts_more),
        cmocka_unit_test(a_warp_that_ended_counts_no_more),
        cmocka_unit_test(a_later_loss_may_score_less),
        cmocka_unit_test(the_next_warp_in_a_place_begins_with_nothing),
        cmocka_unit_test(a_tag_that_was_missed_stays),
    };
    return cmocka_run_group_tests_name("lab_sched", tests, NULL, NULL);
}
