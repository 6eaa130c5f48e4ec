/* test_classes.c: groups are divided into classes only if the gap between their values is clear. */
#include "analysis/classes.h"
#include "base/rng.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#define COUNT(a) (uint32_t)(sizeof(a) / sizeof(a)[0])

/* The miss penalties of the groups of one H200 in cycles (docs/measurements, GPU-8e692359). */
static void near_and_far_are_told_apart(void **state)
{
    (void)state;
    static const double cycles[] = {86,    141.25, 150.5,  146, 85.75, 85.75, 85.25, 137.75,
                                    90.5,  145,    156,    151, 90.75, 93.5,  94,    146,
                                    101.7, 153,    165.75, 157, 103.5, 102.2, 100,   152};
    uint32_t class[COUNT(cycles)];
    assert_int_equal(classes_split(cycles, COUNT(cycles), 0.5, class), 2);
    for (uint32_t i = 0; i < COUNT(cycles); i++)
        assert_int_equal(class[i], cycles[i] > 120);
    /* These penalties have an uncertainty of ten cycles each. */
    assert_int_equal(classes_split(cycles, COUNT(cycles), 10, class), 1);
}

static void no_clear_gap_is_one_class(void **state)
{
    (void)state;
    static const double even[] = {1, 2, 3, 4, 5, 6, 7};
    static const double wide[] = {1, 2, 3, 6, 8, 9};
    static const double lone[] = {1, 1.1, 1.2, 50};
    static const double same[] = {7, 7, 7};
    uint32_t class[8];
    assert_int_equal(classes_split(even, COUNT(even), 0.01, class), 1);
    assert_int_equal(classes_split(wide, COUNT(wide), 0.01, class), 1);
    assert_int_equal(classes_split(lone, COUNT(lone), 0.01, class), 1);
    assert_int_equal(classes_split(same, COUNT(same), 0, class), 1);
    assert_int_equal(classes_split(even, 1, 0, class), 1);
    assert_int_equal(class[0], 0);
}

static void three_classes_are_three(void **state)
{
    (void)state;
    static const double v[] = {30, 10.1, 20.2, 10, 20, 30.3, 10.3};
    static const uint32_t expected[] = {2, 0, 1, 0, 1, 2, 0};
    uint32_t class[COUNT(v)];
    assert_int_equal(classes_split(v, COUNT(v), 0.1, class), 3);
    for (uint32_t i = 0; i < COUNT(v); i++)
        assert_int_equal(class[i], expected[i]);
}

/* Noise alone does not make classes. Two distant values always make two classes. */
static void noise_is_no_class(void **state)
{
    (void)state;
    const char *text = getenv("REACH_SEED");
    const uint64_t first = text ? strtoull(text, NULL, 10) : 1;
    uint32_t split = 0;
    for (uint64_t seed = first; seed < first + (text ? 1 : 2000); seed++) {
        struct rng r = {.state = seed};
        double v[24];
        uint32_t class[24];
        const double far = 20 + 60 * rng_unit(&r);
        for (uint32_t i = 0; i < 24; i++)
            v[i] = 100 + rng_unit(&r) + rng_unit(&r) + rng_unit(&r);
        split += classes_split(v, 24, 0.5, class) > 1;
        for (uint32_t i = 0; i < 24; i++)
            v[i] += i % 3 == 0 ? far : 0;
        if (classes_split(v, 24, 0.5, class) != 2)
            fail_msg("REACH_SEED=%llu: not two classes", (unsigned long long)seed);
        for (uint32_t i = 0; i < 24; i++)
            assert_int_equal(class[i], i % 3 == 0);
    }
    assert_int_equal(split, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_and_far_are_told_apart),
        cmocka_unit_test(no_clear_gap_is_one_class),
        cmocka_unit_test(three_classes_are_three),
        cmocka_unit_test(noise_is_no_class),
    };
    return cmocka_run_group_tests_name("classes", tests, NULL, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
