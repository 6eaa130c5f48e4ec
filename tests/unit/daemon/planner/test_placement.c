/* test_placement.c: answers of scope and placement, for hand-made fingerprints. */
#include "tests/unit/support/placement_fixture.h"

#include "base/rng.h"
#include "base/units.h"
#include "planner/windows.h"
#include "planner/reach_limit.h"
#include "base/format_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- placement ---- */

static void test_three_windows(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct err err;
    struct placement_request r = {.bytes = 137 * GIB};

    (void)state;
    placement_make_large(&fp);
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_WINDOWS);
    assert_int_equal(a.window_count, 3);
    assert_int_equal(a.sm_slots, 132);
    placement_check_windows(&fp, &a, r.bytes, 2 * MIB);
    placement_check_sms(&fp, &a);
    placement_check_balance(&fp, &a);
    /* Groups have 16 or 18 SMs, so three windows of 44 SMs are impossible; the closest numbers are
     * 50, 50 and 32. */
    assert_int_equal(a.windows[0].sm_count + a.windows[1].sm_count + a.windows[2].sm_count, 132);
    /* 137 GiB is within an eighth of the last point of the curve. */
    assert_float_equal(a.predicted_gbps.v, 3950, 1e-9);
    assert_float_equal(a.naive_gbps.v, 1000, 1e-9);
    assert_non_null(strstr(a.reason, a.fingerprint_id));
    assert_non_null(strstr(a.reason, "137 GiB"));
    assert_int_equal(a.reason[strlen(a.reason) - 1], '.');
    r.fingerprint_id =
        "fp0123456789abcdef"; /* if the caller sets the id, it is not computed again */
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_string_equal(a.fingerprint_id, r.fingerprint_id);
    assert_non_null(strstr(a.reason, r.fingerprint_id));
}

static void test_lengths_follow_sms(void **state)
{
    static const uint32_t sizes[] = {30, 10};
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 80 * GIB};

    (void)state;
    placement_make_empty(&fp);
    placement_make_groups(&fp, sizes, 2);
    placement_make_limits(&fp, 64 * GIB, 2 * MIB);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.window_count, 2);
    assert_int_equal(a.windows[0].length_bytes, 60 * GIB);
    assert_int_equal(a.windows[1].length_bytes, 20 * GIB);
    assert_int_equal(a.windows[0].sm_count, 30);
    assert_null(strstr(a.reason, "uneven"));
}

/* Makes eight groups of 16 SMs. The last four groups have a throughput of `slow` times the other
 * groups. */
static void make_two_speeds(struct fingerprint *fp, double slow)
{
    static const uint32_t sizes[] = {16, 16, 16, 16, 16, 16, 16, 16};

    placement_make_empty(fp);
    placement_make_groups(fp, sizes, 8);
    placement_make_limits(fp, 64 * GIB, 2 * MIB);
    for (uint32_t g = 0; g < 8; g++)
        fp->topology.groups[g].random_read_gbps = KNOWN_F64(g < 4 ? 500 : 500 * slow);
}

/* Slow groups get less work, so that all finish at the same time. */
static void test_lengths_follow_throughput(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 120 * GIB, .windows = 8};
    struct err err;

    (void)state;
    make_two_speeds(&fp, 0.5);
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_OK);
    placement_check_windows(&fp, &a, r.bytes, 2 * MIB);
    placement_check_sms(&fp, &a);
    for (uint32_t w = 0; w < 8; w++)
        assert_float_equal((double)a.windows[w].length_bytes / GIB, w < 4 ? 20 : 10, 0.3);
    assert_non_null(strstr(a.reason, "by throughput"));

    /* In two windows, fast and slow groups are distributed so that both windows have the same
     * throughput. */
    r.windows = 0;
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_OK);
    placement_check_sms(&fp, &a);
    for (uint32_t w = 0; w < a.window_count; w++) {
        double gbps = 0;
        for (uint32_t sm = 0; sm < a.sm_slots; sm++)
            if (a.window_of_sm[sm] == (int16_t)w)
                gbps += fp.topology.partition.group_of_sm[sm] < 4 ? 500.0 / 16 : 250.0 / 16;
        assert_float_equal((double)a.windows[w].length_bytes / (double)r.bytes, gbps / 3000, 0.01);
    }
}

