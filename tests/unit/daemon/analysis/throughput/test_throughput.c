/* test_throughput.c: finds the throughput of random reads, from hand-made observations. */
#include "analysis/throughput/throughput.h"
#include "base/units.h"
#include "tests/unit/support/paper_gpu.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* The GPU on paper, and a fingerprint with its groups and its reach of 19200 MiB. */
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

static struct probe_spec naive(void)
{
    return (struct probe_spec){.kind = PROBE_READ,
                               .point_count = 3,
                               .points = {GIB, 16 * GIB, 64 * GIB},
                               .repeats = 3,
                               .duration_us = 1000,
                               .seed = 1,
                               .window_count = 1,
                               .window_sms = REACH_MAX_SMS};
}

/* Makes a read of three windows over 36 GiB, by whole groups or across groups. */
static struct probe_spec windows(const struct bench *b, bool by_group)
{
    struct probe_spec spec = naive();
    spec.point_count = 1;
    spec.points[0] = 36 * GIB;
    spec.window_count = 3;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        spec.window_of_sm[id] = id >= b->gpu.sm_count ? PROBE_SM_IDLE
                                : by_group            ? b->fp.topology.partition.group_of_sm[id]
                                                      : (uint16_t)(id % 2 + id / 6);
    return spec;
}

static const struct curve_point *point_at(const struct fingerprint *fp, uint64_t bytes)
{
    for (uint32_t i = 0; i < fp->throughput.curve_count; i++)
        if (fp->throughput.curve[i].region_bytes == bytes)
            return &fp->throughput.curve[i];
    return NULL;
}

static void the_plateau_is_inside_the_reach(void **state)
{
    struct bench b;
    const struct probe_spec spec = naive();

    (void)state;
    begin(&b);
    paper_gpu_ask(&b.gpu, &spec, &b.set);
    throughput_derive(&b.set, &b.fp);
    assert_true(IS_KNOWN(b.fp.throughput.plateau_gbps));
    assert_float_equal(b.fp.throughput.plateau_gbps.v, 1000, 1);
    assert_float_equal(b.fp.throughput.whole_memory_gbps.v, 250, 1);
    assert_int_equal(b.fp.throughput.curve_count, 3);
    assert_float_equal(point_at(&b.fp, 16 * GIB)->naive_gbps.v, 1000, 1);
    assert_float_equal(point_at(&b.fp, 64 * GIB)->naive_gbps.v, 250, 1);
    observation_set_free(&b.set);
}

/* The throughputs of the groups add up to the throughput of the whole GPU. */
static void groups_share_the_plateau(void **state)
{
    struct bench b;
    const struct probe_spec spec = naive();
    double sum = 0;

    (void)state;
    begin(&b);
    paper_gpu_ask(&b.gpu, &spec, &b.set);
    throughput_derive(&b.set, &b.fp);
    for (uint32_t g = 0; g < b.fp.topology.partition.group_count; g++) {
        assert_true(IS_KNOWN(b.fp.topology.groups[g].random_read_gbps));
        sum += b.fp.topology.groups[g].random_read_gbps.v;
    }
    assert_float_equal(sum, b.fp.throughput.plateau_gbps.v, 0.01);
    observation_set_free(&b.set);
}

/* Reduces the reads of one point, in all repeats, to a quarter, like misses do. */
static void quarter_reads(struct observation *o)
{
    const size_t columns = (size_t)o->result.sm_count + 1;

    for (uint32_t r = 0; r < o->spec.repeats; r++)
        for (uint32_t i = 0; i < o->result.sm_count; i++)
            o->result.values[r * columns + 1 + i] /= 4;
}

static void windows_by_group_and_by_sm_are_told_apart(void **state)
{
    struct bench b;

    (void)state;
    begin(&b);
    const struct probe_spec by_group = windows(&b, true);
    const struct probe_spec by_sm = windows(&b, false);
    paper_gpu_ask(&b.gpu, &by_group, &b.set);
    throughput_derive(&b.set, &b.fp);
    const struct curve_point *c = point_at(&b.fp, 36 * GIB);
    assert_non_null(c);
    assert_int_equal(c->windows, 3);
    assert_true(IS_KNOWN(c->by_group_gbps));
    assert_float_equal(c->by_group_gbps.v, 1000, 1);
    assert_false(IS_KNOWN(c->by_sm_gbps));
    assert_false(IS_KNOWN(c->naive_gbps));

    paper_gpu_ask(&b.gpu, &by_sm, &b.set);
    quarter_reads(&b.set.items[1]);
    fingerprint_init(&b.fp);
    paper_gpu_partition(&b.gpu, 1, &b.fp.topology.partition);
    throughput_derive(&b.set, &b.fp);
    c = point_at(&b.fp, 36 * GIB);
    assert_true(IS_KNOWN(c->by_group_gbps));
    assert_true(IS_KNOWN(c->by_sm_gbps));
    assert_float_equal(c->by_group_gbps.v, 1000, 1);
    assert_float_equal(c->by_sm_gbps.v, 250, 1);
    observation_set_free(&b.set);
}

