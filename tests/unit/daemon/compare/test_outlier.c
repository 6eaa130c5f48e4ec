/* test_outlier.c: compares the rule for outliers with a naive one, and with an older rule. The test
 * counts how often a chip from the population of the others is called odd. Some populations do not
 * suit the rule (heavy tails, variants). The test also counts the faults that are found. The tables
 * of docs/compare.md contain its output. TEST_SEED repeats the random cases, and REACH_COUNT sets
 * the number of drawn kinds. */
#include "base/rng.h"
#include "base/stats.h"
#include "compare/outlier.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CHIPS = 512, KINDS = 4000, DONOR = 13 };

static struct rng draws = {.state = 20261123};

static bool is_odd(double v, const struct outlier_spread *spread, const struct outlier_lent *lent)
{
    double low, high;

    return outlier_bounds(spread, lent, &low, &high) && (v < low || v > high);
}

/* ---- comparison with a naive rule ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double middle(double *v, uint32_t n)
{
    qsort(v, n, sizeof(*v), by_value);
    return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

static void the_rule_is_the_naive_one(void **state)
{
    const char *const seed = getenv("TEST_SEED");
    struct rng r = {.state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL)};
    const struct outlier_lent none = {0};
    double v[64], sorted[64], far[64];

    (void)state;
    print_message("TEST_SEED=%llu\n", (unsigned long long)r.state);
    for (int round = 0; round < 20000; round++) {
        const uint32_t n = 1 + (uint32_t)rng_below(&r, 60);
        const double about = 100 * (rng_unit(&r) - 0.3);
        const double scale = rng_below(&r, 3) ? 10 * rng_unit(&r) : 0;
        for (uint32_t i = 0; i < n; i++)
            v[i] = about + scale * (rng_unit(&r) - 0.5) + (rng_below(&r, 9) ? 0 : 20);
        memcpy(sorted, v, n * sizeof(*v));
        const double median = middle(sorted, n);
        for (uint32_t i = 0; i < n; i++)
            far[i] = fabs(v[i] - median);
        const double deviation = middle(far, n);
        const uint32_t out = n < 20 ? 1 : n / 10;
        const struct outlier_spread spread = outlier_compute_spread(v, n);
        const double beyond = fmax(8.8956 * deviation, 0.05 * fabs(median));
        for (uint32_t i = 0; i < n; i++) {
            const double over =
                fmax(n > out ? v[i] - sorted[n - 1 - out] : 0, n > out ? sorted[out] - v[i] : 0) -
                beyond;
            if (fabs(over) >
                1e-9) /* the case is skipped if the two formulas may round differently */
                assert_int_equal(is_odd(v[i], &spread, &none), n > 7 && over > 0);
        }
    }
}

/* ---- populations ---- */

struct population {
    const char *name;
    enum { NORMAL, LAPLACE, STUDENT_3, TWO } shape;
    double deviation; /* standard deviation of one variant, relative to the median */
    double share;     /* share of the second variant, whose values are 10 % higher */
};

