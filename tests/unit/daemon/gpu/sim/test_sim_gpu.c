/* test_sim_gpu.c: tests the simulated source through the interface of gpu.h: identities, limits,
 * and probes that return the numbers of the description. test_sim_reads.c tests reads. */
#include "base/stats.h"
#include "base/units.h"
#include "gpu/gpu.h"
#include "gpu/sim/sim_desc.h"
#include "gpu/sim/sim_profiles.h"
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

static void lists_what_was_asked_for(void **state)
{
    (void)state;
    const char *const texts[] = {"h200", "k80", "h200", "sms=4 memory=1G l1=4@2M/sm", NULL};
    struct gpu_options options = sim_bench_options(texts);
    struct gpu_identity id[REACH_MAX_GPUS];
    struct gpu_identity again[REACH_MAX_GPUS];
    uint32_t n = 0;
    assert_int_equal(gpu_list(&options, id, REACH_MAX_GPUS, &n, NULL), STATUS_OK);
    assert_int_equal(n, 4);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(id[i].origin, ORIGIN_SIMULATED);
        assert_int_equal(strncmp(id[i].uuid, "SIM-", 4), 0);
        assert_int_equal(strlen(id[i].uuid), 40);
        assert_non_null(strstr(id[i].name, "(simulated)"));
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(id[i].uuid, id[k].uuid);
    }
    assert_string_equal(id[0].name, "H200 (simulated)");
    assert_int_equal(id[1].sm_count, 13);
    assert_int_equal(id[1].memory_bytes, 12 * GIB);
    assert_int_equal(id[0].compute_major, 9);

    /* A description has the same name, whatever other descriptions are in the list. */
    const char *const fewer[] = {"k80", "h200", NULL};
    struct gpu_options other = sim_bench_options(fewer);
    assert_int_equal(gpu_list(&other, again, REACH_MAX_GPUS, &n, NULL), STATUS_OK);
    assert_string_equal(again[0].uuid, id[1].uuid);
    assert_string_equal(again[1].uuid, id[0].uuid);

    assert_int_equal(gpu_list(&options, again, 2, &n, NULL), STATUS_OK);
    assert_int_equal(n, 2);
}

static void says_what_is_wrong_with_a_description(void **state)
{
    (void)state;
    const char *const texts[] = {"k80", "sms=4 memory=1G", NULL};
    const char *const unknown[] = {"h300", NULL};
    struct gpu_options options = sim_bench_options(texts);
    struct gpu_identity id[4];
    struct err err = {0};
    uint32_t n = 7;
    assert_int_equal(gpu_list(&options, id, 4, &n, &err), STATUS_INVALID_ARGUMENT);
    assert_int_equal(n, 0);
    assert_non_null(strstr(err.text, "l1="));
    options = sim_bench_options(unknown);
    assert_int_equal(gpu_list(&options, id, 4, &n, &err), STATUS_NOT_FOUND);

    const char *many[REACH_MAX_GPUS + 2] = {NULL};
    for (int i = 0; i < REACH_MAX_GPUS + 1; i++)
        many[i] = "k80";
    struct gpu_identity lots[REACH_MAX_GPUS + 1];
    options = sim_bench_options(many);
    assert_int_equal(gpu_list(&options, lots, REACH_MAX_GPUS + 1, &n, &err),
                     STATUS_INVALID_ARGUMENT);
}

static void opens_by_uuid_only(void **state)
{
    (void)state;
    const char *const texts[] = {"k80", "k80", NULL};
    struct gpu_options options = sim_bench_options(texts);
    struct gpu_identity id[2], opened;
    struct gpu *gpu = NULL;
    uint32_t n = 0;
    assert_int_equal(gpu_list(&options, id, 2, &n, NULL), STATUS_OK);
    assert_int_equal(gpu_open(&options, id[1].uuid, &gpu, NULL), STATUS_OK);
    gpu_describe(gpu, &opened, NULL);
    assert_memory_equal(&opened, &id[1], sizeof opened);
    gpu_close(gpu);
    assert_int_equal(gpu_open(&options, "SIM-unknown", &gpu, NULL), STATUS_NOT_FOUND);
    assert_null(gpu);
    assert_int_equal(gpu_open(&options, "", &gpu, NULL), STATUS_INVALID_ARGUMENT);
    gpu_close(NULL);
}

