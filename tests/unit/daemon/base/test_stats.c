/* test_stats.c: order statistics are compared with sorting, on inputs for which naive selection is
 * slow or wrong. */
#include "base/rng.h"
#include "base/format_number.h"
#include "base/stats.h"
#include "tests/unit/support/alloc_fail.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST = 700,
    ROUNDS = 400,
    SHORT_ROUNDS = 24
}; /* more values than the 512 that need no allocation */

static int compare_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static int compare_f64(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double sorted_median(const double *v, size_t n)
{
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void medians_by_hand(void **state)
{
    uint32_t even[] = {4, 1, 3, 2}, odd[] = {9, 1, 5}, one[] = {7}, two[] = {10, 3};
    uint32_t wide[] = {UINT32_MAX, UINT32_MAX};
    double f[] = {0.5, -2.5, 8, 1};

    (void)state;
    assert_true(stats_median_u32(even, 4) == 2.5);
    assert_true(stats_median_u32(odd, 3) == 5);
    assert_true(stats_median_u32(one, 1) == 7);
    assert_true(stats_median_u32(two, 2) == 6.5);
    assert_true(stats_median_u32(wide, 2) == 4294967295.0); /* the sum does not overflow */
    assert_true(stats_median_f64(f, 4) == 0.75);
}

/* One interrupted load in a dozen changes the mean, but not the median. */
static void median_ignores_one_outlier(void **state)
{
    const uint32_t v[] = {270, 271, 270, 272, 20000, 271, 270, 271, 272, 270, 271, 271};

    (void)state;
    assert_true(stats_median_u32(v, 12) == 271);
}

static void quantiles_by_hand(void **state)
{
    uint32_t v[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
    double f[] = {3.5, 1.5, 2.5};

    (void)state;
    assert_int_equal(stats_quantile_u32(v, 10, 0), 1);
    assert_int_equal(stats_quantile_u32(v, 10, 1), 10);
    assert_int_equal(stats_quantile_u32(v, 10, 0.9), 9);
    assert_int_equal(stats_quantile_u32(v, 10, 0.91), 10);
    assert_int_equal(stats_quantile_u32(v, 10, 0.5), 5);
    assert_int_equal(stats_quantile_u32(v, 10, 0.7), 7); /* 0.7 * 10 is a little more than 7 */
    assert_int_equal(stats_quantile_u32(v, 10, 0.05), 1);
    assert_true(stats_quantile_f64(f, 3, 0.34) == 2.5);
    assert_true(stats_quantile_f64(f, 1, 0.5) == f[0]);
}

static void mad_by_hand(void **state)
{
    const double v[] = {1, 1, 2, 2,
                        4, 6, 9}; /* the median is 2, and the deviations are 0 0 1 1 2 4 7 */
    const double flat[] = {5, 5, 5};

    (void)state;
    assert_true(stats_mad_f64(v, 7) == 1);
    assert_true(stats_mad_f64(flat, 3) == 0);
}

/* Fills v with one of the shapes of sweeps: random, few distinct values, constant, rising, falling,
 * or a step. */
static void fill(struct rng *rng, uint32_t *v, size_t n, unsigned shape)
{
    for (size_t i = 0; i < n; i++) {
        switch (shape) {
        case 0:
            v[i] = (uint32_t)rng_next(rng);
            break;
        case 1:
            v[i] = (uint32_t)rng_below(rng, 3);
            break;
        case 2:
            v[i] = 270;
            break;
        case 3:
            v[i] = (uint32_t)i;
            break;
        case 4:
            v[i] = (uint32_t)(n - i);
            break;
        default:
            v[i] = i < n / 3 ? 270 : 450 + (uint32_t)rng_below(rng, 2);
            break;
        }
    }
}

static void agrees_with_sorting(void **state)
{
    const uint64_t seed = 20262;
    struct rng rng = {.state = seed};
    uint32_t v[MOST], sorted[MOST], before[MOST];
    double f[MOST], fsorted[MOST], deviation[MOST];

    (void)state;
    print_message("# seed %" PRIu64 "\n", seed);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = 1 + rng_below(&rng, MOST);
        fill(&rng, v, n, (unsigned)rng_below(&rng, 6));
        memcpy(sorted, v, n * sizeof(*v));
        qsort(sorted, n, sizeof(*sorted), compare_u32);
        for (size_t i = 0; i < n; i++) {
            f[i] = v[i];
            fsorted[i] = sorted[i];
        }
        const double median = sorted_median(fsorted, n);
        assert_true(stats_median_u32(v, n) == median);
        assert_true(stats_median_f64(f, n) == median);
        for (size_t i = 0; i < n; i++)
            deviation[i] = fabs(f[i] - median);
        qsort(deviation, n, sizeof(*deviation), compare_f64);
        assert_true(stats_mad_f64(f, n) == sorted_median(deviation, n));
        /* Tests a random rank: the quantile q half way between (k-1)/n and k/n is the k-th smallest
         * value. */
        const size_t k = 1 + rng_below(&rng, n);
        memcpy(before, v, n * sizeof(*v));
        assert_int_equal(stats_quantile_u32(v, n, ((double)k - 0.5) / (double)n), sorted[k - 1]);
        assert_memory_equal(v, before, n * sizeof(*v));
    }
}

static void copies_leave_the_input(void **state)
{
    uint32_t v[MOST], before[MOST];
    struct rng rng = {.state = 3};

    (void)state;
    fill(&rng, v, MOST, 0);
    memcpy(before, v, sizeof(v));
    (void)stats_median_u32(v, MOST);
    (void)stats_quantile_u32(v, MOST, 0.3);
    assert_memory_equal(before, v, sizeof(v));
}

/* If the allocation of a copy fails, the result is the same. With a sanitizer no allocation fails
 * (alloc_fail.h). */
static void without_memory_the_same(void **state)
{
    struct rng rng = {.state = 7};
    uint32_t v[MOST];
    double f[MOST];

    (void)state;
    alloc_fail_install();
    alloc_fail.persistent = true;
    for (unsigned round = 0; round < SHORT_ROUNDS; round++) {
        const size_t n = MOST - rng_below(&rng, 150); /* more values than the stack buffer holds */
        fill(&rng, v, n, round % 6);
        for (size_t i = 0; i < n; i++)
            f[i] = (rng_unit(&rng) - 0.5) * (double)v[i];
        const double wanted[] = {stats_median_u32(v, n), stats_quantile_u32(v, n, 0.3),
                                 stats_median_f64(f, n), stats_mad_f64(f, n)};
        alloc_fail_begin(1);
        const double got[] = {stats_median_u32(v, n), stats_quantile_u32(v, n, 0.3),
                              stats_median_f64(f, n), stats_mad_f64(f, n)};
        alloc_fail.armed = false;
        assert_memory_equal(got, wanted, sizeof(got));
        assert_int_equal(alloc_fail.failures, alloc_fail.calls);
    }
    alloc_fail.persistent = false;
}

static void six_digits_by_hand(void **state)
{
    static const struct {
        double v;
        double wanted;
    } some[] = {{4210.4498010530451, 4210.45},
                {191.43865409269898, 191.439},
                {0.98242187549, 0.982422},
                {90.25, 90.25},
                {123456789, 123457000},
                {999999.5, 1000000},
                {-2.00000049, -2},
                {3.4567891e-9, 3.45679e-9},
                {-0.25, -0.25}};

    (void)state;
    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
        assert_true(round_six_digits(some[i].v) == some[i].wanted);
    assert_true(round_six_digits(0) == 0);
    assert_true(isinf(round_six_digits(INFINITY)));
    assert_true(isnan(round_six_digits(NAN)));
}

/* The result equals the number that printf rounds to six digits, to the last bit. Rounding the
 * result again does not change it. */
static void six_digits_at_random(void **state)
{
    const uint64_t seed = 20263;
    struct rng rng = {.state = seed};

    (void)state;
    print_message("# seed %" PRIu64 "\n", seed);
    for (int round = 0; round < 50000; round++) {
        const double v = pow(10, 24 * rng_unit(&rng) - 12) * (round % 2 ? 1 : -1);
        const double got = round_six_digits(v);
        char text[32];
        snprintf(text, sizeof(text), "%.5e", v);
        assert_true(fabs(got - strtod(text, NULL)) <= fabs(v) * 1e-14);
        assert_true(round_six_digits(got) == got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_by_hand),         cmocka_unit_test(median_ignores_one_outlier),
        cmocka_unit_test(quantiles_by_hand),       cmocka_unit_test(mad_by_hand),
        cmocka_unit_test(agrees_with_sorting),     cmocka_unit_test(copies_leave_the_input),
        cmocka_unit_test(without_memory_the_same), cmocka_unit_test(six_digits_by_hand),
        cmocka_unit_test(six_digits_at_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
