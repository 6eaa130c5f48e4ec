/* test_rng.c: SplitMix64 compared with published output; numbers stay in their ranges. */
#include "base/rng.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The first numbers for the seed 1234567, published with the authors' reference implementation. */
static void published_values(void **state)
{
    struct rng rng = {.state = 1234567};

    (void)state;
    assert_true(rng_next(&rng) == 6457827717110365317u);
    assert_true(rng_next(&rng) == 3203168211198807973u);
    assert_true(rng_next(&rng) == 9817491932198370423u);
    assert_true(rng_next(&rng) == 4593380528125082431u);
    assert_true(rng_next(&rng) == 16408922859458223821u);
}

static void same_seed_same_numbers(void **state)
{
    struct rng a = {.state = 7}, b = {.state = 7}, c = {.state = 8};
    int different = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        const uint64_t x = rng_next(&a);
        assert_true(x == rng_next(&b));
        different += x != rng_next(&c);
    }
    assert_int_equal(different, 100);
}

static void below_stays_below_and_reaches_all(void **state)
{
    struct rng rng = {.state = 20264};
    unsigned seen[7] = {0};

    (void)state;
    print_message("# seed 20264\n");
    for (int i = 0; i < 7000; i++) {
        const uint64_t x = rng_below(&rng, 7);
        assert_true(x < 7);
        seen[x]++;
    }
    for (int i = 0; i < 7; i++) /* the expected number is 1000, with a standard deviation of 29 */
        assert_in_range(seen[i], 800, 1200);
    for (int i = 0; i < 100; i++) {
        assert_true(rng_below(&rng, 1) == 0);
        assert_true(rng_below(&rng, UINT64_MAX) < UINT64_MAX);
    }
}

static void unit_is_below_one(void **state)
{
    struct rng rng = {.state = 20265};
    double smallest = 1, largest = 0;

    (void)state;
    print_message("# seed 20265\n");
    for (int i = 0; i < 10000; i++) {
        const double x = rng_unit(&rng);
        assert_true(x >= 0 && x < 1);
        smallest = x < smallest ? x : smallest;
        largest = x > largest ? x : largest;
    }
    assert_true(smallest < 0.01 && largest > 0.99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values),
        cmocka_unit_test(same_seed_same_numbers),
        cmocka_unit_test(below_stays_below_and_reaches_all),
        cmocka_unit_test(unit_is_below_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
