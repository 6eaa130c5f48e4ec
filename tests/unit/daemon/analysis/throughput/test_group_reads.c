/* test_group_reads.c: reads by single groups and by pairs of groups, on a chip whose throughput
 * follows a rule. The results are the throughput of each group, and the groups that share a TLB or
 * bandwidth. */
#include "analysis/throughput/group_reads.h"
#include "analysis/throughput/throughput.h"
#include "base/rng.h"
#include "base/units.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { GROUPS = 6, MOST_STEPS = 40, NOBODY = 99 };

struct chip {
    uint32_t sizes[GROUPS];
    double per_sm[GROUPS];    /* throughput of one SM that reads alone, in GB/s */
    uint32_t tlb_of[GROUPS];  /* groups with the same number share one TLB */
    double most_gbps[GROUPS]; /* limit of the sum of all groups of a pipe; 0 means no limit */
    uint32_t pipe_of[GROUPS];
    double reach_bytes;
    double noise;     /* noise of a throughput, relative to it */
    double edge_us;   /* time from the start of the first SM to the start of the last */
    uint32_t hiccups; /* number of pairs whose first read is half as fast */
    uint32_t jumps;   /* number of groups whose first read is 5 % faster or slower */
    uint32_t asked[3][THROUGHPUT_MORE_REPEATS +
                      1]; /* number of requested probes, by windows and repeats */
    struct rng rng;
};

static struct chip plain_chip(void)
{
    struct chip c = {.sizes = {6, 6, 6, 4, 4, 6},
                     .reach_bytes = 64.0 * GIB,
                     .noise = 0.005,
                     .rng = {.state = 5}};
    for (uint32_t g = 0; g < GROUPS; g++) {
        c.per_sm[g] = 40;
        c.tlb_of[g] = c.pipe_of[g] = g;
    }
    return c;
}

static uint32_t group_of(const struct chip *c, uint32_t id)
{
    uint32_t g = 0;
    while (g < GROUPS && id >= c->sizes[g])
        id -= c->sizes[g++];
    return g;
}

static uint32_t sm_count(const struct chip *c)
{
    uint32_t sms = 0;
    for (uint32_t g = 0; g < GROUPS; g++)
        sms += c->sizes[g];
    return sms;
}

/* Returns the throughput of one SM in GB/s. The SM is slower than alone if its TLB does not hold
 * the windows or its pipe is full. */
static double speed_of(const struct chip *c, const struct probe_spec *spec, uint64_t region,
                       uint32_t id)
{
    const uint32_t g = group_of(c, id);
    bool tlb_window[PROBE_MAX_WINDOWS] = {false};
    uint32_t working = 0;
    uint32_t reached = 0; /* number of SMs whose windows this TLB holds */
    double wanted = 0;
    for (uint32_t k = 0; k < sm_count(c); k++) {
        const uint16_t w = spec->window_of_sm[k];
        if (w == PROBE_SM_IDLE)
            continue;
        working += 1;
        tlb_window[w] = tlb_window[w] || c->tlb_of[group_of(c, k)] == c->tlb_of[g];
        if (c->pipe_of[group_of(c, k)] == c->pipe_of[g])
            wanted += c->per_sm[group_of(c, k)];
    }
    for (uint32_t k = 0; k < sm_count(c); k++) {
        const uint16_t w = spec->window_of_sm[k];
        reached += w != PROBE_SM_IDLE && tlb_window[w];
    }
    double gbps = c->per_sm[g];
    if ((double)region * reached / working > c->reach_bytes)
        gbps *= 0.4;
    const double most = c->most_gbps[c->pipe_of[g]];
    if (most > 0 && wanted > most)
        gbps *= most / wanted;
    return gbps;
}

