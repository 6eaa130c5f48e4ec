/* test_concentration.c: the cost of a plan for a job whose accesses are concentrated. Exponentials
 * take most of the time, so the tests count the calls of exp(3). */
#include "tests/unit/support/placement_fixture.h"

#include "base/rng.h"
#include "base/units.h"
#include "planner/layout.h"
#include "planner/strategy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HEATS = 24, MOST_STEPS = 40 };

static uint64_t calls;

/* Replaces the function of libm. */
double exp(double x)
{
    calls++;
    return (double)expl(x);
}

static struct fingerprint fp;

static uint64_t calls_of_plan(const struct job_request *job)
{
    static struct strategy_answer answer;
    struct err err = {.status = STATUS_OK};

    calls = 0;
    if (strategy_plan(&fp, job, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return calls;
}

static uint64_t calls_of_layout(const struct layout *l, double concentration, uint64_t reach_bytes,
                                uint64_t bytes)
{
    calls = 0;
    (void)layout_effective_bytes(l, concentration, reach_bytes, bytes);
    return calls;
}

static struct rng seeded(void)
{
    const char *const given = getenv("TEST_SEED");
    struct rng rng = {given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL)};

    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return rng;
}

/* Returns a concentration, which is 1 or near 1 more often than not. */
static double random_concentration(struct rng *rng)
{
    return rng_below(rng, 3) == 0 ? 1 : 1 - exp2(-50 * rng_unit(rng));
}

static void any_concentration_takes_few_steps(void **state)
{
    struct rng rng = seeded();

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct layout l = {.count = 1 + (uint32_t)rng_below(&rng, LAYOUT_MAX)};
        for (uint32_t i = 0; i < l.count; i++)
            l.of[i] = (struct layout_allocation){.bytes = 1 + rng_below(&rng, 100 * GIB),
                                                 .row_bytes = 1,
                                                 .touches = exp2(20 * rng_unit(&rng) - 10)};
        const double c = random_concentration(&rng);
        const uint64_t bytes = layout_touched_bytes(&l);
        const uint64_t most = (uint64_t)l.count * HEATS * MOST_STEPS;
        const uint64_t taken = calls_of_layout(&l, c, 1 + rng_below(&rng, bytes), bytes);
        if (taken > most)
            fail_msg("concentration %.17g of %u allocations takes %llu exponentials, not %llu", c,
                     l.count, (unsigned long long)taken, (unsigned long long)most);
    }
}

/* The scopes of this chip are within the reach, so only the misses over all bytes are counted. */
static void a_plan_counts_the_misses_once(void **state)
{
    struct rng rng = seeded();

    (void)state;
    placement_make_large(&fp);
    for (int round = 0; round < 300; round++) {
        struct job_request job = {.bytes = 1 + rng_below(&rng, 128 * GIB)};
        const struct layout l = layout_single(job.bytes);
        assert_int_equal(calls_of_plan(&job), 0);
        job.window_concentration = random_concentration(&rng);
        assert_int_equal(calls_of_plan(&job),
                         calls_of_layout(&l, job.window_concentration, 64 * GIB, job.bytes));
        job.concentration = job.window_concentration;
        job.window_concentration = 0;
        assert_int_equal(calls_of_plan(&job),
                         calls_of_layout(&l, job.concentration, 64 * GIB, job.bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_concentration_takes_few_steps),
        cmocka_unit_test(a_plan_counts_the_misses_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