static void limits_follow_the_options(void **state)
{
    (void)state;
    struct bench b = sim_bench_open("h200");
    assert_int_equal(b.limits.arena, ARENA_SIMULATED);
    assert_int_equal(b.limits.range_bytes, 4 * 141 * GIB);
    assert_int_equal(b.limits.sm_count, 132);
    assert_true(b.limits.device_memory_bytes <= GIB + GIB / 10);
    gpu_close(b.gpu);

    const char *const texts[] = {"h200", NULL};
    struct gpu_options options = sim_bench_options(texts);
    struct gpu *gpu = NULL;
    struct gpu_limits limits;
    options.no_vmm = true;
    options.memory_limit_bytes = 128 * MIB;
    assert_int_equal(gpu_open(&options, b.id.uuid, &gpu, NULL), STATUS_OK);
    gpu_describe(gpu, NULL, &limits);
    assert_int_equal(limits.range_bytes, 128 * MIB);
    assert_int_equal(limits.device_memory_bytes, 128 * MIB);
    gpu_close(gpu);
}

static double chase_median(struct bench *b, uint64_t stride, uint64_t pages)
{
    struct probe_spec spec = {
        .kind = PROBE_CHASE,
        .stride_bytes = stride,
        .point_count = 1,
        .points = {pages},
        .samples = 1024,
        .warm_laps = 2,
        .sm_count = 1,
    };
    struct probe_result r = sim_bench_run(b, &spec);
    double median = stats_median_u32(r.values, r.value_count);
    probe_result_free(&r);
    return median;
}

/* The values are the medians of single loads, from Karnagel 2017, table 2. */
static void chases_show_the_levels_of_a_k80(void **state)
{
    (void)state;
    struct bench b = sim_bench_open("k80 spread=0");
    assert_true(fabs(chase_median(&b, 128 * KIB, 16) - 241) <= 1);
    assert_true(fabs(chase_median(&b, 128 * KIB, 18) - 250) <= 1);
    assert_true(fabs(chase_median(&b, 2 * MIB, 60) - 250) <= 1);
    assert_true(fabs(chase_median(&b, 2 * MIB, 80) - 305) <= 1);
    assert_true(fabs(chase_median(&b, 2 * MIB, 1000) - 305) <= 1);
    assert_true(fabs(chase_median(&b, 2 * MIB, 1300) - 482) <= 1);
    gpu_close(b.gpu);
}

static void a_chase_without_noise_is_exact(void **state)
{
    (void)state;
    struct bench b = sim_bench_open("sms=2 memory=4G latency=200 l1=8@2M/sm;miss=50 seed=5");
    struct probe_spec spec = {
        .kind = PROBE_CHASE,
        .stride_bytes = 2 * MIB,
        .base_bytes = 2 * MIB,
        .point_count = 2,
        .points = {8, 9},
        .samples = 30,
        .warm_laps = 1,
        .sm_count = 1,
        .sms = {1},
    };
    struct probe_result r = sim_bench_run(&b, &spec);
    for (uint32_t i = 0; i < 30; i++) {
        assert_int_equal(r.values[i], 200);
        assert_int_equal(r.values[30 + i], 250);
    }
    probe_result_free(&r);
    gpu_close(b.gpu);
}

static double median_of(const struct probe_result *r, const struct probe_spec *spec, uint32_t block,
                        uint32_t sm)
{
    size_t at = ((size_t)block * r->sm_count + sm) * spec->slice_pages;
    return stats_median_u32(r->values + at, spec->slice_pages);
}

/* After thrashing, SMs of the pivot's group miss, and no other SM does. */
static void rounds_find_the_group(const char *text, uint64_t stride, uint32_t slice,
                                  uint32_t thrash, double least)
{
    struct bench b = sim_bench_open(text);
    struct probe_spec spec = {
        .kind = PROBE_ROUND,
        .stride_bytes = stride,
        .slice_pages = slice,
        .flush_pages = 40,
        .thrash_pages = thrash,
        .warm_laps = 1,
        .repeats = 2,
        .sm_count = 1,
    };
    for (uint32_t p = 0; p < b.desc.sm_count; p += 7) {
        spec.sms[0] = b.desc.sm_ids[p];
        struct probe_result r = sim_bench_run(&b, &spec);
        assert_int_equal(r.sm_count, b.desc.sm_count);
        for (uint32_t repeat = 0; repeat < spec.repeats; repeat++) {
            for (uint32_t sm = 0; sm < r.sm_count; sm++) {
                double rise =
                    median_of(&r, &spec, 2 * repeat + 1, sm) - median_of(&r, &spec, 2 * repeat, sm);
                bool same =
                    b.desc.levels[1].instance_of_sm[sm] == b.desc.levels[1].instance_of_sm[p];
                if ((rise > least) != same)
                    fail_msg("%s, pivot %u, SM %u: +%g cycles", text, p, sm, rise);
            }
        }
        probe_result_free(&r);
    }
    gpu_close(b.gpu);
}

