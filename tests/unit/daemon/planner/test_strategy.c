/* test_strategy.c: answers of the planner are checked with numbers computed by hand, and compared
 * with measured jobs. */
#include "tests/unit/support/placement_fixture.h"

#include "base/units.h"
#include "planner/strategy.h"

#include <math.h>
#include <string.h>

static struct fingerprint fp;
static struct strategy_answer answer;

static void plan(const struct job_request *job)
{
    struct err err = {.status = STATUS_OK};

    if (strategy_plan(&fp, job, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static double gbps(enum strategy s)
{
    const struct strategy_option *o = placement_option(&answer, s);

    assert_true(o->possible);
    assert_true(IS_KNOWN(o->gbps));
    return o->gbps.v;
}

static void assert_near(double a, double b, double part)
{
    if (fabs(a - b) > part * fabs(b))
        fail_msg("%g is not %g", a, b);
}

/* The large chip has 64 GiB of reach, 4000 GB/s within the reach (0.032 ns per access), and 1000
 * GB/s over 128 GiB (0.128 ns). At 96 GiB, 1 / bytes is two thirds of the way from 64 to 128
 * GiB. */
static void test_naive_between_points(void **state)
{
    (void)state;
    placement_make_large(&fp);
    plan(&(struct job_request){.bytes = 32 * GIB});
    assert_near(gbps(STRATEGY_NAIVE), 4000, 1e-9);
    plan(&(struct job_request){.bytes = 128 * GIB});
    assert_near(gbps(STRATEGY_NAIVE), 1000, 1e-9);
    /* Only one point of the curve is slower than reads within the reach of 64 GiB. Beyond the
     * reach, the miss rate is 1 - 64 GiB / bytes, so 96 GiB has two thirds of the misses of 128
     * GiB. */
    plan(&(struct job_request){.bytes = 96 * GIB});
    assert_near(gbps(STRATEGY_NAIVE), 128 / (0.128 * 2 / 3), 1e-9);
    assert_int_equal(placement_option(&answer, STRATEGY_NAIVE)->bound, BOUND_TRANSLATION);
    assert_int_equal(answer.basis, BASIS_SIMULATED);
    fp.gpu.origin = ORIGIN_MEASURED;
    plan(&(struct job_request){.bytes = 96 * GIB});
    assert_int_equal(answer.basis, BASIS_MEASURED);
}

/* Two windows of 64 GiB wait for the busier one, which has (1 / 2)^(1 / 2) of the accesses. The two
 * passes have 0.707 and 0.293 of the accesses, and 0.1 ns for each scan. All accesses on few pages
 * are as fast as within the reach. */
static void test_concentration_by_hand(void **state)
{
    struct job_request job = {.bytes = 126 * GIB, .scan_gps = 10};
    double busy;
    double even;

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    assert_near(gbps(STRATEGY_SCOPES), 128 / 0.2, 1e-9);
    job.scan_gps = 0;
    plan(&job);
    even = gbps(STRATEGY_WINDOWS);
    job.window_concentration = 0.5;
    job.scan_gps = 40;
    plan(&job);
    busy = sqrt((double)answer.scope_bytes / (double)job.bytes);
    assert_near(gbps(STRATEGY_SCOPES), 128 / (0.025 + 0.025), 1e-9);
    assert_true(busy * 0.032 < 0.025);
    job.scan_gps = 50;
    plan(&job);
    assert_near(gbps(STRATEGY_SCOPES), 128 / (busy * 0.032 + 0.02), 1e-9);
    job.scan_gps = 0;
    plan(&job);
    assert_near(gbps(STRATEGY_WINDOWS), even / sqrt(2), 1e-9);
    job.window_concentration = 1;
    plan(&job);
    assert_near(gbps(STRATEGY_NAIVE), 4000, 1e-9);
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
}

static void test_inside_nothing_is_worth_doing(void **state)
{
    (void)state;
    placement_make_large(&fp);
    plan(&(struct job_request){.bytes = 64 * GIB - 2 * MIB, .scan_gps = 1, .input_bytes = 4});
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
    assert_non_null(strstr(answer.reason, "No strategy is worth its cost"));
    for (int i = 1; i < STRATEGY_COUNT; i++)
        assert_false(answer.options[i].possible);
    assert_false(answer.has_placement);
    assert_int_equal(answer.passes, 0);
    plan(&(struct job_request){.bytes = 64 * GIB - 2 * MIB + 1});
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
    plan(&(struct job_request){.bytes = 100 * GIB});
    placement_assert_recommends(&answer.options[0], STRATEGY_WINDOWS);
}

/* There are three passes over 128 GiB with a reach of 64 GiB less one entry. */
static void test_scopes_by_hand(void **state)
{
    struct job_request job = {.bytes = 128 * GIB,
                              .scan_gps = 50}; /* testing a position takes 0.02 ns */

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    assert_int_equal(answer.passes, 3);
    assert_true(answer.scope_bytes * 3 >= job.bytes && answer.scope_bytes < 43 * GIB);
    assert_near(gbps(STRATEGY_SCOPES), 128 / 0.06, 1e-3);
    assert_int_equal(placement_option(&answer, STRATEGY_SCOPES)->bound, BOUND_SCAN);
    assert_int_equal(placement_option(&answer, STRATEGY_SCOPES)->passes, 3);
    /* With windows, each position is tested only once, because a window works only on its own
     * positions. */
    assert_near(gbps(STRATEGY_WINDOWS), 3950, 0.01);
    job.scan_gps = 1000;
    plan(&job);
    assert_near(gbps(STRATEGY_SCOPES), 4000, 1e-6);
    job.single_pass = true;
    plan(&job);
    assert_false(placement_option(&answer, STRATEGY_SCOPES)->possible);
    assert_false(placement_option(&answer, STRATEGY_FILTERED_WINDOWS)->possible);
    assert_int_equal(answer.passes, 0);
}

/* An access has 16 bytes of input. Reading them takes 0.004 ns at 4000 GB/s, and 0.16 ns over a
 * link of 100 GB/s. */
static void test_input(void **state)
{
    struct job_request job = {
        .bytes = 128 * GIB, .input_bytes = 16, .accesses = 1000000000000, .launch_us = 1e-3};

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    assert_false(placement_option(&answer, STRATEGY_WINDOWS)->possible);
    assert_near(gbps(STRATEGY_NAIVE), 1000, 1e-9);
    assert_near(gbps(STRATEGY_SCOPES), 128 / (0.032 + 3 * 0.004), 1e-3);
    /* Partitioned windows read the input to count and to partition, write it at twice the cost, and
     * read it again. Filtered windows read the input once, together. */
    assert_near(gbps(STRATEGY_PARTITIONED_WINDOWS), 128 / (0.032 + 5 * 0.004), 0.02);
    assert_near(gbps(STRATEGY_FILTERED_WINDOWS), 128 / (0.032 + 0.004), 0.02);
    assert_near(placement_option(&answer, STRATEGY_SCOPES)->extra_bytes_total.v, 32e12, 1e-9);
    assert_near(placement_option(&answer, STRATEGY_PARTITIONED_WINDOWS)->extra_bytes, 48, 1e-9);
    /* Three passes or windows add to 8 bytes of output, so the output is read and written two more
     * times. */
    job.output_bytes = 8;
    plan(&job);
    assert_near(gbps(STRATEGY_SCOPES), 128 / (0.032 + 3 * 0.004 + 2 * 0.004), 1e-3);
    assert_near(placement_option(&answer, STRATEGY_SCOPES)->extra_bytes, 64, 1e-9);
    job.output_bytes = 0;
    job.partition_bytes = 32;
    plan(&job);
    assert_near(gbps(STRATEGY_PARTITIONED_WINDOWS), 128 / (0.032 + 2 * 0.004 + 3 * 0.008), 0.02);
    job.partition_bytes = 0;
    job.input_gbps = 100;
    plan(&job);
    /* The link is the limit and works in parallel with memory and translation, so no strategy
     * gains. */
    assert_near(gbps(STRATEGY_NAIVE), 128 / 0.16, 1e-9);
    assert_near(gbps(STRATEGY_SCOPES), 128 / 0.16, 1e-9);
    assert_near(placement_option(&answer, STRATEGY_SCOPES)->extra_bytes, 64, 1e-9);
    assert_int_equal(placement_option(&answer, STRATEGY_NAIVE)->bound, BOUND_INPUT);
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
    assert_non_null(strstr(answer.reason, "No strategy is worth its cost"));
}

static void test_fixed_and_unknown(void **state)
{
    struct job_request job = {.bytes = 128 * GIB, .no_sm_binding = true};

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    for (int s = STRATEGY_WINDOWS; s < STRATEGY_COUNT; s++)
        assert_false(placement_option(&answer, (enum strategy)s)->possible);
    assert_false(answer.has_placement);
    placement_assert_recommends(&answer.options[0], STRATEGY_SCOPES);
    /* The throughput of atomics within the reach is unknown, so the answer has no number. */
    job = (struct job_request){.bytes = 128 * GIB, .access = ACCESS_ATOMIC};
    plan(&job);
    assert_int_equal(answer.basis, BASIS_NONE);
    for (int i = 0; i < STRATEGY_COUNT; i++)
        assert_false(IS_KNOWN(answer.options[i].gbps));
    placement_assert_recommends(&answer.options[0], STRATEGY_WINDOWS);
    job.no_sm_binding = true;
    plan(&job);
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
    /* The job's own measurement is enough, because translation takes as long as for reads. */
    job = (struct job_request){
        .bytes = 128 * GIB, .access = ACCESS_ATOMIC, .in_reach_gbps = 500, .element_bytes = 32};
    plan(&job);
    assert_int_equal(answer.basis, BASIS_JOB);
    assert_near(gbps(STRATEGY_NAIVE), 32 / 0.128,
                0.003); /* the limit of the job hides half of the translation time */
    assert_near(gbps(STRATEGY_WINDOWS), 500,
                1e-3); /* 500 GB/s, except for the rounding to whole entries */
}

/* Memory, with the throughput of the job, and translation take the same time, 0.128 ns. For reads
 * both times overlap. For a job that waits for results of atomics they overlap less. */
static void test_knee(void **state)
{
    struct job_request job = {.bytes = 128 * GIB, .in_reach_gbps = 250, .element_bytes = 32};

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    assert_near(gbps(STRATEGY_NAIVE), 250, 1e-9);
    job.access = ACCESS_ATOMIC;
    plan(&job);
    assert_near(gbps(STRATEGY_NAIVE), 250 / pow(2, 1.0 / 6), 1e-9);
}

/* These sizes of accesses were not measured. The time of larger accesses scales with the bytes,
 * and smaller accesses take as long as the smallest measured size. Translation is counted per
 * access. */
static void test_sizes(void **state)
{
    (void)state;
    placement_make_large(&fp);
    plan(&(struct job_request){.bytes = 128 * GIB, .element_bytes = 4});
    assert_int_equal(answer.allocations[0].transaction_bytes, 32);
    assert_int_equal(answer.basis, BASIS_SCALED);
    assert_near(gbps(STRATEGY_NAIVE), 32 / 0.128, 1e-9);
    assert_near(answer.in_reach_gbps.v, 1000,
                1e-9); /* an access takes 0.032 ns, as long as a line */
    plan(&(struct job_request){.bytes = 128 * GIB, .element_bytes = 1024});
    assert_near(gbps(STRATEGY_NAIVE), 4000, 1e-9); /* 0.128 ns are hidden by 0.256 ns of memory */
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
    /* If 512 bytes were measured too, 320 bytes are halfway between. */
    fp.throughput.rate_count = 1;
    fp.throughput.rates[0] = (struct access_rate){
        .access = ACCESS_READ,
        .transaction_bytes = 512,
        .plateau_gbps = KNOWN(4096),
        .point_count = 1,
        .points = {
            {.region_bytes = 128 * GIB, .naive_gbps = KNOWN(3000), .by_group_gbps = KNOWN(4096)}}};
    plan(&(struct job_request){.bytes = 32 * GIB, .element_bytes = 320});
    assert_int_equal(answer.basis, BASIS_BETWEEN);
    assert_near(gbps(STRATEGY_NAIVE), 320 / ((0.032 + 0.125) / 2), 1e-9);
    plan(&(struct job_request){.bytes = 128 * GIB, .element_bytes = 512});
    assert_int_equal(answer.basis, BASIS_SIMULATED);
    assert_near(gbps(STRATEGY_NAIVE), 3000, 1e-9);
}

/* 1 GiB of other data takes 512 entries, and one more for its alignment. Windows have 63 GiB less
 * two entries, so two windows hold less than 126 GiB. */
static void test_reserve(void **state)
{
    struct job_request job = {.bytes = 126 * GIB};

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    assert_int_equal(answer.placement.window_count, 2);
    job.reserve_bytes = GIB;
    plan(&job);
    assert_int_equal(answer.placement.window_count, 3);
    job.reserve_bytes = 64 * GIB;
    plan(&job);
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
    assert_false(answer.options[1].possible);
    assert_non_null(strstr(placement_option(&answer, STRATEGY_WINDOWS)->why, "reserve"));
}

static void test_refusals(void **state)
{
    static const struct {
        struct job_request job;
        const char *word;
    } wrong[] = {
        {{.bytes = 0}, "bytes"},
        {{.bytes = GIB, .element_bytes = 1 << 21}, "element"},
        {{.bytes = GIB, .transaction_bytes = 1 << 21}, "transaction"},
        {{.bytes = GIB, .reserve_bytes = PLACEMENT_MAX_BYTES + 1}, "reserve"},
        {{.bytes = GIB, .scan_gps = -1}, "scan_gps"},
        {{.bytes = GIB, .in_reach_gbps = NAN}, "in_reach_gbps"},
        {{.bytes = GIB, .input_bytes = INFINITY}, "input_bytes"},
        {{.bytes = GIB, .input_gbps = 3}, "input_gbps"},
        {{.bytes = 128 * GIB, .windows = 2}, "windows"},
        {{.bytes = 128 * GIB, .windows = 9}, "windows"},
    };
    struct err err;

    (void)state;
    placement_make_large(&fp);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        err.status = STATUS_OK;
        assert_int_equal(strategy_plan(&fp, &wrong[i].job, &answer, &err), STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, wrong[i].word));
    }
    fp.windows.reach_bytes = UNKNOWN_U64(REASON_TOO_LITTLE_DATA);
    assert_int_equal(strategy_plan(&fp, &(struct job_request){.bytes = GIB}, &answer, &err),
                     STATUS_NOT_APPLICABLE);
    /* The reach is beyond the probed range, so naive is the only choice. */
    placement_make_large(&fp);
    fp.windows.reach_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    plan(&(struct job_request){.bytes = 100 * GIB});
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
    assert_false(answer.options[1].possible);
    /* Without known groups, scopes are still possible. */
    placement_make_large(&fp);
    fp.topology.partition.group_count = 0;
    plan(&(struct job_request){.bytes = 100 * GIB});
    placement_assert_recommends(&answer.options[0], STRATEGY_SCOPES);
    assert_non_null(strstr(placement_option(&answer, STRATEGY_WINDOWS)->why, "share a TLB"));
}

/* ---- measured jobs ---- */

static struct access_rate rate_of(enum access access, uint32_t bytes, double plateau, double at_80,
                                  double at_112, double at_139)
{
    return (struct access_rate){.access = access,
                                .transaction_bytes = bytes,
                                .plateau_gbps = KNOWN(plateau),
                                .point_count = 3,
                                .points = {{.region_bytes = 80 * GIB, .naive_gbps = KNOWN(at_80)},
                                           {.region_bytes = 112 * GIB, .naive_gbps = KNOWN(at_112)},
                                           {.region_bytes = 139 * GIB + 717 * MIB,
                                            .naive_gbps = KNOWN(at_139),
                                            .by_group_gbps = KNOWN(plateau)}}};
}

/* The rates of an H200, measured at depth full on 2026-11-21. */
static void make_h200(void)
{
    static const double naive[][2] = {{68, 4398.7}, {72, 3689.3}, {80, 2053.1},  {96, 1226.4},
                                      {112, 950.6}, {128, 813.5}, {139.7, 749.4}};
    static const uint32_t sizes[24] = {6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6,
                                       6, 6, 6, 6, 6, 6, 4, 4, 4, 4, 4, 4};

    placement_make_empty(&fp);
    placement_make_groups(&fp, sizes, 24);
    placement_make_limits(&fp, 2049 * (32 * MIB), 32 * MIB);
    fp.throughput.plateau_gbps = KNOWN_F64(4404);
    for (uint32_t i = 0; i < 7; i++) {
        fp.throughput.curve[i].region_bytes = (uint64_t)(naive[i][0] * (double)GIB);
        fp.throughput.curve[i].naive_gbps = KNOWN_F64(naive[i][1]);
        fp.throughput.curve[i].by_group_gbps = KNOWN_F64(4405);
    }
    fp.throughput.curve_count = 7;
    fp.throughput.rate_count = 4;
    fp.throughput.rates[0] = rate_of(ACCESS_READ, 32, 1402, 516.3, 240.8, 190.4);
    fp.throughput.rates[1] = rate_of(ACCESS_READ, 512, 4644, 4641, 3836.6, 3030.5);
    fp.throughput.rates[2] = rate_of(ACCESS_ATOMIC, 32, 517, 512.7, 239, 190);
    fp.throughput.rates[3] = rate_of(ACCESS_WRITE, 32, 523.5, 515.9, 240.6, 190.2);
}

/* Results of the jobs of clients/examples on an H200 on 2026-11-21. Each job was measured in one
 * run with all its strategies, and within the reach. The error of the model must be at most a
 * tenth. A measured 0 means that the strategy was not run. */
static void test_measured_jobs(void **state)
{
    static const struct {
        struct job_request job;
        double measured[STRATEGY_COUNT];
    } runs[] = {
        {{.bytes = 80 * GIB,
          .input_bytes = 4,
          .output_bytes = 2,
          .partition_bytes = 8,
          .scan_gps = 585.6,
          .in_reach_gbps = 3932.5},
         {2037, 3648.2, 0, 3802.6, 3308.5}},
        {{.bytes = 136 * GIB + 900 * MIB,
          .input_bytes = 4,
          .output_bytes = 2,
          .partition_bytes = 8,
          .scan_gps = 580.3,
          .in_reach_gbps = 3922.5},
         {770.2, 3342.5, 0, 3634.2, 3120.9}},
        {{.bytes = 136 * GIB + 768 * MIB,
          .element_bytes = 256,
          .input_bytes = 4,
          .output_bytes = 4,
          .partition_bytes = 8,
          .scan_gps = 557.3,
          .in_reach_gbps = 4162.2},
         {1543.2, 3757.5, 0, 3843.6, 3546.1}},
        {{.bytes = 136 * GIB + 512 * MIB,
          .element_bytes = 512,
          .input_bytes = 4,
          .output_bytes = 8,
          .partition_bytes = 8,
          .scan_gps = 345.8,
          .in_reach_gbps = 4186.5},
         {3090.8, 3889.5, 0, 3911.3, 3726.1}},
        {{.bytes = 80 * GIB, .element_bytes = 4, .scan_gps = 642.2, .in_reach_gbps = 1373.3},
         {513.1, 1359.4, 0, 1369.5, 1069.1}},
        {{.bytes = 138 * GIB + 225 * MIB,
          .element_bytes = 4,
          .scan_gps = 640.9,
          .in_reach_gbps = 1373.6},
         {191.8, 1353.4, 0, 1371.8, 1044.6}},
        /* In the grouping job, both limits are close to each other. */
        {{.bytes = 80 * GIB,
          .access = ACCESS_ATOMIC,
          .element_bytes = 16,
          .input_bytes = 4,
          .reserve_bytes = GIB,
          .scan_gps = 275.2,
          .in_reach_gbps = 438.6},
         {392.2, 436.5, 0, 449.7, 404}},
        {{.bytes = 137 * GIB + 860 * MIB,
          .access = ACCESS_ATOMIC,
          .element_bytes = 16,
          .input_bytes = 4,
          .reserve_bytes = GIB,
          .scan_gps = 275.3,
          .in_reach_gbps = 435.9},
         {179.6, 425.9, 0, 451.5, 403.5}},
    };

    (void)state;
    make_h200();
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        double best = 0;
        double first = 0;
        plan(&runs[i].job);
        for (int s = 0; s < STRATEGY_COUNT; s++) {
            if (runs[i].measured[s] > 0)
                assert_near(gbps((enum strategy)s), runs[i].measured[s], 0.1);
            best = fmax(best, runs[i].measured[s]);
        }
        /* Checks the first choice among the strategies of the job. */
        for (int k = 0; k < STRATEGY_COUNT && first == 0; k++)
            first = runs[i].measured[answer.options[k].strategy];
        assert_true(first >= best * 0.97);
    }
}

