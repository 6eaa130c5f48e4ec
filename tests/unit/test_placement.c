/* test_placement.c: scope and placement on hand-made and on random fingerprints. */
#include "placement/borders.h"
#include "placement/partition.h"
#include "placement/placement.h"
#include "placement/predict.h"

#include "base/rng.h"
#include "base/units.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- fingerprints to ask about ---- */

/* SMs dealt to groups in turn, as real chips number them: group g gets sizes[g] of them. */
static void make_groups(struct fingerprint *fp, const uint32_t *sizes, uint32_t groups)
{
    uint32_t left[REACH_MAX_GROUPS];
    uint32_t sm = 0;
    bool any = true;

    memcpy(left, sizes, groups * sizeof(*left));
    fp->topology.partition.group_count = groups;
    while (any) {
        any = false;
        for (uint32_t g = 0; g < groups; g++) {
            if (left[g] == 0)
                continue;
            left[g]--;
            any = true;
            fp->topology.partition.group_of_sm[sm++] = (uint16_t)g;
        }
    }
    for (uint32_t g = 0; g < groups; g++)
        fp->topology.groups[g].sm_count = sizes[g];
    fp->gpu.sm_count = sm;
    fp->topology.level = KNOWN_U32(2);
}

static void make_limits(struct fingerprint *fp, uint64_t reach, uint64_t entry)
{
    fp->windows.reach_bytes = KNOWN_U64(reach);
    fp->windows.entry_bytes = KNOWN_U64(entry);
    fp->windows.recommended_bytes = KNOWN_U64(reach - entry);
}

static void make_empty(struct fingerprint *fp)
{
    fingerprint_init(fp);
    snprintf(fp->gpu.uuid, sizeof(fp->gpu.uuid), "SIM-placement-test");
    fp->gpu.origin = ORIGIN_SIMULATED;
    fp->conditions.range_bytes = 256 * GIB;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        fp->topology.partition.group_of_sm[sm] = FINGERPRINT_NO_GROUP;
}

/* Made up, and like no chip in particular: 132 SMs in 8 groups, 64 GiB of reach. */
static void make_large(struct fingerprint *fp)
{
    static const uint32_t sizes[] = {16, 18, 16, 16, 18, 16, 16, 16};
    static const struct curve_point curve[] = {
        {.region_bytes = 32 * GIB,
         .naive_gbps = KNOWN(4000),
         .by_group_gbps = KNOWN(4000),
         .by_sm_gbps = KNOWN(4000),
         .windows = 1},
        {.region_bytes = 64 * GIB,
         .naive_gbps = KNOWN(3000),
         .by_group_gbps = KNOWN(3990),
         .by_sm_gbps = KNOWN(3000),
         .windows = 2},
        {.region_bytes = 128 * GIB,
         .naive_gbps = KNOWN(1000),
         .by_group_gbps = KNOWN(3950),
         .by_sm_gbps = KNOWN(1000),
         .windows = 3},
    };

    make_empty(fp);
    make_groups(fp, sizes, 8);
    make_limits(fp, 64 * GIB, 2 * MIB);
    fp->throughput.plateau_gbps = KNOWN_F64(4000);
    fp->throughput.curve_count = 3;
    memcpy(fp->throughput.curve, curve, sizeof(curve));
}

/* ---- what must hold for every plan ---- */

static void check_cover(const struct placement_answer *a, uint64_t bytes)
{
    uint64_t next = 0;

    for (uint32_t w = 0; w < a->window_count; w++) {
        assert_int_equal(a->windows[w].first_byte, next);
        assert_true(a->windows[w].length_bytes > 0);
        next += a->windows[w].length_bytes;
    }
    assert_int_equal(next, bytes);
}