static void rounds_find_groups(void **state)
{
    (void)state;
    rounds_find_the_group("k80", 2 * MIB, 1, 160, 30);
    rounds_find_the_group("h200", 32 * MIB, 8, 3000, 45);
    rounds_find_the_group("a100-80g", 32 * MIB, 8, 3000, 150);
}

/* Without the flush, a slice that fits the first level hides the evictions from the second
 * level. */
static void a_flush_uncovers_the_level_behind(void **state)
{
    (void)state;
    struct bench b = sim_bench_open("sms=4 memory=4G l1=16@2M/sm;miss=10 l2=64@2M/2;miss=50");
    struct probe_spec spec = {
        .stride_bytes = 2 * MIB,
        .slice_pages = 4,
        .thrash_pages = 80,
        .warm_laps = 1,
        .repeats = 1,
        .sm_count = 1,
    };
    for (uint32_t flush = 0; flush <= 20; flush += 20) {
        spec.flush_pages = flush;
        for (int kind = PROBE_ROUND; kind <= PROBE_PAIRS; kind++) {
            spec.kind = (enum probe_kind)kind;
            struct probe_result r = sim_bench_run(&b, &spec);
            /* SM 1 shares the second level with the pivot, SM 0, and has a first level of its
             * own. */
            assert_int_equal(median_of(&r, &spec, 1, 1), flush > 0 ? 360 : 300);
            assert_int_equal(median_of(&r, &spec, 1, 3), flush > 0 ? 310 : 300);
            probe_result_free(&r);
        }
    }
    gpu_close(b.gpu);
}

static void pairs_agree_with_the_description(void **state)
{
    (void)state;
    struct bench b = sim_bench_open("k80");
    struct probe_spec spec = {
        .kind = PROBE_PAIRS,
        .stride_bytes = 2 * MIB,
        .slice_pages = 20,
        .thrash_pages = 80,
        .warm_laps = 1,
        .sm_count = 13,
    };
    for (uint32_t i = 0; i < 13; i++)
        spec.sms[i] = (uint16_t)i;
    struct probe_result r = sim_bench_run(&b, &spec);
    for (uint32_t pivot = 0; pivot < 13; pivot++) {
        for (uint32_t sm = 0; sm < 13; sm++) {
            double rise =
                median_of(&r, &spec, 2 * pivot + 1, sm) - median_of(&r, &spec, 2 * pivot, sm);
            bool same =
                b.desc.levels[1].instance_of_sm[sm] == b.desc.levels[1].instance_of_sm[pivot];
            assert_int_equal(rise > 30, same);
        }
    }
    probe_result_free(&r);
    gpu_close(b.gpu);
}

/* Atomics on the far side take longer by the described number of cycles, for any page at which an
 * SM begins. */
static void sides_agree_with_the_description(void **state)
{
    (void)state;
    struct bench b =
        sim_bench_open("sms=6 memory=4G l1=16@2M/2 spread=0 sides=4K@200 far_side=1,4-5");
    const struct probe_spec spec = {
        .kind = PROBE_SIDES,
        .stride_bytes = 1 * KIB,
        .samples = 256,
        .warm_laps = 1,
        .repeats = 2,
        .sm_count = 3,
        .sms = {0, 1, 5},
    };
    struct probe_result r = sim_bench_run(&b, &spec);
    uint32_t far = 0;
    for (uint32_t i = 0; i < 2 * 256; i++) {
        const uint32_t *v = r.values + i / 256 * 3 * 256 + i % 256;
        const uint32_t first = r.values[i / 256 * 3 * 256 + i % 256 / 4 * 4];
        assert_int_equal(v[0], first); /* all loads of a granule equal the first one */
        assert_int_equal(v[0] > 400, v[256] < 400);
        assert_int_equal(v[256], v[512]);
        assert_int_equal(v[0] + v[256], 2 * 300 + 200);
        far += v[0] > 400;
    }
    assert_true(far > 100 && far < 412);
    probe_result_free(&r);
    gpu_close(b.gpu);
}

