/* test_fleet_order.c: order statistics found in passes are those of a sorted row, to the bit. */
#include "clients/fleet/order.h"

#include "base/rng.h"
#include "base/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed = 20261121;
static int count = 150;

/* Rows of every kind: one value, few, many, of all sizes, close together, with signs. */
static double any_value(struct rng *r, int kind)
{
    switch (kind) {
    case 0:
        return 212.5;
    case 1:
        return (double)rng_below(r, 5);
    case 2:
        return 3950.0 + rng_unit(r);
    case 3:
        return ldexp(rng_unit(r) - 0.5, (int)rng_below(r, 400) - 200);
    case 4:
        return rng_below(r, 100) ? 1.0 : rng_unit(r) * 1e300;
    default:
        return rng_below(r, 3) ? 100 + 5 * rng_unit(r) : -0.0;
    }
}

static void compare(struct rng *r, double *v, uint64_t *weights, size_t n)
{
    struct order *const o = calloc(1, sizeof(*o));
    double *all;
    size_t total = 0;
    size_t at = 0;
    int passes = 1;

    (void)r;
    order_begin(o);
    for (size_t i = 0; i < n; i++) {
        order_add(o, v[i], weights[i]);
        total += weights[i];
    }
    all = calloc(total, sizeof(*all));
    for (size_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < weights[i]; k++)
            all[at++] = v[i];
    }
    order_want_quartiles(o);
    while (!order_done(o)) {
        for (size_t i = n; i-- > 0;)
            order_again(o, v[i], weights[i]);
        order_pass_end(o);
        assert_true(++passes < 12);
    }
    assert_int_equal(o->n, total);
    assert_true(order_value(o, 0) == stats_quantile_f64(all, total, 0.25));
    assert_true(order_median(o, 1) == stats_median_f64(all, total));
    assert_true(order_value(o, 3) == stats_quantile_f64(all, total, 0.75));
    assert_true(order_least(o) == stats_quantile_f64(all, total, 0));
    assert_true(order_most(o) == stats_quantile_f64(all, total, 1));
    order_free(o);
    free(o);
    free(all);
}

static void test_random_rows(void **state)
{
    (void)state;
    for (int i = 0; i < count; i++) {
        struct rng r = {.state = seed + (uint64_t)i};
        const int kind = (int)rng_below(&r, 6);
        const size_t n = 1 + rng_below(&r, i % 3 ? 600 : 20000);
        const bool weighted = rng_below(&r, 4) == 0;
        double *const v = calloc(n, sizeof(*v));
        uint64_t *const weights = calloc(n, sizeof(*weights));
        for (size_t k = 0; k < n; k++) {
            v[k] = any_value(&r, kind);
            weights[k] = weighted ? 1 + rng_below(&r, 9) : 1;
        }
        compare(&r, v, weights, n);
        free(v);
        free(weights);
    }
}

/* One after the other in the same memory, as reports do. */
static void test_used_again(void **state)
{
    struct order *const o = calloc(1, sizeof(*o));

    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        order_begin(o);
        for (int i = 0; i < 5000; i++)
            order_add(o, i * (turn + 1), 1);
        order_want_median(o);
        while (!order_done(o)) {
            for (int i = 0; i < 5000; i++)
                order_again(o, i * (turn + 1), 1);
            order_pass_end(o);
        }
        assert_true(order_median(o, 0) == 2499.5 * (turn + 1));
    }
    order_free(o);
    free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_rows),
        cmocka_unit_test(test_used_again),
    };

    if (getenv("REACH_SEED"))
        seed = strtoull(getenv("REACH_SEED"), NULL, 0);
    if (getenv("REACH_COUNT"))
        count = (int)strtol(getenv("REACH_COUNT"), NULL, 0);
    printf("# seed %llu, %d cases\n", (unsigned long long)seed, count);
    return cmocka_run_group_tests_name("fleet_order", tests, NULL, NULL);
}
