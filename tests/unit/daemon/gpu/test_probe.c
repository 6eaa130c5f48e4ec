/* test_probe.c: the validity of probes, the number of values in an answer, and the position of
 * windows. */
#include "base/rng.h"
#include "base/units.h"
#include "gpu/probe.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct probe_spec chase(void)
{
    return (struct probe_spec){
        .kind = PROBE_CHASE,
        .stride_bytes = 2 * MIB,
        .point_count = 2,
        .points = {16, 100},
        .samples = 64,
        .warm_laps = 2,
        .sm_count = 1,
        .sms = {3},
    };
}

static struct probe_spec round_of(uint32_t slice, uint32_t thrash)
{
    return (struct probe_spec){
        .kind = PROBE_ROUND,
        .stride_bytes = 2 * MIB,
        .slice_pages = slice,
        .thrash_pages = thrash,
        .warm_laps = 1,
        .repeats = 3,
        .sm_count = 1,
    };
}

static struct probe_spec pairs(void)
{
    struct probe_spec spec = round_of(4, 100);
    spec.kind = PROBE_PAIRS;
    spec.repeats = 0;
    spec.sm_count = 2;
    spec.sms[1] = 7;
    return spec;
}

static struct probe_spec sides(void)
{
    return (struct probe_spec){
        .kind = PROBE_SIDES,
        .stride_bytes = 4 * KIB,
        .samples = 64,
        .warm_laps = 1,
        .repeats = 5,
        .sm_count = 3,
        .sms = {3, 4, 9},
    };
}

static struct probe_spec shared(void)
{
    return (struct probe_spec){
        .kind = PROBE_SHARED,
        .point_count = 2,
        .points = {8, 1024},
        .samples = 64,
        .warm_laps = 1,
        .repeats = 3,
        .transaction_bytes = 8,
        .warps = 1,
        .in_flight = 1,
        .sm_count = 2,
        .sms = {3, 9},
    };
}

static struct probe_spec peer(void)
{
    return (struct probe_spec){.kind = PROBE_PEER, .samples = 64, .repeats = 2, .cluster_sms = 4};
}

static struct probe_spec flight(void)
{
    return (struct probe_spec){
        .kind = PROBE_CONCURRENCY,
        .region_bytes = GIB,
        .point_count = 2,
        .points = {probe_concurrency(4, 1), probe_concurrency(32, 32)},
        .repeats = 2,
        .duration_us = 500,
        .window_count = 1,
        .window_sms = 1,
    };
}

static struct probe_spec reads(void)
{
    return (struct probe_spec){
        .kind = PROBE_READ,
        .point_count = 1,
        .points = {GIB},
        .repeats = 2,
        .duration_us = 1000,
        .window_count = 1,
        .window_sms = 8,
    };
}