static void answer(struct chip *c, const struct probe_spec *spec, struct observation *out)
{
    const uint32_t sms = sm_count(c);
    *out = (struct observation){.spec = *spec};
    out->result.sm_count = sms;
    for (uint32_t id = 0; id < sms; id++)
        out->result.sm_ids[id] = (uint16_t)id;
    out->result.value_count = probe_value_count(spec, sms);
    out->result.values = calloc(out->result.value_count, sizeof *out->result.values);
    assert_non_null(out->result.values);
    uint32_t *row = out->result.values;
    assert_true(spec->window_count <= 2 && spec->repeats <= THROUGHPUT_MORE_REPEATS);
    c->asked[spec->window_count][spec->repeats]++;
    const bool jump = spec->window_count == 1 && c->jumps > 0;
    c->jumps -= jump;
    for (uint32_t p = 0; p < spec->point_count; p++)
        for (uint32_t r = 0; r < spec->repeats; r++, row += 1 + sms) {
            const bool hiccup = spec->window_count == 2 && c->hiccups > 0;
            const double noise =
                (1 + c->noise * (rng_unit(&c->rng) - 0.5)) * (hiccup           ? 0.5
                                                              : jump && r == 0 ? 0.95
                                                                               : 1);
            c->hiccups -= hiccup;
            row[0] = (uint32_t)((spec->duration_us + c->edge_us) * 1000);
            for (uint32_t id = 0; id < sms; id++)
                if (spec->window_of_sm[id] != PROBE_SM_IDLE)
                    row[1 + id] = (uint32_t)(speed_of(c, spec, spec->points[p], id) * noise *
                                             spec->duration_us * 1000 / PROBE_LINE_BYTES);
        }
}

static void know_groups(const struct chip *c, struct structure *s)
{
    memset(s, 0, sizeof *s);
    s->level_count = 1;
    s->window_level = 0;
    s->shared_by[0] = SHARED_GROUP;
    s->levels[0] = (struct level_estimate){.entry_known = true,
                                           .counted = true,
                                           .entry_bytes = 32 * MIB,
                                           .lo_pages = (uint64_t)c->reach_bytes / (32 * MIB),
                                           .hi_pages = (uint64_t)c->reach_bytes / (32 * MIB) + 1};
    s->sharing[0].found.group_count = GROUPS;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        s->sharing[0].found.group_of_sm[id] =
            id < sm_count(c) ? (uint16_t)group_of(c, id) : FINGERPRINT_NO_GROUP;
}

static void ask_all(struct chip *c, struct structure *s, struct observation_set *set,
                    uint64_t range_bytes)
{
    static struct group_asks asks;
    *set = (struct observation_set){
        .limits = {.range_bytes = range_bytes, .backing_bytes = GIB, .sm_count = sm_count(c)},
        .gpu = {.l2_cache_bytes = 50 * MIB}};
    know_groups(c, s);
    for (uint32_t step = 0;; step++) {
        group_reads_missing(set, s, &asks);
        if (asks.count == 0)
            break;
        if (step == MOST_STEPS)
            fail_msg("it never ends");
        for (uint32_t i = 0; i < asks.count; i++) {
            struct observation o;
            struct err err;
            if (probe_check(&asks.specs[i], &set->limits, &err) != STATUS_OK)
                fail_msg("%s", err.text);
            answer(c, &asks.specs[i], &o);
            assert_false(throughput_all_sms_read(&o));
            assert_int_equal(observation_set_add(set, &o, &err), STATUS_OK);
        }
    }
}

static void conclude(struct chip *c, uint64_t range_bytes, struct topology *out)
{
    static struct observation_set set;
    static struct structure s;
    static struct fingerprint fp;
    fingerprint_init(&fp);
    ask_all(c, &s, &set, range_bytes);
    fp.topology.partition = s.sharing[0].found;
    group_reads_derive(&set, &s, &fp.topology);
    *out = fp.topology;
    observation_set_free(&set);
}