static void test_names(void **state)
{
    static const char *const names[] = {
        "naive", "scopes", "windows",   "filtered-windows", "partitioned-windows",
        "sides", "sorted", "cpu-gather"};

    (void)state;
    for (int i = 0; i < STRATEGY_ALL_COUNT; i++)
        assert_string_equal(strategy_name((enum strategy)i), names[i]);
    assert_string_equal(strategy_name(STRATEGY_ALL_COUNT), "invalid");
}

/* ---- items with more than one access ---- */

/* 128 bytes that are written once at 4000 GB/s add 0.032 ns of memory time in every strategy. */
static void test_written_once(void **state)
{
    const struct job_request job = {
        .bytes = 128 * GIB, .input_bytes = 16, .written_bytes = 128, .windows = 4};

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    assert_near(gbps(STRATEGY_NAIVE), 1000, 1e-9); /* translation hides the time of writing */
    assert_near(gbps(STRATEGY_SCOPES), 128 / (0.064 + 3 * 0.004), 1e-3);
    assert_near(gbps(STRATEGY_FILTERED_WINDOWS), 128 / (0.064 + 0.004), 0.02);
    assert_near(gbps(STRATEGY_PARTITIONED_WINDOWS), 128 / (0.064 + 5 * 0.004), 0.02);
    assert_near(placement_option(&answer, STRATEGY_SCOPES)->extra_bytes, 32, 1e-9);
}

