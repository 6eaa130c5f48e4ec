/* test_memory.c: results of observations of other kinds of memory, and the probes that are
 * requested next. The numbers are invented. Simulated and recorded numbers are in
 * tests/sim/test_memory.c and tests/replay. */
#include "analysis/memory/memory.h"
#include "base/units.h"
#include "campaign/probes.h"
#include "fingerprint/fingerprint_check.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SMS = 4, RUN_NS = 1000000, SAMPLES = 100 };

static struct observation_set set;
static struct sm_partition groups; /* two groups of two SMs */

static int setup(void **state)
{
    (void)state;
    memset(&set, 0, sizeof set);
    set.limits = (struct gpu_limits){.sm_count = SMS, .host_memory_bytes = 4 * GIB};
    groups.group_count = 2;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        groups.group_of_sm[id] = id < SMS ? (uint16_t)(id / 2) : FINGERPRINT_NO_GROUP;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    observation_set_free(&set);
    return 0;
}

static struct probe_spec read_spec(enum memory_kind kind)
{
    return (struct probe_spec){.kind = PROBE_READ,
                               .repeats = 2,
                               .duration_us = RUN_NS / 1000,
                               .window_count = 1,
                               .window_sms = SMS,
                               .memory = kind};
}

static void add(const struct probe_spec *spec, uint32_t count, enum reason reason)
{
    struct observation o = {.spec = *spec};
    struct err err;

    o.result.sm_count = SMS;
    for (uint32_t i = 0; i < SMS; i++)
        o.result.sm_ids[i] = (uint16_t)i;
    o.result.value_count = count;
    o.result.values = calloc(count ? count : 1, sizeof *o.result.values);
    o.result.conditions.duration_ns = 10 * NSEC_PER_MSEC;
    o.result.conditions.memory_bytes =
        reason == REASON_NONE ? KNOWN_U64(16 * GIB) : UNKNOWN_U64(reason);
    assert_int_equal(observation_set_add(&set, &o, &err), STATUS_OK);
}

/* Adds a READ with these throughputs of the SMs in each repeat. */
static void add_read_by_sm(struct probe_spec spec, uint64_t bytes, const double gbps[SMS])
{
    spec.point_count = 1;
    spec.points[0] = bytes;
    add(&spec, 2 * (1 + SMS), REASON_NONE);
    uint32_t *const v = set.items[set.count - 1].result.values;
    for (uint32_t r = 0; r < 2; r++) {
        v[r * (1 + SMS)] = RUN_NS;
        for (uint32_t i = 0; i < SMS; i++)
            v[r * (1 + SMS) + 1 + i] = (uint32_t)(gbps[i] * RUN_NS / probe_access_bytes(&spec));
    }
}

/* Adds a READ with this throughput, in equal parts of all SMs that read. */
static void add_read(struct probe_spec spec, uint64_t bytes, double gbps)
{
    double parts[SMS] = {0};
    uint32_t readers = 0;

    for (uint32_t i = 0; i < SMS; i++)
        readers += spec.window_of_sm[i] != PROBE_SM_IDLE;
    for (uint32_t i = 0; i < SMS; i++)
        if (spec.window_of_sm[i] != PROBE_SM_IDLE)
            parts[i] = gbps / readers;
    add_read_by_sm(spec, bytes, parts);
}

static void add_curve(enum memory_kind kind, const double (*points)[2], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add_read(read_spec(kind), (uint64_t)(points[i][0] * MIB), points[i][1]);
}

/* Adds a walk: each `every`th load takes `slow` cycles, and the other loads take `quick` cycles. */
static void add_walk(enum memory_kind kind, uint64_t stride, uint64_t pages, uint32_t every,
                     uint32_t quick, uint32_t slow)
{
    const struct probe_spec spec = {.kind = PROBE_CHASE,
                                    .stride_bytes = stride,
                                    .point_count = 1,
                                    .points = {pages},
                                    .samples = SAMPLES,
                                    .sm_count = 1,
                                    .memory = kind};

    add(&spec, SAMPLES, REASON_NONE);
    for (uint32_t i = 0; i < SAMPLES; i++)
        set.items[set.count - 1].result.values[i] = every > 0 && i % every == 0 ? slow : quick;
}