/* Throughputs have no effect if they differ only by noise, or if some groups have no number. */
static void test_noise_is_no_throughput(void **state)
{
    struct fingerprint fp;
    struct placement_answer plain;
    struct placement_answer a;
    const struct placement_request r = {.bytes = 120 * GIB};
    struct err err;

    (void)state;
    make_two_speeds(&fp, 1);
    for (uint32_t g = 0; g < 8; g++)
        fp.topology.groups[g].random_read_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
    assert_int_equal(placement_plan(&fp, &r, &plain, &err), STATUS_OK);
    make_two_speeds(&fp, 0.97);
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_OK);
    assert_memory_equal(a.windows, plain.windows, sizeof a.windows);
    assert_null(strstr(a.reason, "by throughput"));
    make_two_speeds(&fp, 0.5);
    fp.topology.groups[3].random_read_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_OK);
    assert_memory_equal(a.windows, plain.windows, sizeof a.windows);
}

/* The lengths in the ratio 30 to 10 would be 75 and 25 GiB. The longer window is cut at the limit,
 * because two groups cannot make three windows. */
static void test_cut_at_limit(void **state)
{
    static const uint32_t sizes[] = {30, 10};
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 100 * GIB};

    (void)state;
    placement_make_empty(&fp);
    placement_make_groups(&fp, sizes, 2);
    placement_make_limits(&fp, 64 * GIB, 2 * MIB);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    placement_check_windows(&fp, &a, r.bytes, 2 * MIB);
    assert_int_equal(a.windows[0].length_bytes, 64 * GIB - 2 * MIB);
    assert_int_equal(a.headroom_bytes, 2 * MIB);
    assert_non_null(strstr(a.reason, "uneven"));
}

/* Two windows of 20+10 and 10+10+... SMs would exceed the limit. Three proportional windows do
 * not. */
static void test_more_windows_before_cutting(void **state)
{
    static const uint32_t sizes[] = {20, 20, 20};
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 120 * GIB};

    (void)state;
    placement_make_empty(&fp);
    placement_make_groups(&fp, sizes, 3);
    placement_make_limits(&fp, 64 * GIB, 2 * MIB);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.window_count, 3);
    assert_int_equal(a.windows[0].length_bytes, 40 * GIB);
    /* With two requested windows, lengths of 80 and 40 GiB are impossible. 64 GiB less one entry,
     * and the other bytes, are possible. */
    r.windows = 2;
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.window_count, 2);
    placement_check_windows(&fp, &a, r.bytes, 2 * MIB);
}

static void test_nothing_to_do(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 64 * GIB - 2 * MIB};

    (void)state;
    placement_make_large(&fp);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_NOTHING_TO_DO);
    assert_int_equal(a.window_count, 1);
    assert_int_equal(a.headroom_bytes, 2 * MIB);
    assert_int_equal(a.windows[0].sm_count, 132);
    placement_check_cover(&a, r.bytes);
    placement_check_sms(&fp, &a);
    r.bytes++; /* one more byte needs a second window */
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_WINDOWS);
    assert_int_equal(a.window_count, 2);
}

static void test_nothing_to_do_without_groups(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct err err;
    struct placement_request r = {.bytes = GIB};

    (void)state;
    placement_make_empty(&fp);
    fp.gpu.sm_count = 13;
    placement_make_limits(&fp, 2 * GIB, 2 * MIB);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_NOTHING_TO_DO);
    assert_int_equal(a.sm_slots, 13);
    for (uint32_t sm = 0; sm < 13; sm++)
        assert_int_equal(a.window_of_sm[sm], 0);
    assert_int_equal(a.predicted_gbps.known, MAYBE_UNKNOWN);
    r.bytes = 3 * GIB;
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_NOT_APPLICABLE);
    assert_non_null(strstr(err_next_step(&err), "reachctl measure --depth full"));
    fp.depth = DEPTH_FULL; /* a measurement at depth full was made */
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_NOT_APPLICABLE);
    assert_null(strstr(err_next_step(&err), "depth full"));
}

