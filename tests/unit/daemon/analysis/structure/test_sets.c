/* test_sets.c: finds sets, ways, replacement and fill from hand-made traces. A rule decides which
 * pages of the level miss, so the expected result is known without a simulator. */
#include "analysis/structure/sectored.h"
#include "analysis/structure/sets.h"
#include "base/rng.h"
#include "base/units.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 64, MOST_SETS = 512, MOST_WAYS = 32, HIT = 300, PENALTY = 60 };

/* The rule that decides which pages miss in a cyclic walk over a level. */
struct rule {
    uint32_t sets;
    uint32_t ways[MOST_SETS];
    uint32_t victims;
    uint32_t (*set_of)(const struct rule *rule, uint64_t page);
    bool arbitrary;      /* whether victims are random */
    uint32_t scatter;    /* largest difference between the latencies of pages, in cycles */
    double slow_share;   /* outliers */
    uint32_t miss_noise; /* cycles by which a miss may be shorter */
    double flaky_share;  /* share of missing pages that hit in half of the laps */
    struct rng rng;
};

static uint32_t by_modulo(const struct rule *rule, uint64_t page)
{
    return (uint32_t)(page % rule->sets);
}

/* Assigns pages in turn to each set that has ways left. When all ways are assigned, it starts again
 * (Mei's unequal sets). */
static uint32_t by_turns(const struct rule *rule, uint64_t page)
{
    static uint32_t of_turn[MOST_SETS * MOST_WAYS]; /* the order of the last rule is kept, because
                                                       computing it is slow */
    static uint32_t ways[MOST_SETS];
    static uint32_t turns;

    if (turns == 0 || memcmp(ways, rule->ways, sizeof ways) != 0) {
        memcpy(ways, rule->ways, sizeof ways);
        turns = 0;
        for (uint32_t round = 0; round < MOST_WAYS; round++)
            for (uint32_t s = 0; s < rule->sets; s++)
                if (round < ways[s])
                    of_turn[turns++] = s;
    }
    return of_turn[page % turns];
}

static uint32_t by_hash(const struct rule *rule, uint64_t page)
{
    struct rng r = {.state = page};
    return (uint32_t)(rng_next(&r) % rule->sets);
}

/* Returns the low bits of the page number, folded with the higher bits (256 sets). */
static uint32_t by_fold(const struct rule *rule, uint64_t page)
{
    return (uint32_t)(page ^ page >> 8 ^ page >> 16) % rule->sets;
}

static struct rule equal_sets(uint32_t sets, uint32_t ways)
{
    struct rule r = {.sets = sets, .set_of = by_modulo, .rng = {.state = 99}};
    for (uint32_t s = 0; s < sets; s++)
        r.ways[s] = ways;
    return r;
}

static uint32_t cycles_of(struct rule *r, uint64_t page, bool misses)
{
    uint32_t cycles = HIT + (misses ? PENALTY : 0) + (uint32_t)rng_below(&r->rng, 5);
    if (misses && r->miss_noise > 0)
        cycles -= (uint32_t)rng_below(&r->rng, r->miss_noise);
    if (r->scatter > 0)
        cycles += (uint32_t)(page * 7919 % r->scatter);
    if (rng_unit(&r->rng) < r->slow_share)
        cycles += (uint32_t)rng_below(&r->rng, 500);
    return cycles;
}

/* Finds the sets that contain more pages than ways. No set overflows if the victim buffer holds all
 * excess pages. */
static void overflows(const struct rule *r, uint64_t base, uint64_t pages, bool *out)
{
    uint32_t in[MOST_SETS] = {0};
    uint32_t beyond = 0;
    for (uint64_t i = 0; i < pages; i++)
        in[r->set_of(r, base + i)] += 1;
    for (uint32_t s = 0; s < r->sets; s++)
        beyond += in[s] > r->ways[s] ? in[s] - r->ways[s] : 0;
    for (uint32_t s = 0; s < r->sets; s++)
        out[s] = in[s] > r->ways[s] && beyond > r->victims;
}

static void answer(struct rule *r, const struct probe_spec *spec, struct observation *out)
{
    bool over[MOST_SETS];
    *out = (struct observation){.spec = *spec};
    out->result.sm_count = 1;
    out->result.value_count = probe_value_count(spec, 1);
    out->result.values = calloc(out->result.value_count, sizeof *out->result.values);
    assert_non_null(out->result.values);
    for (uint32_t p = 0; p < spec->point_count; p++) {
        overflows(r, spec->base_bytes / spec->stride_bytes, spec->points[p], over);
        for (uint32_t k = 0; k < spec->samples; k++) {
            const uint64_t page = spec->base_bytes / spec->stride_bytes + k % spec->points[p];
            const uint32_t set = r->set_of(r, page);
            bool misses = over[set];
            if (r->arbitrary && misses)
                misses = rng_unit(&r->rng) < 0.4;
            if (misses && rng_unit(&r->rng) < r->flaky_share)
                misses = rng_below(&r->rng, 2);
            out->result.values[(size_t)p * spec->samples + k] = cycles_of(r, page, misses);
        }
    }
}