/* Checks probes of every kind of access. */
static void other_kinds_of_access_pass(void **state)
{
    static const struct {
        enum access access;
        uint32_t bytes;
        bool fine;
    } kinds[] = {
        {ACCESS_READ, 0, true},    {ACCESS_READ, 32, true},   {ACCESS_READ, 128, true},
        {ACCESS_READ, 512, true},  {ACCESS_READ, 64, false},  {ACCESS_READ, 1024, false},
        {ACCESS_ATOMIC, 32, true}, {ACCESS_ATOMIC, 0, false}, {ACCESS_ATOMIC, 128, false},
        {ACCESS_WRITE, 32, true},  {ACCESS_WRITE, 0, false},  {ACCESS_WRITE, 512, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct probe_spec spec = reads();
        struct err err = {0};
        spec.access = kinds[i].access;
        spec.transaction_bytes = kinds[i].bytes;
        assert_int_equal(probe_check(&spec, NULL, &err),
                         kinds[i].fine ? STATUS_OK : STATUS_INVALID_ARGUMENT);
        assert_true(kinds[i].fine || strstr(err.text, "transaction_bytes"));
        assert_int_equal(probe_access_bytes(&spec), kinds[i].bytes ? kinds[i].bytes : 128);
        assert_int_equal(probe_is_line_read(&spec),
                         spec.access == ACCESS_READ && (kinds[i].bytes | 128) == 128);
    }
    for (uint32_t bytes = 16; bytes <= 2048; bytes += 16) {
        struct probe_spec spec = reads();
        spec.memory = MEMORY_HOST_PINNED;
        spec.access = (enum access)(bytes / 16 % ACCESS_COUNT);
        spec.transaction_bytes = bytes;
        assert_int_equal(probe_check(&spec, NULL, NULL) == STATUS_OK,
                         bytes >= 32 && bytes <= 1024 && (bytes & (bytes - 1)) == 0);
    }
    const struct probe_spec walk = chase();
    assert_false(probe_is_line_read(&walk));
}

/* Only reads of rows of 64 bytes or more by SMs, in memory of other kinds, have output. Such reads
 * do not belong to the curve. */
static void only_far_rows_have_output(void **state)
{
    (void)state;
    for (int kind = MEMORY_DEVICE; kind < MEMORY_KIND_COUNT; kind++)
        for (uint32_t bytes = 32; bytes <= 1024; bytes *= 2)
            for (int access = ACCESS_READ; access < ACCESS_COUNT; access++) {
                struct probe_spec spec = reads();
                spec.memory = (enum memory_kind)kind;
                spec.access = (enum access)access;
                spec.transaction_bytes = bytes;
                const bool is_fine = probe_check(&spec, NULL, NULL) == STATUS_OK;
                spec.output = 1;
                assert_int_equal(probe_check(&spec, NULL, NULL) == STATUS_OK,
                                 is_fine && kind != MEMORY_DEVICE && kind != MEMORY_HOST_GATHERED &&
                                     bytes >= 64 && access == ACCESS_READ);
                assert_false(probe_is_line_read(&spec));
                spec.output = 2;
                assert_int_equal(probe_check(&spec, NULL, NULL), STATUS_INVALID_ARGUMENT);
            }
}

/* Runs are whole granules that the source can lay out, within one region from 0 on. */
static void runs_are_checked(void **state)
{
    struct gpu_limits limits = {.arena = ARENA_ALIAS,
                                .range_bytes = 4 * GIB,
                                .backing_bytes = GIB,
                                .granule_bytes = 2 * MIB,
                                .sm_count = 8};
    static const struct {
        uint64_t run, scattered;
        const char *field; /* NULL if the spec is valid */
    } runs[] = {{2 * MIB, 512 * MIB, NULL},
                {64 * MIB, 64 * MIB, NULL},
                {2 * MIB, 0, NULL},
                {128 * MIB, 512 * MIB, "run_bytes"},
                {6 * MIB, 12 * MIB, "run_bytes"},
                {MIB, 512 * MIB, "run_bytes"},
                {0, 2 * MIB, "scattered_bytes"},
                {4 * MIB, 2 * MIB, "scattered_bytes"},
                {4 * MIB, GIB + 4 * MIB, "scattered_bytes"}};
    struct probe_spec spec = reads();
    struct err err = {0};

    (void)state;
    assert_int_equal(probe_longest_run(&limits), 64 * MIB);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        spec.run_bytes = runs[i].run;
        spec.scattered_bytes = runs[i].scattered;
        assert_int_equal(probe_check(&spec, &limits, &err),
                         runs[i].field ? STATUS_INVALID_ARGUMENT : STATUS_OK);
        assert_true(!runs[i].field || strstr(err.text, runs[i].field));
    }
    spec.run_bytes = 2 * MIB;
    spec.scattered_bytes = 4 * MIB;
    spec.base_bytes = PROBE_LINE_BYTES;
    assert_int_equal(probe_check(&spec, &limits, &err), STATUS_INVALID_ARGUMENT);
    spec.base_bytes = 0;
    limits.arena = ARENA_PLAIN;
    assert_int_equal(probe_check(&spec, &limits, &err), STATUS_NOT_SUPPORTED);
    limits.arena = ARENA_SIMULATED;
    limits.backing_bytes = limits.range_bytes; /* the limit of one plain allocation */
    assert_int_equal(probe_longest_run(&limits), 0);
}