/* A single load takes the latency, and lanes that read from the same bank wait for each other. */
static void shared_memory_agrees_with_the_description(void **state)
{
    static const struct {
        uint32_t width, stride, passes;
    } cases[] = {{4, 4, 1},   {4, 8, 2},   {4, 12, 1},   {4, 128, 32}, {4, 132, 1},
                 {8, 8, 2},   {8, 16, 4},  {8, 24, 2},   {8, 256, 32}, {16, 16, 4},
                 {16, 32, 8}, {16, 48, 4}, {16, 512, 32}};
    struct bench b = sim_bench_open("sms=4 memory=4G l1=16@2M/2 shared=30,32x4+3,128,64K/48K");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct probe_spec spec = {.kind = PROBE_SHARED,
                                        .point_count = 1,
                                        .points = {cases[i].stride},
                                        .samples = 8,
                                        .repeats = 1,
                                        .transaction_bytes = cases[i].width,
                                        .warps = 1,
                                        .in_flight = 1,
                                        .sm_count = 1};
        struct probe_result r = sim_bench_run(&b, &spec);
        assert_int_equal(r.values[0], 8 * (30 + 3 * (cases[i].passes - 1)));
        probe_result_free(&r);
    }
    gpu_close(b.gpu);
}

/* Sixteen of eighteen SMs are in a cluster of 16. SMs of two GPCs never share a cluster. */
static void clusters_agree_with_the_description(void **state)
{
    struct bench b = sim_bench_open("sms=22 memory=4G l1=16@2M/2 gpc=0-17:18-21 "
                                    "clusters=16,200/33,16");
    const struct probe_spec spec = {
        .kind = PROBE_PEER, .samples = 8, .repeats = 2, .cluster_sms = 4};
    struct probe_result r = sim_bench_run(&b, &spec);
    uint32_t members[7] = {0};

    (void)state;
    assert_int_equal(r.values[0], 5);
    assert_int_equal(r.values[1], 5);
    for (uint32_t sm = 0; sm < 22; sm++) {
        const uint32_t *row = r.values + (size_t)(1 + sm) * 7;
        members[row[0]]++;
        assert_int_equal(row[0] == 5, sm >= 18);
        for (uint32_t k = 0; row[0] > 0 && k < 4; k++)
            assert_int_equal(row[2 + k], 8 * (k == row[1] ? 33 : 200));
        assert_int_equal(row[6], row[0] > 0 ? PROBE_RING_BYTES / 16 : 0);
    }
    for (uint32_t c = 1; c < 6; c++)
        assert_int_equal(members[c], 4);
    probe_result_free(&r);
    gpu_close(b.gpu);
}

static void sm_ids_need_not_be_dense(void **state)
{
    (void)state;
    struct bench b = sim_bench_open("sms=4 smids=0,2,130,511 memory=4G l1=8@2M/2;miss=50");
    struct probe_spec spec = {
        .kind = PROBE_PAIRS,
        .stride_bytes = 2 * MIB,
        .slice_pages = 2,
        .thrash_pages = 20,
        .warm_laps = 1,
        .sm_count = 1,
        .sms = {511},
    };
    struct probe_result r = sim_bench_run(&b, &spec);
    static const uint16_t ids[] = {0, 2, 130, 511};
    assert_memory_equal(r.sm_ids, ids, sizeof ids);
    for (uint32_t sm = 0; sm < 4; sm++) {
        double rise = median_of(&r, &spec, 1, sm) - median_of(&r, &spec, 0, sm);
        assert_int_equal(rise > 25, sm >= 2);
    }
    probe_result_free(&r);
    spec.sms[0] = 3;
    struct err err = {0};
    assert_int_equal(gpu_run(b.gpu, &spec, &r, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "id 3"));
    assert_null(r.values);
    gpu_close(b.gpu);
}