static void test_not_enough_groups(void **state)
{
    static const uint32_t sizes[] = {3, 3, 2};
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 12 * GIB};

    (void)state;
    placement_make_empty(&fp);
    placement_make_groups(&fp, sizes, 3);
    placement_make_limits(&fp, 130 * MIB, 2 * MIB);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_NOT_ENOUGH_GROUPS);
    assert_int_equal(a.window_count, 0);
    assert_int_equal(a.sm_slots, 0);
    assert_non_null(strstr(a.reason, "passes over scopes of 128 MiB instead, 96 of them"));
}

static void test_no_limit_seen(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct scope_answer scope;
    struct placement_request r = {.bytes = 200 * GIB};
    struct scope_request q = {.layout = layout_single(200 * GIB)};

    (void)state;
    placement_make_large(&fp);
    fp.windows.reach_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    fp.windows.entry_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    fp.windows.recommended_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_NO_LIMIT_SEEN);
    assert_int_equal(a.window_count, 1);
    placement_check_cover(&a, r.bytes);
    assert_int_equal(placement_scope(&fp, &q, &scope, NULL), STATUS_OK);
    assert_int_equal(scope.advice, ADVICE_NO_LIMIT_SEEN);
    assert_int_equal(scope.scope_bytes, 200 * GIB);
    assert_int_equal(scope.passes, 1);
}

/* A TLB of a single SM limits nothing if reads beyond its reach are as fast as reads within it. An
 * example is a MIG instance with less memory than the reach of a group of SMs. */
static void test_a_limit_that_costs_nothing(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct scope_answer scope;
    struct placement_request r = {.bytes = 120 * GIB};
    struct scope_request q = {.layout = layout_single(120 * GIB)};

    (void)state;
    placement_make_large(&fp);
    fp.level_count = 1;
    fp.levels[0] = (struct tlb_level){.level = 1,
                                      .shared_by = SHARED_SM,
                                      .reach_bytes = fp.windows.reach_bytes,
                                      .entry_bytes = fp.windows.entry_bytes};
    for (int group = 0; group < 2; group++) {
        for (uint32_t i = 0; i < fp.throughput.curve_count; i++)
            fp.throughput.curve[i].naive_gbps = KNOWN_F64(i == 2 ? 3890 : 4000);
        fp.levels[0].shared_by = group ? SHARED_GROUP : SHARED_SM;
        assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
        assert_int_equal(a.advice, group ? ADVICE_WINDOWS : ADVICE_NO_LIMIT_SEEN);
        assert_int_equal(placement_scope(&fp, &q, &scope, NULL), STATUS_OK);
        assert_int_equal(scope.advice, group ? ADVICE_SCOPES : ADVICE_NO_LIMIT_SEEN);

        fp.throughput.curve[2].naive_gbps = KNOWN_F64(3800); /* 5 % slower, so there is a cost */
        assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
        assert_int_equal(a.advice, ADVICE_WINDOWS);
        fp.throughput.curve[2].naive_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
        assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
        assert_int_equal(a.advice, ADVICE_WINDOWS);
    }
}

static void test_missing_facts(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct scope_answer scope;
    struct err err;
    struct placement_request r = {.bytes = GIB};
    struct scope_request q = {.layout = layout_single(GIB)};

    (void)state;
    placement_make_empty(&fp);
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_NOT_APPLICABLE);
    assert_non_null(strstr(err.text, "not-measured"));
    assert_int_equal(placement_scope(&fp, &q, &scope, &err), STATUS_NOT_APPLICABLE);
    placement_make_large(&fp);
    fp.windows.entry_bytes = UNKNOWN_U64(REASON_DISAGREEMENT);
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_NOT_APPLICABLE);
    assert_non_null(strstr(err.text, "disagreement"));
    placement_make_large(&fp);
    fp.conditions.verdict = VERDICT_UNUSABLE;
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_NOT_APPLICABLE);
}

static void refused(const struct fingerprint *fp, struct placement_request r, const char *word)
{
    struct placement_answer a;
    struct err err;

    assert_int_equal(placement_plan(fp, &r, &a, &err), STATUS_INVALID_ARGUMENT);
    if (!strstr(err.text, word))
        fail_msg("'%s' does not say '%s'", err.text, word);
}

