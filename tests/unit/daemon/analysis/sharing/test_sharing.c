/* test_sharing.c: finds the SMs that share a level, from rounds and pairs over a GPU on paper. */
#include "analysis/sharing/sharing.h"
#include "base/units.h"
#include "tests/unit/support/paper_gpu.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

/* Returns the result of the level searches for the level under test, without other levels. */
static struct level_estimate level_of(const struct paper_gpu *gpu, uint32_t k)
{
    const struct paper_level *l = &gpu->levels[k];
    return (struct level_estimate){.entry_known = true,
                                   .entry_bytes = l->entry_bytes,
                                   .penalty_cycles = l->penalty_cycles,
                                   .lo_pages = l->fits,
                                   .hi_pages = l->fits + 1,
                                   .sat_hi_pages = l->saturated};
}

static struct probe_spec round_of(const struct paper_gpu *gpu, uint16_t pivot)
{
    return (struct probe_spec){.kind = PROBE_ROUND,
                               .stride_bytes = gpu->levels[1].entry_bytes,
                               .slice_pages = 4,
                               .flush_pages = 24 * 16,
                               .thrash_pages = 1000,
                               .warm_laps = 1,
                               .repeats = 3,
                               .sm_count = 1,
                               .sms = {pivot}};
}

static struct probe_spec pairs_of(const struct paper_gpu *gpu)
{
    struct probe_spec spec = round_of(gpu, 0);
    spec.kind = PROBE_PAIRS;
    spec.slice_pages = 8;
    spec.repeats = 0;
    spec.sm_count = gpu->sm_count;
    memcpy(spec.sms, gpu->sm_ids, sizeof spec.sms);
    return spec;
}

static void ask_rounds(struct paper_gpu *gpu, struct observation_set *set)
{
    for (uint32_t i = 0; i < gpu->sm_count; i++) {
        const struct probe_spec spec = round_of(gpu, gpu->sm_ids[i]);
        paper_gpu_ask(gpu, &spec, set);
    }
}

static struct sharing_estimate estimate(const struct paper_gpu *gpu,
                                        const struct observation_set *set,
                                        enum sharing_method methods)
{
    const struct level_estimate level = level_of(gpu, 1);
    struct sharing_estimate out;
    sharing_estimate(set, &level, 1, 0, methods, &out);
    return out;
}

static void assert_partition(const struct paper_gpu *gpu, const struct sharing_estimate *found)
{
    struct sm_partition truth;
    paper_gpu_partition(gpu, 1, &truth);
    assert_false(found->conflict);
    assert_int_equal(found->unsettled_count, 0);
    assert_int_equal(found->grouped_sms, gpu->sm_count);
    assert_memory_equal(&found->found, &truth, sizeof truth);
}

static void rounds_and_pairs_find_the_same_groups(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct sharing_estimate s;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    s = estimate(&gpu, &set, SHARING_BOTH);
    assert_int_equal(s.rounds, 0);
    assert_false(s.whole_gpu);
    ask_rounds(&gpu, &set);
    s = estimate(&gpu, &set, SHARING_ROUNDS);
    assert_partition(&gpu, &s);
    assert_float_equal(s.agreement, 1, 1e-9);
    for (uint32_t i = 0; i < gpu.sm_count; i++)
        assert_float_equal(s.loss_cycles[i], gpu.levels[1].penalty_cycles, 1);

    const struct probe_spec pairs = pairs_of(&gpu);
    paper_gpu_ask(&gpu, &pairs, &set);
    s = estimate(&gpu, &set, SHARING_PAIRS);
    assert_partition(&gpu, &s);
    s = estimate(&gpu, &set, SHARING_BOTH);
    assert_partition(&gpu, &s);
    observation_set_free(&set);
}

/* One level is shared by all SMs, and one level is private to each SM. */
static void one_for_all_and_each_its_own(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct sharing_estimate s;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_share(&gpu, 1, gpu.sm_count);
    paper_gpu_begin(&gpu, &set);
    ask_rounds(&gpu, &set);
    s = estimate(&gpu, &set, SHARING_BOTH);
    assert_true(s.whole_gpu);
    assert_int_equal(s.lone_pivots, 0);
    observation_set_free(&set);

    paper_gpu_share(&gpu, 1, 1);
    paper_gpu_begin(&gpu, &set);
    ask_rounds(&gpu, &set);
    s = estimate(&gpu, &set, SHARING_BOTH);
    assert_false(s.whole_gpu);
    assert_int_equal(s.lone_pivots, gpu.sm_count);
    assert_int_equal(s.rounds, gpu.sm_count);
    observation_set_free(&set);
}

