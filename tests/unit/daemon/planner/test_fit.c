/* test_fit.c: finds the cache that holds a working set (planner/fit.h), on the curves of one H200.
 * TEST_SEED repeats the random cases. */
#include "planner/fit.h"
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

enum { CASES = 500 };

static struct rng rng;
static struct fingerprint fp;
static struct fit_answer answer;

/* Random reads of 512 bytes on an H200 (2026-11-23). A row has the size of the working set in KiB,
 * and three throughputs in GB/s. They are for the same set in all SMs, for a set for each SM, and
 * for sets on the near side. 0 means not measured. */
static const double h200[][4] = {
    {64, 25343, 0, 0},           {128, 25138, 0, 0},         {192, 21474, 0, 0},
    {256, 20778, 0, 0},          {512, 16954, 0, 0},         {1024, 14208, 25345, 0},
    {2048, 11898, 25345, 0},     {4096, 10464, 25340, 0},    {8192, 9829, 25342, 10485},
    {16384, 9539, 25247, 9855},  {24576, 9449, 21676, 9658}, {32768, 9408, 17654, 9577},
    {49152, 9366, 13581, 9488},  {57344, 8685, 12753, 9458}, {65536, 7846, 12140, 9443},
    {81920, 6948, 9962, 9401},   {98304, 6474, 8340, 9342},  {114688, 6191, 7431, 9160},
    {131072, 5986, 6870, 8270},  {262144, 5292, 5413, 5872}, {524288, 4867, 4909, 5107},
    {1048576, 4679, 4686, 4799},
};
enum { SETS = sizeof h200 / sizeof h200[0] };

static struct maybe_f64 or_unknown(double gbps)
{
    return gbps > 0 ? (struct maybe_f64)KNOWN_F64(gbps) : UNKNOWN_F64(REASON_NOT_MEASURED);
}

static int set_up(void **state)
{
    (void)state;
    placement_make_large(&fp);
    fp.gpu.l2_cache_bytes = 60 * MIB;
    fp.gpu.memory_bytes = 140 * GIB;
    fp.working_set_count = SETS;
    for (uint32_t i = 0; i < SETS; i++)
        fp.working_sets[i] = (struct working_set){.transaction_bytes = 512,
                                                  .set_bytes = (uint64_t)h200[i][0] * KIB,
                                                  .same_gbps = or_unknown(h200[i][1]),
                                                  .own_gbps = or_unknown(h200[i][2]),
                                                  .near_gbps = or_unknown(h200[i][3])};
    return 0;
}

