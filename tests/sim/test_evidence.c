/* test_evidence.c: every known number of a measurement of a simulated GPU has evidence of its
 * method, and an unknown number has none. */
#include "tests/share.h"
#include "fingerprint/fingerprint_check.h"
#include "tests/sim/random_gpu.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

/* Checks that a known number has evidence with one of two methods, and that an unknown number has
 * none. */
static uint32_t expect_one(const char *where, const char *name, bool known, struct evidence e,
                           enum evidence_method method, enum evidence_method other)
{
    const bool fits = e.method == method || e.method == other;

    if (known && (!fits || e.repeats == 0 || !(e.margin >= 0) || !(e.margin <= 1)))
        fail_msg("%s %s: method %s, %u repeats, margin %f", where, name,
                 evidence_method_name(e.method), e.repeats, e.margin);
    if (!known && (e.method != EVIDENCE_NONE || e.repeats > 0 || e.margin > 0))
        fail_msg("%s %s is not known and has evidence", where, name);
    return known;
}

static uint32_t expect_level(const struct tlb_level *l)
{
    const struct level_evidence *const e = &l->evidence;
    char at[16];
    uint32_t n = 0;

    snprintf(at, sizeof at, "level %u", l->level);
    n += expect_one(at, "entry_bytes", IS_KNOWN(l->entry_bytes), e->entry_bytes,
                    EVIDENCE_ENTRY_SEARCH, EVIDENCE_ENTRY_SEARCH);
    n += expect_one(at, "reach_bytes", IS_KNOWN(l->reach_bytes), e->reach_bytes, EVIDENCE_REFINE,
                    EVIDENCE_REFINE);
    assert_true(IS_KNOWN(l->reach_bytes) == IS_KNOWN(l->entries));
    assert_true(IS_KNOWN(l->reach_bytes) == IS_KNOWN(l->onset_bytes));
    n += expect_one(at, "saturation_bytes", IS_KNOWN(l->saturation_bytes), e->saturation_bytes,
                    EVIDENCE_REFINE, EVIDENCE_REFINE);
    n += expect_one(at, "miss_penalty_cycles", IS_KNOWN(l->miss_penalty_cycles),
                    e->miss_penalty_cycles, EVIDENCE_REFINE, EVIDENCE_ENTRY_TEST);
    n += expect_one(at, "sets", IS_KNOWN(l->sets), e->sets, EVIDENCE_TRACES, EVIDENCE_TRACES);
    n += expect_one(at, "replacement", l->replacement != REPLACEMENT_UNKNOWN, e->replacement,
                    EVIDENCE_TRACES, EVIDENCE_TRACES);
    n += expect_one(at, "fill", l->fill != FILL_UNKNOWN, e->fill, EVIDENCE_STRIDES,
                    EVIDENCE_STRIDES);
    n += expect_one(at, "entry_pages", IS_KNOWN(l->entry_pages) || IS_KNOWN(l->tag_bytes),
                    e->entry_pages, EVIDENCE_STRIDES, EVIDENCE_STRIDES);
    return n;
}

static uint32_t expect_sharing(const char *where, bool known, struct evidence e, enum depth depth)
{
    if (known && depth == DEPTH_MATRIX && e.method == EVIDENCE_ROUNDS_AND_PAIRS)
        return 1;
    return expect_one(where, "sharing", known, e, EVIDENCE_ROUNDS, EVIDENCE_PAIRS);
}

static uint32_t expect_topology(const struct topology *t, enum depth depth)
{
    const enum evidence_method reads = EVIDENCE_RANDOM_READS;
    const enum evidence_method plan = EVIDENCE_FLOOR_PLAN;
    uint32_t n = 0;

    n += expect_sharing("topology", t->partition.group_count > 0, t->evidence.groups, depth);
    n += expect_one("topology", "disabled", IS_KNOWN(t->full_sm_count), t->evidence.disabled, plan,
                    plan);
    n += expect_one("topology", "penalty_classes", IS_KNOWN(t->penalty_classes),
                    t->evidence.penalty_classes, EVIDENCE_CLASSES, EVIDENCE_CLASSES);
    n += expect_one("topology", "speed_classes", IS_KNOWN(t->speed_classes),
                    t->evidence.speed_classes, EVIDENCE_CLASSES, EVIDENCE_CLASSES);
    n += expect_one("topology", "speed_follows_sms", t->speed_follows_sms != FINDING_UNKNOWN,
                    t->evidence.speed_follows_sms, reads, reads);
    n += expect_one("topology", "pairs", IS_KNOWN(t->pairs.worst_ratio), t->evidence.pairs,
                    EVIDENCE_GROUP_PAIRS, EVIDENCE_GROUP_PAIRS);
    for (uint32_t g = 0; g < t->partition.group_count; g++) {
        const struct sm_group *const group = &t->groups[g];
        n += expect_sharing("group", IS_KNOWN(group->miss_penalty_cycles),
                            group->evidence.miss_penalty_cycles, depth);
        n += expect_one("group", "random_read_gbps", IS_KNOWN(group->random_read_gbps),
                        group->evidence.random_read_gbps, reads, reads);
        n += expect_one("group", "alone_gbps", IS_KNOWN(group->alone_gbps),
                        group->evidence.alone_gbps, reads, reads);
        n += expect_one("group", "beyond_gbps", IS_KNOWN(group->beyond_gbps),
                        group->evidence.beyond_gbps, reads, reads);
    }
    return n;
}