static void check_windows(const struct fingerprint *fp, const struct placement_answer *a,
                          uint64_t bytes, uint64_t unit)
{
    uint64_t reach = fp->windows.reach_bytes.v;
    uint64_t limit = reach - fp->windows.entry_bytes.v;
    uint64_t longest = 0;

    check_cover(a, bytes);
    for (uint32_t w = 0; w < a->window_count; w++) {
        assert_int_equal(a->windows[w].first_byte % unit, 0);
        assert_true(a->windows[w].length_bytes <= limit);
        if (a->windows[w].length_bytes > longest)
            longest = a->windows[w].length_bytes;
    }
    assert_int_equal(a->margin_bytes, reach - longest);
}

static void check_sms(const struct fingerprint *fp, const struct placement_answer *a)
{
    const struct sm_partition *p = &fp->topology.partition;
    int16_t window_of_group[REACH_MAX_GROUPS];
    uint32_t sms[PLACEMENT_MAX_WINDOWS] = {0};
    uint32_t groups[PLACEMENT_MAX_WINDOWS] = {0};

    memset(window_of_group, -1, sizeof(window_of_group));
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        uint16_t g = p->group_of_sm[sm];
        int16_t w = sm < a->sm_slots ? a->window_of_sm[sm] : -1;
        if (g == FINGERPRINT_NO_GROUP) {
            assert_int_equal(w, -1);
            continue;
        }
        assert_in_range(w, 0, a->window_count - 1);
        if (window_of_group[g] < 0) {
            window_of_group[g] = w;
            groups[w]++;
        }
        assert_int_equal(window_of_group[g], w);
        sms[w]++;
    }
    for (uint32_t w = 0; w < a->window_count; w++) {
        assert_int_equal(a->windows[w].sm_count, sms[w]);
        assert_int_equal(a->windows[w].group_count, groups[w]);
    }
}

static void check_balance(const struct fingerprint *fp, const struct placement_answer *a)
{
    uint32_t largest = 0;
    uint32_t most = 0;
    uint32_t least = UINT32_MAX;

    for (uint32_t g = 0; g < fp->topology.partition.group_count; g++) {
        if (fp->topology.groups[g].sm_count > largest)
            largest = fp->topology.groups[g].sm_count;
    }
    for (uint32_t w = 0; w < a->window_count; w++) {
        if (a->windows[w].sm_count > most)
            most = a->windows[w].sm_count;
        if (a->windows[w].sm_count < least)
            least = a->windows[w].sm_count;
    }
    assert_true(most - least <= largest);
}

/* ---- placement ---- */

static void test_three_windows(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct err err;
    struct placement_request r = {.bytes = 137 * GIB};

    (void)state;
    make_large(&fp);
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_WINDOWS);
    assert_int_equal(a.window_count, 3);
    assert_int_equal(a.sm_slots, 132);
    check_windows(&fp, &a, r.bytes, 2 * MIB);
    check_sms(&fp, &a);
    check_balance(&fp, &a);
    /* 16s and 18s into three: the closest to 44 each is 50, 50 and 32. */
    assert_int_equal(a.windows[0].sm_count + a.windows[1].sm_count + a.windows[2].sm_count, 132);
    /* 137 GiB is within an eighth of the last point. */
    assert_float_equal(a.with_gbps.v, 3950, 1e-9);
    assert_float_equal(a.without_gbps.v, 1000, 1e-9);
    assert_non_null(strstr(a.reason, a.fingerprint_id));
    assert_non_null(strstr(a.reason, "137 GiB"));
    assert_int_equal(a.reason[strlen(a.reason) - 1], '.');
}

static void test_lengths_follow_sms(void **state)
{
    static const uint32_t sizes[] = {30, 10};
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 80 * GIB};

    (void)state;
    make_empty(&fp);
    make_groups(&fp, sizes, 2);
    make_limits(&fp, 64 * GIB, 2 * MIB);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.window_count, 2);
    assert_int_equal(a.windows[0].length_bytes, 60 * GIB);
    assert_int_equal(a.windows[1].length_bytes, 20 * GIB);
    assert_int_equal(a.windows[0].sm_count, 30);
    assert_null(strstr(a.reason, "uneven"));
}