static void refuses_probes_beyond_the_range(void **state)
{
    (void)state;
    struct bench b = sim_bench_open("sms=4 memory=4G range=4G l1=8@2M/sm");
    struct probe_spec spec = {
        .kind = PROBE_CHASE,
        .stride_bytes = 2 * MIB,
        .point_count = 1,
        .points = {2049},
        .samples = 1,
        .sm_count = 1,
    };
    struct probe_result r;
    assert_int_equal(gpu_run(b.gpu, &spec, &r, NULL), STATUS_INVALID_ARGUMENT);
    assert_null(r.values);
    spec.points[0] = 2048;
    assert_int_equal(gpu_run(b.gpu, &spec, &r, NULL), STATUS_OK);
    probe_result_free(&r);
    gpu_close(b.gpu);
}

static void conditions_are_reported_or_unknown(void **state)
{
    (void)state;
    struct bench b = sim_bench_open("sms=4 memory=4G clock=1500000 l1=8@2M/sm");
    struct probe_spec spec = {
        .kind = PROBE_CHASE,
        .stride_bytes = 2 * MIB,
        .point_count = 1,
        .points = {4},
        .samples = 4,
        .sm_count = 1,
    };
    struct probe_result r = sim_bench_run(&b, &spec);
    const struct probe_conditions *c = &r.conditions;
    assert_int_equal(c->arena, ARENA_SIMULATED);
    assert_int_equal(c->range_bytes, b.limits.range_bytes);
    assert_true(c->started_at > 0);
    assert_true(IS_KNOWN(c->sm_clock_khz) && c->sm_clock_khz.v == 1500000);
    assert_false(IS_KNOWN(c->memory_clock_khz));
    assert_int_equal(c->other_processes.reason, REASON_NOT_REPORTED);
    probe_result_free(&r);
    gpu_close(b.gpu);
}

/* Without a reference, a point would take its SM cycles at the present clock. With it, each point
 * takes the cycles at the clock of the first point, apart from points during which the clock
 * changes. */
static void a_changing_clock_changes_few_points(void **state)
{
    static const char chip[] = "sms=4 memory=1G latency=300 clock=1965000 l1=8@2M/sm;miss=20 ";
    enum { POINTS = 60, SAMPLES = 200 };
    struct probe_spec spec = {.kind = PROBE_CHASE,
                              .stride_bytes = 2 * MIB,
                              .point_count = POINTS,
                              .samples = SAMPLES,
                              .warm_laps = 1,
                              .sm_count = 1};
    const double coupled[] = {0, 0.5, 1};

    (void)state;
    for (uint32_t p = 0; p < POINTS; p++)
        spec.points[p] = 8;
    for (size_t i = 0; i < sizeof coupled / sizeof coupled[0]; i++) {
        char text[256];
        uint32_t same = 0, raw = 0;

        snprintf(text, sizeof text, "%s reclock=1000@0.74 coupled=%g", chip, coupled[i]);
        struct bench b = sim_bench_open(text);
        struct probe_result r = sim_bench_run(&b, &spec);
        const uint32_t first = r.values[0];
        for (uint32_t p = 0; p < POINTS; p++)
            same += labs((long)r.values[p * SAMPLES] - (long)first) <= first / 50;
        probe_result_free(&r);
        spec.warm_laps = 0; /* no reference */
        r = sim_bench_run(&b, &spec);
        for (uint32_t p = 0; p < POINTS; p++)
            raw += labs((long)r.values[p * SAMPLES] - (long)r.values[0]) <= r.values[0] / 50;
        spec.warm_laps = 1;
        assert_in_range(same, POINTS * 9 / 10, POINTS);
        assert_true(coupled[i] == 1 ? raw == POINTS : raw < POINTS * 9 / 10);
        probe_result_free(&r);
        gpu_close(b.gpu);
    }
}