static void names_go_both_ways(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROBE_KIND_COUNT; i++) {
        enum probe_kind kind = PROBE_KIND_COUNT;
        assert_true(probe_kind_from_name(probe_kind_name((enum probe_kind)i), &kind));
        assert_int_equal(kind, i);
    }
    enum probe_kind kind = PROBE_PAIRS;
    assert_false(probe_kind_from_name("Chase", &kind));
    assert_false(probe_kind_from_name("", &kind));
    assert_int_equal(kind, PROBE_PAIRS);
}

static void complete_specs_pass(void **state)
{
    (void)state;
    struct probe_spec specs[] = {chase(), round_of(8, 1000), pairs(), reads(),
                                 sides(), shared(),          peer(),  flight()};
    struct gpu_limits limits = {.range_bytes = 16 * GIB,
                                .sm_count = 132,
                                .shared_sm_bytes = 64 * KIB,
                                .shared_block_bytes = 32 * KIB,
                                .cluster_sms = 8};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct err err = {0};
        if (probe_check(&specs[i], NULL, &err) != STATUS_OK ||
            probe_check(&specs[i], &limits, &err) != STATUS_OK)
            fail_msg("%s", err.text);
    }
}

/* One field gets an invalid value, and the message must name the field. */
struct damage {
    size_t offset;
    size_t size;
    uint64_t value;
    const char *field;
};

#define FIELD(member, v, name)                                                                     \
    {                                                                                              \
        offsetof(struct probe_spec, member), sizeof(((struct probe_spec *)0)->member), v, name     \
    }

static void expect_damage_found(struct probe_spec good, const struct damage *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct probe_spec bad = good;
        struct err err = {0};
        memcpy((char *)&bad + list[i].offset, &list[i].value, list[i].size);
        assert_int_equal(probe_check(&bad, NULL, &err), STATUS_INVALID_ARGUMENT);
        assert_int_equal(err.status, STATUS_INVALID_ARGUMENT);
        if (!strstr(err.text, list[i].field))
            fail_msg("%s with %llu: %s", list[i].field, (unsigned long long)list[i].value,
                     err.text);
    }
}