static void fit(uint64_t bytes, enum fit_reuse reuse)
{
    const struct fit_request request = {.bytes = bytes, .reuse = reuse, .element_bytes = 512};
    struct err err = {0};

    if (fit_plan(&fp, &request, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void sets_stay_where_they_are_as_fast(void **state)
{
    const struct {
        uint64_t bytes;
        enum fit_reuse reuse;
        enum fit_level stays;
    } cases[] = {
        {64 * KIB, FIT_SAME, FIT_L1},
        {128 * KIB, FIT_SAME, FIT_L1},
        {256 * KIB, FIT_SAME, FIT_L2},
        {40 * MIB, FIT_SAME, FIT_L2},
        {56 * MIB, FIT_SAME, FIT_L2_NEAR},
        {96 * MIB, FIT_SAME, FIT_L2_NEAR},
        {128 * MIB, FIT_SAME, FIT_MEMORY},
        {10 * GIB, FIT_SAME, FIT_MEMORY},
        {8 * MIB, FIT_OWN, FIT_L1},
        {16 * MIB, FIT_OWN, FIT_L1},
        {32 * MIB, FIT_OWN, FIT_L2},
        {80 * MIB, FIT_OWN, FIT_L2},
        {96 * MIB, FIT_OWN, FIT_MEMORY},
        {100 * GIB, FIT_SAME, FIT_OUT_OF_REACH},
        {200 * GIB, FIT_OWN, FIT_BEYOND_MEMORY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fit(cases[i].bytes, cases[i].reuse);
        if (answer.stays != cases[i].stays)
            fail_msg("case %zu: %s: %s", i, fit_level_name(answer.stays), answer.reason);
        assert_int_equal(answer.sm_bytes, cases[i].reuse == FIT_SAME
                                              ? cases[i].bytes
                                              : (cases[i].bytes - 1) / 132 + 1);
    }
    fit(96 * MIB, FIT_SAME);
    assert_float_equal(answer.gbps.v, 6474, 1);
    assert_float_equal(answer.near_gbps.v, 9342, 1);
    assert_int_equal(answer.l2.keeps_bytes.v, 48 * MIB);
    assert_int_equal(answer.near_keeps_bytes.v, 112 * MIB);
}

/* Numbers that were not measured are absent, with a reason. */
static void what_is_not_measured_is_unknown(void **state)
{
    (void)state;
    fit(MIB, FIT_SAME);
    assert_false(IS_KNOWN(answer.loads_enough));
    assert_false(IS_KNOWN(answer.l1.latency_cycles));
    fp.working_set_count = 0;
    fit(MIB, FIT_SAME);
    assert_int_equal(answer.stays, FIT_UNKNOWN);
    assert_int_equal(answer.gbps.reason, REASON_NOT_MEASURED);
    assert_int_equal(answer.outside_gbps.reason, REASON_NOT_MEASURED);
    assert_non_null(strstr(answer.reason, "not measured"));
}

static void has_l1(uint64_t shared_bytes, uint64_t l1_bytes)
{
    struct cache_facts *const l1 = &fp.caches[CACHE_L1];

    fp.cache_count = CACHE_KIND_COUNT;
    l1->carveouts[l1->carveout_count++] =
        (struct cache_carveout){.shared_bytes = shared_bytes, .size_bytes = KNOWN_U64(l1_bytes)};
}

static struct maybe_f64 gbps_beside(uint64_t bytes, uint64_t shared_bytes, uint32_t blocks)
{
    const struct fit_request request = {.bytes = bytes,
                                        .element_bytes = 512,
                                        .shared_bytes = KNOWN(shared_bytes),
                                        .blocks_per_sm = blocks};
    struct err err = {0};

    if (fit_plan(&fp, &request, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return answer.gbps;
}

/* If the L1 has another size than in the measurement, sets of about that size have no number. Other
 * sets have a number. */
static void another_l1_is_not_what_was_measured(void **state)
{
    (void)state;
    assert_false(IS_KNOWN(gbps_beside(256 * KIB, 64 * KIB, 1))); /* the size of L1 is unknown */
    fp.shared.sm_bytes = KNOWN_U64(228 * KIB);
    has_l1(8 * KIB, 248 * KIB);
    has_l1(132 * KIB, 124 * KIB);
    assert_true(IS_KNOWN(gbps_beside(256 * KIB, 64 * KIB, 2)));
    assert_int_equal(answer.carveout_bytes.v, 132 * KIB);
    assert_int_equal(answer.l1.size_bytes.v, 124 * KIB);
    assert_false(IS_KNOWN(gbps_beside(256 * KIB, 0, 1)));
    assert_int_equal(answer.l1.size_bytes.v, 248 * KIB);
    assert_true(IS_KNOWN(gbps_beside(64 * KIB, 0, 1)));
    assert_true(IS_KNOWN(gbps_beside(32 * MIB, 0, 1)));
    assert_false(IS_KNOWN(
        gbps_beside(256 * KIB, 200 * KIB,
                    1))); /* the size of L1 was not measured beside 200 KiB of shared memory */
    assert_int_equal(answer.l1.size_bytes.reason, REASON_TOO_LITTLE_DATA);
}

static void what_is_known_is_passed_on(void **state)
{
    (void)state;
    fp.shared.block_bytes = KNOWN_U64(227 * KIB);
    fp.shared.bank_bytes = KNOWN_U32(4);
    fp.parallelism.loads_enough = KNOWN_U32(512);
    fp.parallelism.sms_enough = KNOWN_U32(105);
    fp.clusters.largest = KNOWN_U32(8);
    for (uint32_t sms = 2; sms <= 8; sms *= 2)
        fp.clusters.sizes[fp.clusters.size_count++] =
            (struct cluster_size){.sms = sms, .clusters = KNOWN_U32(132 / sms)};
    fit(MIB, FIT_SAME);
    assert_int_equal(answer.cluster_sms.v, 8);
    assert_int_equal(answer.padding_bytes.v, 4);
    assert_int_equal(answer.loads_enough.v, 512);
    assert_int_equal(answer.sms_enough.v, 105);
    fit(64 * KIB, FIT_SAME);
    assert_int_equal(answer.cluster_sms.v, 1);
    fit(4 * MIB, FIT_SAME);
    assert_int_equal(answer.cluster_sms.reason, REASON_NOT_APPLICABLE);
}

/* Returns the noise: the largest factor by which a longer set was measured to be faster than a
 * shorter one. */
static double most_rise(enum fit_reuse reuse)
{
    const int column = reuse == FIT_OWN ? 2 : 1;
    double rise = 1;

    for (uint32_t i = 0; i < SETS; i++) {
        for (uint32_t k = i + 1; k < SETS; k++) {
            if (h200[i][column] > 0)
                rise = fmax(rise, h200[k][column] / h200[i][column]);
        }
    }
    return rise;
}

/* A longer set is never faster by more than this noise, and no nearer cache holds it. */
static void longer_sets_are_slower(void **state)
{
    (void)state;
    assert_true(most_rise(FIT_SAME) == 1);
    assert_true(most_rise(FIT_OWN) < 1.0001);
    for (int n = 0; n < CASES; n++) {
        const enum fit_reuse reuse = (enum fit_reuse)rng_below(&rng, FIT_REUSE_COUNT);
        const uint64_t bytes = MIB + rng_below(&rng, GIB);
        struct fit_answer before;

        fit(bytes, reuse);
        before = answer;
        fit(bytes + rng_below(&rng, GIB), reuse);
        if (IS_KNOWN(before.gbps) && IS_KNOWN(answer.gbps) && answer.stays != FIT_MEMORY)
            assert_true(answer.gbps.v <= before.gbps.v * most_rise(reuse) * (1 + 1e-9));
        assert_true(answer.stays >= before.stays);
    }
}

static void wrong_requests_are_refused(void **state)
{
    struct fit_request request = {.bytes = 0};
    struct err err;

    (void)state;
    assert_int_equal(fit_plan(&fp, &request, &answer, &err), STATUS_INVALID_ARGUMENT);
    request = (struct fit_request){.bytes = 1, .element_bytes = 1 << 30};
    assert_int_equal(fit_plan(&fp, &request, &answer, &err), STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(sets_stay_where_they_are_as_fast, set_up),
        cmocka_unit_test_setup(what_is_not_measured_is_unknown, set_up),
        cmocka_unit_test_setup(another_l1_is_not_what_was_measured, set_up),
        cmocka_unit_test_setup(what_is_known_is_passed_on, set_up),
        cmocka_unit_test_setup(longer_sets_are_slower, set_up),
        cmocka_unit_test_setup(wrong_requests_are_refused, set_up),
    };
    const char *const seed = getenv("TEST_SEED");

    rng.state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    printf("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
