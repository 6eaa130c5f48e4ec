/* test_sim_reads.c: random reads by the SMs of a simulated GPU have the throughputs of the
 * description, both within the reach and beyond it. */
#include "base/stats.h"
#include "base/units.h"
#include "tests/unit/support/sim_bench.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the throughput of one row in GB/s. */
static double row_gbps(const struct probe_result *r, size_t row)
{
    const uint32_t *v = r->values + row * (1 + r->sm_count);
    double lines = 0;
    for (uint32_t i = 0; i < r->sm_count; i++)
        lines += v[1 + i];
    return lines * PROBE_LINE_BYTES / v[0];
}

static struct probe_spec read_spec(const struct sim_desc *d, uint32_t windows)
{
    struct probe_spec spec = {
        .kind = PROBE_READ,
        .repeats = 2,
        .duration_us = 2000,
        .window_count = windows,
        .window_sms = REACH_MAX_SMS,
        .seed = 17,
    };
    for (uint32_t i = 0; i < d->sm_count; i++)
        spec.window_of_sm[d->sm_ids[i]] =
            (uint16_t)(windows > 1 ? d->levels[1].instance_of_sm[i] : 0);
    return spec;
}

/* Little's law: 4 SMs with one line each in flight read 4 * 128 bytes in 512 ns. */
static void few_loads_in_flight_are_slow(void **state)
{
    struct bench b =
        sim_bench_open("sms=4 memory=4G l1=16@2M/2 plateau=100 sm_gbps=100 memory_ns=512");
    const struct probe_spec spec = {
        .kind = PROBE_CONCURRENCY,
        .region_bytes = 64 * MIB,
        .point_count = 3,
        .points = {probe_concurrency(1, 1), probe_concurrency(8, 1), probe_concurrency(32, 32)},
        .repeats = 1,
        .duration_us = 1000,
        .window_count = 1,
        .window_sms = 4};
    struct probe_result r = sim_bench_run(&b, &spec);

    (void)state;
    assert_true(fabs(row_gbps(&r, 0) - 1) < 0.01);
    assert_true(fabs(row_gbps(&r, 1) - 7.97) < 0.1);
    assert_true(fabs(row_gbps(&r, 2) - 99.5) < 0.5);
    probe_result_free(&r);
    gpu_close(b.gpu);
}

static void reads_fall_beyond_the_reach_and_windows_help(void **state)
{
    (void)state;
    struct bench b = sim_bench_open("h200");
    struct probe_spec spec = read_spec(&b.desc, 1);
    spec.point_count = 3;
    spec.points[0] = 8 * GIB;
    spec.points[1] = 60 * GIB;
    spec.points[2] = 137 * GIB;
    struct probe_result naive = sim_bench_run(&b, &spec);
    for (size_t row = 0; row < 4; row++)
        assert_true(fabs(row_gbps(&naive, row) / b.desc.plateau_gbps - 1) < 0.01);
    for (size_t row = 4; row < 6; row++)
        assert_true(row_gbps(&naive, row) < 0.3 * b.desc.plateau_gbps);
    for (size_t row = 0; row < 6; row++) {
        uint32_t elapsed = naive.values[row * (1 + naive.sm_count)];
        assert_in_range(elapsed, 2000000, 2040000);
    }
    probe_result_free(&naive);

    struct probe_spec windows = read_spec(&b.desc, b.desc.levels[1].instance_count);
    windows.point_count = 1;
    windows.points[0] = 137 * GIB;
    struct probe_result grouped = sim_bench_run(&b, &windows);
    assert_true(fabs(row_gbps(&grouped, 0) / b.desc.plateau_gbps - 1) < 0.01);
    probe_result_free(&grouped);
    gpu_close(b.gpu);
}

/* The walkers of a group limit the misses per second, so the miss rate follows from the throughput.
 * Beyond the reach the miss rate is 1 - reach / region. */