static double normal(void)
{
    const double u = rng_unit(&draws);
    const double v = rng_unit(&draws);

    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

static double draw(const struct population *p)
{
    const double u = rng_unit(&draws) - 0.5;
    const double x =
        p->shape == LAPLACE ? -copysign(log(1 - 2 * fabs(u) + 1e-300), u) / M_SQRT2 : normal();

    if (p->shape == STUDENT_3) {
        const double a = normal(), b = normal(), c = normal();
        return 1 + p->deviation * x /
                       sqrt(a * a + b * b + c * c); /* the distribution has a variance of 3 */
    }
    return 1 + p->deviation * x + (p->shape == TWO && rng_unit(&draws) < p->share ? 0.1 : 0);
}

/* The older rule: the distance from the median, with at least eight chips. */
static bool was_odd(double v, const double *all, uint32_t n)
{
    const double median = n >= OUTLIER_LEAST_CHIPS ? stats_median_f64(all, n) : 0;
    const double far = fabs(v - median);

    return n >= OUTLIER_LEAST_CHIPS && far > 0.05 * fabs(median) &&
           far > 6 * 1.4826 * stats_mad_f64(all, n);
}

struct rate {
    double now;
    double before;
};

/* Returns the share of numbers that are called odd. A kind with few chips borrows the spread of a
 * kind of thirteen chips from the same population. */
static struct rate rate_of(const struct population *p, uint32_t n, uint32_t kinds)
{
    double v[MAX_CHIPS], other[DONOR];
    uint32_t now = 0;
    uint32_t before = 0;

    for (uint32_t k = 0; k < kinds; k++) {
        struct outlier_lent lent = {0};
        for (uint32_t i = 0; i < n; i++)
            v[i] = draw(p);
        for (uint32_t i = 0; n < OUTLIER_LEAST_CHIPS && i < DONOR; i++)
            other[i] = draw(p);
        if (n < OUTLIER_LEAST_CHIPS) {
            const struct outlier_spread lender = outlier_compute_spread(other, DONOR);
            outlier_lend(&lent, &lender);
        }
        const struct outlier_spread spread = outlier_compute_spread(v, n);
        now += is_odd(v[0], &spread, &lent);
        before += was_odd(v[0], v, n);
    }
    return (struct rate){(double)now / kinds, (double)before / kinds};
}

static uint32_t kinds_to_draw(void)
{
    const char *const count = getenv("REACH_COUNT");

    return count ? (uint32_t)strtoul(count, NULL, 10) : KINDS;
}

/* The bounds are loose: they hold for any seed with KINDS kinds, and only a much worse rule exceeds
 * them. */
static void few_chips_are_called_odd_by_chance(void **state)
{
    static const struct population populations[] = {
        {"normal, 0.2 %", NORMAL, 0.002, 0},    {"normal, 1 %", NORMAL, 0.01, 0},
        {"normal, 3 %", NORMAL, 0.03, 0},       {"Laplace, 1 %", LAPLACE, 0.01, 0},
        {"Laplace, 3 %", LAPLACE, 0.03, 0},     {"Student 3, 1 %", STUDENT_3, 0.01, 0},
        {"Student 3, 3 %", STUDENT_3, 0.03, 0}, {"two, 5 % of one", TWO, 0.002, 0.05},
        {"two, 15 % of one", TWO, 0.002, 0.15}, {"two, 30 % of one", TWO, 0.002, 0.3},
        {"two, half of each", TWO, 0.002, 0.5},
    };
    static const double most[] = {0.0005, 0.0005, 0.005, 0.003, 0.01, 0.005,
                                  0.015,  0.06,   0.075, 0.04,  0.02};
    static const uint32_t sizes[] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 50};

    (void)state;
    print_message("chips called odd of 10 000, by the rule / by distance from the median:\n|");
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        print_message(" | %u", sizes[s]);
    print_message(" |\n");
    for (size_t i = 0; i < sizeof(populations) / sizeof(*populations); i++) {
        print_message("| %s", populations[i].name);
        for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
            const struct rate r = rate_of(&populations[i], sizes[s], kinds_to_draw());
            if (sizes[s] < OUTLIER_LEAST_CHIPS)
                print_message(" | %.1f", 1e4 * r.now);
            else
                print_message(" | %.1f / %.1f", 1e4 * r.now, 1e4 * r.before);
            assert_true(r.now <= most[i]);
            assert_true(sizes[s] < OUTLIER_LEAST_CHIPS || r.now <= r.before);
        }
        print_message(" |\n");
    }
}