static void groups_that_share_nothing(void **state)
{
    (void)state;
    static struct topology t;
    struct chip c = plain_chip();
    conclude(&c, 280 * GIB, &t);
    for (uint32_t g = 0; g < GROUPS; g++) {
        assert_float_equal(t.groups[g].alone_gbps.v, 40.0 * c.sizes[g], 4);
        assert_float_equal(t.groups[g].beyond_gbps.v, 16.0 * c.sizes[g], 2);
        assert_int_equal(t.groups[g].speed_class.v, 0);
    }
    assert_int_equal(t.speed_classes.v, 1);
    assert_int_equal(t.speed_follows_sms, FINDING_YES);
    assert_int_equal(t.pairs.measured, GROUPS * (GROUPS - 1) / 2);
    assert_int_equal(t.pairs.slow_count, 0);
    assert_int_equal(t.pairs.share_tlb, FINDING_NO);
    assert_true(t.pairs.worst_ratio.v > 0.98);
}

/* There are hundreds of pairs, so a pair that is not slow is read only once. */
static void pairs_are_read_once(void **state)
{
    struct chip c = plain_chip();
    struct topology t;

    (void)state;
    conclude(&c, 280 * GIB, &t);
    assert_int_equal(c.asked[2][1], GROUPS * (GROUPS - 1) / 2);
    assert_int_equal(c.asked[2][2], 0);
    assert_int_equal(c.asked[1][THROUGHPUT_REPEATS], GROUPS);
    assert_int_equal(c.asked[1][THROUGHPUT_MORE_REPEATS], 0);
    assert_int_equal(t.evidence.pairs.repeats, 1);
}

/* A pair that is slow by chance is read again, and the second read is not slow. */
static void a_slow_pair_is_read_again(void **state)
{
    struct chip c = plain_chip();
    struct topology t;

    (void)state;
    c.hiccups = 1;
    conclude(&c, 280 * GIB, &t);
    assert_int_equal(c.asked[2][1], GROUPS * (GROUPS - 1) / 2);
    assert_int_equal(c.asked[2][2], 1);
    assert_int_equal(t.pairs.slow_count, 0);
    assert_int_equal(t.pairs.share_tlb, FINDING_NO);
    assert_true(t.pairs.worst_ratio.v > 0.98);
}

/* A group whose two reads disagree is read five more times, and only these five reads count. */
static void a_group_is_read_again_if_it_disagrees(void **state)
{
    struct chip c = plain_chip();
    struct topology t;

    (void)state;
    c.noise = 0;
    c.jumps = 2;
    conclude(&c, 280 * GIB, &t);
    assert_int_equal(c.asked[1][THROUGHPUT_REPEATS], GROUPS);
    assert_int_equal(c.asked[1][THROUGHPUT_MORE_REPEATS], 2);
    for (uint32_t g = 0; g < GROUPS; g++)
        assert_float_equal(t.groups[g].alone_gbps.v, 40.0 * c.sizes[g], 0.1);
    assert_int_equal(t.groups[0].evidence.alone_gbps.repeats, THROUGHPUT_MORE_REPEATS);
}

/* A pair reads for a shorter time than a group alone. The shorter time must not make the pair count
 * as slow. */
static void a_short_read_is_no_slow_one(void **state)
{
    struct chip c = plain_chip();
    struct topology t;

    (void)state;
    c.edge_us = 40; /* a sixth of 250 us, and a tenth of 400 us */
    conclude(&c, 128 * GIB, &t);
    assert_int_equal(t.pairs.measured, GROUPS * (GROUPS - 1) / 2);
    assert_int_equal(t.pairs.slow_count, 0);
    assert_true(t.pairs.worst_ratio.v > 0.99);
}

static void a_shared_tlb_shows(void **state)
{
    (void)state;
    static struct topology t;
    struct chip c = plain_chip();
    c.tlb_of[4] = c.tlb_of[1];
    conclude(&c, 280 * GIB, &t);
    assert_int_equal(t.pairs.share_tlb, FINDING_YES);
    assert_int_equal(t.pairs.slow_count, 1);
    assert_int_equal(t.pairs.slow[0].groups[0], 1);
    assert_int_equal(t.pairs.slow[0].groups[1], 4);
    assert_int_equal(t.pairs.slow[0].cause, SLOW_BY_TLB);
    assert_int_equal(t.pairs.worst[0], 1);
    assert_int_equal(t.pairs.worst[1], 4);
    assert_float_equal(t.pairs.worst_ratio.v, 0.4, 0.02);
}