/* With random groups, ids with gaps, noise and outliers, the partition is right. A pivot that needs
 * more votes gets them. */
static void any_groups_come_back(void **state)
{
    struct rng rng = {.state = paper_seed("groups", 31)};

    (void)state;
    for (int round = 0; round < 100; round++) {
        struct paper_gpu gpu;
        struct observation_set set;
        paper_gpu_init(&gpu);
        gpu.rng.state = rng_next(&rng);
        gpu.noise_cycles = 5 * rng_unit(&rng);
        gpu.outlier_share = 0.01;
        gpu.levels[1].penalty_cycles = 15 + (double)rng_below(&rng, 300);
        gpu.sm_count = 2 + (uint32_t)rng_below(&rng, 40);
        const uint64_t groups = 1 + rng_below(&rng, gpu.sm_count);
        for (uint32_t i = 0; i < gpu.sm_count; i++) {
            gpu.sm_ids[i] = (uint16_t)(i == 0 ? 0 : gpu.sm_ids[i - 1] + 1 + rng_below(&rng, 3));
            gpu.levels[1].group_of_sm[i] = (uint16_t)rng_below(&rng, groups);
        }
        gpu.limits.sm_count = gpu.sm_count;
        paper_gpu_begin(&gpu, &set);
        ask_rounds(&gpu, &set);
        struct sharing_estimate s = estimate(&gpu, &set, SHARING_ROUNDS);
        for (int more = 0; more < 16 && s.unsettled_count > 0; more++) {
            for (uint32_t i = 0; i < s.unsettled_count; i++) {
                const struct probe_spec spec = round_of(&gpu, s.unsettled[i]);
                paper_gpu_ask(&gpu, &spec, &set);
            }
            s = estimate(&gpu, &set, SHARING_ROUNDS);
        }
        assert_partition(&gpu, &s);
        observation_set_free(&set);
    }
}

/* The same chip with its SMs numbered in another order has the same groups in that order. */
static void permuted_ids_give_the_permuted_partition(void **state)
{
    struct rng rng = {.state = paper_seed("permuted ids", 32)};

    (void)state;
    for (int round = 0; round < 50; round++) {
        struct paper_gpu gpu;
        struct paper_gpu other;
        uint32_t place[REACH_MAX_SMS];
        struct observation_set set;
        struct observation_set other_set;
        paper_gpu_init(&gpu);
        other = gpu;
        for (uint32_t i = 0; i < gpu.sm_count; i++) {
            const uint32_t k = (uint32_t)rng_below(&rng, i + 1);
            place[i] = place[k];
            place[k] = i;
        }
        for (uint32_t i = 0; i < gpu.sm_count; i++)
            other.levels[1].group_of_sm[place[i]] = gpu.levels[1].group_of_sm[i];
        paper_gpu_begin(&gpu, &set);
        paper_gpu_begin(&other, &other_set);
        ask_rounds(&gpu, &set);
        ask_rounds(&other, &other_set);
        const struct sharing_estimate a = estimate(&gpu, &set, SHARING_ROUNDS);
        const struct sharing_estimate b = estimate(&other, &other_set, SHARING_ROUNDS);
        assert_int_equal(a.found.group_count, b.found.group_count);
        for (uint32_t i = 0; i < gpu.sm_count; i++)
            for (uint32_t k = 0; k < gpu.sm_count; k++)
                assert_int_equal(a.found.group_of_sm[i] == a.found.group_of_sm[k],
                                 b.found.group_of_sm[place[i]] == b.found.group_of_sm[place[k]]);
        observation_set_free(&set);
        observation_set_free(&other_set);
    }
}

/* The order of the pivots has no effect. */
static void the_order_of_rounds_does_not_matter(void **state)
{
    struct rng rng = {.state = paper_seed("order of rounds", 33)};
    struct paper_gpu gpu;
    struct observation_set set;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    ask_rounds(&gpu, &set);
    for (int round = 0; round < 50; round++) {
        for (size_t i = set.count - 1; i > 0; i--) {
            const size_t k = rng_below(&rng, i + 1);
            const struct observation swap = set.items[i];
            set.items[i] = set.items[k];
            set.items[k] = swap;
        }
        const struct sharing_estimate s = estimate(&gpu, &set, SHARING_ROUNDS);
        assert_partition(&gpu, &s);
    }
    observation_set_free(&set);
}

