/* test_triton_jobs.c: compares the planner with kernels that were not used to derive its model. The
 * kernels are gathers, sums of bags and additions in Triton on an H200
 * (docs/measurements/triton-h200-2026-11-22). The predictions use the fingerprint of another H200.
 * The test prints predicted and measured numbers, and checks the accuracy of the model. */
#include "tests/unit/support/placement_fixture.h"

#include "base/units.h"
#include "fingerprint/fingerprint_read.h"
#include "planner/strategy.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define H200 "docs/measurements/nvidia-h200-3232f831-2026-11-21/fingerprint-full.json"

static struct fingerprint fp;
static struct strategy_answer answer;

/* The unit of throughputs is 10^9 rows or additions per second; 0 means not run. */
struct run {
    const char *what;
    struct job_request job;
    double in_reach; /* throughput of the same kernel over 32 GiB */
    double measured[STRATEGY_COUNT];
};

enum { INDEX_BYTES = 8, BAG = 64 };

/* A job that reads a row by its index, and writes the row once. */
#define GATHER(table, row)                                                                         \
    {                                                                                              \
        .bytes = (table)*GIB, .element_bytes = (row), .input_bytes = INDEX_BYTES,                  \
        .written_bytes = (row)                                                                     \
    }
/* A job that sums rows of two-byte numbers to four bytes each. Two windows write partial sums,
 * which are read twice and written once more for the addition. */
#define SUM(table, row)                                                                            \
    {                                                                                              \
        .bytes = (table)*GIB, .element_bytes = (row), .input_bytes = INDEX_BYTES,                  \
        .output_bytes = 2.0 * (row) / BAG, .written_bytes = 2.0 * (row) / BAG                      \
    }
#define ADD(table)                                                                                 \
    {                                                                                              \
        .bytes = (table)*GIB, .access = ACCESS_ATOMIC, .element_bytes = 4,                         \
        .input_bytes = INDEX_BYTES                                                                 \
    }
static const struct run runs[] = {
    {"gather 8 B", GATHER(124, 8), 34.3, {6.63, 29.7, 0, 35.6, 0}},
    {"gather 32 B", GATHER(120, 32), 29.3, {6.86, 25.2, 0, 29.1, 0}},
    {"gather 64 B", GATHER(120, 64), 23.1, {6.73, 18.9, 0, 20.5, 0}},
    {"gather 128 B", GATHER(120, 128), 14.4, {6.68, 13.0, 0, 13.1, 0}},
    {"gather 256 B", GATHER(120, 256), 7.7, {6.68, 7.3, 0, 7.1, 0}},
    {"bags 64 B", SUM(125, 64), 35.5, {6.52, 0, 0, 20.2, 0}},
    {"bags 128 B", SUM(125, 128), 27.7, {6.39, 0, 0, 15.9, 0}},
    {"bags 256 B", SUM(125, 256), 14.9, {6.37, 0, 0, 10.9, 0}},
    {"additions", ADD(125), 15.1, {6.53, 0, 0, 14.9, 0}},
};
enum { RUN_COUNT = sizeof(runs) / sizeof(*runs) };

static void load(void)
{
    json_t *const json = json_load_file(H200, 0, NULL);
    struct err err = {.text = "no such file"};

    if (!json || fingerprint_from_json(json, &fp, &err) != STATUS_OK)
        fail_msg("%s: %s", H200, err.text);
    json_decref(json);
}

/* Returns the predicted throughput in 10^9 items per second. */
static double predicted(enum strategy s)
{
    const struct strategy_option *o = placement_option(&answer, s);

    assert_true(o->possible && IS_KNOWN(o->gbps));
    return o->gbps.v / answer.item_bytes;
}

static void plan(const struct job_request *job)
{
    assert_int_equal(strategy_plan(&fp, job, &answer, NULL), STATUS_OK);
}

static int load_it(void **state)
{
    (void)state;
    load();
    return 0;
}

static void print_ratio(const char *what, const char *how, double got, double measured)
{
    printf("# %-14s %-18s %9.2f %9.2f %6.2f\n", what, how, got, measured, got / measured);
}

/* Within the reach, the model lacks two costs: writing beside reading, which takes longer than both
 * alone, and the overhead of a kernel. Predictions are too slow by at most a tenth, and too fast by
 * at most a sixth. */