static void test_refused_requests(void **state)
{
    struct fingerprint fp;

    (void)state;
    placement_make_large(&fp);
    refused(&fp, (struct placement_request){.bytes = 0}, "bytes must be at least 1");
    refused(&fp, (struct placement_request){.bytes = PLACEMENT_MAX_BYTES + 1}, "1 PiB");
    refused(&fp, (struct placement_request){.bytes = UINT64_MAX}, "1 PiB");
    refused(&fp, (struct placement_request){.bytes = 137 * GIB, .windows = 1}, "at least 3");
    refused(&fp, (struct placement_request){.bytes = 137 * GIB, .windows = 2}, "at least 3");
    refused(&fp, (struct placement_request){.bytes = 137 * GIB, .windows = 9}, "at most 8");
    refused(&fp, (struct placement_request){.bytes = 137 * GIB, .windows = 300}, "300");
    refused(&fp, (struct placement_request){.bytes = 137 * GIB, .granularity_bytes = 100 * GIB},
            "finer granularity");
    refused(
        &fp,
        (struct placement_request){.bytes = 20 * GIB, .windows = 8, .granularity_bytes = 8 * GIB},
        "empty");
    refused(&fp, (struct placement_request){.bytes = GIB, .granularity_bytes = UINT64_MAX},
            "granularity");
}

static void test_granularity(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 137 * GIB + 12345};

    (void)state;
    placement_make_large(&fp);
    r.granularity_bytes = GIB;
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    placement_check_windows(&fp, &a, r.bytes, GIB);
    r.granularity_bytes = 4 * KIB; /* the unit is finer than the entry, so the entry counts */
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    placement_check_windows(&fp, &a, r.bytes, 2 * MIB);
    r.granularity_bytes =
        1000; /* the unit is a record of 1000 bytes: 125 entries are as long as 262 144 records */
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    placement_check_windows(&fp, &a, r.bytes, 125 * 2 * MIB);
    r.granularity_bytes = 5 * GIB + 1; /* without a common multiple, only the request counts */
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    placement_check_windows(&fp, &a, r.bytes, 5 * GIB + 1);
}

static void test_borders_unit(void **state)
{
    (void)state;
    assert_int_equal(windows_unit(2 * MIB, 0, GIB), 2 * MIB);
    assert_int_equal(windows_unit(2 * MIB, 1, GIB), 2 * MIB);
    assert_int_equal(windows_unit(2 * MIB, 2 * MIB, GIB), 2 * MIB);
    assert_int_equal(windows_unit(2 * MIB, 6 * MIB, GIB), 6 * MIB);
    assert_int_equal(windows_unit(2 * MIB, 3 * MIB, GIB), 6 * MIB);
    assert_int_equal(windows_unit(2 * MIB, 3 * MIB, 64 * MIB), 3 * MIB);
    assert_int_equal(windows_unit(2 * MIB, 999, 64 * MIB), 2100 * 999);
}

static void test_windows_asked_though_not_needed(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 16 * GIB, .windows = 4};

    (void)state;
    placement_make_large(&fp);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_WINDOWS);
    assert_int_equal(a.window_count, 4);
    placement_check_windows(&fp, &a, r.bytes, 2 * MIB);
    placement_check_sms(&fp, &a);
    assert_non_null(strstr(a.reason, "as asked"));
}

static void test_unsure_sms_idle(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 137 * GIB};

    (void)state;
    placement_make_large(&fp);
    fp.topology.partition.group_of_sm[5] = FINGERPRINT_NO_GROUP;
    fp.topology.partition.group_of_sm[131] = FINGERPRINT_NO_GROUP;
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.sm_slots, 132);
    assert_int_equal(a.window_of_sm[5], -1);
    assert_int_equal(a.window_of_sm[131], -1);
    placement_check_sms(&fp, &a);
    r.bytes = GIB; /* with one window, SMs without a certain group may work */
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.window_of_sm[5], 0);
}

/* ---- scope ---- */