/* One repeat that a neighbor slows down does not change the median of three repeats. */
static void one_slow_repeat_does_not_count(void **state)
{
    struct bench b;
    const struct probe_spec spec = naive();

    (void)state;
    begin(&b);
    paper_gpu_ask(&b.gpu, &spec, &b.set);
    struct observation *o = &b.set.items[0];
    const size_t columns = (size_t)o->result.sm_count + 1;
    for (uint32_t p = 0; p < 3; p++)
        for (uint32_t i = 0; i < o->result.sm_count; i++)
            o->result.values[(p * 3 + p) * columns + 1 + i] /= 8;
    throughput_derive(&b.set, &b.fp);
    assert_float_equal(b.fp.throughput.plateau_gbps.v, 1000, 1);
    assert_float_equal(b.fp.throughput.whole_memory_gbps.v, 250, 1);
    observation_set_free(&b.set);
}

/* A region that fits into L2 measures the throughput of L2, and not of memory. */
static void small_regions_do_not_count(void **state)
{
    struct bench b;
    struct probe_spec spec = naive();

    (void)state;
    begin(&b);
    spec.points[0] = 64 * MIB;
    spec.points[1] = 128 * MIB;
    spec.points[2] = 159 * MIB;
    paper_gpu_ask(&b.gpu, &spec, &b.set);
    throughput_derive(&b.set, &b.fp);
    assert_int_equal(b.fp.throughput.curve_count, 0);
    assert_false(IS_KNOWN(b.fp.throughput.plateau_gbps));
    observation_set_free(&b.set);
}

static void too_little_memory_behind_the_range_is_said(void **state)
{
    struct bench b;
    const struct probe_spec spec = naive();

    (void)state;
    begin(&b);
    b.set.limits.backing_bytes = 4 * b.gpu.l2_cache_bytes;
    assert_true(throughput_is_from_memory(&b.set));
    b.set.limits.backing_bytes -= 1;
    assert_false(throughput_is_from_memory(&b.set));
    paper_gpu_ask(&b.gpu, &spec, &b.set);
    throughput_derive(&b.set, &b.fp);
    assert_false(IS_KNOWN(b.fp.throughput.plateau_gbps));
    assert_int_equal(b.fp.throughput.plateau_gbps.reason, REASON_NO_DEVICE_MEMORY);
    assert_int_equal(b.fp.throughput.curve_count, 0);
    b.set.gpu.l2_cache_bytes = 0; /* if the L2 size is unknown, the size of the memory is enough */
    assert_true(throughput_is_from_memory(&b.set));
    observation_set_free(&b.set);
}

/* There are more regions than the curve has points. The curve contains the regions that fit, in
 * ascending order and without duplicates. */
static void the_curve_is_bounded_and_ascends(void **state)
{
    struct bench b;
    struct rng rng = {.state = paper_seed("regions", 41)};

    (void)state;
    begin(&b);
    for (int n = 0; n < 12; n++) {
        struct probe_spec spec = naive();
        for (uint32_t p = 0; p < 6; p++)
            spec.points[p] = (1 + rng_below(&rng, 60)) * GIB;
        for (uint32_t p = 1; p < 6; p++)
            for (uint32_t k = p; k > 0 && spec.points[k] < spec.points[k - 1]; k--) {
                const uint64_t swap = spec.points[k];
                spec.points[k] = spec.points[k - 1];
                spec.points[k - 1] = swap;
            }
        spec.point_count = 6;
        paper_gpu_ask(&b.gpu, &spec, &b.set);
    }
    throughput_derive(&b.set, &b.fp);
    assert_in_range(b.fp.throughput.curve_count, 20, FINGERPRINT_MAX_CURVE);
    for (uint32_t i = 1; i < b.fp.throughput.curve_count; i++)
        assert_true(b.fp.throughput.curve[i].region_bytes >
                    b.fp.throughput.curve[i - 1].region_bytes);
    observation_set_free(&b.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plateau_is_inside_the_reach),
        cmocka_unit_test(groups_share_the_plateau),
        cmocka_unit_test(windows_by_group_and_by_sm_are_told_apart),
        cmocka_unit_test(one_slow_repeat_does_not_count),
        cmocka_unit_test(small_regions_do_not_count),
        cmocka_unit_test(too_little_memory_behind_the_range_is_said),
        cmocka_unit_test(the_curve_is_bounded_and_ascends),
    };
    return cmocka_run_group_tests_name("throughput", tests, NULL, NULL);
}
