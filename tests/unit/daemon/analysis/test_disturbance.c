/* test_disturbance.c: each rule detects its disturbance, and a quiet observation is clean. In
 * random cases, no quiet observation is rejected. TEST_SEED chooses the random cases. */
#include "tests/unit/support/as_json.h"

#include "analysis/disturbance.h"
#include "base/rng.h"
#include "base/units.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SMS = 12, SLICE = 4, REPEATS = 3, SAMPLES = 64, GROUP = 4, HIT = 300, PENALTY = 150 };

static struct rng rng;

static uint32_t about(uint32_t cycles)
{
    return cycles - 5 + (uint32_t)rng_below(&rng, 11);
}

static void give_values(struct observation *o)
{
    o->result.sm_count = SMS;
    for (uint16_t i = 0; i < SMS; i++)
        o->result.sm_ids[i] = (uint16_t)(i * 2);
    o->result.value_count = probe_value_count(&o->spec, SMS);
    o->result.values = calloc(o->result.value_count, sizeof o->result.values[0]);
    assert_non_null(o->result.values);
}

/* Two points with footprints that fit, and two that do not. */
static struct observation new_chase(void)
{
    struct observation o = {.spec = {.kind = PROBE_CHASE,
                                     .stride_bytes = 2 * MIB,
                                     .point_count = 4,
                                     .points = {8, 16, 24, 32},
                                     .samples = SAMPLES,
                                     .sm_count = 1}};
    give_values(&o);
    for (uint32_t i = 0; i < 4 * SAMPLES; i++)
        o.result.values[i] = about(i < 2 * SAMPLES ? HIT : HIT + PENALTY);
    return o;
}

/* SMs 0 to 3 share a level with the pivot, and the other SMs do not. */
static struct observation new_round(void)
{
    struct observation o = {.spec = {.kind = PROBE_ROUND,
                                     .stride_bytes = 2 * MIB,
                                     .slice_pages = SLICE,
                                     .thrash_pages = 100,
                                     .warm_laps = 1,
                                     .repeats = REPEATS,
                                     .sm_count = 1,
                                     .sms = {2}}};
    uint32_t *v;
    give_values(&o);
    v = o.result.values;
    for (uint32_t r = 0; r < REPEATS; r++)
        for (uint32_t half = 0; half < 2; half++)
            for (uint32_t sm = 0; sm < SMS; sm++)
                for (uint32_t j = 0; j < SLICE; j++)
                    *v++ = about(HIT + (half == 1 && sm < GROUP ? PENALTY : 0));
    return o;
}

static struct observation new_read(void)
{
    struct observation o = {.spec = {.kind = PROBE_READ,
                                     .point_count = 2,
                                     .points = {GIB, 2 * GIB},
                                     .repeats = REPEATS,
                                     .duration_us = 1000,
                                     .window_count = 1,
                                     .window_sms = REACH_MAX_SMS}};
    give_values(&o);
    for (uint32_t row = 0; row < 2 * REPEATS; row++) {
        o.result.values[row * (SMS + 1)] = 1000000 + (uint32_t)rng_below(&rng, 9000);
        for (uint32_t sm = 0; sm < SMS; sm++)
            o.result.values[row * (SMS + 1) + 1 + sm] = 100000 + (uint32_t)rng_below(&rng, 900);
    }
    return o;
}

static struct assessment judge(const struct observation *o)
{
    struct assessment j;
    disturbance_classify(o, &j);
    if (j.verdict == VERDICT_CLEAN)
        assert_string_equal(j.message, "");
    else
        assert_true(strlen(j.message) > 20);
    return j;
}

/* Judges the observation, checks the verdict, and frees it. */
static void expect(struct observation *take, enum verdict verdict, const char *word)
{
    const struct assessment j = judge(take);
    if (j.verdict != verdict || !strstr(j.message, word))
        fail_msg("%s: \"%s\", not %s with \"%s\"", verdict_name(j.verdict), j.message,
                 verdict_name(verdict), word);
    observation_free(take);
}

static void quiet_is_clean(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct observation o = new_chase();
        expect(&o, VERDICT_CLEAN, "");
        o = new_round();
        expect(&o, VERDICT_CLEAN, "");
        o = new_read();
        expect(&o, VERDICT_CLEAN, "");
    }
}