static void test_scope(void **state)
{
    struct fingerprint fp;
    struct scope_answer a;
    struct scope_request q = {.layout = layout_single(200 * MIB)};

    (void)state;
    placement_make_large(&fp);
    placement_make_limits(&fp, 64 * MIB, 2 * MIB);
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_SCOPES);
    assert_int_equal(a.scope_bytes, 62 * MIB);
    assert_int_equal(a.passes, 4);
    assert_non_null(strstr(a.reason, a.fingerprint_id));
    q.layout = layout_single(62 * MIB);
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_NOTHING_TO_DO);
    assert_int_equal(a.scope_bytes, 62 * MIB);
    assert_int_equal(a.passes, 1);
    q.layout = layout_single(0);
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_INVALID_ARGUMENT);
}

/* The GPU has a level behind the level of groups that all SMs share, like a K80. The reach of that
 * level limits a pass if reads within it keep half of their speed. */
static void test_scope_of_a_wider_level(void **state)
{
    struct fingerprint fp;
    struct scope_answer a;
    struct scope_request q = {.layout = layout_single(300 * GIB)};

    (void)state;
    placement_make_large(&fp);
    placement_make_limits(&fp, 32 * GIB, 2 * MIB);
    fp.level_count = 1;
    fp.levels[0].level = 3;
    fp.levels[0].shared_by = SHARED_GPU;
    fp.levels[0].reach_bytes =
        KNOWN_U64(64 * GIB); /* within this reach reads have 3000 of 4000 GB/s */
    fp.levels[0].entry_bytes = KNOWN_U64(2 * MIB);
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_int_equal(a.scope_bytes, 64 * GIB - 2 * MIB);
    assert_int_equal(a.passes, 5);
    assert_non_null(strstr(a.reason, "half of their speed"));
    fp.levels[0].reach_bytes =
        KNOWN_U64(128 * GIB); /* within this reach reads have 1000 of 4000 GB/s */
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_int_equal(a.scope_bytes, 32 * GIB - 2 * MIB);
    fp.levels[0].reach_bytes = KNOWN_U64(64 * GIB);
    q.access = ACCESS_ATOMIC; /* the curve is valid only for reads */
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_int_equal(a.scope_bytes, 32 * GIB - 2 * MIB);
    q.access = ACCESS_READ;
    fp.throughput.curve_count = 0;
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_int_equal(a.scope_bytes, 32 * GIB - 2 * MIB);
}

static void test_scope_predictions(void **state)
{
    struct fingerprint fp;
    struct scope_answer a;
    struct scope_request q = {.layout = layout_single(96 * GIB)};

    (void)state;
    placement_make_large(&fp);
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_float_equal(a.naive_gbps.v, 2000, 1e-6); /* halfway between 3000 and 1000 GB/s */
    assert_true(a.predicted_gbps.v > 3000);
    q.access = ACCESS_ATOMIC; /* the throughput of atomics was not measured */
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_int_equal(a.passes, 2);
    assert_int_equal(a.predicted_gbps.known, MAYBE_UNKNOWN);
    assert_int_equal(a.naive_gbps.known, MAYBE_UNKNOWN);
}

static void test_predict(void **state)
{
    struct fingerprint fp;
    struct maybe_f64 v;

    (void)state;
    placement_make_large(&fp);
    assert_float_equal(predict_gbps(&fp.throughput, PREDICT_NAIVE, 1).v, 4000, 0);
    assert_float_equal(predict_gbps(&fp.throughput, PREDICT_NAIVE, 32 * GIB).v, 4000, 0);
    assert_float_equal(predict_gbps(&fp.throughput, PREDICT_NAIVE, 48 * GIB).v, 3500, 1e-9);
    assert_float_equal(predict_gbps(&fp.throughput, PREDICT_BY_GROUP, 128 * GIB).v, 3950, 0);
    v = predict_gbps(&fp.throughput, PREDICT_NAIVE, 145 * GIB);
    assert_int_equal(v.known, MAYBE_UNKNOWN);
    assert_int_equal(v.reason, REASON_BEYOND_MEMORY);
    fp.throughput.curve[1].naive_gbps = UNKNOWN_F64(REASON_DISAGREEMENT);
    assert_float_equal(predict_gbps(&fp.throughput, PREDICT_NAIVE, 80 * GIB).v, 2500, 1e-9);
    fp.throughput.curve_count = 0;
    v = predict_gbps(&fp.throughput, PREDICT_NAIVE, GIB);
    assert_int_equal(v.known, MAYBE_UNKNOWN);
    assert_int_equal(v.reason, REASON_NOT_MEASURED);
}