/* 100 GiB by 30 to 10 would be 75 and 25: cut at the limit, since two groups cannot make three
 * windows. */
static void test_cut_at_limit(void **state)
{
    static const uint32_t sizes[] = {30, 10};
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 100 * GIB};

    (void)state;
    make_empty(&fp);
    make_groups(&fp, sizes, 2);
    make_limits(&fp, 64 * GIB, 2 * MIB);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    check_windows(&fp, &a, r.bytes, 2 * MIB);
    assert_int_equal(a.windows[0].length_bytes, 64 * GIB - 2 * MIB);
    assert_int_equal(a.margin_bytes, 2 * MIB);
    assert_non_null(strstr(a.reason, "uneven"));
}

/* Two windows of 20+10 and 10+10+... would pass the limit; three proportional ones do not. */
static void test_more_windows_before_cutting(void **state)
{
    static const uint32_t sizes[] = {20, 20, 20};
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 120 * GIB};

    (void)state;
    make_empty(&fp);
    make_groups(&fp, sizes, 3);
    make_limits(&fp, 64 * GIB, 2 * MIB);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.window_count, 3);
    assert_int_equal(a.windows[0].length_bytes, 40 * GIB);
    /* Asked for two all the same: 80 and 40 cannot be, 64 less one entry and the rest can. */
    r.windows = 2;
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.window_count, 2);
    check_windows(&fp, &a, r.bytes, 2 * MIB);
}

static void test_nothing_to_do(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 64 * GIB - 2 * MIB};

    (void)state;
    make_large(&fp);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_NOTHING_TO_DO);
    assert_int_equal(a.window_count, 1);
    assert_int_equal(a.margin_bytes, 2 * MIB);
    assert_int_equal(a.windows[0].sm_count, 132);
    check_cover(&a, r.bytes);
    check_sms(&fp, &a);
    r.bytes++; /* one byte more needs a second window */
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
    make_empty(&fp);
    fp.gpu.sm_count = 13;
    make_limits(&fp, 2 * GIB, 2 * MIB);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_NOTHING_TO_DO);
    assert_int_equal(a.sm_slots, 13);
    for (uint32_t sm = 0; sm < 13; sm++)
        assert_int_equal(a.window_of_sm[sm], 0);
    assert_int_equal(a.with_gbps.known, MAYBE_UNKNOWN);
    r.bytes = 3 * GIB;
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_NOT_APPLICABLE);
    assert_non_null(strstr(err.text, "measure again"));
}

static void test_not_enough_groups(void **state)
{
    static const uint32_t sizes[] = {3, 3, 2};
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 12 * GIB};

    (void)state;
    make_empty(&fp);
    make_groups(&fp, sizes, 3);
    make_limits(&fp, 130 * MIB, 2 * MIB);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_NOT_ENOUGH_GROUPS);
    assert_int_equal(a.window_count, 0);
    assert_int_equal(a.sm_slots, 0);
    assert_non_null(strstr(a.reason, "96 passes over scopes of 128 MiB"));
}

static void test_no_limit_seen(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct scope_answer scope;
    struct placement_request r = {.bytes = 200 * GIB};
    struct scope_request q = {.bytes = 200 * GIB};

    (void)state;
    make_large(&fp);
    fp.windows.reach_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    fp.windows.entry_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    fp.windows.recommended_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_NO_LIMIT_SEEN);
    assert_int_equal(a.window_count, 1);
    check_cover(&a, r.bytes);
    assert_int_equal(placement_scope(&fp, &q, &scope, NULL), STATUS_OK);
    assert_int_equal(scope.advice, ADVICE_NO_LIMIT_SEEN);
    assert_int_equal(scope.scope_bytes, 200 * GIB);
    assert_int_equal(scope.passes, 1);
}