/* Returns the estimate of the level before its sets are probed, like after the refinement. */
static void before(struct rule *r, struct structure *s)
{
    bool over[MOST_SETS];
    uint64_t first = 0;
    uint64_t full = 0;
    for (uint64_t n = 2; full == 0; n++) {
        uint32_t missing = 0;
        overflows(r, 0, n, over);
        for (uint64_t i = 0; i < n; i++)
            missing += over[r->set_of(r, i)];
        first = first == 0 && missing > 0 ? n : first;
        full = missing == n ? n : 0;
    }
    memset(s, 0, sizeof *s);
    s->level_count = 1;
    s->window_level = -1;
    s->levels[0] = (struct level_estimate){.entry_known = true,
                                           .entry_bytes = 2 * MIB,
                                           .penalty_cycles = PENALTY,
                                           .separation = 1 - r->slow_share,
                                           .lo_pages = first - 1,
                                           .hi_pages = first,
                                           .sat_lo_pages = full - 1,
                                           .sat_hi_pages = full};
}

/* Makes probes until none is requested; returns the number of loads. */
static uint64_t measure(struct rule *r, struct sets_estimate *out)
{
    struct observation_set set = {.limits = {.range_bytes = 1024 * GIB}};
    struct structure s;
    uint64_t loads = 0;

    before(r, &s);
    for (uint32_t step = 0;; step++) {
        sets_estimate_all(&set, &s, out);
        if (out->ask_count == 0)
            break;
        if (step == MOST_STEPS)
            fail_msg("it never ends");
        trace_sort(out->asks, out->ask_count);
        for (uint32_t at = 0; at < out->ask_count;) {
            struct probe_spec spec;
            struct observation o;
            struct err err;
            at += trace_spec(out->asks + at, out->ask_count - at, 0, &spec);
            assert_true(trace_is(&spec));
            if (probe_check(&spec, NULL, &err) != STATUS_OK)
                fail_msg("%s", err.text);
            answer(r, &spec, &o);
            loads += o.result.value_count;
            assert_int_equal(observation_set_add(&set, &o, &err), STATUS_OK);
        }
    }
    observation_set_free(&set);
    return loads;
}

static void assert_runs(const struct sets_estimate *e, uint32_t count, const struct set_run *runs)
{
    assert_int_equal(e->run_count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(e->runs[i].ways, runs[i].ways);
        assert_int_equal(e->runs[i].sets, runs[i].sets);
    }
}

static void equal_sets_are_counted(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{1, 16}, {1, 2}, {7, 8}, {32, 4}, {12, 6}, {64, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct rule r = equal_sets(shapes[i][0], shapes[i][1]);
        struct sets_estimate e;
        measure(&r, &e);
        assert_int_equal(e.replacement, REPLACEMENT_LRU);
        assert_runs(&e, 1, &(struct set_run){.sets = shapes[i][0], .ways = shapes[i][1]});
        assert_int_equal(e.sets.v, shapes[i][0]);
        assert_int_equal(e.ways.v, shapes[i][1]);
        assert_int_equal(e.victim_entries.v, 0);
    }
}

/* Mei and Chu 2016, section 4.4: the 66th page overflows the set of 17. Each of the next six
 * pages overflows one set of 8. */
static void unequal_sets_show_in_the_steps(void **state)
{
    (void)state;
    struct rule r = {
        .sets = 7, .ways = {17, 8, 8, 8, 8, 8, 8}, .set_of = by_turns, .rng = {.state = 4}};
    struct sets_estimate e;
    measure(&r, &e);
    assert_runs(&e, 2, (struct set_run[]){{.ways = 17, .sets = 1}, {.ways = 8, .sets = 6}});
    assert_int_equal(e.sets.v, 7);
    assert_int_equal(e.ways.known, MAYBE_UNKNOWN);
    assert_int_equal(e.ways.reason, REASON_NOT_APPLICABLE);
}

/* A walk from one start gives the same result as one set of 17 and six sets of 8. Walks from other
 * starts give another result. */
static void a_victim_entry_is_not_a_wide_set(void **state)
{
    (void)state;
    for (uint32_t victims = 1; victims <= 3; victims++) {
        struct rule r = equal_sets(8, 8);
        struct sets_estimate e;
        r.victims = victims;
        measure(&r, &e);
        assert_runs(&e, 1, &(struct set_run){.ways = 8, .sets = 8});
        assert_int_equal(e.victim_entries.v, victims);
        assert_int_equal(e.sets.v, 8);
    }
}