static void shared_bandwidth_is_no_tlb(void **state)
{
    (void)state;
    static struct topology t;
    struct chip c = plain_chip();
    c.pipe_of[2] = c.pipe_of[0];
    c.most_gbps[c.pipe_of[0]] = 300;
    conclude(&c, 280 * GIB, &t);
    assert_int_equal(t.pairs.slow_count, 1);
    assert_int_equal(t.pairs.slow[0].cause, SLOW_BY_BANDWIDTH);
    assert_int_equal(t.pairs.share_tlb, FINDING_NO);
    assert_float_equal(t.pairs.worst_ratio.v, 300.0 / 480, 0.02);
}

/* Groups of four SMs have the same throughput as groups of six SMs. */
static void speed_need_not_follow_sms(void **state)
{
    (void)state;
    static struct topology t;
    struct chip c = plain_chip();
    c.per_sm[3] = c.per_sm[4] = 60;
    conclude(&c, 280 * GIB, &t);
    assert_int_equal(t.speed_follows_sms, FINDING_NO);
    assert_int_equal(t.speed_classes.v, 2);
    for (uint32_t g = 0; g < GROUPS; g++)
        assert_int_equal(t.groups[g].speed_class.v, g == 3 || g == 4);
}

static void equal_groups_do_not_tell_of_sizes(void **state)
{
    (void)state;
    static struct topology t;
    struct chip c = plain_chip();
    c.sizes[3] = c.sizes[4] = 6;
    conclude(&c, 280 * GIB, &t);
    assert_int_equal(t.speed_follows_sms, FINDING_UNKNOWN);
    assert_int_equal(t.pairs.share_tlb, FINDING_NO);
}

static void beyond_a_short_range_nothing_is_observable(void **state)
{
    (void)state;
    static struct topology t;
    struct chip c = plain_chip();
    conclude(&c, 70 * GIB, &t);
    assert_true(IS_KNOWN(t.groups[0].alone_gbps));
    assert_int_equal(t.groups[0].beyond_gbps.known, MAYBE_NOT_OBSERVABLE);
    assert_int_equal(t.groups[0].beyond_gbps.reason, REASON_BEYOND_MEMORY);
    assert_int_equal(t.pairs.measured, 0);
    assert_int_equal(t.pairs.share_tlb, FINDING_UNKNOWN);
}

static void nothing_is_asked_without_groups(void **state)
{
    (void)state;
    struct observation_set set = {.limits = {.range_bytes = 280 * GIB, .backing_bytes = GIB}};
    struct chip c = plain_chip();
    static struct structure s;
    static struct group_asks asks;
    know_groups(&c, &s);
    s.shared_by[0] = SHARED_UNKNOWN;
    group_reads_missing(&set, &s, &asks);
    assert_int_equal(asks.count, 0);
    know_groups(&c, &s);
    set.limits.backing_bytes = 64 * MIB;
    set.gpu.l2_cache_bytes = 50 * MIB;
    group_reads_missing(&set, &s, &asks);
    assert_int_equal(asks.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_that_share_nothing),
        cmocka_unit_test(pairs_are_read_once),
        cmocka_unit_test(a_slow_pair_is_read_again),
        cmocka_unit_test(a_group_is_read_again_if_it_disagrees),
        cmocka_unit_test(a_short_read_is_no_slow_one),
        cmocka_unit_test(a_shared_tlb_shows),
        cmocka_unit_test(shared_bandwidth_is_no_tlb),
        cmocka_unit_test(speed_need_not_follow_sms),
        cmocka_unit_test(equal_groups_do_not_tell_of_sizes),
        cmocka_unit_test(beyond_a_short_range_nothing_is_observable),
        cmocka_unit_test(nothing_is_asked_without_groups),
    };
    return cmocka_run_group_tests_name("group reads", tests, NULL, NULL) ? EXIT_FAILURE
                                                                         : EXIT_SUCCESS;
}