static void each_field_is_checked(void **state)
{
    static const struct damage of_chase[] = {
        FIELD(kind, PROBE_KIND_COUNT, "kind"),
        FIELD(stride_bytes, 0, "stride_bytes"),
        FIELD(stride_bytes, 100, "stride_bytes"),
        FIELD(base_bytes, 64, "base_bytes"),
        FIELD(point_count, 0, "point_count"),
        FIELD(point_count, PROBE_MAX_POINTS + 1, "point_count"),
        FIELD(points[1], 0, "points"),
        FIELD(samples, 0, "samples"),
        FIELD(samples, PROBE_MAX_SAMPLES + 1, "samples"),
        FIELD(warm_laps, 17, "warm_laps"),
        FIELD(sm_count, 0, "sm_count"),
        FIELD(sm_count, 2, "sm_count"),
        FIELD(sms[0], REACH_MAX_SMS, "sms"),
    };
    static const struct damage of_round[] = {
        FIELD(slice_pages, 0, "slice_pages"),
        FIELD(slice_pages, PROBE_MAX_SLICE + 1, "slice_pages"),
        FIELD(thrash_pages, 0, "thrash_pages"),
        FIELD(flush_pages, (1 << 20) + 1, "flush_pages"),
        FIELD(warm_laps, 0, "warm_laps"),
        FIELD(repeats, 0, "repeats"),
        FIELD(repeats, PROBE_MAX_REPEATS + 1, "repeats"),
        FIELD(sm_count, 2, "sm_count"),
    };
    static const struct damage of_pairs[] = {
        FIELD(sm_count, 0, "sm_count"),
        FIELD(sm_count, REACH_MAX_SMS + 1, "sm_count"),
        FIELD(sms[1], 0xffff, "sms"),
    };
    static const struct damage of_sides[] = {
        FIELD(stride_bytes, 64, "stride_bytes"),
        FIELD(samples, 0, "samples"),
        FIELD(samples, PROBE_MAX_SAMPLES + 1, "samples"),
        FIELD(warm_laps, 17, "warm_laps"),
        FIELD(repeats, 0, "repeats"),
        FIELD(repeats, PROBE_MAX_REPEATS + 1, "repeats"),
        FIELD(memory, MEMORY_HOST_PINNED, "memory"),
        FIELD(sm_count, 0, "sm_count"),
        FIELD(sms[1], 3, "sms"),
        FIELD(sms[2], REACH_MAX_SMS, "sms"),
    };
    static const struct damage of_shared[] = {
        FIELD(points[0], 4, "points"),
        FIELD(points[0], 12, "points"),
        FIELD(points[1], 1032, "points"),
        FIELD(in_flight, 2, "points"),
        FIELD(in_flight, 3, "in_flight"),
        FIELD(in_flight, 16, "in_flight"),
        FIELD(warps, 0, "warps"),
        FIELD(warps, 33, "warps"),
        FIELD(transaction_bytes, 32, "transaction_bytes"),
        FIELD(samples, 63, "samples"),
        FIELD(repeats, 0, "repeats"),
        FIELD(sm_count, 0, "sm_count"),
        FIELD(sms[1], 3, "sms"),
        FIELD(memory, MEMORY_HOST_PINNED, "memory"),
    };
    static const struct damage of_peer[] = {
        FIELD(cluster_sms, 1, "cluster_sms"),
        FIELD(cluster_sms, 17, "cluster_sms"),
        FIELD(samples, 0, "samples"),
        FIELD(repeats, 0, "repeats"),
    };
    static const struct damage of_concurrency[] = {
        FIELD(points[0], 64 * 33 + 1, "points"),
        FIELD(points[0], 64 * 4, "points"),
        FIELD(points[0], 64 * 4 + 3, "points"),
        FIELD(points[0], 1, "points"),
        FIELD(region_bytes, 65535, "region_bytes"),
        FIELD(duration_us, 0, "duration_us"),
        FIELD(window_sms, 0, "window_sms"),
        FIELD(window_of_sm[0], 1, "window_of_sm"),
        FIELD(window_of_sm[0], PROBE_SM_IDLE, "window_of_sm"),
    };
    static const struct damage of_read[] = {
        FIELD(points[0], 65535, "points"),
        FIELD(repeats, 0, "repeats"),
        FIELD(duration_us, 99, "duration_us"),
        FIELD(duration_us, 100001, "duration_us"),
        FIELD(window_count, 0, "window_count"),
        FIELD(window_count, PROBE_MAX_WINDOWS + 1, "window_count"),
        FIELD(window_sms, 0, "window_sms"),
        FIELD(window_sms, REACH_MAX_SMS + 1, "window_sms"),
        FIELD(window_of_sm[5], 1, "window_of_sm"),
        FIELD(access, ACCESS_COUNT, "access"),
        FIELD(node, 1, "node"), /* memory of the device */
        FIELD(node, PROBE_MAX_NODES + 1, "node"),
    };

    (void)state;
    expect_damage_found(chase(), of_chase, sizeof of_chase / sizeof of_chase[0]);
    expect_damage_found(round_of(4, 10), of_round, sizeof of_round / sizeof of_round[0]);
    expect_damage_found(pairs(), of_pairs, sizeof of_pairs / sizeof of_pairs[0]);
    expect_damage_found(sides(), of_sides, sizeof of_sides / sizeof of_sides[0]);
    expect_damage_found(shared(), of_shared, sizeof of_shared / sizeof of_shared[0]);
    expect_damage_found(peer(), of_peer, sizeof of_peer / sizeof of_peer[0]);
    expect_damage_found(flight(), of_concurrency, sizeof of_concurrency / sizeof of_concurrency[0]);
    expect_damage_found(reads(), of_read, sizeof of_read / sizeof of_read[0]);

    struct probe_spec idle = reads();
    for (uint32_t i = 0; i < idle.window_sms; i++)
        idle.window_of_sm[i] = PROBE_SM_IDLE;
    assert_int_equal(probe_check(&idle, NULL, NULL), STATUS_INVALID_ARGUMENT);
}