/* No order of pages is assumed. Here a hash assigns them, and some sets overflow long before
 * others are full. */
static void any_hash_will_do(void **state)
{
    (void)state;
    struct rule r = equal_sets(8, 4);
    struct sets_estimate e;
    r.set_of = by_hash;
    measure(&r, &e);
    assert_runs(&e, 1, &(struct set_run){.ways = 4, .sets = 8});
}

/* There are too many cycles to walk all of them. Samples check the prediction of the first
 * steps. */
static void many_sets_are_sampled(void **state)
{
    (void)state;
    struct rule r = equal_sets(256, 8);
    struct sets_estimate e;
    const uint64_t loads = measure(&r, &e);
    assert_runs(&e, 1, &(struct set_run){.ways = 8, .sets = 256});
    assert_in_range(loads, 1, 512 * 1024);

    r = equal_sets(256, 8);
    r.victims = 1;
    measure(&r, &e);
    assert_runs(&e, 1, &(struct set_run){.ways = 8, .sets = 256});
    assert_int_equal(e.victim_entries.v, 1);
}

/* If a cycle starts at a later page, a folded page number fills the sets unevenly, and the first
 * step comes sooner. An H200 behaves like this (docs/measurements). */
static void a_victim_entry_behind_folded_sets(void **state)
{
    (void)state;
    struct rule r = equal_sets(256, 8);
    struct sets_estimate e;
    r.victims = 1;
    r.set_of = by_fold;
    measure(&r, &e);
    assert_runs(&e, 1, &(struct set_run){.ways = 8, .sets = 256});
    assert_int_equal(e.victim_entries.v, 1);
}

/* The number of entries equals 256 sets of 8 ways, but the sets are unequal, so there is no
 * conclusion. */
static void what_does_not_add_up_is_not_said(void **state)
{
    (void)state;
    struct rule r = equal_sets(256, 8);
    struct sets_estimate e;
    for (uint32_t s = 128; s < 256; s++)
        r.ways[s] = s % 2 ? 4 : 12;
    r.set_of = by_turns;
    measure(&r, &e);
    assert_false(IS_KNOWN(e.sets));
    assert_int_equal(e.run_count, 0);
}

static void arbitrary_victims_are_not_lru(void **state)
{
    (void)state;
    struct rule r = equal_sets(16, 8);
    struct sets_estimate e;
    r.arbitrary = true;
    measure(&r, &e);
    assert_int_equal(e.replacement, REPLACEMENT_NOT_LRU);
    assert_false(IS_KNOWN(e.sets));
    assert_int_equal(e.sets.reason, REASON_NOT_APPLICABLE);
}

static void one_way_leaves_no_choice(void **state)
{
    (void)state;
    struct rule r = equal_sets(32, 1);
    struct sets_estimate e;
    measure(&r, &e);
    assert_int_equal(e.replacement, REPLACEMENT_UNKNOWN);
    assert_int_equal(e.ways.v, 1);
    assert_int_equal(e.sets.v, 32);
}

/* One load in a hundred is slow, and the latencies of pages differ by more than the cost of a
 * miss. */
static void outliers_and_scatter_change_nothing(void **state)
{
    (void)state;
    struct rule r = equal_sets(16, 4);
    struct sets_estimate e;
    r.slow_share = 0.01;
    measure(&r, &e);
    assert_runs(&e, 1, &(struct set_run){.ways = 4, .sets = 16});

    r = equal_sets(16, 4);
    r.scatter = 90;
    measure(&r, &e);
    if (IS_KNOWN(e.sets))
        assert_runs(&e, 1, &(struct set_run){.ways = 4, .sets = 16});
}

/* Some pages miss in nine of ten laps, so neither LRU nor arbitrary replacement is certain. */
static void in_between_is_not_sure(void **state)
{
    (void)state;
    struct rule r = equal_sets(16, 8);
    struct sets_estimate e;
    r.flaky_share = 0.05;
    measure(&r, &e);
    assert_int_equal(e.replacement, REPLACEMENT_UNKNOWN);
    assert_false(IS_KNOWN(e.sets));
}

/* Some misses are slightly faster than the threshold, like in an H200's L1 TLB. */
static void quick_misses_are_not_hits(void **state)
{
    (void)state;
    struct rule r = equal_sets(1, 16);
    struct sets_estimate e;
    r.miss_noise = PENALTY / 2 + 6;
    measure(&r, &e);
    assert_int_equal(e.replacement, REPLACEMENT_LRU);
    assert_runs(&e, 1, &(struct set_run){.ways = 16, .sets = 1});
}