static void test_size_texts(void **state)
{
    char a[FORMAT_SIZE_BYTES];
    char b[FORMAT_SIZE_BYTES];

    (void)state;
    assert_string_equal(format_size(137 * GIB, a), "137 GiB");
    assert_string_equal(format_size(64 * GIB - 32 * MIB, a), "63.97 GiB");
    assert_string_equal(format_size(3 * GIB / 2, a), "1.5 GiB");
    assert_string_equal(format_size(0, a), "0 B");
    assert_string_equal(format_size(UINT64_MAX, a), "16777216 TiB");
    format_size_pair(64 * GIB, 64 * GIB - 32 * MIB, a, b);
    assert_string_equal(a, "64 GiB");
    assert_string_equal(b, "63.97 GiB");
    format_size_pair(64 * GIB, 64 * GIB - 1, a, b);
    assert_string_equal(a, "68719476736 bytes");
    assert_string_equal(b, "68719476735 bytes");
    format_size_pair(GIB, GIB, a, b);
    assert_string_equal(a, b);
}

/* Sizes have two digits, rounded like in printf. The sizes are random, or in the middle between two
 * texts. */
static void test_size_texts_round(void **state)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    const char *given = getenv("REACH_SEED");
    struct rng rng = {.state = given ? strtoull(given, NULL, 0) : 20261121};

    (void)state;
    print_message("# REACH_SEED=%llu\n", (unsigned long long)rng.state);
    for (int round = 0; round < 20000; round++) {
        const uint64_t odd = rng_next(&rng) >> (11 + rng_next(&rng) % 53);
        const uint64_t bytes = round % 2 == 0 ? odd : (odd % 200000) << (rng_next(&rng) % 38);
        double value = (double)bytes;
        int unit = 0;
        char want[64];
        char is[FORMAT_SIZE_BYTES];
        size_t end;
        for (; value >= 1024 && unit < 4; unit++)
            value /= 1024;
        end = (size_t)snprintf(want, sizeof(want), "%.2f", value);
        while (want[end - 1] == '0')
            end--;
        end -= want[end - 1] == '.' ? 1 : 0;
        snprintf(want + end, sizeof(want) - end, " %s", names[unit]);
        assert_string_equal(format_size(bytes, is), want);
    }
}

static void test_names(void **state)
{
    enum access access = ACCESS_READ;

    (void)state;
    assert_true(access_from_name("atomic", &access));
    assert_int_equal(access, ACCESS_ATOMIC);
    assert_string_equal(access_name(access), "atomic");
    assert_false(access_from_name("Atomic", &access));
    assert_string_equal(advice_name(ADVICE_NOT_ENOUGH_GROUPS), "not-enough-groups");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_windows),
        cmocka_unit_test(test_lengths_follow_sms),
        cmocka_unit_test(test_lengths_follow_throughput),
        cmocka_unit_test(test_noise_is_no_throughput),
        cmocka_unit_test(test_cut_at_limit),
        cmocka_unit_test(test_more_windows_before_cutting),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_nothing_to_do_without_groups),
        cmocka_unit_test(test_not_enough_groups),
        cmocka_unit_test(test_no_limit_seen),
        cmocka_unit_test(test_a_limit_that_costs_nothing),
        cmocka_unit_test(test_missing_facts),
        cmocka_unit_test(test_refused_requests),
        cmocka_unit_test(test_granularity),
        cmocka_unit_test(test_borders_unit),
        cmocka_unit_test(test_windows_asked_though_not_needed),
        cmocka_unit_test(test_unsure_sms_idle),
        cmocka_unit_test(test_scope),
        cmocka_unit_test(test_scope_of_a_wider_level),
        cmocka_unit_test(test_scope_predictions),
        cmocka_unit_test(test_predict),
        cmocka_unit_test(test_size_texts),
        cmocka_unit_test(test_size_texts_round),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