static void test_within_the_reach(void **state)
{
    (void)state;
    for (int i = 0; i < RUN_COUNT; i++) {
        struct job_request job = runs[i].job;
        job.bytes = 32 * GIB;
        plan(&job);
        print_ratio(runs[i].what, "within", predicted(STRATEGY_NAIVE), runs[i].in_reach);
        assert_true(predicted(STRATEGY_NAIVE) < 1.17 * runs[i].in_reach);
        assert_true(predicted(STRATEGY_NAIVE) > 0.9 * runs[i].in_reach);
    }
}

/* The throughput of naive beyond the reach decides whether another strategy gains. */
static void test_naive_beyond_the_reach(void **state)
{
    (void)state;
    for (int i = 0; i < RUN_COUNT; i++) {
        plan(&runs[i].job);
        print_ratio(runs[i].what, "naive", predicted(STRATEGY_NAIVE),
                    runs[i].measured[STRATEGY_NAIVE]);
        assert_true(fabs(predicted(STRATEGY_NAIVE) / runs[i].measured[STRATEGY_NAIVE] - 1) < 0.04);
    }
}

/* Predicts with the kernel's own throughput within the reach. The bags have no upper bound: kernels
 * that mask rows are limited by their own instructions. The model does not include this limit, and
 * the CUDA kernel of clients/examples does not have it. */
static void test_strategies(void **state)
{
    (void)state;
    for (int i = 0; i < RUN_COUNT; i++) {
        struct job_request job = runs[i].job;
        plan(&job); /* item_bytes */
        job.in_reach_gbps = runs[i].in_reach * answer.item_bytes;
        plan(&job);
        for (int s = 0; s < STRATEGY_COUNT; s++) {
            const double measured = runs[i].measured[s];
            if (!(measured > 0))
                continue;
            print_ratio(runs[i].what, strategy_name((enum strategy)s), predicted((enum strategy)s),
                        measured);
            assert_true(predicted((enum strategy)s) > 0.9 * measured);
            if (strncmp(runs[i].what, "bags", 4) != 0)
                assert_true(predicted((enum strategy)s) < 1.18 * measured);
        }
    }
}

/* With or without the job's own throughput, the first choice is the fastest measured strategy, or
 * at most three percent slower. */
static void test_first_choice(void **state)
{
    (void)state;
    for (int i = 0; i < RUN_COUNT; i++) {
        struct job_request job = runs[i].job;
        double best = 0;
        for (int s = 0; s < STRATEGY_COUNT; s++)
            best = fmax(best, runs[i].measured[s]);
        plan(&job);
        assert_true(runs[i].measured[answer.options[0].strategy] >= 0.97 * best);
        job.in_reach_gbps = runs[i].in_reach * answer.item_bytes;
        plan(&job);
        assert_true(runs[i].measured[answer.options[0].strategy] >= 0.97 * best);
    }
}

/* Gathers of 64-byte rows at positions u^3 of the table, for even u. The share x at the beginning
 * of the table then has x^(1/3) of the accesses. The kernels ran on an H200 of 2026-11-26. The
 * kernel in windows takes work of other windows, so it is faster than windows that wait for the
 * busiest one. The faster of naive and windows is predicted. */
static void test_concentrated_gathers(void **state)
{
    const struct {
        uint64_t bytes;
        double concentration;
        double naive;
        double windows;
    } gathers[] = {{96 * GIB, 0, 9.5, 21.2},
                   {118 * GIB, 0, 7.0, 19.9},
                   {96 * GIB, 2.0 / 3, 18.2, 17.5},
                   {118 * GIB, 2.0 / 3, 12.6, 19.1}};

    (void)state;
    for (size_t i = 0; i < sizeof(gathers) / sizeof(*gathers); i++) {
        struct job_request job = GATHER(0, 64);
        job.bytes = gathers[i].bytes;
        job.window_concentration = gathers[i].concentration;
        plan(&job);
        print_ratio(job.window_concentration > 0 ? "gather u^3" : "gather", "naive",
                    predicted(STRATEGY_NAIVE), gathers[i].naive);
        assert_true(fabs(predicted(STRATEGY_NAIVE) / gathers[i].naive - 1) < 0.05);
        assert_int_equal(predicted(STRATEGY_NAIVE) > predicted(STRATEGY_FILTERED_WINDOWS),
                         gathers[i].naive > gathers[i].windows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within_the_reach),     cmocka_unit_test(test_naive_beyond_the_reach),
        cmocka_unit_test(test_strategies),           cmocka_unit_test(test_first_choice),
        cmocka_unit_test(test_concentrated_gathers),
    };
    printf("# %-14s %-18s %9s %9s %6s\n", "job", "strategy", "predicted", "measured", "ratio");
    return cmocka_run_group_tests(tests, load_it, NULL);
}