static void a_level_that_is_not_refined_is_not_asked(void **state)
{
    (void)state;
    struct observation_set set = {.limits = {.range_bytes = 1024 * GIB}};
    struct structure s = {.level_count = 1, .levels[0] = {.entry_known = true, .lo_pages = 16}};
    struct sets_estimate e[LEVELS_MAX];
    sets_estimate_all(&set, &s, e);
    assert_int_equal(e[0].ask_count, 0);
    assert_int_equal(e[0].sets.reason, REASON_TOO_LITTLE_DATA);
}

static void cycles_beyond_the_range_are_not_asked(void **state)
{
    (void)state;
    struct observation_set set = {.limits = {.range_bytes = 17 * 2 * MIB}};
    struct rule r = equal_sets(1, 16);
    struct structure s;
    struct sets_estimate e[LEVELS_MAX];
    before(&r, &s);
    sets_estimate_all(&set, &s, e);
    assert_int_equal(e[0].ask_count, 0);
    assert_int_equal(e[0].sets.reason, REASON_BEYOND_MEMORY);
}

/* ---- traces ---- */

static void a_trace_descends(void **state)
{
    (void)state;
    struct probe_spec spec = {.kind = PROBE_CHASE, .point_count = 3, .points = {9, 8, 4}};
    assert_true(trace_is(&spec));
    spec.points[2] = 8;
    assert_false(trace_is(&spec));
    spec.point_count = 1;
    assert_false(trace_is(&spec));
    spec = (struct probe_spec){.kind = PROBE_ROUND, .point_count = 2, .points = {2, 1}};
    assert_false(trace_is(&spec));
}

static void noise_wants_more_laps(void **state)
{
    (void)state;
    uint32_t before_laps = 0;
    for (double e = 0; e < 0.3; e += 0.01) {
        const uint32_t laps = trace_laps_needed(e);
        assert_true(laps >= TRACE_MIN_LAPS && laps >= before_laps);
        before_laps = laps;
    }
    assert_int_equal(trace_laps_needed(0), TRACE_MIN_LAPS);
    assert_int_equal(trace_laps_needed(0.5), UINT32_MAX);
}

static void asks_that_go_together_share_a_probe(void **state)
{
    (void)state;
    struct trace_ask asks[] = {
        {.stride_bytes = 128, .pages = 17, .control_pages = 12, .samples = 100, .warm_laps = 2},
        {.stride_bytes = 256, .pages = 17, .control_pages = 12, .samples = 50, .warm_laps = 2},
        {.stride_bytes = 128, .pages = 19, .control_pages = 12, .samples = 70, .warm_laps = 2},
        {.stride_bytes = 128, .pages = 17, .control_pages = 12, .samples = 100, .warm_laps = 2},
    };
    struct probe_spec spec;
    trace_sort(asks, 4);
    assert_int_equal(trace_spec(asks, 4, 3, &spec), 2);
    assert_int_equal(spec.point_count, 3);
    assert_int_equal(spec.points[0], 19);
    assert_int_equal(spec.points[1], 17);
    assert_int_equal(spec.points[2], 12);
    assert_int_equal(spec.samples, 100);
    assert_int_equal(spec.sms[0], 3);
    assert_int_equal(trace_spec(asks + 2, 2, 3, &spec), 1);
    assert_int_equal(trace_spec(asks + 3, 1, 3, &spec), 1);
    assert_int_equal(spec.stride_bytes, 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_sets_are_counted),
        cmocka_unit_test(unequal_sets_show_in_the_steps),
        cmocka_unit_test(a_victim_entry_is_not_a_wide_set),
        cmocka_unit_test(a_victim_entry_behind_folded_sets),
        cmocka_unit_test(any_hash_will_do),
        cmocka_unit_test(many_sets_are_sampled),
        cmocka_unit_test(what_does_not_add_up_is_not_said),
        cmocka_unit_test(arbitrary_victims_are_not_lru),
        cmocka_unit_test(one_way_leaves_no_choice),
        cmocka_unit_test(outliers_and_scatter_change_nothing),
        cmocka_unit_test(in_between_is_not_sure),
        cmocka_unit_test(quick_misses_are_not_hits),
        cmocka_unit_test(a_level_that_is_not_refined_is_not_asked),
        cmocka_unit_test(cycles_beyond_the_range_are_not_asked),
        cmocka_unit_test(a_trace_descends),
        cmocka_unit_test(noise_wants_more_laps),
        cmocka_unit_test(asks_that_go_together_share_a_probe),
    };
    return cmocka_run_group_tests_name("sets", tests, NULL, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
