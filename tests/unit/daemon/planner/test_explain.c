/* test_explain.c: the answer to the question whether the TLB limits a job. Some cases are computed
 * by hand, for the large chip: 64 GiB of reach, 4000 GB/s within the reach, 1000 GB/s over 128 GiB.
 * Others have random sizes and rates. */
#include "tests/unit/support/placement_fixture.h"

#include "base/rng.h"
#include "base/units.h"
#include "planner/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct fingerprint fp;
static struct explain_answer answer;

static void explain(uint64_t bytes, double seen)
{
    const struct explain_request r = {.bytes = bytes, .observed_gbps = seen};
    struct err err;

    if (explain_loss(&fp, &r, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void test_translation(void **state)
{
    (void)state;
    placement_make_large(&fp);
    explain(128 * GIB, 1000);
    assert_int_equal(answer.bottleneck, BOTTLENECK_TRANSLATION);
    assert_true(fabs(answer.expected_gbps.v - 1000) < 1e-6);
    assert_true(fabs(answer.in_reach_gbps.v - 4000) < 1e-6);
    assert_true(fabs(answer.loss_gbps.v - 3000) < 1e-6);
    assert_true(fabs(answer.translation_share.v - 1) < 1e-6);
    assert_non_null(strstr(answer.checks[0], "half of the reach"));
    assert_non_null(strstr(answer.checks[2], "If these windows help too"));
    /* If the measured throughput differs from the prediction by a tenth, the answer is the same. */
    explain(128 * GIB, 920);
    assert_int_equal(answer.bottleneck, BOTTLENECK_TRANSLATION);
    explain(128 * GIB, 1090);
    assert_int_equal(answer.bottleneck, BOTTLENECK_TRANSLATION);
}

static void test_something_else(void **state)
{
    (void)state;
    placement_make_large(&fp);
    /* At a tenth of naive's throughput, translation takes 0.096 ns of the 1.248 ns of an access. */
    explain(128 * GIB, 100);
    assert_int_equal(answer.bottleneck, BOTTLENECK_NOT);
    assert_true(fabs(answer.translation_share.v - 0.096 / 1.248) < 1e-6);
    assert_non_null(strstr(answer.checks[0], "should be no faster"));
    /* Within the reach, translation is never the bottleneck, even for slow jobs. */
    explain(32 * GIB, 100);
    assert_int_equal(answer.bottleneck, BOTTLENECK_NOT);
    assert_true(answer.translation_share.v == 0);
    /* The job loses no throughput. */
    explain(128 * GIB, 3990);
    assert_int_equal(answer.bottleneck, BOTTLENECK_NOT);
    assert_false(IS_KNOWN(answer.translation_share));
    assert_non_null(strstr(answer.reason, "nothing is lost"));
    /* Translation takes 0.096 ns of the 0.168 ns of an access. */
    explain(128 * GIB, 640);
    assert_int_equal(answer.bottleneck, BOTTLENECK_PARTLY);
    /* The job is faster than random accesses can be. */
    explain(128 * GIB, 2500);
    assert_int_equal(answer.bottleneck, BOTTLENECK_PARTLY);
    assert_non_null(strstr(answer.reason, "less random"));
}

/* If memory is scattered, a miss costs 1.5 times the cost in contiguous memory, so 1000 GB/s become
 * 667 GB/s. */
static void test_scattered(void **state)
{
    struct explain_request r = {.bytes = 128 * GIB, .observed_gbps = 2000 / 3.0, .scattered = 1};
    struct err err;

    (void)state;
    placement_make_large(&fp);
    fp.contiguity.contiguous_miss_ns = KNOWN_F64(0.3);
    fp.contiguity.scattered_miss_ns = KNOWN_F64(0.45);
    assert_int_equal(explain_loss(&fp, &r, &answer, &err), STATUS_OK);
    assert_int_equal(answer.bottleneck, BOTTLENECK_TRANSLATION);
    assert_true(fabs(answer.translation_share.v - 1) < 1e-6);
    assert_true(fabs(answer.naive_contiguous_gbps.v - 1000) < 1e-6);
    assert_true(answer.naive_scattered_gbps.v == answer.expected_gbps.v);
    /* Without information about the memory of the job, the answer is "partly", with other possible
     * causes. */
    explain(r.bytes, r.observed_gbps);
    assert_int_equal(answer.bottleneck, BOTTLENECK_PARTLY);
    assert_non_null(strstr(answer.reason, "physically scattered memory: 666.7"));
    /* Without the cost of a miss there is no answer for scattered memory. */
    fp.contiguity.scattered_miss_ns = UNKNOWN_F64(REASON_DISAGREEMENT);
    assert_int_equal(explain_loss(&fp, &r, &answer, &err), STATUS_OK);
    assert_int_equal(answer.bottleneck, BOTTLENECK_CANNOT_SAY);
    assert_int_equal(answer.expected_gbps.reason, REASON_DISAGREEMENT);
    r.scattered = 1.01;
    assert_int_equal(explain_loss(&fp, &r, &answer, &err), STATUS_INVALID_ARGUMENT);
    assert_string_equal(err.field, "contiguous");
}

static void test_cannot_say(void **state)
{
    struct explain_request r = {.bytes = GIB, .observed_gbps = 10, .access = ACCESS_WRITE};
    struct err err;

    (void)state;
    placement_make_large(&fp);
    assert_int_equal(explain_loss(&fp, &r, &answer, &err), STATUS_OK);
    assert_int_equal(answer.bottleneck, BOTTLENECK_CANNOT_SAY);
    assert_false(IS_KNOWN(answer.in_reach_gbps));
    assert_non_null(strstr(answer.checks[0], "depth full"));
    /* This size is far beyond the end of the curve. */
    explain(1000 * GIB, 100);
    assert_int_equal(answer.bottleneck, BOTTLENECK_CANNOT_SAY);
    assert_true(IS_KNOWN(answer.in_reach_gbps) && !IS_KNOWN(answer.expected_gbps));
    fp.throughput.curve_count = 0;
    explain(128 * GIB, 100);
    assert_int_equal(answer.bottleneck, BOTTLENECK_CANNOT_SAY);
    r.observed_gbps = 0;
    assert_int_equal(explain_loss(&fp, &r, &answer, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "gbps"));
    r.observed_gbps = NAN;
    assert_int_equal(explain_loss(&fp, &r, &answer, &err), STATUS_INVALID_ARGUMENT);
}

/* A job at the predicted speed of naive gets the answer "translation", if there is a loss. A job at
 * a quarter of that speed gets another answer. The expected speed is the planner's prediction for
 * naive. */
static void test_properties(void **state)
{
    static struct strategy_answer plan;
    const char *given = getenv("TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    struct rng rng = {.state = seed};
    int losses = 0;

    (void)state;
    printf("seed %llu (TEST_SEED)\n", (unsigned long long)seed);
    placement_make_large(&fp);
    for (int round = 0; round < 3000; round++) {
        struct job_request job = {.fingerprint_id = "fp0123456789abcdef",
                                  .bytes = GIB + rng_below(&rng, 140 * GIB),
                                  .element_bytes = 1 + (uint32_t)rng_below(&rng, 300)};
        struct explain_request r = {.fingerprint_id = job.fingerprint_id,
                                    .bytes = job.bytes,
                                    .element_bytes = job.element_bytes};
        double naive = 0;
        fp.throughput.curve[2].naive_gbps = KNOWN_F64(500 + 2000 * rng_unit(&rng));
        assert_int_equal(strategy_plan(&fp, &job, &plan, NULL), STATUS_OK);
        for (int i = 0; i < STRATEGY_COUNT; i++) {
            if (plan.options[i].strategy == STRATEGY_NAIVE)
                naive = plan.options[i].gbps.v;
        }
        r.observed_gbps = naive;
        assert_int_equal(explain_loss(&fp, &r, &answer, NULL), STATUS_OK);
        assert_true(fabs(answer.expected_gbps.v - naive) < naive * 1e-9);
        if (naive < answer.in_reach_gbps.v * (1 - STRATEGY_WORTH)) {
            losses++;
            assert_int_equal(answer.bottleneck, BOTTLENECK_TRANSLATION);
        } else {
            assert_int_equal(answer.bottleneck, BOTTLENECK_NOT);
        }
        r.observed_gbps = naive / 4;
        assert_int_equal(explain_loss(&fp, &r, &answer, NULL), STATUS_OK);
        assert_int_equal(answer.bottleneck, BOTTLENECK_NOT);
        assert_true(answer.translation_share.v >= 0 && answer.translation_share.v <= 1);
        assert_true(strlen(answer.reason) < sizeof(answer.reason) - 1);
    }
    assert_true(losses > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_translation), cmocka_unit_test(test_something_else),
        cmocka_unit_test(test_scattered),   cmocka_unit_test(test_cannot_say),
        cmocka_unit_test(test_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
