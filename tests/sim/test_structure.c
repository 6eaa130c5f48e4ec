/* test_structure.c: sets, ways, replacement and fill of simulated GPUs, compared with their models.
 * Each value must be right or not sure, never wrong. REACH_SEED=N runs only the random GPU N;
 * REACH_COUNT=N runs the first N random GPUs. */
#include "base/units.h"
#include "gpu/sim/sim_profiles.h"
#include "tests/share.h"
#include "tests/sim/random_gpu.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANDOM_GPUS = 24, SANITIZED_GPUS = 6, TEXT_BYTES = 8192 };

struct take {
    struct sim_measure m;
    struct sim_desc desc;
};

static struct take *measure(const char *text)
{
    struct take *t = calloc(1, sizeof *t);
    struct err err = {0};
    assert_non_null(t);
    if (sim_profiles_parse(text, &t->desc, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    if (sim_measure(text, DEPTH_FULL, NULL, NULL, &t->m) != STATUS_OK)
        print_message("# %s\n", t->m.err.text);
    return t;
}

static void put_away(struct take *t)
{
    if (t)
        sim_measure_free(&t->m);
    free(t);
}

/* Returns the level of the model with the same entry and the same cost, or NULL if there is none.
 */
static const struct sim_level *model_of(const struct sim_desc *d, const struct tlb_level *l)
{
    const struct sim_level *found = NULL;
    for (uint32_t k = 0; k < d->level_count; k++) {
        const struct sim_level *s = &d->levels[k];
        if (!IS_KNOWN(l->entry_bytes) || l->entry_bytes.v * s->sectors != s->entry_bytes ||
            !IS_KNOWN(l->entries) ||
            fabs((double)l->entries.v / s->sectors - s->entries) > s->entries / 4.0 ||
            fabs(l->miss_penalty_cycles.v - s->miss_cycles) > fmax(3, s->miss_cycles / 8.0))
            continue;
        if (found)
            return NULL;
        found = s;
    }
    return found;
}

static uint32_t sets_with(const struct sim_level *s, uint32_t ways)
{
    uint32_t sets = 0;
    for (uint32_t i = 0; i < s->run_count; i++)
        sets += s->runs[i].ways == ways ? s->runs[i].count : 0;
    return sets;
}

/* Returns whether the sets found are exactly the sets of the model. */
static bool same_sets(const struct sim_level *s, const struct tlb_level *l)
{
    uint32_t sets = 0;
    for (uint32_t i = 0; i < s->run_count; i++)
        sets += s->runs[i].count;
    if (l->sets.v != sets)
        return false;
    for (uint32_t i = 0; i < l->run_count; i++)
        if (sets_with(s, l->runs[i].ways) != l->runs[i].sets)
            return false;
    return true;
}

struct tally {
    uint32_t levels, sets, replacements, fills, matched, wrong;
};

static void check_level(const char *text, const struct sim_level *s, const struct tlb_level *l,
                        struct tally *tally)
{
    tally->matched += 1;
    if (IS_KNOWN(l->sets)) {
        tally->sets += 1;
        if (!same_sets(s, l))
            tally->wrong++, print_error("WRONG level %u: %u sets, %u of %u ways\n%s", l->level,
                                        l->sets.v, l->runs[0].sets, l->runs[0].ways, text);
    }
    if (IS_KNOWN(l->victim_entries) && l->victim_entries.v != 0)
        tally->wrong++, print_error("WRONG level %u: %u victim entries for 0\n%s", l->level,
                                    l->victim_entries.v, text);
    if (l->replacement != REPLACEMENT_UNKNOWN) {
        tally->replacements += 1;
        if ((l->replacement == REPLACEMENT_LRU) != (s->policy == SIM_LRU))
            tally->wrong++, print_error("WRONG level %u: replacement %s\n%s", l->level,
                                        replacement_name(l->replacement), text);
    }
    if (l->fill != FILL_UNKNOWN) {
        tally->fills += 1;
        if ((l->fill == FILL_PARTS) != (s->sectors > 1))
            tally->wrong++,
                print_error("WRONG level %u: filled %s\n%s", l->level, fill_name(l->fill), text);
    }
    if (IS_KNOWN(l->tag_bytes) && l->tag_bytes.v != s->entry_bytes)
        tally->wrong++, print_error("WRONG level %u: an entry of %llu\n%s", l->level,
                                    (unsigned long long)l->tag_bytes.v, text);
}

static void check_all(const char *text, struct tally *tally)
{
    struct take *t = measure(text);
    for (uint32_t k = 0; k < t->m.fp.level_count; k++) {
        const struct sim_level *s = model_of(&t->desc, &t->m.fp.levels[k]);
        tally->levels += 1;
        if (s)
            check_level(text, s, &t->m.fp.levels[k], tally);
    }
    put_away(t);
}

static void random_gpus_are_right_or_not_sure(void **state)
{
    (void)state;
    const char *seed_text = getenv("REACH_SEED");
    const char *count_text = getenv("REACH_COUNT");
    const uint64_t first = seed_text ? strtoull(seed_text, NULL, 10) : 1;
    const uint64_t count = seed_text    ? 1
                           : count_text ? strtoull(count_text, NULL, 10)
                                        : test_share(RANDOM_GPUS, SANITIZED_GPUS);
    static char text[TEXT_BYTES];
    struct tally tally = {0};

    for (uint64_t seed = first; seed < first + count; seed++) {
        const struct random_gpu_class class = {.random_victims = seed % 2 == 0, .most_levels = 3};
        random_gpu(seed, &class, text, sizeof text);
        print_message("# REACH_SEED=%llu\n", (unsigned long long)seed);
        check_all(text, &tally);
    }
    if (tally.wrong > 0)
        fail_msg("%u numbers are wrong", tally.wrong);
    print_message("# %u levels, %u as modelled; known: sets of %u, replacement of %u, fill of %u\n",
                  tally.levels, tally.matched, tally.sets, tally.replacements, tally.fills);
}

/* ---- groups ---- */

static void groups_read_as_the_model_says(void **state)
{
    const char *profile = *state;
    struct take *t = measure(profile);
    const struct topology *topology = &t->m.fp.topology;
    const uint32_t groups = topology->partition.group_count;

    assert_true(groups > 1);
    assert_int_equal(topology->pairs.measured, groups * (groups - 1) / 2);
    assert_int_equal(topology->pairs.share_tlb, FINDING_NO);
    assert_int_equal(topology->penalty_classes.v, 1);
    for (uint32_t g = 0; g < groups; g++) {
        const struct sm_group *group = &topology->groups[g];
        const double alone = t->desc.sm_gbps * group->sm_count;
        if (t->desc.sm_gbps > 0)
            assert_float_equal(group->alone_gbps.v, alone, alone * 0.02);
        assert_true(group->alone_gbps.v > group->random_read_gbps.v * 0.98);
        assert_true(group->beyond_gbps.v < group->alone_gbps.v * 0.98);
    }
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        assert_int_equal(IS_KNOWN(topology->sm_miss_penalty_cycles[sm]),
                         topology->partition.group_of_sm[sm] != FINGERPRINT_NO_GROUP);
    put_away(t);
}

/* Each of two groups alone uses all of the memory bandwidth. If both read at the same time, they
 * are slow, and no TLB is the cause. */
static void bandwidth_is_told_from_translation(void **state)
{
    (void)state;
    struct take *t = measure("sms=16 memory=8G l2cache=2M latency=300 noise=gauss:1 "
                             "l1=256@2M/8;miss=80;miss_ns=5;sets=8x32 plateau=500 sm_gbps=60");
    const struct group_pairs *pairs = &t->m.fp.topology.pairs;
    assert_int_equal(pairs->measured, 1);
    assert_int_equal(pairs->slow_count, 1);
    assert_int_equal(pairs->slow[0].cause, SLOW_BY_BANDWIDTH);
    assert_int_equal(pairs->share_tlb, FINDING_NO);
    put_away(t);
}

/* These set sizes are fixed, not drawn. */
static void named_structures_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t level, sets, ways, runs, victims;
        enum fill fill;
    } cases[] = {
        {"k80", 1, 1, 16, 1, 0, FILL_UNKNOWN}, {"k80", 2, 7, 17, 2, 0, FILL_WHOLE},
        {"k80", 3, 128, 16, 2, 0, FILL_WHOLE}, {"h200", 1, 1, 16, 1, 0, FILL_WHOLE},
        {"h200", 2, 256, 8, 1, 0, FILL_WHOLE}, {"a100-80g", 2, 256, 8, 1, 0, FILL_WHOLE},
    };
    struct take *t = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (i == 0 || strcmp(cases[i].text, cases[i - 1].text) != 0) {
            put_away(t);
            t = measure(cases[i].text);
        }
        const struct tlb_level *l = &t->m.fp.levels[cases[i].level - 1];
        assert_int_equal(l->sets.v, cases[i].sets);
        assert_int_equal(l->run_count, cases[i].runs);
        assert_int_equal(l->runs[0].ways, cases[i].ways);
        assert_int_equal(l->replacement, REPLACEMENT_LRU);
        assert_int_equal(l->victim_entries.v, cases[i].victims);
        assert_int_equal(l->fill, cases[i].fill);
        assert_int_equal(t->m.fp.beyond.reach_bytes.known, MAYBE_NOT_OBSERVABLE);
        assert_int_equal(t->m.fp.beyond.reach_bytes.reason, REASON_BEYOND_MEMORY);
    }
    put_away(t);
}

