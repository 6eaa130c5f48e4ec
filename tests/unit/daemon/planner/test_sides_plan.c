/* test_sides_plan.c: plans for sets that caches hold, and for the sides of the L2
 * (planner/set_cost.h, planner/strategy_sides.h). TEST_SEED repeats the random cases. */
#include "planner/explain.h"
#include "planner/set_cost.h"
#include "planner/strategy.h"
#include "tests/unit/support/placement_fixture.h"

#include "base/rng.h"
#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CASES = 300 };

static struct rng rng;
static struct fingerprint fp;
static struct strategy_answer answer;

/* The curves of an H200 (2026-11-23): random reads of 512 bytes, from anywhere and from the near
 * side. */
static const struct {
    uint64_t mib;
    double same, near;
} h200[] = {{32, 9065, 9166},  {64, 7572, 9080},  {96, 6335, 8905},
            {128, 5893, 8066}, {256, 5233, 5901}, {1024, 4619, 4784}};
enum { SETS = sizeof h200 / sizeof h200[0] };

static void make_fingerprint(void)
{
    placement_make_large(&fp);
    fp.gpu.l2_cache_bytes = 60 * MIB;
    fp.l2.sides = KNOWN_U32(2);
    fp.l2.granule_bytes = KNOWN_U64(4096);
    fp.l2.atomic_near_cycles = KNOWN_F64(300);
    fp.l2.atomic_far_cycles = KNOWN_F64(498);
    fp.l2.side_of_sm.group_count = 2;
    for (uint32_t sm = 0; sm < fp.gpu.sm_count; sm++)
        fp.l2.side_of_sm.group_of_sm[sm] = sm % 2;
    for (uint32_t i = 0; i < SETS; i++)
        fp.working_sets[fp.working_set_count++] =
            (struct working_set){.transaction_bytes = 512,
                                 .set_bytes = h200[i].mib * MIB,
                                 .same_gbps = KNOWN_F64(h200[i].same),
                                 .own_gbps = UNKNOWN_F64(REASON_NOT_MEASURED),
                                 .near_gbps = KNOWN_F64(h200[i].near)};
}

