/* test_rates.c: finds the throughput of other kinds of access, from hand-made observations. */
#include "analysis/throughput/throughput.h"
#include "base/units.h"
#include "fingerprint/fingerprint_check.h"
#include "tests/unit/support/paper_gpu.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

/* The GPU on paper makes the same number of accesses of any size. With accesses of 128 bytes it
 * reads 1000 GB/s within the reach of 19200 MiB, and a quarter of that beyond the reach. */
struct bench {
    struct paper_gpu gpu;
    struct observation_set set;
    struct fingerprint fp;
};

static void begin(struct bench *b)
{
    paper_gpu_init(&b->gpu);
    paper_gpu_begin(&b->gpu, &b->set);
    fingerprint_init(&b->fp);
    paper_gpu_partition(&b->gpu, 1, &b->fp.topology.partition);
    b->fp.topology.level = KNOWN_U32(2);
    b->fp.windows.reach_bytes = KNOWN_U64(600 * 32 * MIB);
}

static struct probe_spec naive(enum access access, uint32_t bytes)
{
    return (struct probe_spec){.kind = PROBE_READ,
                               .point_count = 4,
                               .points = {8 * GIB, 16 * GIB, 36 * GIB, 48 * GIB},
                               .repeats = 3,
                               .duration_us = 1000,
                               .access = access,
                               .transaction_bytes = bytes,
                               .window_count = 1,
                               .window_sms = REACH_MAX_SMS};
}

/* Makes a read of three windows over one region, by whole groups or across groups. */
static struct probe_spec windows(const struct bench *b, uint64_t bytes, bool by_group)
{
    struct probe_spec spec = naive(ACCESS_WRITE, 32);
    spec.point_count = 1;
    memset(spec.points, 0, sizeof spec.points);
    spec.points[0] = bytes;
    spec.window_count = 3;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        spec.window_of_sm[id] = id >= b->gpu.sm_count ? PROBE_SM_IDLE
                                : by_group            ? b->fp.topology.partition.group_of_sm[id]
                                                      : (uint16_t)(id % 2 + id / 6);
    return spec;
}

static void ask(struct bench *b, struct probe_spec spec)
{
    paper_gpu_ask(&b->gpu, &spec, &b->set);
}

