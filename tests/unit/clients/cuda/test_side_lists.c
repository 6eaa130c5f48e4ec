/* test_side_lists.c: the granules on each side of the L2 (clients/cuda/reach_side_lists.h).
 * TEST_SEED repeats the random cases. */
#include "clients/cuda/reach_side_lists.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CASES = 400, GRANULES_MOST = 3000, NEAR = 300, CONTRAST = 180 };

static struct rng rng;

/* Makes a buffer whose granules are timed from both sides, with an error of at most `noise`
 * cycles. */
struct buffer {
    uint64_t granules;
    bool side[GRANULES_MOST];
    uint16_t cycles[2 * GRANULES_MOST];
    uint32_t list[GRANULES_MOST];
    uint32_t bits[GRANULES_MOST / REACH_SIDE_BITS + 1];
};

static void random_buffer(uint32_t noise, struct buffer *out)
{
    out->granules = 1 + rng_below(&rng, GRANULES_MOST);
    for (uint64_t g = 0; g < out->granules; g++) {
        /* For some slices of a line the first side is nearer, for others the second side. */
        const uint32_t slice = (uint32_t)rng_below(&rng, 60);
        out->side[g] = rng_below(&rng, 2);
        for (uint32_t from = 0; from < 2; from++)
            out->cycles[from * out->granules + g] =
                (uint16_t)(NEAR + slice + (out->side[g] == from ? 0 : CONTRAST) +
                           rng_below(&rng, noise + 1));
    }
}

static void each_granule_is_on_its_side_once(void **state)
{
    static struct buffer b;

    (void)state;
    for (int n = 0; n < CASES; n++) {
        struct reach_side_lists lists;
        uint64_t at = 0;

        random_buffer((uint32_t)rng_below(&rng, CONTRAST * 3 / 4), &b);
        lists = reach_side_lists_make(b.cycles, b.granules, CONTRAST, b.list, b.bits);
        assert_int_equal(lists.count[0] + lists.count[1], b.granules);
        assert_int_equal(lists.unsure, 0);
        assert_int_equal(lists.untimed, 0);
        for (uint32_t side = 0; side < 2; side++) {
            for (uint64_t i = 0; i < lists.count[side]; i++, at++) {
                const uint32_t g = b.list[at];
                assert_true(g < b.granules && b.side[g] == side);
                assert_true(i == 0 || g > b.list[at - 1]);
                assert_int_equal(b.bits[g / REACH_SIDE_BITS] >> g % REACH_SIDE_BITS & 1, side);
            }
        }
    }
}

/* Times with a small difference are unsure, and a missing time leaves its granule without a
 * side. */
static void what_is_not_clear_is_counted(void **state)
{
    static struct buffer b;

    (void)state;
    for (int n = 0; n < CASES; n++) {
        struct reach_side_lists lists;
        uint64_t unsure = 0, untimed = 0;

        random_buffer(0, &b);
        for (uint64_t g = 0; g < b.granules; g++) {
            const uint64_t what = rng_below(&rng, 10);
            const uint16_t here = b.cycles[g];
            if (what == 0)
                b.cycles[b.granules + g] = (uint16_t)(here + rng_below(&rng, CONTRAST / 4));
            if (what == 1)
                b.cycles[rng_below(&rng, 2) * b.granules + g] = REACH_NO_CYCLES;
            unsure += what == 0;
            untimed += what == 1;
        }
        lists = reach_side_lists_make(b.cycles, b.granules, CONTRAST, b.list, b.bits);
        assert_int_equal(lists.unsure, unsure);
        assert_int_equal(lists.untimed, untimed);
        assert_int_equal(lists.count[0] + lists.count[1], b.granules);
    }
}

/* The granules of a buffer at any address cover each byte once. */
static void granules_cover_the_buffer(void **state)
{
    (void)state;
    for (int n = 0; n < CASES; n++) {
        const uint64_t granule = 128ull << rng_below(&rng, 8);
        const uint64_t lead = rng_below(&rng, granule);
        const uint64_t bytes = 1 + rng_below(&rng, granule * 20);
        const uint64_t granules = (lead + bytes + granule - 1) / granule;
        uint64_t end = 0;

        for (uint64_t g = 0; g < granules; g++) {
            const struct reach_extent part = reach_side_cut(g, granule, lead, bytes);
            assert_true(part.first_byte == end);
            assert_true(part.length_bytes > 0 && part.length_bytes <= granule);
            assert_true((part.first_byte + lead) / granule == g);
            end += part.length_bytes;
        }
        assert_true(end == bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_granule_is_on_its_side_once),
        cmocka_unit_test(what_is_not_clear_is_counted),
        cmocka_unit_test(granules_cover_the_buffer),
    };
    const char *const seed = getenv("TEST_SEED");

    rng.state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    printf("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