static void test_missing_facts(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct scope_answer scope;
    struct err err;
    struct placement_request r = {.bytes = GIB};
    struct scope_request q = {.bytes = GIB};

    (void)state;
    make_empty(&fp);
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_NOT_APPLICABLE);
    assert_non_null(strstr(err.text, "not-measured"));
    assert_int_equal(placement_scope(&fp, &q, &scope, &err), STATUS_NOT_APPLICABLE);
    make_large(&fp);
    fp.windows.entry_bytes = UNKNOWN_U64(REASON_DISAGREEMENT);
    assert_int_equal(placement_plan(&fp, &r, &a, &err), STATUS_NOT_APPLICABLE);
    assert_non_null(strstr(err.text, "disagreement"));
    make_large(&fp);
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
    make_large(&fp);
    refused(&fp, (struct placement_request){.bytes = 0}, "bytes is 0");
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
    make_large(&fp);
    r.granularity_bytes = GIB;
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    check_windows(&fp, &a, r.bytes, GIB);
    r.granularity_bytes = 4 * KIB; /* finer than the entry: the entry rules */
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    check_windows(&fp, &a, r.bytes, 2 * MIB);
    r.granularity_bytes = 1000; /* a record: 125 entries are 262 144 records */
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    check_windows(&fp, &a, r.bytes, 125 * 2 * MIB);
    r.granularity_bytes = 5 * GIB + 1; /* no common multiple in sight: the asked one alone */
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    check_windows(&fp, &a, r.bytes, 5 * GIB + 1);
}

static void test_borders_unit(void **state)
{
    (void)state;
    assert_int_equal(borders_unit(2 * MIB, 0, GIB), 2 * MIB);
    assert_int_equal(borders_unit(2 * MIB, 1, GIB), 2 * MIB);
    assert_int_equal(borders_unit(2 * MIB, 2 * MIB, GIB), 2 * MIB);
    assert_int_equal(borders_unit(2 * MIB, 6 * MIB, GIB), 6 * MIB);
    assert_int_equal(borders_unit(2 * MIB, 3 * MIB, GIB), 6 * MIB);
    assert_int_equal(borders_unit(2 * MIB, 3 * MIB, 64 * MIB), 3 * MIB);
    assert_int_equal(borders_unit(2 * MIB, 999, 64 * MIB), 2100 * 999);
}

static void test_windows_asked_though_not_needed(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 16 * GIB, .windows = 4};

    (void)state;
    make_large(&fp);
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_WINDOWS);
    assert_int_equal(a.window_count, 4);
    check_windows(&fp, &a, r.bytes, 2 * MIB);
    check_sms(&fp, &a);
    assert_non_null(strstr(a.reason, "as asked"));
}

static void test_unsure_sms_idle(void **state)
{
    struct fingerprint fp;
    struct placement_answer a;
    struct placement_request r = {.bytes = 137 * GIB};

    (void)state;
    make_large(&fp);
    fp.topology.partition.group_of_sm[5] = FINGERPRINT_NO_GROUP;
    fp.topology.partition.group_of_sm[131] = FINGERPRINT_NO_GROUP;
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.sm_slots, 132);
    assert_int_equal(a.window_of_sm[5], -1);
    assert_int_equal(a.window_of_sm[131], -1);
    check_sms(&fp, &a);
    r.bytes = GIB; /* where one window does, they may work */
    assert_int_equal(placement_plan(&fp, &r, &a, NULL), STATUS_OK);
    assert_int_equal(a.window_of_sm[5], 0);
}

/* ---- scope ---- */

static void test_scope(void **state)
{
    struct fingerprint fp;
    struct scope_answer a;
    struct scope_request q = {.bytes = 200 * MIB};

    (void)state;
    make_large(&fp);
    make_limits(&fp, 64 * MIB, 2 * MIB);
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_SCOPES);
    assert_int_equal(a.scope_bytes, 62 * MIB);
    assert_int_equal(a.passes, 4);
    assert_non_null(strstr(a.reason, a.fingerprint_id));
    q.bytes = 62 * MIB;
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_int_equal(a.advice, ADVICE_NOTHING_TO_DO);
    assert_int_equal(a.scope_bytes, 62 * MIB);
    assert_int_equal(a.passes, 1);
    q.bytes = 0;
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_INVALID_ARGUMENT);
}