/* The chips of a kind vary twice as much as the chips of the kind that lends its spread. */
static void a_borrowed_spread_may_be_half(void **state)
{
    static const struct population lends = {"", NORMAL, 0.01, 0};
    static const struct population borrows = {"", NORMAL, 0.02, 0};
    double v[3], other[DONOR];
    uint32_t odd = 0;

    (void)state;
    for (uint32_t k = 0; k < KINDS; k++) {
        struct outlier_lent lent = {0};
        for (uint32_t i = 0; i < 3; i++)
            v[i] = draw(&borrows);
        for (uint32_t i = 0; i < DONOR; i++)
            other[i] = draw(&lends);
        const struct outlier_spread lender = outlier_compute_spread(other, DONOR);
        const struct outlier_spread spread = outlier_compute_spread(v, 3);
        outlier_lend(&lent, &lender);
        odd += is_odd(v[0], &spread, &lent);
    }
    print_message("three chips that differ twice as far as those of the other kind: %u of %u odd\n",
                  odd, KINDS);
    assert_true(odd < KINDS / 50);
}

/* ---- faults ---- */

/* Returns the share of faulty chips that are found if `faulty` of `n` chips have lost `loss`. */
static double found_of(const struct population *p, uint32_t n, uint32_t faulty, double loss)
{
    double v[MAX_CHIPS];
    uint32_t found = 0;
    const uint32_t kinds = KINDS / 4;

    for (uint32_t k = 0; k < kinds; k++) {
        for (uint32_t i = 0; i < n; i++)
            v[i] = draw(p) * (i < faulty ? 1 - loss : 1);
        const struct outlier_spread spread = outlier_compute_spread(v, n);
        for (uint32_t i = 0; i < faulty; i++)
            found += is_odd(v[i], &spread, &(struct outlier_lent){0});
    }
    return (double)found / (faulty * kinds);
}

static void a_fault_of_one_chip_in_ten_is_found(void **state)
{
    static const struct population even = {"", NORMAL, 0.005, 0};
    static const struct population mixed = {"", TWO, 0.002, 0.4};
    static const struct {
        uint32_t chips, faulty;
    } of[] = {{8, 1}, {13, 1}, {19, 1}, {20, 1}, {20, 2}, {100, 10}, {400, 40}};

    (void)state;
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        const double found = found_of(&even, of[i].chips, of[i].faulty, 0.1);
        const double half = found_of(&mixed, of[i].chips, of[i].faulty, 0.5);
        print_message("%u of %u chips slower: by 10 %%, found %.2f; one half as fast as others of "
                      "two variants, found %.2f\n",
                      of[i].faulty, of[i].chips, found, half);
        assert_true(found > 0.97);
    }
    /* If there are fewer than twenty chips, two chips with the same fault count as a variant and
     * are not found. */
    assert_true(found_of(&even, 12, 2, 0.5) < 0.05);
}

static void what_is_not_judged(void **state)
{
    const double zero[8] = {0};
    const double few[2] = {1, 3};
    struct outlier_lent lent = {0};
    struct outlier_spread spread = outlier_compute_spread(zero, 8);
    double low, high;

    (void)state;
    outlier_lend(&lent, &spread); /* the median is 0, so a relative deviation does not exist */
    assert_int_equal(lent.kinds, 0);
    assert_true(outlier_bounds(&spread, &lent, &low, &high));
    assert_true(low == 0 && high == 0);
    spread = outlier_compute_spread(few, 2);
    assert_true(spread.inner_least == 2 && spread.inner_most == 2);
    lent = (struct outlier_lent){.kinds = 1, .width = 1};
    assert_false(outlier_bounds(&spread, &lent, &low, &high));
    assert_true(outlier_is_odd_property(5, 8) && !outlier_is_odd_property(4, 8));
    assert_false(outlier_is_odd_property(7, 7));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_is_the_naive_one),
        cmocka_unit_test(few_chips_are_called_odd_by_chance),
        cmocka_unit_test(a_borrowed_spread_may_be_half),
        cmocka_unit_test(a_fault_of_one_chip_in_ten_is_found),
        cmocka_unit_test(what_is_not_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