static uint32_t expect_throughput(const struct throughput *t)
{
    const enum evidence_method reads = EVIDENCE_RANDOM_READS;
    uint32_t n = 0;

    n += expect_one("throughput", "plateau", IS_KNOWN(t->plateau_gbps), t->evidence.plateau_gbps,
                    reads, reads);
    n += expect_one("throughput", "whole memory", IS_KNOWN(t->whole_memory_gbps),
                    t->evidence.whole_memory_gbps, reads, reads);
    for (uint32_t i = 0; i < t->curve_count; i++) {
        const struct curve_point *const p = &t->curve[i];
        n += expect_one("curve", "naive", IS_KNOWN(p->naive_gbps), p->evidence.naive_gbps, reads,
                        reads);
        n += expect_one("curve", "by group", IS_KNOWN(p->by_group_gbps), p->evidence.by_group_gbps,
                        reads, reads);
        n += expect_one("curve", "by SM", IS_KNOWN(p->by_sm_gbps), p->evidence.by_sm_gbps, reads,
                        reads);
    }
    return n;
}

/* Returns how many numbers are known. */
static uint32_t expect_fingerprint(const char *text, enum depth depth, struct sim_measure *m)
{
    uint32_t n = 0;

    if (fingerprint_check(&m->fp, &m->err) != STATUS_OK)
        fail_msg("%s: %s", text, m->err.text);
    for (uint32_t k = 0; k < m->fp.level_count; k++) {
        const struct tlb_level *const l = &m->fp.levels[k];
        n += expect_level(l);
        n += expect_sharing("level", l->shared_by != SHARED_UNKNOWN, l->evidence.shared_by, depth);
    }
    n += expect_topology(&m->fp.topology, depth);
    n += expect_throughput(&m->fp.throughput);
    print_message("%.60s at depth %s: %u numbers\n", text, depth_name(depth), n);
    return n;
}

static uint32_t expect_all(const char *text, enum depth depth, struct sim_measure *m)
{
    if (sim_measure(text, depth, NULL, NULL, m) != STATUS_OK)
        fail_msg("%s: %s", text, m->err.text);
    return expect_fingerprint(text, depth, m);
}

static void full_has_evidence_for_all(void **state)
{
    static const char *const profiles[] = {"k80", "h200"};

    (void)state;
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        struct sim_measure m;
        assert_true(expect_all(profiles[i], DEPTH_FULL, &m) > 40);
        for (uint32_t k = 0; k < m.fp.level_count; k++) {
            assert_true(IS_KNOWN(m.fp.levels[k].reach_bytes));
            assert_true(IS_KNOWN(m.fp.levels[k].sets));
            /* without noise no margin is small */
            assert_true(m.fp.levels[k].evidence.reach_bytes.margin > 0.1);
        }
        sim_measure_free(&m);
    }
}

/* At depth quick, sets are not measured. */
static void quick_has_none_for_what_it_does_not_ask(void **state)
{
    struct sim_measure m;

    (void)state;
    assert_true(expect_all("k80", DEPTH_QUICK, &m) > 20);
    for (uint32_t k = 0; k < m.fp.level_count; k++)
        assert_int_equal(m.fp.levels[k].evidence.sets.method, EVIDENCE_NONE);
    sim_measure_free(&m);
}

/* The pair matrix is a second method, and the evidence names it. */
static void matrix_rests_on_both_methods(void **state)
{
    struct sim_measure m;
    struct evidence e;

    (void)state;
    expect_all("k80", DEPTH_MATRIX, &m);
    e = m.fp.topology.evidence.groups;
    assert_int_equal(e.method, EVIDENCE_ROUNDS_AND_PAIRS);
    sim_measure_free(&m);
}

/* If victims are arbitrary, entries cannot be counted. Noise changes only margins. */
static void what_is_not_known_has_none(void **state)
{
    static const char victims[] = "sms=8 memory=4G l1=16@2M/sm;miss=20 "
                                  "l2=128@2M/4;miss=80;policy=random";
    static const char noisy[] = "sms=8 memory=4G noise=gauss:5 l1=16@2M/sm;miss=20 "
                                "l2=128@2M/4;miss=80;sets=16x8";
    struct sim_measure m;

    (void)state;
    expect_all(victims, DEPTH_FULL, &m);
    assert_int_equal(m.fp.level_count, 2);
    assert_false(IS_KNOWN(m.fp.levels[1].entries));
    assert_int_equal(m.fp.levels[1].replacement, REPLACEMENT_NOT_LRU);
    assert_int_equal(m.fp.levels[1].evidence.reach_bytes.method, EVIDENCE_NONE);
    sim_measure_free(&m);
    expect_all(noisy, DEPTH_FULL, &m);
    assert_int_equal(m.fp.level_count, 2);
    sim_measure_free(&m);
}

/* Other tests check for random GPUs that values are right or not sure. This test checks the
 * evidence of these values. */
static void random_gpus_say_what_they_rest_on(void **state)
{
    enum { FIRST_SEED = 900, GPUS = 12, SANITIZED_GPUS = 4, TEXT_BYTES = 8192 };

    (void)state;
    for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + test_share(GPUS, SANITIZED_GPUS); seed++) {
        const struct random_gpu_class class = {.random_victims = seed % 2 == 0, .most_levels = 3};
        char text[TEXT_BYTES];
        struct sim_measure m;
        print_message("seed %llu\n", (unsigned long long)seed);
        random_gpu(seed, &class, text, sizeof text);
        if (sim_measure(text, DEPTH_FULL, NULL, NULL, &m) == STATUS_OK)
            expect_fingerprint(text, DEPTH_FULL, &m);
        else
            print_message("not measured: %s\n", m.err.text);
        sim_measure_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_has_evidence_for_all),
        cmocka_unit_test(quick_has_none_for_what_it_does_not_ask),
        cmocka_unit_test(matrix_rests_on_both_methods),
        cmocka_unit_test(what_is_not_known_has_none),
        cmocka_unit_test(random_gpus_say_what_they_rest_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