static void miss_share_is_that_of_random_loads(void **state)
{
    (void)state;
    struct bench b =
        sim_bench_open("sms=8 memory=64G l1=512@2M/4;miss_ns=10 plateau=1000 read_noise=0");
    struct probe_spec spec = {
        .kind = PROBE_READ,
        .point_count = 1,
        .points = {4 * GIB},
        .repeats = 3,
        .duration_us = 2000,
        .window_count = 1,
        .window_sms = 8,
    };
    struct probe_result r = sim_bench_run(&b, &spec);
    for (size_t row = 0; row < 3; row++) {
        /* There are two groups, one miss takes 10 ns, and three of four loads miss. */
        double expected = 2 * 0.1e9 / 0.75 * PROBE_LINE_BYTES / 1e9;
        assert_true(fabs(row_gbps(&r, row) / expected - 1) < 0.04);
    }
    probe_result_free(&r);
    gpu_close(b.gpu);
}

/* Just beyond the reach, most SMs make few misses in a sample. All of them slow down nevertheless,
 * because they share the walker. */
static void few_misses_slow_all_sms(void **state)
{
    struct bench b = sim_bench_open(
        "sms=64 memory=64G l1=2000@2M/64;miss_ns=10 plateau=350 sm_gbps=175 read_noise=0");
    struct probe_spec spec = read_spec(&(struct sim_desc){.sm_count = 64}, 1);
    const double expected = 0.1e9 / (1 - 2000.0 / 2100) * PROBE_LINE_BYTES / 1e9;
    double sum = 0;

    (void)state;
    spec.point_count = 1;
    spec.points[0] = 2100 * 2 * MIB;
    spec.repeats = 8;
    struct probe_result r = sim_bench_run(&b, &spec);
    for (size_t row = 0; row < spec.repeats; row++)
        sum += row_gbps(&r, row) / spec.repeats;
    assert_true(fabs(sum / expected - 1) < 0.1);
    probe_result_free(&r);
    gpu_close(b.gpu);
}

/* Two groups read one window each. Either window fits the level that both groups share, but both
 * together do not, so 1 - 8192 / 12800 of all loads miss. */
static void windows_share_a_level(void **state)
{
    struct bench b = sim_bench_open("sms=8 memory=64G l1=16@2M/4 l2=8192@2M/8;miss_ns=10 "
                                    "plateau=1000 read_noise=0");
    struct probe_spec spec = read_spec(&(struct sim_desc){.sm_count = 8}, 1);
    const double expected = 0.1e9 / (1 - 8192.0 / 12800) * PROBE_LINE_BYTES / 1e9;

    (void)state;
    spec.window_count = 2;
    for (uint32_t sm = 4; sm < 8; sm++)
        spec.window_of_sm[sm] = 1;
    spec.point_count = 1;
    spec.points[0] = (uint64_t)12800 * 2 * MIB;
    struct probe_result r = sim_bench_run(&b, &spec);
    for (size_t row = 0; row < spec.repeats; row++)
        assert_true(fabs(row_gbps(&r, row) / expected - 1) < 0.1);
    probe_result_free(&r);
    gpu_close(b.gpu);
}

/* Half of the loads go to scattered frames, whose misses take three times as long, so the total
 * time doubles. Runs of the length of a frame are not scattered. */
static void scattered_misses_cost_more(void **state)
{
    static const struct {
        uint64_t run_bytes, scattered_bytes;
        double times;
    } runs[] = {{2 * MIB, 4 * GIB, 3},
                {2 * MIB, 2 * GIB, 2},
                {4 * MIB, 2 * GIB, 2},
                {8 * MIB, 4 * GIB, 1},
                {2 * MIB, 0, 1}};
    struct bench b = sim_bench_open(
        "sms=8 memory=64G frame=8M@3 l1=512@2M/4;miss_ns=10 plateau=1000 read_noise=0");
    struct probe_spec spec = read_spec(&(struct sim_desc){.sm_count = 8}, 1);
    double contiguous = 2 * 0.1e9 / 0.75 * PROBE_LINE_BYTES / 1e9;

    (void)state;
    spec.point_count = 1;
    spec.points[0] = 4 * GIB;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        spec.run_bytes = runs[i].run_bytes;
        spec.scattered_bytes = runs[i].scattered_bytes;
        struct probe_result r = sim_bench_run(&b, &spec);
        assert_true(fabs(row_gbps(&r, 0) * runs[i].times / contiguous - 1) < 0.05);
        probe_result_free(&r);
    }
    gpu_close(b.gpu);
}