static void value_counts_follow_the_table(void **state)
{
    (void)state;
    struct probe_spec spec = chase();
    assert_int_equal(probe_value_count(&spec, 132), 2 * 64);
    spec = round_of(8, 1000);
    assert_int_equal(probe_value_count(&spec, 132), 3 * 2 * 132 * 8);
    spec = pairs();
    assert_int_equal(probe_value_count(&spec, 13), 2 * 2 * 13 * 4);
    spec = reads();
    assert_int_equal(probe_value_count(&spec, 132), 1 * 2 * 133);
    spec = shared();
    assert_int_equal(probe_value_count(&spec, 132), 3 * 2 * 2);
    spec = peer();
    assert_int_equal(probe_value_count(&spec, 13), 2 * 14 * 7);
    spec = flight();
    assert_int_equal(probe_value_count(&spec, 13), 2 * 2 * 14);
    assert_int_equal(probe_concurrency_warps(spec.points[1]), 32);
    assert_int_equal(probe_concurrency_loads(spec.points[1]), 32);
}

/* Only a source that supports these probes answers them. */
static void a_source_may_lack_shared_memory_and_clusters(void **state)
{
    const struct gpu_limits none = {.range_bytes = GIB, .sm_count = 4};
    const struct gpu_limits few = {.range_bytes = GIB, .sm_count = 4, .cluster_sms = 2};
    const struct probe_spec specs[] = {shared(), peer()};
    struct err err = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(probe_check(&specs[i], NULL, NULL), STATUS_OK);
        assert_int_equal(probe_check(&specs[i], &none, &err), STATUS_NOT_SUPPORTED);
    }
    assert_int_equal(probe_check(&specs[1], &few, NULL), STATUS_NOT_SUPPORTED);
}

static void ranges_end_behind_the_last_line(void **state)
{
    (void)state;
    struct probe_spec spec = chase();
    assert_int_equal(probe_range_bytes(&spec, 132), 99 * 2 * MIB + 128);
    spec.base_bytes = 4 * MIB;
    assert_int_equal(probe_range_bytes(&spec, 132), 101 * 2 * MIB + 128);
    spec = round_of(8, 1000);
    assert_int_equal(probe_range_bytes(&spec, 10), 1079 * 2 * MIB + 128);
    spec.flush_pages = 20;
    assert_int_equal(probe_range_bytes(&spec, 10), 1099 * 2 * MIB + 128);
    spec = pairs();
    assert_int_equal(probe_range_bytes(&spec, 10), 103 * 2 * MIB + 128);
    spec.flush_pages = 7;
    assert_int_equal(probe_range_bytes(&spec, 10), 110 * 2 * MIB + 128);
    spec = reads();
    spec.base_bytes = 128;
    assert_int_equal(probe_range_bytes(&spec, 10), GIB + 128);
}

static void ranges_saturate_and_are_limits(void **state)
{
    (void)state;
    struct gpu_limits limits = {.range_bytes = 99 * 2 * MIB + 128, .sm_count = 13};
    struct probe_spec spec = chase();
    assert_int_equal(probe_check(&spec, &limits, NULL), STATUS_OK);
    limits.range_bytes--;
    assert_int_equal(probe_check(&spec, &limits, NULL), STATUS_INVALID_ARGUMENT);

    limits.range_bytes = UINT64_MAX - 1;
    spec.points[0] = UINT64_MAX;
    spec.stride_bytes = UINT64_MAX / 128 * 128;
    assert_true(probe_range_bytes(&spec, 13) == UINT64_MAX);
    assert_int_equal(probe_check(&spec, &limits, NULL), STATUS_INVALID_ARGUMENT);
    spec = reads();
    spec.points[0] = UINT64_MAX - 10;
    spec.base_bytes = 128;
    assert_true(probe_range_bytes(&spec, 13) == UINT64_MAX);
}