static const struct strategy_option *plan(struct job_request job, enum strategy s)
{
    struct err err = {0};

    job.element_bytes = job.element_bytes ? job.element_bytes : 512;
    if (strategy_plan(&fp, &job, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return placement_option(&answer, s);
}

static void near_is_as_measured(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SETS; i++) {
        const struct job_request job = {.bytes = h200[i].mib * MIB};
        assert_float_equal(plan(job, STRATEGY_NAIVE)->gbps.v, h200[i].same, 1);
        assert_float_equal(plan(job, STRATEGY_SIDES)->gbps.v, h200[i].near, 1);
        assert_float_equal(placement_option(&answer, STRATEGY_SIDES)->times_naive.v,
                           h200[i].near / h200[i].same, 1e-3);
        /* The strategy sides is recommended if it gains more than 3 %. */
        assert_int_equal(answer.options[0].strategy,
                         h200[i].near > h200[i].same * 1.03 ? STRATEGY_SIDES : STRATEGY_NAIVE);
    }
}

/* Beyond the longest set, the gain is extrapolated from the two longest sets, and multiplied by the
 * throughput of memory. */
static void memory_gains_on_from_the_longest_set(void **state)
{
    const struct job_request job = {.bytes = 16 * GIB};
    const double naive = plan(job, STRATEGY_NAIVE)->gbps.v;

    (void)state;
    /* In 1 / bytes, the step from 1 GiB to 16 GiB is 15/48 of the step from 256 MiB to 1 GiB. */
    const double near = 1 / 4784.0 + (1 / 4784.0 - 1 / 5901.0) * 15 / 48;
    const double same = 1 / 4619.0 + (1 / 4619.0 - 1 / 5233.0) * 15 / 48;
    assert_float_equal(placement_option(&answer, STRATEGY_SIDES)->gbps.v / naive, same / near,
                       1e-3);
    assert_non_null(strstr(placement_option(&answer, STRATEGY_SIDES)->why, "longest"));
}

/* A combination that was not measured has no number, but a reason. */
static void what_is_not_measured_is_not_offered(void **state)
{
    const struct {
        struct job_request job;
        const char *why;
    } cases[] = {
        {{.bytes = 96 * MIB, .element_bytes = 64}, "not measured (not-measured)"},
        {{.bytes = 4 * MIB}, "stay in the L2"},
        {{.bytes = 96 * MIB, .access = ACCESS_ATOMIC, .element_bytes = 32}, "Only reads"},
        {{.bytes = 96 * MIB, .no_sm_binding = true}, "cannot be bound"},
        {{.bytes = 96 * MIB, .input_bytes = 8, .single_pass = true}, "read again"},
        {{.bytes = 100 * GIB}, "translation is the limit"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct strategy_option *const o = plan(cases[i].job, STRATEGY_SIDES);
        assert_false(o->possible);
        assert_false(IS_KNOWN(o->gbps));
        if (!strstr(o->why, cases[i].why))
            fail_msg("case %zu: %s", i, o->why);
    }
    fp.l2.sides = UNKNOWN_U32(REASON_NOT_MEASURED);
    assert_non_null(strstr(plan((struct job_request){.bytes = 96 * MIB}, STRATEGY_SIDES)->why,
                           "not known (not-measured)"));
    make_fingerprint();
    fp.working_set_count = 0;
    assert_non_null(strstr(plan((struct job_request){.bytes = 96 * MIB}, STRATEGY_SIDES)->why,
                           "was not measured"));
    make_fingerprint();
}

/* SMs of both sides scan the whole input. */
static void input_is_scanned_by_both_sides(void **state)
{
    const struct job_request job = {.bytes = 96 * MIB, .input_bytes = 8, .scan_gps = 10};

    (void)state;
    assert_float_equal(plan(job, STRATEGY_SIDES)->gbps.v, 512 * 10 / 2.0, 1);
    assert_float_equal(placement_option(&answer, STRATEGY_SIDES)->extra_bytes, 8, 1e-9);
}

/* Between two lengths the time is between their times. Longer sets are slower, and measured
 * lengths have their measured times. */
static void times_are_between(void **state)
{
    (void)state;
    for (int n = 0; n < CASES; n++) {
        const uint64_t a = (32 + rng_below(&rng, 992)) * MIB + rng_below(&rng, MIB);
        const uint64_t b = a + rng_below(&rng, 1024 * MIB - a + 1);
        const struct maybe_f64 short_ns = set_cost_ns(&fp, SET_SAME, 512, a);
        const struct maybe_f64 long_ns = set_cost_ns(&fp, SET_SAME, 512, b);
        assert_true(IS_KNOWN(short_ns) && IS_KNOWN(long_ns));
        assert_true(short_ns.v <= long_ns.v + 1e-12);
        assert_true(short_ns.v >= 512 / 9065.0 - 1e-12 && long_ns.v <= 512 / 4619.0 + 1e-12);
    }
    assert_float_equal(set_cost_ns(&fp, SET_SAME, 512, MIB).v, 512 / 9065.0, 1e-9);
    assert_int_equal(set_cost_ns(&fp, SET_SAME, 512, 2 * GIB).reason, REASON_BEYOND_MEMORY);
    assert_int_equal(set_cost_ns(&fp, SET_OWN, 512, GIB).reason, REASON_NOT_MEASURED);
    assert_int_equal(set_cost_ns(&fp, SET_SAME, 128, GIB).reason, REASON_NOT_MEASURED);
    assert_float_equal(set_cost_ns(&fp, SET_SAME, 1024, GIB).v, 1024 / 4619.0, 1e-9);
}

/* A set that is partly in caches is within the reach, so the TLB costs it no throughput. */
static void explain_knows_the_plateaus(void **state)
{
    const struct {
        uint64_t bytes;
        double observed;
        const char *why;
    } cases[] = {{48 * MIB, 8000, "near the L2 plateau of such a set: not the TLB"},
                 {48 * MIB, 5000, "caches keep a part"},
                 {512 * MIB, 4700, "near the memory plateau of such a set: not the TLB"}};
    struct explain_answer e;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct explain_request request = {
            .bytes = cases[i].bytes, .element_bytes = 512, .observed_gbps = cases[i].observed};
        struct err err;
        fp.throughput.rate_count = 1;
        fp.throughput.rates[0] = (struct access_rate){
            .access = ACCESS_READ, .transaction_bytes = 512, .plateau_gbps = KNOWN_F64(4500)};
        assert_int_equal(explain_loss(&fp, &request, &e, &err), STATUS_OK);
        assert_int_equal(e.bottleneck, BOTTLENECK_NOT);
        if (!strstr(e.reason, cases[i].why))
            fail_msg("case %zu: %s", i, e.reason);
    }
}

static int set_up(void **state)
{
    (void)state;
    make_fingerprint();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(near_is_as_measured, set_up),
        cmocka_unit_test_setup(memory_gains_on_from_the_longest_set, set_up),
        cmocka_unit_test_setup(what_is_not_measured_is_not_offered, set_up),
        cmocka_unit_test_setup(input_is_scanned_by_both_sides, set_up),
        cmocka_unit_test_setup(times_are_between, set_up),
        cmocka_unit_test_setup(explain_knows_the_plateaus, set_up),
    };
    const char *const seed = getenv("TEST_SEED");

    rng.state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    printf("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