static double accesses_per_ns(const struct probe_result *r, size_t row)
{
    const uint32_t *v = r->values + row * (1 + r->sm_count);
    double accesses = 0;
    for (uint32_t i = 0; i < r->sm_count; i++)
        accesses += v[1 + i];
    return accesses / v[0];
}

/* Within the reach, an access has the memory cost of its kind. Beyond the reach, each missing
 * access costs a walk. */
static void kinds_differ_inside_the_reach_alone(void **state)
{
    static const struct {
        enum access access;
        uint32_t bytes;
        double cost_bytes;
    } kinds[] = {{ACCESS_READ, 0, 128},
                 {ACCESS_READ, 32, 100},
                 {ACCESS_READ, 512, 512},
                 {ACCESS_ATOMIC, 32, 270},
                 {ACCESS_WRITE, 32, 270}};
    struct bench b =
        sim_bench_open("sms=8 memory=64G l1=512@2M/4;miss_ns=10 plateau=1000 read_noise=0");

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct probe_spec spec = {
            .kind = PROBE_READ,
            .point_count = 2,
            .points = {GIB, 4 * GIB},
            .repeats = 1,
            .duration_us = 2000,
            .access = kinds[i].access,
            .transaction_bytes = kinds[i].bytes,
            .window_count = 1,
            .window_sms = 8,
        };
        struct probe_result r = sim_bench_run(&b, &spec);
        assert_true(fabs(accesses_per_ns(&r, 0) * kinds[i].cost_bytes / 1000 - 1) < 0.01);
        assert_true(fabs(accesses_per_ns(&r, 1) / (2 * 0.1 / 0.75) - 1) < 0.04);
        probe_result_free(&r);
    }
    gpu_close(b.gpu);
}

/* A single group is limited by its SMs, not by the plateau of all SMs (Walker 2024, figure 4). */
static void idle_sms_read_nothing(void **state)
{
    (void)state;
    struct bench b = sim_bench_open("a100-80g");
    struct probe_spec spec = read_spec(&b.desc, 1);
    uint32_t busy = 0;
    spec.point_count = 1;
    spec.points[0] = 40 * GIB;
    for (uint32_t i = 0; i < b.desc.sm_count; i++) {
        if (b.desc.levels[1].instance_of_sm[i] != 1)
            spec.window_of_sm[i] = PROBE_SM_IDLE;
        else
            busy++;
    }
    struct probe_result r = sim_bench_run(&b, &spec);
    for (uint32_t i = 0; i < b.desc.sm_count; i++)
        assert_int_equal(r.values[1 + i] > 0, spec.window_of_sm[i] == 0);
    assert_true(fabs(row_gbps(&r, 0) / (15.0 * busy) - 1) < 0.01);
    probe_result_free(&r);
    gpu_close(b.gpu);
}

/* A GPU that is opened twice gives the same answers, because answers depend only on the description
 * and the probes. */
static void the_same_probes_get_the_same_answers(void **state)
{
    (void)state;
    struct probe_result first = {0};
    for (int i = 0; i < 2; i++) {
        struct bench b = sim_bench_open("h200 noise=gauss:3");
        struct probe_spec spec = read_spec(&b.desc, 1);
        spec.point_count = 1;
        spec.points[0] = 100 * GIB;
        struct probe_result r = sim_bench_run(&b, &spec);
        if (i == 0) {
            first = r;
        } else {
            assert_memory_equal(first.values, r.values, r.value_count * sizeof *r.values);
            probe_result_free(&r);
        }
        gpu_close(b.gpu);
    }
    probe_result_free(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_loads_in_flight_are_slow),
        cmocka_unit_test(reads_fall_beyond_the_reach_and_windows_help),
        cmocka_unit_test(miss_share_is_that_of_random_loads),
        cmocka_unit_test(few_misses_slow_all_sms),
        cmocka_unit_test(windows_share_a_level),
        cmocka_unit_test(scattered_misses_cost_more),
        cmocka_unit_test(kinds_differ_inside_the_reach_alone),
        cmocka_unit_test(idle_sms_read_nothing),
        cmocka_unit_test(the_same_probes_get_the_same_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