/* Windows are adjacent and cover the region to the last whole line. Their lengths are proportional
 * to their numbers of SMs, with an error of at most a line. */
static void expect_windows_tile(const struct probe_spec *spec, const uint16_t *ids, uint32_t sms,
                                uint64_t region)
{
    uint32_t inside[PROBE_MAX_WINDOWS] = {0};
    uint32_t all = 0;
    for (uint32_t i = 0; i < sms; i++) {
        if (ids[i] >= spec->window_sms || spec->window_of_sm[ids[i]] == PROBE_SM_IDLE)
            continue;
        inside[spec->window_of_sm[ids[i]]]++;
        all++;
    }
    uint64_t next = 0;
    for (uint32_t w = 0; w < spec->window_count; w++) {
        uint64_t first, length;
        probe_window(spec, ids, sms, region, w, &first, &length);
        assert_int_equal(first % PROBE_LINE_BYTES, 0);
        assert_int_equal(length % PROBE_LINE_BYTES, 0);
        if (inside[w] == 0) {
            assert_int_equal(length, 0);
            continue;
        }
        assert_int_equal(first, next);
        assert_true(length >= PROBE_LINE_BYTES);
        double share = (double)region * inside[w] / all;
        assert_true((double)length > share - 2 * PROBE_LINE_BYTES);
        assert_true((double)length < share + 2 * PROBE_LINE_BYTES);
        next = first + length;
    }
    if (all > 0)
        assert_int_equal(next, region / PROBE_LINE_BYTES * PROBE_LINE_BYTES);
}

static void windows_tile_the_region(void **state)
{
    (void)state;
    struct rng rng = {(uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)rng.state);
    for (int round = 0; round < 500; round++) {
        struct probe_spec spec = reads();
        uint16_t ids[REACH_MAX_SMS];
        uint32_t sms = 0;
        for (uint32_t id = 0; id < REACH_MAX_SMS; id++) {
            if (rng_below(&rng, 3) > 0)
                ids[sms++] = (uint16_t)id;
        }
        spec.window_count = 1 + (uint32_t)rng_below(&rng, PROBE_MAX_WINDOWS);
        spec.window_sms = 1 + (uint32_t)rng_below(&rng, REACH_MAX_SMS);
        for (uint32_t id = 0; id < spec.window_sms; id++) {
            spec.window_of_sm[id] = rng_below(&rng, 5) == 0
                                        ? (uint16_t)PROBE_SM_IDLE
                                        : (uint16_t)rng_below(&rng, spec.window_count);
        }
        uint64_t region = 65536 + rng_below(&rng, rng_below(&rng, 2) ? 1 << 20 : 200 * GIB);
        expect_windows_tile(&spec, ids, sms, region);
    }
}

static void freeing_is_complete_and_repeatable(void **state)
{
    (void)state;
    struct probe_result result = {.sm_count = 3, .value_count = 4};
    static const struct probe_result zero;
    result.values = malloc(4 * sizeof *result.values);
    probe_result_free(&result);
    assert_memory_equal(&result, &zero, sizeof zero);
    probe_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_checked),
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(complete_specs_pass),
        cmocka_unit_test(other_kinds_of_access_pass),
        cmocka_unit_test(only_far_rows_have_output),
        cmocka_unit_test(each_field_is_checked),
        cmocka_unit_test(value_counts_follow_the_table),
        cmocka_unit_test(a_source_may_lack_shared_memory_and_clusters),
        cmocka_unit_test(ranges_end_behind_the_last_line),
        cmocka_unit_test(ranges_saturate_and_are_limits),
        cmocka_unit_test(windows_tile_the_region),
        cmocka_unit_test(freeing_is_complete_and_repeatable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