static void any_change_of_the_clock_leaves_a_cycle(void **state)
{
    static const char *const clocks[] = {"latency=2 reclock=100@0", "latency=2 reclock=100@10",
                                         "latency=1 reclock=30@0.1", "latency=1 reclock=170@10"};
    struct probe_spec spec = {.kind = PROBE_CHASE,
                              .stride_bytes = 2 * MIB,
                              .point_count = 60,
                              .samples = 200,
                              .warm_laps = 1,
                              .sm_count = 1};

    (void)state;
    for (uint32_t p = 0; p < spec.point_count; p++)
        spec.points[p] = 8;
    for (size_t k = 0; k < sizeof clocks / sizeof clocks[0]; k++) {
        char text[128];
        (void)snprintf(text, sizeof text, "sms=4 memory=1G clock=1965000 l1=8@2M/sm;miss=20 %s",
                       clocks[k]);
        struct bench b = sim_bench_open(text);
        struct probe_result r = sim_bench_run(&b, &spec);
        for (uint32_t i = 0; i < spec.point_count * spec.samples; i++) {
            if (r.values[i] == 0)
                fail_msg("%s: value %u is 0", clocks[k], i);
        }
        probe_result_free(&r);
        gpu_close(b.gpu);
    }
}

/* Beside a neighbor in time slices, a probe returns the values of a GPU without a neighbor, because
 * interrupted parts are repeated. The values are 0 if the slices leave too little time. */
static void time_slices_change_no_value(void **state)
{
    static const char chip[] = "sms=4 memory=1G l1=8@2M/sm;miss=20 l2=64@2M/0,1:2,3;miss=80";
    const struct probe_spec specs[] = {
        {.kind = PROBE_CHASE,
         .stride_bytes = 2 * MIB,
         .point_count = 6,
         .points = {4, 8, 9, 64, 65, 100},
         .samples = 300,
         .warm_laps = 1,
         .sm_count = 1},
        {.kind = PROBE_ROUND,
         .stride_bytes = 2 * MIB,
         .slice_pages = 4,
         .flush_pages = 12,
         .thrash_pages = 90,
         .warm_laps = 1,
         .repeats = 3,
         .sm_count = 1,
         .sms = {2}},
        {.kind = PROBE_PAIRS,
         .stride_bytes = 2 * MIB,
         .slice_pages = 4,
         .flush_pages = 12,
         .thrash_pages = 90,
         .warm_laps = 1,
         .sm_count = 2,
         .sms = {0, 3}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct bench alone = sim_bench_open(chip);
        struct probe_result expected = sim_bench_run(&alone, &specs[i]);
        bool any = false;

        assert_int_equal(expected.conditions.interruptions.v, 0);
        for (uint32_t seed = 1; seed < 20; seed++) {
            char text[256];
            snprintf(text, sizeof text, "%s neighbor=250@400000 seed=%u", chip, seed);
            struct bench beside = sim_bench_open(text);
            struct probe_result r = sim_bench_run(&beside, &specs[i]);

            any = any || r.conditions.interruptions.v > 0;
            assert_memory_equal(r.values, expected.values,
                                expected.value_count * sizeof r.values[0]);
            probe_result_free(&r);
            gpu_close(beside.gpu);
        }
        assert_true(any);
        probe_result_free(&expected);
        gpu_close(alone.gpu);
    }
    struct bench crowded = sim_bench_open("sms=4 memory=1G l1=8@2M/sm;miss=20 neighbor=5@400000");
    struct probe_result r = sim_bench_run(&crowded, &specs[0]);

    assert_int_equal(r.values[r.value_count - 1], 0);
    probe_result_free(&r);
    gpu_close(crowded.gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_what_was_asked_for),
        cmocka_unit_test(says_what_is_wrong_with_a_description),
        cmocka_unit_test(opens_by_uuid_only),
        cmocka_unit_test(limits_follow_the_options),
        cmocka_unit_test(chases_show_the_levels_of_a_k80),
        cmocka_unit_test(a_chase_without_noise_is_exact),
        cmocka_unit_test(rounds_find_groups),
        cmocka_unit_test(a_flush_uncovers_the_level_behind),
        cmocka_unit_test(pairs_agree_with_the_description),
        cmocka_unit_test(sides_agree_with_the_description),
        cmocka_unit_test(shared_memory_agrees_with_the_description),
        cmocka_unit_test(clusters_agree_with_the_description),
        cmocka_unit_test(sm_ids_need_not_be_dense),
        cmocka_unit_test(refuses_probes_beyond_the_range),
        cmocka_unit_test(conditions_are_reported_or_unknown),
        cmocka_unit_test(a_changing_clock_changes_few_points),
        cmocka_unit_test(any_change_of_the_clock_leaves_a_cycle),
        cmocka_unit_test(time_slices_change_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