static void conclude(struct bench *b)
{
    struct err err = {0};
    rates_derive(&b->set, &b->fp);
    b->fp.gpu.sm_count = b->gpu.sm_count;
    for (uint32_t id = 0; id < b->gpu.sm_count; id++)
        b->fp.topology.groups[b->fp.topology.partition.group_of_sm[id]].sm_count++;
    if (fingerprint_check(&b->fp, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    observation_set_free(&b->set);
}

static void each_kind_has_its_rate_in_order(void **state)
{
    struct bench b;

    (void)state;
    begin(&b);
    ask(&b, naive(ACCESS_WRITE, 32));
    ask(&b, naive(ACCESS_READ, 512));
    ask(&b, naive(ACCESS_ATOMIC, 32));
    ask(&b, naive(ACCESS_READ, 32));
    conclude(&b);
    assert_int_equal(b.fp.throughput.rate_count, RATE_KINDS);
    for (uint32_t i = 0; i < RATE_KINDS; i++) {
        const struct access_rate *r = &b.fp.throughput.rates[i];
        assert_int_equal(r->access, rate_kinds[i].access);
        assert_int_equal(r->transaction_bytes, rate_kinds[i].transaction_bytes);
        assert_float_equal(r->plateau_gbps.v, 1000.0 * r->transaction_bytes / 128, 1);
        assert_int_equal(r->evidence.plateau_gbps.method, EVIDENCE_RANDOM_ACCESSES);
        assert_int_equal(r->evidence.plateau_gbps.repeats, 3);
        assert_int_equal(r->point_count, 2);
        assert_true(r->points[0].region_bytes == 36 * GIB);
        assert_float_equal(r->points[0].naive_gbps.v, 250.0 * r->transaction_bytes / 128, 1);
        assert_int_equal(r->points[1].evidence.naive_gbps.repeats, 3);
        assert_false(IS_KNOWN(r->points[1].by_group_gbps));
    }
}

/* The largest of several regions within the reach counts, in any order of the regions. */
static void the_plateau_is_the_largest_region_inside(void **state)
{
    struct bench b;
    struct probe_spec spec = naive(ACCESS_ATOMIC, 32);

    (void)state;
    begin(&b);
    spec.points[0] = 16 * GIB;
    spec.points[1] = 8 * GIB;
    ask(&b, spec);
    struct observation *o = &b.set.items[0];
    const size_t columns = (size_t)o->result.sm_count + 1;
    for (uint32_t k = 3; k < 6; k++) /* reduces the rates of the second region */
        for (uint32_t i = 0; i < o->result.sm_count; i++)
            o->result.values[k * columns + 1 + i] /= 8;
    conclude(&b);
    assert_float_equal(b.fp.throughput.rates[0].plateau_gbps.v, 250, 1);
}

static void no_reach_no_points(void **state)
{
    struct bench b;

    (void)state;
    begin(&b);
    b.fp.windows.reach_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    ask(&b, naive(ACCESS_READ, 32));
    conclude(&b);
    assert_int_equal(b.fp.throughput.rates[0].point_count, 0);
    assert_float_equal(b.fp.throughput.rates[0].plateau_gbps.v, 62.5,
                       1); /* the region has 48 GiB */
}

static void by_group_is_kept_at_the_largest_region(void **state)
{
    struct bench b;

    (void)state;
    begin(&b);
    ask(&b, windows(&b, 36 * GIB, true));
    ask(&b, windows(&b, 48 * GIB, true));
    ask(&b, windows(&b, 48 * GIB, false));
    ask(&b, naive(ACCESS_WRITE, 32));
    conclude(&b);
    const struct access_rate *r = &b.fp.throughput.rates[0];
    assert_int_equal(b.fp.throughput.rate_count, 1);
    assert_int_equal(r->point_count, 2);
    assert_false(IS_KNOWN(r->points[0].by_group_gbps));
    assert_int_equal(r->points[0].evidence.by_group_gbps.method, EVIDENCE_NONE);
    assert_float_equal(r->points[1].by_group_gbps.v, 250, 1);
    assert_float_equal(r->points[1].naive_gbps.v, 62.5, 1);
}

/* Points of the curve are not added to the rates, nor points of the rates to the curve. */
static void curve_and_rates_are_kept_apart(void **state)
{
    struct bench b;

    (void)state;
    begin(&b);
    ask(&b, naive(ACCESS_WRITE, 32));
    throughput_derive(&b.set, &b.fp);
    assert_int_equal(b.fp.throughput.curve_count, 0);
    assert_false(IS_KNOWN(b.fp.throughput.plateau_gbps));
    observation_set_free(&b.set);

    begin(&b);
    ask(&b, naive(ACCESS_READ, 0));
    ask(&b, naive(ACCESS_READ, 128));
    conclude(&b);
    assert_int_equal(b.fp.throughput.rate_count, 0);
}

static void too_little_memory_gives_no_rates(void **state)
{
    struct bench b;

    (void)state;
    begin(&b);
    b.set.limits.backing_bytes = 4 * b.gpu.l2_cache_bytes - 1;
    ask(&b, naive(ACCESS_READ, 32));
    conclude(&b);
    assert_int_equal(b.fp.throughput.rate_count, 0);
}

/* There are more regions than the list has room for. The list contains the regions that fit, in
 * ascending order. */
static void points_are_bounded(void **state)
{
    struct bench b;

    (void)state;
    begin(&b);
    for (uint32_t n = 0; n < 8; n++) {
        struct probe_spec spec = naive(ACCESS_READ, 512);
        for (uint32_t p = 0; p < 4; p++)
            spec.points[p] = (20 + 4 * ((n * 5) % 8) + p) * GIB;
        ask(&b, spec);
    }
    conclude(&b);
    assert_int_equal(b.fp.throughput.rates[0].point_count, FINGERPRINT_MAX_RATE_POINTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_its_rate_in_order),
        cmocka_unit_test(the_plateau_is_the_largest_region_inside),
        cmocka_unit_test(no_reach_no_points),
        cmocka_unit_test(by_group_is_kept_at_the_largest_region),
        cmocka_unit_test(curve_and_rates_are_kept_apart),
        cmocka_unit_test(too_little_memory_gives_no_rates),
        cmocka_unit_test(points_are_bounded),
    };
    return cmocka_run_group_tests_name("rates", tests, NULL, NULL);
}