static void an_absent_sm_is_seen(void **state)
{
    (void)state;
    struct observation o = new_chase();
    o.result.values[rng_below(&rng, o.result.value_count)] = DISTURBANCE_AWAY_CYCLES + 1;
    expect(&o, VERDICT_DISTURBED, "1 of 256 loads");
    o = new_round();
    o.result.values[rng_below(&rng, o.result.value_count)] = 2000000;
    expect(&o, VERDICT_DISTURBED, "another process");
    o = new_chase();
    o.result.values[5] = 20000; /* every GPU has such an outlier */
    expect(&o, VERDICT_CLEAN, "");
    o = new_chase();
    memset(o.result.values, 0, 200 * sizeof o.result.values[0]);
    expect(&o, VERDICT_UNUSABLE, "no time");
    o = new_chase();
    o.result.values[7] = 0; /* every load of this point was interrupted */
    expect(&o, VERDICT_DISTURBED, "interrupted each time");
    o = new_chase(); /* the kernel does not wait for its loads (on an H200 each takes 2 cycles) */
    for (size_t i = 0; i < o.result.value_count; i++)
        o.result.values[i] = 2;
    expect(&o, VERDICT_UNUSABLE, "the timer does not work");
}

static void a_falling_curve_is_seen(void **state)
{
    (void)state;
    struct observation o = new_chase();
    for (uint32_t i = 0; i < SAMPLES; i++)
        o.result.values[SAMPLES + i] += 2 * PENALTY;
    expect(&o, VERDICT_DISTURBED, "not monotone");
    o = new_chase(); /* one outlier in ten loads does not change a median */
    for (uint32_t i = 0; i < SAMPLES; i += 10)
        o.result.values[SAMPLES + i] += 2 * PENALTY;
    expect(&o, VERDICT_CLEAN, "");
    o = new_chase(); /* the median of a mixture of hits and misses may be the time of a hit or of a
                        miss */
    for (uint32_t i = 0; i < SAMPLES; i++)
        o.result.values[3 * SAMPLES + i] = about(i % 10 < 6 ? HIT : HIT + PENALTY);
    expect(&o, VERDICT_CLEAN, "");
}

static uint32_t *round_row(struct observation *o, uint32_t repeat, uint32_t half, uint32_t sm)
{
    return o->result.values + ((repeat * 2 + half) * SMS + sm) * SLICE;
}

static void repeats_that_disagree_are_seen(void **state)
{
    (void)state;
    struct observation o = new_round(); /* all pages are evicted before the timed half */
    for (uint32_t sm = 0; sm < SMS; sm++)
        for (uint32_t j = 0; j < SLICE; j++)
            round_row(&o, 1, 1, sm)[j] = about(HIT + PENALTY);
    expect(&o, VERDICT_DISTURBED, "lost the pages of the pivot");
    o = new_round(); /* all pages are evicted before the control */
    for (uint32_t sm = 0; sm < SMS; sm++)
        for (uint32_t j = 0; j < SLICE; j++)
            round_row(&o, 2, 0, sm)[j] = about(HIT + PENALTY);
    expect(&o, VERDICT_DISTURBED, "repeat");
    o = new_round(); /* one SM is slow by chance */
    for (uint32_t j = 0; j < SLICE; j++)
        round_row(&o, 1, 1, SMS - 1)[j] = about(HIT + PENALTY);
    expect(&o, VERDICT_CLEAN, "");
}

static void slow_reads_are_seen(void **state)
{
    (void)state;
    struct observation o = new_read();
    for (uint32_t sm = 0; sm < SMS; sm++)
        o.result.values[4 * (SMS + 1) + 1 + sm] /= 2;
    expect(&o, VERDICT_DISTURBED, "disagree");
    o = new_read();
    o.result.values[3 * (SMS + 1)] = 1600000;
    expect(&o, VERDICT_DISTURBED, "1600");
    o = new_read(); /* the clock rises during the warm-up */
    o.spec.points[0] = MIB;
    o.spec.points[1] = MIB;
    for (uint32_t sm = 0; sm < SMS; sm++)
        o.result.values[1 + sm] /= 3;
    expect(&o, VERDICT_CLEAN, "");
}

static void slow_down_clock(struct observation *o)
{
    o->result.conditions.sm_clock_before_khz = KNOWN_U32(1980000);
    o->result.conditions.sm_clock_khz = KNOWN_U32(1200000);
}

