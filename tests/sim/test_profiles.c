/* test_profiles.c: the named GPUs, measured at every depth, compared with their models. */
#include "gpu/sim/sim_profiles.h"
#include "fingerprint/fingerprint_check.h"
#include "tests/share.h"
#include "tests/sim/sim_measure.h"
#include "tests/sim/truth.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROFILES = 16, NAME_BYTES = 48, SEEDS = 3, SOME_SEEDS = 2 };

/* A measurement and its expected result. */
struct take {
    struct sim_desc desc;
    struct truth truth;
    struct truth_score score;
    struct sim_measure m;
};

/* A campaign that keeps its results in memory requests the same probes as a campaign that does
 * not. */
static void as_without_memo(const struct observation_set *set, const struct campaign_step *step,
                            void *data)
{
    const enum depth *const depth = data;
    struct campaign_step *const fresh = calloc(1, sizeof *fresh);

    assert_non_null(fresh);
    assert_int_equal(campaign_next(set, *depth, NULL, fresh, NULL), STATUS_OK);
    assert_int_equal(fresh->spec_count, step->spec_count);
    assert_memory_equal(fresh->specs, step->specs, step->spec_count * sizeof step->specs[0]);
    assert_string_equal(fresh->message, step->message);
    free(fresh);
}

/* Measures the GPU that `text` describes; no value may be wrong. The caller frees the result with
 * put_away(). */
static struct take *measure(const char *text, enum depth depth)
{
    struct take *t = calloc(1, sizeof *t);
    struct err err = {0};
    assert_non_null(t);
    assert_int_equal(sim_profiles_parse(text, &t->desc, &err), STATUS_OK);
    if (sim_measure(text, depth, as_without_memo, &depth, &t->m) != STATUS_OK ||
        fingerprint_check(&t->m.fp, &t->m.err) != STATUS_OK)
        fail_msg("%s: %s", text, t->m.err.text);
    truth_of(&t->desc, &t->truth);
    truth_compare(&t->truth, &t->m.fp, &t->score);
    if (t->score.wrong > 0)
        fail_msg("%s at depth %s:\n%s", text, depth_name(depth), t->score.text);
    return t;
}

static void put_away(struct take *take)
{
    sim_measure_free(&take->m);
    free(take);
}

/* ---- every profile, every depth ---- */

struct profile_case {
    const char *profile;
    enum depth depth;
    char name[NAME_BYTES];
};

/* Reads within the reach are as fast as the plateau of the model. Windows by group keep that rate
 * over the whole memory; windows by SM do not. */
static void check_throughput(const struct take *t)
{
    const struct fingerprint *fp = &t->m.fp;
    const struct curve_point *last = &fp->throughput.curve[fp->throughput.curve_count - 1];
    assert_true(fp->throughput.curve_count > 3);
    assert_float_equal(fp->throughput.plateau_gbps.v, t->desc.plateau_gbps,
                       t->desc.plateau_gbps * 0.02);
    for (uint32_t g = 0; g < fp->topology.partition.group_count; g++)
        assert_true(IS_KNOWN(fp->topology.groups[g].random_read_gbps));
    if (!IS_KNOWN(last->by_group_gbps))
        return;
    assert_true(last->by_group_gbps.v > 1.2 * last->naive_gbps.v);
    assert_true(last->by_group_gbps.v > 1.2 * last->by_sm_gbps.v);
}

/* Checks the sides of the L2, the side of the lowest SM first, or the only side. */
static void check_sides(const struct take *t)
{
    const struct fingerprint_l2 *l2 = &t->m.fp.l2;
    if (t->desc.side_granule_bytes == 0) {
        assert_int_equal(l2->sides.known, MAYBE_NOT_OBSERVABLE);
        assert_int_equal(l2->sides.reason, REASON_NO_CONTRAST);
        return;
    }
    assert_int_equal(l2->sides.v, 2);
    assert_int_equal(l2->granule_bytes.v, t->desc.side_granule_bytes);
    for (uint32_t i = 0; i < t->desc.sm_count; i++)
        assert_int_equal(l2->side_of_sm.group_of_sm[t->desc.sm_ids[i]],
                         t->desc.side_of_sm[i] != t->desc.side_of_sm[0]);
}

/* A level of the TLB that evicts at random sometimes hides the levels behind it. For such a GPU no
 * value may be wrong, but some may be not sure. */
static bool evicts_at_random(const struct sim_desc *d)
{
    bool any = false;

    for (uint32_t k = 0; k < d->level_count; k++)
        any = any || d->levels[k].policy == SIM_RANDOM;
    return any;
}

static void found_as_modelled(void **state)
{
    const struct profile_case *c = *state;
    struct take *t = measure(c->profile, c->depth);
    if (evicts_at_random(&t->desc)) {
        put_away(t);
        return;
    }
    if (t->score.not_sure > 0)
        fail_msg("%s at depth %s:\n%s", c->profile, depth_name(c->depth), t->score.text);
    assert_int_equal(t->m.fp.depth, c->depth);
    assert_int_equal(t->m.fp.conditions.verdict, VERDICT_CLEAN);
    assert_true(IS_KNOWN(t->m.fp.topology.level));
    if (c->depth >= DEPTH_FULL) {
        check_throughput(t);
        check_sides(t);
    }
    put_away(t);
}