/* An item of two accesses takes the memory time of both, and misses twice. */
static void test_touches(void **state)
{
    struct job_request job = {.allocation_count = 1,
                              .allocations = {{.bytes = 128 * GIB, .touches = 2}}};

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    assert_near(answer.item_bytes, 256, 1e-9);
    assert_near(gbps(STRATEGY_NAIVE), 1000, 1e-9);
    assert_near(gbps(STRATEGY_WINDOWS), 3950, 0.01);
    /* Two halves that are touched once each give the same result. */
    job = (struct job_request){
        .allocation_count = 2,
        .allocations = {{.bytes = 64 * GIB, .touches = 1}, {.bytes = 64 * GIB, .touches = 1}}};
    plan(&job);
    assert_near(gbps(STRATEGY_NAIVE), 1000, 1e-4);
    /* An allocation without touches takes no part of the reach. */
    job.allocations[0].bytes = 60 * GIB;
    job.allocations[1].touches = 0;
    plan(&job);
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
    assert_near(gbps(STRATEGY_NAIVE), 4000, 1e-9);
}

/* Three tables together exceed every reach. Windows of matched parts have the throughput within the
 * reach. */
static void test_three_tables(void **state)
{
    const struct job_request job = {.input_bytes = 8,
                                    .allocation_count = 3,
                                    .allocations = {{.bytes = 50 * GIB, .touches = 1},
                                                    {.bytes = 40 * GIB, .touches = 1},
                                                    {.bytes = 30 * GIB, .touches = 1}}};
    uint64_t parts = 0;

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    placement_assert_recommends(&answer.options[0], STRATEGY_FILTERED_WINDOWS);
    assert_true(gbps(STRATEGY_FILTERED_WINDOWS) > 0.95 * answer.in_reach_gbps.v);
    assert_true(gbps(STRATEGY_NAIVE) < 0.3 * answer.in_reach_gbps.v);
    for (uint32_t w = 0; w < answer.placement.window_count; w++) {
        const struct placement_window *window = &answer.placement.windows[w];
        const struct layout_range all = layout_parts(&answer.layout, window->first_byte,
                                                     window->first_byte + window->length_bytes);
        assert_true(all.length_bytes <= 64 * GIB - 5 * 2 * MIB);
        parts += all.length_bytes;
    }
    assert_true(parts == 120 * GIB);
}