/* Overwrites the loss of SM `sm` in a round, in all repeats. */
static void set_loss(struct observation *o, uint32_t sm, double cycles)
{
    for (uint32_t r = 0; r < o->spec.repeats; r++)
        for (uint32_t i = 0; i < o->spec.slice_pages; i++) {
            const uint32_t control = observation_round(o, r, 0, sm)[i];
            const size_t at = (size_t)(observation_round(o, r, 1, sm) + i - o->result.values);
            o->result.values[at] = (uint32_t)(control + cycles);
        }
}

/* One pivot puts SM 2 into the first group, and another pivot does not. */
static void a_contradiction_is_a_conflict(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    ask_rounds(&gpu, &set);
    set_loss(&set.items[0], 2, gpu.levels[1].penalty_cycles);
    const struct sharing_estimate s = estimate(&gpu, &set, SHARING_BOTH);
    assert_true(s.conflict);
    observation_set_free(&set);
}

/* If a pivot's own thrashing evicts none of its entries, the pivot gives no information about other
 * SMs. */
static void a_pivot_that_lost_nothing_decides_nothing(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    const struct probe_spec spec = round_of(&gpu, 0);
    for (int i = 0; i < 6; i++) {
        paper_gpu_ask(&gpu, &spec, &set);
        set_loss(&set.items[i], 0, 0);
    }
    const struct sharing_estimate s = estimate(&gpu, &set, SHARING_BOTH);
    assert_int_equal(s.grouped_sms, 0);
    assert_int_equal(s.rounds, 0);
    observation_set_free(&set);
}

/* If an SM is near the threshold, its pivot requests more votes, up to fifteen. If the loss of the
 * SM still is about half of the pivot's loss, there is no conclusion. */
static void a_narrow_vote_asks_for_more(void **state)
{
    struct paper_gpu gpu;
    struct observation_set set;
    struct sharing_estimate s;
    uint32_t asked = 0;

    (void)state;
    paper_gpu_init(&gpu);
    paper_gpu_begin(&gpu, &set);
    const struct probe_spec spec = round_of(&gpu, 0);
    do {
        paper_gpu_ask(&gpu, &spec, &set);
        set_loss(&set.items[asked++], 5, gpu.levels[1].penalty_cycles * 0.55);
        s = estimate(&gpu, &set, SHARING_ROUNDS);
        if (s.rounds == 0 && !s.doubtful) {
            assert_int_equal(s.unsettled_count, 1);
            assert_int_equal(s.unsettled[0], 0);
        }
    } while (s.unsettled_count > 0 && asked < 20);
    assert_in_range(asked * spec.repeats, 15, 17);
    assert_true(s.doubtful);
    assert_int_equal(s.rounds, 0);
    assert_int_equal(s.grouped_sms, 0);
    observation_set_free(&set);
}

/* A round with another stride gives no information about this level, and neither does a round that
 * primes more pages than fit. */
static void each_round_is_about_one_level(void **state)
{
    struct paper_gpu gpu;
    struct level_estimate levels[2];

    (void)state;
    paper_gpu_init(&gpu);
    levels[0] = level_of(&gpu, 0);
    levels[1] = level_of(&gpu, 1);
    struct probe_spec spec = round_of(&gpu, 0);
    assert_int_equal(sharing_probed_level(&spec, gpu.sm_count, levels, 2), 1);
    spec.stride_bytes = 64 * MIB;
    assert_int_equal(sharing_probed_level(&spec, gpu.sm_count, levels, 2), -1);
    spec = round_of(&gpu, 0);
    spec.flush_pages = 600; /* together with the slices, the SMs access more than 600 pages */
    assert_int_equal(sharing_probed_level(&spec, gpu.sm_count, levels, 2), -1);
    spec = round_of(&gpu, 0);
    spec.thrash_pages = 600; /* evicts nothing */
    assert_int_equal(sharing_probed_level(&spec, gpu.sm_count, levels, 2), -1);
    spec = pairs_of(&gpu);
    spec.stride_bytes = 2 * MIB;
    spec.flush_pages = 0;
    assert_int_equal(sharing_probed_level(&spec, gpu.sm_count, levels, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_and_pairs_find_the_same_groups),
        cmocka_unit_test(one_for_all_and_each_its_own),
        cmocka_unit_test(any_groups_come_back),
        cmocka_unit_test(permuted_ids_give_the_permuted_partition),
        cmocka_unit_test(the_order_of_rounds_does_not_matter),
        cmocka_unit_test(a_contradiction_is_a_conflict),
        cmocka_unit_test(a_pivot_that_lost_nothing_decides_nothing),
        cmocka_unit_test(a_narrow_vote_asks_for_more),
        cmocka_unit_test(each_round_is_about_one_level),
    };
    return cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}