/* ---- noise ---- */

/* The structure of a profile does not depend on the seed of its noise. */
static void another_seed_is_the_same_structure(void **state)
{
    const char *profile = *state;
    uint64_t first = 0;
    for (int seed = 1; seed <= (int)test_part(SEEDS, SOME_SEEDS, SOME_SEEDS); seed++) {
        char text[NAME_BYTES];
        (void)snprintf(text, sizeof text, "%s seed=%d", profile, seed);
        struct take *t = measure(text, DEPTH_QUICK);
        if (evicts_at_random(&t->desc)) {
            put_away(t);
            continue;
        }
        /* The identity of the GPU follows from its description, so only the results are compared.
         */
        memset(&t->m.fp.gpu, 0, sizeof t->m.fp.gpu);
        for (uint32_t k = 0; k < t->m.fp.level_count; k++)
            t->m.fp.levels[k].saturation_bytes = UNKNOWN_U64(REASON_NONE);
        const uint64_t hash = fingerprint_structure_hash(&t->m.fp);
        first = seed == 1 ? hash : first;
        assert_int_equal(hash, first);
        put_away(t);
    }
}

/* The worst noise that the analysis must support has a standard deviation of five cycles. One load
 * in a hundred takes 500 cycles more. */
static void noise_makes_nothing_wrong(void **state)
{
    const char *profile = *state;
    for (int seed = 1; seed <= (int)test_part(SEEDS, SOME_SEEDS, SOME_SEEDS); seed++) {
        char text[128];
        (void)snprintf(text, sizeof text, "%s noise=%s outliers=0.01@500 seed=%d", profile,
                       seed % 2 ? "gauss:5" : "uniform:5", seed);
        put_away(measure(text, DEPTH_QUICK));
    }
}

/* ---- levels that cannot be observed ---- */

/* The P100's third level lies beyond its memory (Karnagel 2017, section 4.1). */
static void a_level_beyond_the_range_is_not_reported(void **state)
{
    (void)state;
    struct take *t = measure("p100", DEPTH_QUICK);
    assert_int_equal(t->desc.level_count, 3);
    assert_int_equal(t->m.fp.level_count, 2);
    put_away(t);
    t = measure("sms=8 memory=4G range=4G l1=4096@2M/gpu;miss=200", DEPTH_QUICK);
    assert_int_equal(t->m.fp.level_count, 0);
    assert_int_equal(t->m.fp.windows.reach_bytes.known, MAYBE_NOT_OBSERVABLE);
    assert_int_equal(t->m.fp.windows.reach_bytes.reason, REASON_BEYOND_MEMORY);
    put_away(t);
}

int main(void)
{
    static struct profile_case cases[MOST_PROFILES * DEPTH_COUNT];
    static struct CMUnitTest tests[MOST_PROFILES * (DEPTH_COUNT + 2) + 1];
    static char names[MOST_PROFILES * 2][NAME_BYTES];
    const int deepest = (int)test_share(DEPTH_MATRIX, DEPTH_QUICK);
    uint32_t profiles = 0;
    size_t n = 0;
    const struct sim_profile *profile = sim_profiles(&profiles);
    for (uint32_t i = 0; i < profiles && i < MOST_PROFILES; i++) {
        for (int d = 0; d <= deepest; d++) {
            if (d == DEPTH_MEMORY && !getenv("REACH_LONG"))
                continue; /* test_memory checks the kinds of memory, with random values */
            struct profile_case *c = &cases[i * DEPTH_COUNT + (uint32_t)d];
            *c = (struct profile_case){.profile = profile[i].name, .depth = (enum depth)d};
            (void)snprintf(c->name, NAME_BYTES, "%s at depth %s", c->profile, depth_name(c->depth));
            tests[n++] = (struct CMUnitTest){
                .name = c->name, .test_func = found_as_modelled, .initial_state = c};
        }
        (void)snprintf(names[2 * i], NAME_BYTES, "%s with other seeds", profile[i].name);
        (void)snprintf(names[2 * i + 1], NAME_BYTES, "%s under noise", profile[i].name);
        void *state = (void *)(uintptr_t)profile[i].name;
        tests[n++] = (struct CMUnitTest){.name = names[2 * i],
                                         .test_func = another_seed_is_the_same_structure,
                                         .initial_state = state};
        tests[n++] = (struct CMUnitTest){.name = names[2 * i + 1],
                                         .test_func = noise_makes_nothing_wrong,
                                         .initial_state = state};
    }
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_level_beyond_the_range_is_not_reported);
    return _cmocka_run_group_tests("named GPUs", tests, n, NULL, NULL) ? EXIT_FAILURE
                                                                       : EXIT_SUCCESS;
}