/* A launch takes 10 us. A hundred thousand reads take 13 us with naive and 3 us with windows.
 * Windows need two more launches. */
static void test_batches(void **state)
{
    struct job_request job = {.bytes = 128 * GIB, .accesses = 100000};

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
    assert_near(gbps(STRATEGY_NAIVE), 128 / (0.128 + 0.1), 1e-9);
    assert_near(gbps(STRATEGY_WINDOWS), 128 / (0.032 + 0.3), 0.01);
    assert_near(placement_option(&answer, STRATEGY_WINDOWS)->launch_ns, 0.3, 1e-9);
    assert_near(placement_option(&answer, STRATEGY_NAIVE)->launch_ns, 0.1, 1e-9);
    assert_int_equal(placement_option(&answer, STRATEGY_WINDOWS)->bound, BOUND_LAUNCH);
    job.accesses = 100000000;
    plan(&job);
    placement_assert_recommends(&answer.options[0], STRATEGY_WINDOWS);
    job.accesses = 100000;
    job.launch_us = 1;
    plan(&job);
    placement_assert_recommends(&answer.options[0], STRATEGY_WINDOWS);
}

/* Over twice the reach, half of the reads miss and the mean is 0.128 ns, so a miss takes 0.256 ns.
 * Each of three passes loads the entries of its scope into the TLB of each group, but not more
 * entries than it has reads. */