static void test_scope_predictions(void **state)
{
    struct fingerprint fp;
    struct scope_answer a;
    struct scope_request q = {.bytes = 96 * GIB};

    (void)state;
    make_large(&fp);
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_float_equal(a.without_gbps.v, 2000, 1e-6); /* half way from 3000 to 1000 */
    assert_true(a.with_gbps.v > 3000);
    q.access = ACCESS_ATOMIC; /* nobody measured atomics */
    assert_int_equal(placement_scope(&fp, &q, &a, NULL), STATUS_OK);
    assert_int_equal(a.passes, 2);
    assert_int_equal(a.with_gbps.known, MAYBE_UNKNOWN);
    assert_int_equal(a.without_gbps.known, MAYBE_UNKNOWN);
}

static void test_predict(void **state)
{
    struct fingerprint fp;
    struct maybe_f64 v;

    (void)state;
    make_large(&fp);
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

/* ---- partition ---- */

static void test_partition_example(void **state)
{
    static const uint32_t sizes[] = {7, 7, 6, 6, 5, 5, 4, 4, 4};
    uint16_t window_of[9];
    uint32_t totals[3];

    (void)state;
    partition_balance(sizes, 9, 3, window_of, totals);
    assert_int_equal(totals[0], 16);
    assert_int_equal(totals[1], 16);
    assert_int_equal(totals[2], 16);
    assert_int_equal(window_of[0], 0);
}

/* Least possible difference of two sums, by looking at every subset. */
static uint32_t best_split(const uint32_t *sizes, uint32_t count)
{
    uint32_t all = 0;
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++)
        all += sizes[i];
    for (uint32_t set = 1; set + 1 < 1u << count; set++) {
        uint32_t sum = 0;
        uint32_t gap;
        for (uint32_t i = 0; i < count; i++)
            sum += set >> i & 1 ? sizes[i] : 0;
        gap = 2 * sum > all ? 2 * sum - all : all - 2 * sum;
        if (gap < best)
            best = gap;
    }
    return best;
}

/* Chips have groups of two or three sizes: there the answer is the best there is, or one SM off. */
static void test_partition_against_all_subsets(void **state)
{
    struct rng rng = {.state = 20161};

    (void)state;
    for (int round = 0; round < 300; round++) {
        uint32_t count = 2 + (uint32_t)rng_below(&rng, 9);
        uint32_t base = 2 + (uint32_t)rng_below(&rng, 17);
        uint32_t sizes[10];
        uint16_t window_of[10];
        uint32_t totals[2];
        uint32_t gap;
        for (uint32_t i = 0; i < count; i++)
            sizes[i] = base + 2 * (uint32_t)rng_below(&rng, 2);
        partition_balance(sizes, count, 2, window_of, totals);
        gap = totals[0] > totals[1] ? totals[0] - totals[1] : totals[1] - totals[0];
        assert_int_equal(gap, best_split(sizes, count));
    }
}

/* ---- properties over random fingerprints ---- */

static void random_fingerprint(struct rng *rng, struct fingerprint *fp)
{
    uint32_t sizes[64];
    uint32_t groups = 1 + (uint32_t)rng_below(rng, 64);
    uint32_t base = 1 + (uint32_t)rng_below(rng, 6);
    uint64_t entry = (uint64_t)1 << (12 + rng_below(rng, 14));

    make_empty(fp);
    for (uint32_t g = 0; g < groups; g++)
        sizes[g] = base + (uint32_t)rng_below(rng, 3);
    make_groups(fp, sizes, groups);
    make_limits(fp, entry * (2 + rng_below(rng, 40000)), entry);
    if (rng_below(rng, 4) == 0) { /* one SM of which nobody is sure */
        uint16_t sm = (uint16_t)rng_below(rng, fp->gpu.sm_count);
        uint16_t g = fp->topology.partition.group_of_sm[sm];
        if (fp->topology.groups[g].sm_count > 1) {
            fp->topology.groups[g].sm_count--;
            fp->topology.partition.group_of_sm[sm] = FINGERPRINT_NO_GROUP;
        }
    }
}