static void conditions_count_only_where_they_can_matter(void **state)
{
    (void)state;
    struct observation o = new_chase();
    o.result.conditions.other_processes = KNOWN_U32(3);
    o.result.conditions.busy_percent_before = KNOWN_U32(100);
    o.result.conditions.throttle_reasons = KNOWN_U64(0x4 | 0x1);
    o.result.conditions.sm_clock_before_khz = KNOWN_U32(1980000);
    o.result.conditions.sm_clock_khz = KNOWN_U32(1965000);
    o.result.conditions.uncorrected_errors = KNOWN_U64(0);
    o.result.conditions.xid = KNOWN_U64(0);
    expect(&o, VERDICT_CLEAN, "");
    o = new_chase();
    slow_down_clock(&o);
    expect(&o, VERDICT_DISTURBED, "1980 to 1200 MHz"); /* without a warm-up there is no reference */
    o = new_chase();
    o.spec.warm_laps = 1;
    slow_down_clock(&o);
    expect(&o, VERDICT_CLEAN, "");
    o = new_round();
    slow_down_clock(&o);
    expect(&o, VERDICT_CLEAN, "");
    o = new_round();
    o.result.conditions.concurrent_processes =
        KNOWN_U32(0); /* the process is the only client of MPS */
    expect(&o, VERDICT_CLEAN, "");
    o = new_round();
    o.result.conditions.concurrent_processes = KNOWN_U32(2);
    expect(&o, VERDICT_DISTURBED, "2 other clients of MPS");
    o = new_read();
    o.result.conditions.throttle_reasons = KNOWN_U64(0x8);
    expect(&o, VERDICT_DISTURBED, "0x8");
    o = new_read();
    o.result.conditions.xid = KNOWN_U64(31);
    expect(&o, VERDICT_DISTURBED, "Xid 31");
    o = new_read();
    o.result.conditions.xid = KNOWN_U64(31);
    o.result.conditions.uncorrected_errors = KNOWN_U64(2);
    expect(&o, VERDICT_UNUSABLE, "2 memory errors");
}

static void verdicts_have_names(void **state)
{
    (void)state;
    for (int v = VERDICT_CLEAN; v <= VERDICT_UNUSABLE; v++) {
        enum verdict again = VERDICT_CLEAN;
        assert_true(verdict_from_name(verdict_name((enum verdict)v), &again));
        assert_int_equal(again, v);
    }
    enum verdict kept = VERDICT_DISTURBED;
    assert_false(verdict_from_name("dirty", &kept));
    assert_false(verdict_from_name(NULL, &kept));
    assert_int_equal(kept, VERDICT_DISTURBED);
}

/* A set keeps observations that are not clean apart, and both kinds are read back from JSON. */
static void sets_put_the_disturbed_aside(void **state)
{
    (void)state;
    struct observation_set set = {.count = 0};
    for (int i = 0; i < 40; i++) {
        struct observation o = new_chase(), again;
        if (i % 3 == 0) {
            o.assessment.verdict = i % 2 ? VERDICT_DISTURBED : VERDICT_UNUSABLE;
            snprintf(o.assessment.message, sizeof o.assessment.message, "reason %d", i);
        }
        json_t *json = AS_JSON(observation_write, &o);
        assert_int_equal(observation_from_json(json, &again, NULL), STATUS_OK);
        json_decref(json);
        assert_int_equal(again.assessment.verdict, o.assessment.verdict);
        assert_string_equal(again.assessment.message, o.assessment.message);
        observation_free(&o);
        assert_int_equal(observation_set_add(&set, &again, NULL), STATUS_OK);
    }
    assert_int_equal(set.count, 26);
    assert_int_equal(set.excluded.count, 14);
    assert_string_equal(set.excluded.items[13].assessment.message, "reason 39");
    observation_set_free(&set);
}

static int seed_cases(void **state)
{
    const char *given = getenv("TEST_SEED");
    (void)state;
    rng.state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_is_clean),
        cmocka_unit_test(an_absent_sm_is_seen),
        cmocka_unit_test(a_falling_curve_is_seen),
        cmocka_unit_test(repeats_that_disagree_are_seen),
        cmocka_unit_test(slow_reads_are_seen),
        cmocka_unit_test(conditions_count_only_where_they_can_matter),
        cmocka_unit_test(verdicts_have_names),
        cmocka_unit_test(sets_put_the_disturbed_aside),
    };
    return cmocka_run_group_tests(tests, seed_cases, NULL);
}