static void test_cold_scopes(void **state)
{
    struct job_request job = {.bytes = 128 * GIB, .accesses = 100000000, .launch_us = 1e-9};
    double entries;

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    entries = (double)(answer.scope_bytes / fp.windows.entry_bytes.v + 1) *
              fp.topology.partition.group_count;
    assert_int_equal(answer.passes, 3);
    assert_near(gbps(STRATEGY_SCOPES), 128 / (0.032 + 3 * entries * 0.256 / 1e8), 1e-3);
    assert_near(placement_option(&answer, STRATEGY_SCOPES)->launch_ns, 3 * entries * 0.256 / 1e8,
                1e-9);
    assert_near(gbps(STRATEGY_NAIVE), 1000, 1e-6);
    job.accesses = 1000;
    plan(&job);
    assert_near(gbps(STRATEGY_SCOPES), 128 / (0.032 + 0.256), 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_naive_between_points),
        cmocka_unit_test(test_concentration_by_hand),
        cmocka_unit_test(test_inside_nothing_is_worth_doing),
        cmocka_unit_test(test_scopes_by_hand),
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_fixed_and_unknown),
        cmocka_unit_test(test_knee),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_measured_jobs),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_written_once),
        cmocka_unit_test(test_touches),
        cmocka_unit_test(test_three_tables),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_cold_scopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