static void random_request(struct rng *rng, const struct fingerprint *fp,
                           struct placement_request *r)
{
    uint64_t most = fp->windows.recommended_bytes.v * fp->topology.partition.group_count;

    *r = (struct placement_request){.bytes = 1 + rng_below(rng, most + most / 4)};
    if (rng_below(rng, 3) == 0)
        r->windows = (uint32_t)rng_below(rng, fp->topology.partition.group_count + 2);
    if (rng_below(rng, 3) == 0)
        r->granularity_bytes = 1 + rng_below(rng, 4 * fp->windows.entry_bytes.v);
}

static void check_answer(const struct fingerprint *fp, const struct placement_request *r,
                         const struct placement_answer *a)
{
    uint64_t limit = fp->windows.recommended_bytes.v;
    uint64_t needed = (r->bytes - 1) / limit + 1;

    assert_non_null(strstr(a->reason, a->fingerprint_id));
    assert_true(strlen(a->reason) < sizeof(a->reason) - 1);
    if (a->advice == ADVICE_NOT_ENOUGH_GROUPS) {
        assert_true(needed > fp->topology.partition.group_count);
        return;
    }
    if (r->windows != 0)
        assert_int_equal(a->window_count, r->windows);
    assert_true(a->window_count >= needed);
    if (a->advice == ADVICE_NOTHING_TO_DO) {
        assert_true(r->bytes <= limit);
        check_cover(a, r->bytes);
        return;
    }
    check_windows(fp, a, r->bytes,
                  borders_unit(fp->windows.entry_bytes.v, r->granularity_bytes, limit));
    check_sms(fp, a);
    check_balance(fp, a);
}

static void test_properties(void **state)
{
    static struct fingerprint fp;
    static struct placement_answer a, again;
    const char *given = getenv("TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    struct rng rng = {.state = seed};
    int answered = 0;

    (void)state;
    printf("seed %llu (TEST_SEED)\n", (unsigned long long)seed);
    for (int round = 0; round < 2000; round++) {
        struct placement_request r;
        struct err err = {.status = STATUS_OK};
        random_fingerprint(&rng, &fp);
        random_request(&rng, &fp, &r);
        if (placement_plan(&fp, &r, &a, &err) != STATUS_OK) {
            assert_int_equal(err.status, STATUS_INVALID_ARGUMENT);
            assert_true(r.windows != 0 || r.granularity_bytes != 0);
            continue;
        }
        answered++;
        check_answer(&fp, &r, &a);
        assert_int_equal(placement_plan(&fp, &r, &again, NULL), STATUS_OK);
        assert_memory_equal(&a, &again, sizeof(a));
    }
    assert_true(answered > 500);
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
        cmocka_unit_test(test_cut_at_limit),
        cmocka_unit_test(test_more_windows_before_cutting),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_nothing_to_do_without_groups),
        cmocka_unit_test(test_not_enough_groups),
        cmocka_unit_test(test_no_limit_seen),
        cmocka_unit_test(test_missing_facts),
        cmocka_unit_test(test_refused_requests),
        cmocka_unit_test(test_granularity),
        cmocka_unit_test(test_borders_unit),
        cmocka_unit_test(test_windows_asked_though_not_needed),
        cmocka_unit_test(test_unsure_sms_idle),
        cmocka_unit_test(test_scope),
        cmocka_unit_test(test_scope_predictions),
        cmocka_unit_test(test_predict),
        cmocka_unit_test(test_partition_example),
        cmocka_unit_test(test_partition_against_all_subsets),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