static const struct memory_facts *derive(struct fingerprint *fp, enum memory_kind kind)
{
    struct err err;

    fingerprint_init(fp);
    fp->topology.partition = groups;
    fp->topology.groups[0].sm_count = fp->topology.groups[1].sm_count = 2;
    memory_derive(&set, fp);
    fingerprint_round(fp);
    if (fingerprint_check(fp, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return &fp->memory[kind - 1];
}

static const double cliff[][2] = {{1, 50}, {256, 50}, {512, 49}, {640, 46}, {672, 37}, {1024, 15}};
enum { CLIFF = sizeof cliff / sizeof cliff[0] };

static void the_cliff_lies_at_nine_tenths(void **state)
{
    static struct fingerprint fp;
    struct probe_spec windows = read_spec(MEMORY_HOST_PINNED);
    struct probe_spec alone = read_spec(MEMORY_HOST_PINNED);
    struct probe_spec one = read_spec(MEMORY_HOST_PINNED);
    const struct memory_facts *m;

    (void)state;
    add_curve(MEMORY_HOST_PINNED, cliff, CLIFF);
    windows.window_count = 2;
    windows.window_of_sm[2] = windows.window_of_sm[3] = 1;
    add_read(windows, 1024 * MIB, 48);
    windows.window_of_sm[1] = 1; /* the control */
    windows.window_of_sm[2] = 0;
    add_read(windows, 1024 * MIB, 20);
    alone.window_of_sm[2] = alone.window_of_sm[3] = PROBE_SM_IDLE;
    add_read(alone, 256 * MIB, 30);
    add_read(alone, 512 * MIB, 29);
    add_read(alone, 1024 * MIB, 9);
    one.window_of_sm[0] = one.window_of_sm[2] = one.window_of_sm[3] = PROBE_SM_IDLE;
    add_read(one, 256 * MIB, 30);
    m = derive(&fp, MEMORY_HOST_PINNED);
    assert_int_equal(fp.memory_count, MEMORY_PEER - 1);
    assert_true(m->plateau_gbps.v > 49.9 && m->plateau_gbps.v < 50.1);
    assert_int_equal(m->reach_bytes.v, 640 * MIB);
    assert_int_equal(m->onset_bytes.v, 672 * MIB);
    assert_true(m->beyond_gbps.v > 14.9 && m->beyond_gbps.v < 15.1);
    assert_int_equal(m->windows_reach_bytes.known,
                     MAYBE_NOT_OBSERVABLE); /* the reach is at least 1 GiB */
    assert_int_equal(m->group_reach_bytes.v, 512 * MIB);
    assert_int_equal(m->group_onset_bytes.v, 1024 * MIB);
    assert_int_equal(m->sms_to_fill.v, SMS); /* one SM does not saturate the link */
    assert_int_equal(m->curve_count, CLIFF);
    assert_true(m->curve[CLIFF - 1].by_group_gbps.v > 2 * m->curve[CLIFF - 1].by_sm_gbps.v);
    assert_int_equal(fp.memory[MEMORY_MANAGED_HOST - 1].probed_bytes.reason, REASON_NOT_MEASURED);
}

/* A job in windows ends with its slowest window. A window is slow if its SMs get a smaller share
 * than the SMs of a group get of the link within the reach. */
static void a_job_in_windows_is_as_fast_as_its_slowest_window(void **state)
{
    static const double within[SMS] = {13, 13, 11, 11};
    static const double slow[SMS] = {20, 20, 5, 5};
    static struct fingerprint fp;
    struct probe_spec windows = read_spec(MEMORY_HOST_PINNED);
    const struct memory_facts *m;

    (void)state;
    add_curve(MEMORY_HOST_PINNED, cliff, CLIFF);
    add_read_by_sm(read_spec(MEMORY_HOST_PINNED), 256 * MIB, within);
    windows.window_count = 2;
    windows.window_of_sm[2] = windows.window_of_sm[3] = 1;
    add_read_by_sm(windows, 672 * MIB, within);
    add_read_by_sm(windows, 1024 * MIB, slow);
    m = derive(&fp, MEMORY_HOST_PINNED);
    assert_true(fabs(m->curve[CLIFF - 2].by_group_gbps.v - 48) < 0.1);
    assert_true(fabs(m->curve[CLIFF - 1].by_group_gbps.v - 50 * (5 / 12.5) / (11 / 12.0)) < 0.1);
    assert_int_equal(m->windows_reach_bytes.v, 672 * MIB);
    assert_int_equal(m->windows_onset_bytes.v, 1024 * MIB);
}

static void what_is_all_reached_is_at_least_what_was_probed(void **state)
{
    static struct fingerprint fp;
    const struct memory_facts *m;

    (void)state;
    add_curve(MEMORY_MANAGED_HOST, cliff, 3);
    m = derive(&fp, MEMORY_MANAGED_HOST);
    assert_int_equal(m->probed_bytes.v, 512 * MIB);
    assert_int_equal(m->reach_bytes.known, MAYBE_NOT_OBSERVABLE);
    assert_int_equal(m->reach_bytes.reason, REASON_BEYOND_MEMORY);
    assert_false(IS_KNOWN(m->beyond_gbps));
}

static void a_curve_that_only_falls_has_no_plateau(void **state)
{
    static const double falling[][2] = {{1, 50}, {32, 20}, {64, 12}};
    static struct fingerprint fp;
    const struct memory_facts *m;

    (void)state;
    add_curve(MEMORY_HOST_PINNED, falling, 3);
    m = derive(&fp, MEMORY_HOST_PINNED);
    assert_false(IS_KNOWN(m->plateau_gbps));
    assert_false(IS_KNOWN(m->reach_bytes));
    assert_int_equal(m->curve_count, 3);
}

/* 1 GiB is beyond the onset. An entry is 64 KiB, and half of the loads hit at half of that
 * stride. */
static void the_entry_is_the_shortest_stride_that_always_misses(void **state)
{
    static struct fingerprint fp;
    const struct memory_facts *m;

    (void)state;
    add_curve(MEMORY_HOST_PINNED, cliff, CLIFF);
    add_walk(MEMORY_HOST_PINNED, 256 * KIB, 1024, 0, 2000, 0);
    add_walk(MEMORY_HOST_PINNED, 256 * KIB, 4096, 0, 2050, 0);
    add_walk(MEMORY_HOST_PINNED, 128 * KIB, 8192, 0, 2040, 0);
    add_walk(MEMORY_HOST_PINNED, 64 * KIB, 16384, 1, 2040, 2600);
    m = derive(&fp, MEMORY_HOST_PINNED);
    assert_false(IS_KNOWN(m->entry_bytes)); /* the entry may be even shorter */
    add_walk(MEMORY_HOST_PINNED, 32 * KIB, 32768, 2, 2040, 2600);
    m = derive(&fp, MEMORY_HOST_PINNED);
    assert_int_equal(m->entry_bytes.v, 64 * KIB);
    assert_true(m->latency_cycles.v > 1999 && m->latency_cycles.v < 2001);
    assert_true(m->beyond_latency_cycles.v > 2599 && m->beyond_latency_cycles.v < 2601);
}

static void walks_that_do_not_differ_show_no_entry(void **state)
{
    static struct fingerprint fp;
    const struct memory_facts *m;

    (void)state;
    add_curve(MEMORY_HOST_PINNED, cliff, CLIFF);
    for (uint32_t k = 0; k < 4; k++)
        add_walk(MEMORY_HOST_PINNED, (256 >> k) * KIB, 4096 << k, 0, 2000 + 10 * k, 0);
    m = derive(&fp, MEMORY_HOST_PINNED);
    assert_int_equal(m->entry_bytes.reason, REASON_NO_CONTRAST);
}

static void what_cannot_be_had_says_why(void **state)
{
    static struct fingerprint fp;
    struct probe_spec spec = read_spec(MEMORY_HOST_REGISTERED);

    (void)state;
    spec.point_count = 1;
    spec.points[0] = GIB;
    add(&spec, 0, REASON_NOT_PERMITTED);
    assert_int_equal(derive(&fp, MEMORY_HOST_REGISTERED)->probed_bytes.reason,
                     REASON_NOT_PERMITTED);
}

/* Reads by node are no part of the curve. A node whose memory could not be had has the reason. */
static void nodes_are_in_ascending_order(void **state)
{
    static struct fingerprint fp;
    struct probe_spec far = read_spec(MEMORY_HOST_REGISTERED);
    const struct memory_facts *m;

    (void)state;
    add_curve(MEMORY_HOST_REGISTERED, cliff, CLIFF);
    far.node = 4;
    add_read(far, 256 * MIB, 20);
    far.node = 1;
    add_read(far, 256 * MIB, 40);
    add_read(far, 256 * MIB, 50); /* the newer read counts */
    far.node = 3;
    far.point_count = 1;
    far.points[0] = 256 * MIB;
    add(&far, 0, REASON_NOT_PERMITTED);
    m = derive(&fp, MEMORY_HOST_REGISTERED);
    assert_int_equal(m->curve_count, CLIFF);
    assert_true(m->plateau_gbps.v > 49.9);
    assert_int_equal(m->node_count, 3);
    assert_int_equal(m->nodes[0].node, 0);
    assert_true(m->nodes[0].gbps.v > 49.9);
    assert_int_equal(m->nodes[1].node, 2);
    assert_int_equal(m->nodes[1].gbps.reason, REASON_NOT_PERMITTED);
    assert_int_equal(m->nodes[2].node, 3);
    assert_true(m->nodes[2].gbps.v > 19.9 && m->nodes[2].gbps.v < 20.1);
    assert_int_equal(derive(&fp, MEMORY_HOST_PINNED)->node_count, 0);
}

/* ---- requested probes ---- */

static bool next(enum depth depth, struct campaign_step *out)
{
    static struct structure s;

    memset(&s, 0, sizeof s);
    s.shared_by[0] = SHARED_GROUP;
    s.sharing[0].found = groups;
    memset(out, 0, sizeof *out);
    return memory_probes_next(&set, &s, depth, out);
}

static void one_kind_after_the_other_while_there_is_time(void **state)
{
    static struct campaign_step step;

    (void)state;
    assert_true(next(DEPTH_FULL, &step));
    assert_int_equal(step.specs[0].memory, MEMORY_MANAGED_HOST);
    assert_true(step.specs[0].points[step.specs[0].point_count - 1] <= 2 * GIB);
    add(&step.specs[0], 0, REASON_NOT_PERMITTED);
    assert_true(next(DEPTH_FULL, &step));
    assert_int_equal(step.specs[0].memory, MEMORY_HOST_PINNED);
    set.limits.memory_ms = 5; /* the first curve has taken 10 ms */
    assert_false(next(DEPTH_FULL, &step));
    set.limits.memory_ms = 60; /* 50 ms are left, and every curve takes longer */
    assert_false(next(DEPTH_FULL, &step));
    set.limits.memory_ms = 600; /* 768 MiB of pinned memory take 485 ms */
    assert_true(next(DEPTH_FULL, &step));
    set.limits.memory_ms = 0;
    set.limits.host_memory_bytes = MIB;
    assert_false(next(DEPTH_FULL, &step));
}

/* Pageable memory and files come after the peers, and the nodes of a host with several after all
 * kinds. Nothing writes to a file. */
static void what_was_added_comes_last(void **state)
{
    static struct campaign_step step;
    uint64_t nodes = 0;

    (void)state;
    set.limits.peer_count = 1;
    set.limits.host_nodes = 0xb;
    for (int kind = MEMORY_HOST_PINNED; kind <= MEMORY_PEER; kind++)
        if (kind < MEMORY_HOST_PAGEABLE && kind != MEMORY_HOST_REGISTERED) {
            const struct probe_spec refused = read_spec((enum memory_kind)kind);
            add(&refused, 0, REASON_NOT_PERMITTED);
        }
    add_curve(MEMORY_HOST_REGISTERED, cliff, CLIFF);
    for (int kind = 0; kind < 3; kind++) {
        static const enum memory_kind order[] = {MEMORY_PEER, MEMORY_HOST_PAGEABLE,
                                                 MEMORY_HOST_FILE};
        while (next(DEPTH_MEMORY, &step) && step.specs[0].memory == MEMORY_HOST_REGISTERED)
            for (uint32_t i = 0; i < step.spec_count; i++) {
                assert_int_equal(step.specs[i].node, 0);
                add(&step.specs[i], 0, REASON_NOT_PERMITTED);
            }
        assert_int_equal(step.specs[0].memory, order[kind]);
        add(&step.specs[0], 0, REASON_NOT_SUPPORTED);
    }
    assert_true(next(DEPTH_MEMORY, &step));
    assert_int_equal(step.spec_count, 3);
    for (uint32_t i = 0; i < step.spec_count; i++) {
        assert_int_equal(step.specs[i].memory, MEMORY_HOST_REGISTERED);
        assert_true(step.specs[i].points[0] <= 320 * MIB);
        nodes |= (uint64_t)1 << (step.specs[i].node - 1);
        add(&step.specs[i], 0, REASON_NOT_PERMITTED);
    }
    assert_int_equal(nodes, 0xb);
    assert_false(next(DEPTH_MEMORY, &step));
}

/* Adds an answer in which all reads are equally fast, and all loads take equally long. */
static void add_any(const struct probe_spec *spec)
{
    const uint32_t count = (uint32_t)probe_value_count(spec, SMS);

    add(spec, count, REASON_NONE);
    for (uint32_t i = 0; i < count; i++)
        set.items[set.count - 1].result.values[i] = RUN_NS;
}

/* Answers all probes of pinned memory at this depth, and returns the number of probes with
 * output. */
static uint32_t count_output(enum depth depth, uint64_t longest)
{
    static struct campaign_step step;
    uint32_t probes = 0;

    while (next(depth, &step) && step.specs[0].memory == MEMORY_HOST_PINNED)
        for (uint32_t i = 0; i < step.spec_count; i++) {
            const struct probe_spec *const spec = &step.specs[i];
            if (spec->output) {
                probes += 1;
                assert_int_equal(spec->transaction_bytes, FINGERPRINT_WRITTEN_BYTES);
                assert_int_equal(spec->point_count, 1);
                assert_int_equal(spec->points[0], longest);
            }
            add_any(spec);
        }
    return probes;
}

/* Memory of the host is read once with output, at depth memory, if the longest region has eight
 * times the bytes of the onset. */
static void output_is_probed_far_out_of_reach(void **state)
{
    for (int is_far = 0; is_far < 2; is_far++) {
        const uint64_t longest = (is_far ? 5376 : 5312) * MIB;
        const struct probe_spec managed = read_spec(MEMORY_MANAGED_HOST);
        observation_set_free(&set);
        (void)setup(state);
        set.limits.host_memory_bytes = 8 * GIB;
        add(&managed, 0, REASON_NOT_PERMITTED);
        add_curve(MEMORY_HOST_PINNED, cliff, CLIFF);
        add_read(read_spec(MEMORY_HOST_PINNED), longest, 5);
        assert_int_equal(count_output(DEPTH_FULL, longest), 0);
        assert_int_equal(count_output(DEPTH_MEMORY, longest), is_far);
    }
}

/* If the L2 cache holds this kind of memory, only regions of many times the cache size count. */
static void managed_memory_on_the_device_is_probed_far_beyond_the_cache(void **state)
{
    static const double small[][2] = {{32, 9000}, {64, 6600}, {256, 4700}};
    static const double large[][2] = {{2048, 4080}, {8192, 4030}, {16384, 1000}};
    static struct fingerprint fp;
    static struct campaign_step step;
    const struct probe_spec *const spec = &step.specs[0];

    (void)state;
    set.gpu.l2_cache_bytes = 60 * MIB;
    set.limits.free_bytes = 24 * GIB;
    for (int kind = MEMORY_HOST_PINNED; kind < MEMORY_PEER; kind++)
        if (memory_kind_is_host((enum memory_kind)kind)) {
            const struct probe_spec refused = read_spec((enum memory_kind)kind);
            add(&refused, 0, REASON_NOT_PERMITTED);
        }
    assert_false(next(DEPTH_FULL, &step)); /* the probe needs too much device memory */
    assert_true(next(DEPTH_MEMORY, &step));
    assert_int_equal(spec->memory, MEMORY_MANAGED_DEVICE);
    assert_true(spec->points[0] >= 32 * set.gpu.l2_cache_bytes);
    assert_int_equal(spec->points[spec->point_count - 1], 18 * GIB);
    set.limits.free_bytes = 4 * GIB; /* 3 GiB are usable, which is less than two regions need */
    assert_false(next(DEPTH_MEMORY, &step));
    add_curve(MEMORY_MANAGED_DEVICE, small, 3);
    assert_int_equal(derive(&fp, MEMORY_MANAGED_DEVICE)->probed_bytes.reason,
                     REASON_TOO_LITTLE_DATA);
    add_curve(MEMORY_MANAGED_DEVICE, large, 3);
    assert_true(derive(&fp, MEMORY_MANAGED_DEVICE)->plateau_gbps.v < 4100);
    assert_int_equal(fp.memory[0].reach_bytes.v, 8 * GIB);
    assert_int_equal(fp.memory[0].curve_count, 3);
}

/* After three disturbed answers the campaign continues without the probe. */
static void a_probe_that_is_always_disturbed_is_given_up(void **state)
{
    static struct campaign_step step;

    (void)state;
    assert_true(next(DEPTH_FULL, &step));
    const struct probe_spec first = step.specs[0];
    for (int i = 0; i < 3; i++) {
        struct observation o = {.spec = first, .assessment = {.verdict = VERDICT_DISTURBED}};
        assert_true(next(DEPTH_FULL, &step));
        assert_int_equal(step.specs[0].memory, MEMORY_MANAGED_HOST);
        assert_int_equal(observation_set_add(&set, &o, NULL), STATUS_OK);
    }
    assert_true(next(DEPTH_FULL, &step));
    assert_int_equal(step.specs[0].memory, MEMORY_HOST_PINNED);
    assert_int_equal(set.disturbed, 0);
}

/* Rows have a number for the region within the reach and, if it was read, for the longest region.
 */
static void rows_are_found(void **state)
{
    static const double points[][2] = {{1, 50}, {512, 50}, {2048, 10}};
    struct probe_spec spec = read_spec(MEMORY_HOST_PINNED);
    struct fingerprint fp;

    (void)state;
    add_curve(MEMORY_HOST_PINNED, points, 3);
    spec.transaction_bytes = 64;
    add_read(spec, 512 * MIB, 40);
    add_read(spec, 2048 * MIB, 5);
    spec.access = ACCESS_ATOMIC;
    spec.transaction_bytes = 256;
    add_read(spec, 512 * MIB, 30);
    const struct memory_facts *const m = derive(&fp, MEMORY_HOST_PINNED);
    assert_int_equal(m->row_count, 2);
    assert_int_equal(m->curve_count, 3);
    assert_int_equal(m->rows[0].transaction_bytes, 64);
    assert_float_equal(m->rows[0].plateau_gbps.v, 40, 0.01);
    assert_float_equal(m->rows[0].probed_gbps.v, 5, 0.01);
    assert_true(m->rows[1].access == ACCESS_ATOMIC && m->rows[1].transaction_bytes == 256);
    assert_float_equal(m->rows[1].plateau_gbps.v, 30, 0.01);
    assert_int_equal(m->rows[1].probed_gbps.reason, REASON_NOT_MEASURED);
    assert_true(IS_KNOWN(m->rows[1].plateau_gbps) && !IS_KNOWN(m->rows[1].probed_gbps));
}

/* Rows that are also written count over the longest region, and only if they are clearly slower.
 * They are neither a part of the curve nor rows without output. */
static void output_is_compared(void **state)
{
    static const double points[][2] = {{1, 50}, {512, 50}, {2048, 10}};
    struct probe_spec read = read_spec(MEMORY_HOST_PINNED);
    struct probe_spec copy = read;
    struct fingerprint fp;

    (void)state;
    read.transaction_bytes = copy.transaction_bytes = 256;
    copy.output = 1;
    add_curve(MEMORY_HOST_PINNED, points, 3);
    add_read(copy, 2048 * MIB, 15);
    assert_int_equal(derive(&fp, MEMORY_HOST_PINNED)->written_factor.reason, REASON_NOT_MEASURED);
    add_read(read, 512 * MIB, 50);
    add_read(read, 2048 * MIB, 20);
    const struct memory_facts *m = derive(&fp, MEMORY_HOST_PINNED);
    assert_float_equal(m->written_factor.v, 0.75, 0.01);
    assert_int_equal(m->curve_count, 3);
    assert_int_equal(m->row_count, 1);
    assert_float_equal(m->rows[0].probed_gbps.v, 20, 0.01);
    copy.seed += 1;
    add_read(copy, 2048 * MIB, 19.7);
    m = derive(&fp, MEMORY_HOST_PINNED);
    assert_false(IS_KNOWN(m->written_factor) || m->evidence.written_factor.method);
}

/* A reach is unlimited only if more host memory was allowed than the probe took. */
static void a_limit_hides_the_reach(void **state)
{
    static const double points[][2] = {{1, 50}, {128, 50}, {256, 50}};
    static const struct {
        uint64_t allowed;
        enum known reach;
        enum reason reason;
    } cases[] = {{4 * GIB, MAYBE_NOT_OBSERVABLE, REASON_BEYOND_MEMORY},
                 {512 * MIB, MAYBE_NOT_OBSERVABLE, REASON_BEYOND_MEMORY},
                 {256 * MIB, MAYBE_UNKNOWN, REASON_NO_HOST_MEMORY},
                 {300 * MIB, MAYBE_UNKNOWN, REASON_NO_HOST_MEMORY}};
    struct fingerprint fp;

    (void)state;
    add_curve(MEMORY_HOST_PINNED, points, 3);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set.limits.host_memory_bytes = cases[i].allowed;
        const struct memory_facts *const m = derive(&fp, MEMORY_HOST_PINNED);
        assert_int_equal(m->reach_bytes.known, cases[i].reach);
        assert_int_equal(m->reach_bytes.reason, cases[i].reason);
        assert_int_equal(m->probed_bytes.v, 256 * MIB);
    }
}

/* The range leaves an eighth of what is allowed beyond a power of two. */
static void a_range_fits_the_limit(void **state)
{
    (void)state;
    assert_int_equal(memory_host_range(256 * MIB), 256 * MIB);
    assert_int_equal(memory_host_range(300 * MIB), 256 * MIB);
    assert_int_equal(memory_host_range(319 * MIB), 256 * MIB);
    assert_int_equal(memory_host_range(320 * MIB), 288 * MIB);
    assert_int_equal(memory_host_range(511 * MIB), 448 * MIB);
    assert_int_equal(memory_host_range(0), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_cliff_lies_at_nine_tenths),
        TEST(a_job_in_windows_is_as_fast_as_its_slowest_window),
        TEST(what_is_all_reached_is_at_least_what_was_probed),
        TEST(a_curve_that_only_falls_has_no_plateau),
        TEST(the_entry_is_the_shortest_stride_that_always_misses),
        TEST(walks_that_do_not_differ_show_no_entry),
        TEST(what_cannot_be_had_says_why),
        TEST(nodes_are_in_ascending_order),
        TEST(what_was_added_comes_last),
        TEST(one_kind_after_the_other_while_there_is_time),
        TEST(managed_memory_on_the_device_is_probed_far_beyond_the_cache),
        TEST(a_probe_that_is_always_disturbed_is_given_up),
        TEST(rows_are_found),
        TEST(output_is_compared),
        TEST(output_is_probed_far_out_of_reach),
        TEST(a_limit_hides_the_reach),
        TEST(a_range_fits_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