/* A buffer of the 16 translations that missed last keeps the nine pages of one overflowing set. The
 * buffer looks like one more entry behind the sets. The cases are few sets, which are walked in
 * full, and many sets, which are sampled. */
static void what_missed_last_is_told_from_wide_sets(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t sets, ways, victims;
    } cases[] = {
        {"sms=8 memory=16G l2cache=2M noise=gauss:1 l1=256@2M/sm;miss=60;sets=8x32;recent=16", 32,
         8, 1},
        {"sms=8 memory=64G l2cache=2M noise=gauss:1 l1=2048@2M/sm;miss=60;sets=8x256;recent=16",
         256, 8, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct take *t = measure(cases[i].text);
        const struct tlb_level *l = &t->m.fp.levels[0];
        assert_int_equal(l->entries.v, cases[i].sets * cases[i].ways + cases[i].victims);
        assert_int_equal(l->sets.v, cases[i].sets);
        assert_int_equal(l->ways.v, cases[i].ways);
        assert_int_equal(l->victim_entries.v, cases[i].victims);
        put_away(t);
    }
}

/* The level has entries of 32 MiB, whose parts of 4 MiB are filled one by one. */
static void parts_of_an_entry_are_told_from_entries(void **state)
{
    (void)state;
    struct take *t = measure("sms=8 memory=16G l2cache=2M latency=300 noise=gauss:1 "
                             "l1=64@32M/sm;miss=60;sets=8x8;sectors=8");
    const struct tlb_level *l = &t->m.fp.levels[0];
    assert_int_equal(t->m.fp.level_count, 1);
    assert_int_equal(l->fill, FILL_PARTS);
    assert_int_equal(l->entry_bytes.v, 4 * MIB);
    assert_int_equal(l->tag_bytes.v, 32 * MIB);
    assert_int_equal(l->entry_pages.v, 16);
    put_away(t);
}

int main(void)
{
    static char k80[] = "k80";
    static char h200[] = "h200";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_gpus_are_right_or_not_sure),
        cmocka_unit_test(named_structures_are_found),
        cmocka_unit_test(what_missed_last_is_told_from_wide_sets),
        cmocka_unit_test(parts_of_an_entry_are_told_from_entries),
        {.name = "groups of a K80",
         .test_func = groups_read_as_the_model_says,
         .initial_state = k80},
        {.name = "groups of an H200",
         .test_func = groups_read_as_the_model_says,
         .initial_state = h200},
        cmocka_unit_test(bandwidth_is_told_from_translation),
    };
    return cmocka_run_group_tests_name("structure of a level", tests, NULL, NULL) ? EXIT_FAILURE
                                                                                  : EXIT_SUCCESS;
}
