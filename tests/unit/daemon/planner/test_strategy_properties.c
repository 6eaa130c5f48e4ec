/* test_strategy_properties.c: properties of the planner's answer that hold for every fingerprint
 * and every job. The tests use random fingerprints and jobs. The seed is printed, and TEST_SEED
 * repeats it. */
#include "tests/unit/support/placement_fixture.h"

#include "base/rng.h"
#include "base/units.h"
#include "planner/strategy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct fingerprint fp;
static struct strategy_answer answer;

static void plan(const struct job_request *job)
{
    struct err err = {.status = STATUS_OK};

    if (strategy_plan(&fp, job, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void assert_near(double a, double b, double part)
{
    if (fabs(a - b) > part * fabs(b))
        fail_msg("%g is not %g", a, b);
}

static const double LOOSE = 1e-9; /* tolerance for rounding, as a relative error */

static void random_rates(struct rng *rng)
{
    static const struct {
        enum access access;
        uint32_t bytes;
    } kinds[] = {{ACCESS_READ, 32}, {ACCESS_READ, 512}, {ACCESS_ATOMIC, 32}, {ACCESS_WRITE, 32}};
    struct throughput *t = &fp.throughput;

    t->rate_count = 0;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        struct access_rate *r = &t->rates[t->rate_count];
        double plateau = 50 + 4000 * rng_unit(rng);
        uint64_t bytes = fp.windows.reach_bytes.v;
        if (rng_below(rng, 3) == 0)
            continue;
        *r = (struct access_rate){.access = kinds[k].access, .transaction_bytes = kinds[k].bytes};
        r->plateau_gbps = KNOWN_F64(plateau);
        r->point_count = (uint32_t)rng_below(rng, 5);
        for (uint32_t i = 0; i < r->point_count; i++) {
            bytes += bytes / (2 + rng_below(rng, 6)) + 1;
            plateau *= 0.4 + 0.6 * rng_unit(rng);
            r->points[i].region_bytes = bytes;
            r->points[i].naive_gbps = KNOWN_F64(plateau);
        }
        t->rate_count++;
    }
}

/* Makes working sets of up to a tenth of the reach, which are faster than memory. Longer sets are
 * slower. Sets on the near side are never slower than sets anywhere, and their gain decreases with
 * the length. */
static void random_sets(struct rng *rng)
{
    uint64_t bytes = fp.windows.reach_bytes.v / 1000 + 1;
    double speed = 1e6;
    double gain = 1 + rng_unit(rng);

    fp.working_set_count = (uint32_t)rng_below(rng, 10);
    for (uint32_t i = 0; i < fp.working_set_count; i++) {
        fp.working_sets[i] = (struct working_set){
            .transaction_bytes = 128, .set_bytes = bytes, .same_gbps = KNOWN_F64(speed)};
        fp.working_sets[i].near_gbps = KNOWN_F64(speed * gain);
        bytes += 1 + rng_below(rng, fp.windows.reach_bytes.v / 100 + 1);
        speed *= 0.7 + 0.3 * rng_unit(rng);
        gain = 1 + (gain - 1) * rng_unit(rng);
    }
    if (rng_below(rng, 4) == 0)
        return;
    fp.l2.sides = KNOWN_U32(2);
    fp.l2.granule_bytes = KNOWN_U64(4096);
    fp.l2.atomic_near_cycles = KNOWN_F64(1);
    fp.l2.atomic_far_cycles = KNOWN_F64(2);
    fp.l2.side_of_sm.group_count = 2;
    for (uint32_t sm = 0; sm < fp.gpu.sm_count; sm++)
        fp.l2.side_of_sm.group_of_sm[sm] = sm == 0 ? 0 : sm == 1 ? 1 : (uint16_t)rng_below(rng, 2);
}

static void random_fingerprint(struct rng *rng)
{
    uint32_t sizes[32];
    uint32_t groups = 1 + (uint32_t)rng_below(rng, 32);
    uint64_t entry = (uint64_t)1 << (16 + rng_below(rng, 10));
    uint64_t bytes;
    double speed = 100 + 4000 * rng_unit(rng);

    placement_make_empty(&fp);
    for (uint32_t g = 0; g < groups; g++)
        sizes[g] = 1 + (uint32_t)rng_below(rng, 8);
    placement_make_groups(&fp, sizes, groups);
    placement_make_limits(&fp, entry * (3 + rng_below(rng, 3000)), entry);
    bytes = fp.windows.reach_bytes.v;
    if (rng_below(rng, 8) != 0)
        fp.throughput.plateau_gbps = KNOWN_F64(speed);
    for (uint32_t i = 0; i < 10; i++) {
        bytes += bytes / (2 + rng_below(rng, 6)) + 1;
        speed *= 0.5 + 0.5 * rng_unit(rng);
        fp.throughput.curve[i].region_bytes = bytes;
        fp.throughput.curve[i].naive_gbps = KNOWN_F64(speed);
    }
    fp.throughput.curve_count = (uint32_t)rng_below(rng, 11);
    random_rates(rng);
    random_sets(rng);
    if (rng_below(rng, 4) != 0) {
        fp.contiguity.contiguous_miss_ns = KNOWN_F64(0.1 + rng_unit(rng));
        fp.contiguity.scattered_miss_ns =
            KNOWN_F64(fp.contiguity.contiguous_miss_ns.v * (1 + 2 * rng_unit(rng)));
    }
    if (rng_below(rng, 2) == 0) {
        fp.level_count = 1;
        fp.levels[0].reach_bytes = KNOWN_U64(fp.windows.reach_bytes.v * (2 + rng_below(rng, 9)));
        fp.levels[0].entry_bytes = KNOWN_U64(entry);
    }
}

/* Divides the bytes of the job into several allocations. */
static void random_allocations(struct rng *rng, struct job_request *job)
{
    const uint32_t count = 1 + (uint32_t)rng_below(rng, LAYOUT_MAX);

    job->allocation_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct job_allocation *a = &job->allocations[i];
        *a = (struct job_allocation){.bytes = 1 + rng_below(rng, job->bytes / count + 1),
                                     .element_bytes = (uint32_t)rng_below(rng, 500)};
        if (i == 0 || rng_below(rng, 4) != 0)
            a->touches = 0.01 + 5 * rng_unit(rng);
        if (rng_below(rng, 2) == 0)
            a->granularity_bytes = 1 + rng_below(rng, 5000);
    }
    job->bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        job->bytes += job->allocations[i].touches > 0 ? job->allocations[i].bytes : 0;
}

static void random_job(struct rng *rng, struct job_request *job)
{
    *job = (struct job_request){
        .bytes = 1 + rng_below(rng, rng_below(rng, 4) == 0 ? fp.windows.reach_bytes.v / 10
                                                           : fp.windows.reach_bytes.v * 6),
        .access = (enum access)rng_below(rng, ACCESS_COUNT),
        .element_bytes = (uint32_t)rng_below(rng, 2000),
        .no_sm_binding = rng_below(rng, 5) == 0,
        .single_pass = rng_below(rng, 5) == 0,
        .fingerprint_id = "fp0123456789abcdef",
    };
    if (rng_below(rng, 2) == 0)
        job->scan_gps = 0.01 + 100 * rng_unit(rng);
    if (rng_below(rng, 2) == 0)
        job->input_bytes = 0.5 + 64 * rng_unit(rng);
    if (job->input_bytes > 0 && rng_below(rng, 2) == 0)
        job->input_gbps = 1 + 500 * rng_unit(rng);
    if (rng_below(rng, 3) == 0)
        job->in_reach_gbps = 1 + 3000 * rng_unit(rng);
    if (rng_below(rng, 3) == 0)
        job->reserve_bytes = rng_below(rng, fp.windows.reach_bytes.v);
    if (rng_below(rng, 4) == 0)
        job->output_bytes = 16 * rng_unit(rng);
    if (rng_below(rng, 4) == 0)
        job->partition_bytes = 16 * rng_unit(rng);
    if (rng_below(rng, 3) == 0)
        job->scattered = rng_below(rng, 3) == 0 ? 1 : rng_unit(rng);
    if (rng_below(rng, 4) == 0)
        job->accesses = 1 + rng_below(rng, 1000000000);
    if (rng_below(rng, 4) == 0)
        job->written_bytes = 256 * rng_unit(rng);
    if (rng_below(rng, 4) == 0)
        job->launch_us = 0.1 + 20 * rng_unit(rng);
    if (rng_below(rng, 4) == 0)
        random_allocations(rng, job);
}

static void check_order(void)
{
    bool seen[STRATEGY_COUNT] = {false};
    bool naive_known = IS_KNOWN(placement_option(&answer, STRATEGY_NAIVE)->gbps);

    assert_true(answer.options[0].possible);
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        const struct strategy_option *o = &answer.options[i];
        assert_false(seen[o->strategy]);
        seen[o->strategy] = true;
        assert_true(strlen(o->why) > 0 && strlen(o->why) < sizeof(o->why) - 1);
        if (i > 0)
            assert_true(answer.options[i - 1].possible || !o->possible);
        if (!o->possible) {
            assert_false(IS_KNOWN(o->gbps));
            continue;
        }
        if (naive_known && i > 0 && IS_KNOWN(o->gbps))
            assert_true(answer.options[i - 1].gbps.v * (1 + STRATEGY_WORTH) * (1 + LOOSE) >=
                        o->gbps.v);
        if (IS_KNOWN(o->times_naive))
            assert_near(o->times_naive.v * placement_option(&answer, STRATEGY_NAIVE)->gbps.v,
                        o->gbps.v, 1e-6);
    }
    assert_non_null(strstr(answer.reason, answer.fingerprint_id));
    assert_true(strlen(answer.reason) < sizeof(answer.reason) - 1);
}

static void check_means(const struct job_request *job)
{
    const uint64_t reach = fp.windows.reach_bytes.v;
    const uint64_t entry = fp.windows.entry_bytes.v;
    uint64_t limit = reach - entry;
    bool in_windows = false;

    if (job->bytes <= limit && job->reserve_bytes == 0 && job->allocation_count == 0)
        assert_true(answer.options[0].strategy == STRATEGY_NAIVE ||
                    answer.options[0].strategy == STRATEGY_SIDES);
    for (int s = STRATEGY_WINDOWS; s <= STRATEGY_PARTITIONED_WINDOWS; s++)
        in_windows = in_windows || placement_option(&answer, (enum strategy)s)->possible;
    assert_true(answer.has_placement || !in_windows);
    if (answer.has_placement) {
        assert_true(job->reserve_bytes < limit);
        limit -= job->reserve_bytes;
        placement_check_cover(&answer.placement, job->bytes);
        placement_check_sms(&fp, &answer.placement);
        for (uint32_t w = 0; w < answer.placement.window_count; w++)
            assert_true(answer.placement.windows[w].length_bytes <= limit);
    }
    assert_int_equal(answer.passes > 0, placement_option(&answer, STRATEGY_SCOPES)->possible);
    if (answer.passes > 0) {
        assert_true(answer.passes > 1);
        assert_true(answer.scope_bytes * answer.passes >= job->bytes);
        assert_true(answer.scope_bytes * (answer.passes - 1) < job->bytes);
    }
}

/* Checks that no strategy is faster with `worse` than with `better`. */
static void check_not_faster(const struct job_request *better, const struct job_request *worse,
                             const char *what)
{
    static struct strategy_answer a, b;

    assert_int_equal(strategy_plan(&fp, better, &a, NULL), STATUS_OK);
    assert_int_equal(strategy_plan(&fp, worse, &b, NULL), STATUS_OK);
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        const struct maybe_f64 before = placement_option(&a, (enum strategy)s)->gbps;
        const struct maybe_f64 after = placement_option(&b, (enum strategy)s)->gbps;
        if (IS_KNOWN(before) && IS_KNOWN(after) && after.v > before.v * (1 + LOOSE))
            fail_msg("%s makes %s faster: %.12g, then %.12g", what, strategy_name((enum strategy)s),
                     before.v, after.v);
    }
}

/* Data that is written once adds the same time to every strategy. */
static void check_output(struct rng *rng, const struct job_request *job)
{
    struct job_request other = *job;

    other.written_bytes += 1 + 100 * rng_unit(rng);
    check_not_faster(job, &other, "more output");
}

/* A launch has a cost. With fewer items the time per item is longer, and it is never shorter than
 * without that cost. A single item is never worth a second launch. */
static void check_batches(struct rng *rng, const struct job_request *job)
{
    struct job_request many = *job;
    struct job_request few = *job;
    struct job_request one = *job;
    struct job_request endless = *job;

    endless.accesses = 0;
    few.accesses = 1 + rng_below(rng, 1000000);
    many.accesses = few.accesses + rng_below(rng, 1000000000);
    one.accesses = 1;
    check_not_faster(&many, &few, "a smaller batch");
    check_not_faster(&endless, &many, "launches");
    plan(&one);
    placement_assert_recommends(&answer.options[0], STRATEGY_NAIVE);
}

static uint64_t longest_window(const struct strategy_answer *a)
{
    uint64_t longest = 0;

    for (uint32_t w = 0; w < a->placement.window_count; w++)
        longest = a->placement.windows[w].length_bytes > longest
                      ? a->placement.windows[w].length_bytes
                      : longest;
    return longest;
}

static void check_monotone(struct rng *rng, const struct job_request *job)
{
    static struct strategy_answer more;
    struct job_request other = *job;
    struct job_request base = *job;

    base.scan_gps = job->scan_gps > 0 ? job->scan_gps : 1 + 10 * rng_unit(rng);
    other = base;
    other.scan_gps /= 1 + rng_unit(rng) * 9;
    check_not_faster(&base, &other, "dearer looking");
    other = *job;
    if (job->input_gbps > 0) {
        other.input_gbps /= 1 + rng_unit(rng) * 9;
        check_not_faster(job, &other, "a slower link");
    }
    other = *job;
    other.reserve_bytes += 1 + rng_below(rng, fp.windows.reach_bytes.v / 4);
    assert_int_equal(strategy_plan(&fp, &other, &more, NULL), STATUS_OK);
    if (answer.has_placement && more.has_placement)
        assert_true(longest_window(&more) <= longest_window(&answer));
    if (answer.has_placement && !more.has_placement)
        assert_true(!placement_option(&more, STRATEGY_PARTITIONED_WINDOWS)->possible);
}

/* More scattered memory makes no strategy faster. An answer has a range from all to no scattered
 * memory. The range contains the answer and does not depend on the share. */
static void check_scattered(struct rng *rng, const struct job_request *job)
{
    static struct strategy_answer ends[2];
    const struct maybe_f64 naive = placement_option(&answer, STRATEGY_NAIVE)->gbps;
    struct job_request other = *job;

    other.scattered += (1 - other.scattered) * rng_unit(rng);
    check_not_faster(job, &other, "scattered memory");
    for (int end = 0; end < 2; end++) {
        const struct maybe_f64 range[] = {answer.naive_contiguous_gbps,
                                          answer.naive_scattered_gbps};
        other.scattered = end;
        assert_int_equal(strategy_plan(&fp, &other, &ends[end], NULL), STATUS_OK);
        const struct maybe_f64 of_end = placement_option(&ends[end], STRATEGY_NAIVE)->gbps;
        assert_int_equal(of_end.known, range[end].known);
        assert_true(of_end.v == range[end].v);
    }
    if (!IS_KNOWN(naive) || !IS_KNOWN(answer.naive_scattered_gbps))
        return;
    assert_true(naive.v <= answer.naive_contiguous_gbps.v * (1 + LOOSE));
    assert_true(naive.v >= answer.naive_scattered_gbps.v * (1 - LOOSE));
}

/* If the hot pages are adjacent, naive is not slower. Windows wait for the busiest one, and a pass
 * over the hottest scope takes longer than the others take less. */
static void check_window_concentration(struct rng *rng, const struct job_request *job)
{
    static struct strategy_answer before, after;
    struct job_request adjacent = *job;

    adjacent.window_concentration = job->concentration * rng_unit(rng);
    assert_int_equal(strategy_plan(&fp, job, &before, NULL), STATUS_OK);
    assert_int_equal(strategy_plan(&fp, &adjacent, &after, NULL), STATUS_OK);
    assert_true(placement_option(&after, STRATEGY_NAIVE)->gbps.v ==
                placement_option(&before, STRATEGY_NAIVE)->gbps.v);
    check_not_faster(job, &adjacent, "a hot window");
    adjacent.concentration = adjacent.window_concentration;
    assert_int_equal(strategy_plan(&fp, &adjacent, &before, NULL), STATUS_OK);
    adjacent.concentration = 0;
    assert_int_equal(strategy_plan(&fp, &adjacent, &after, NULL), STATUS_OK);
    assert_memory_equal(&before, &after, sizeof(before));
}

/* A higher concentration of accesses makes no strategy slower, and the least concentration is like
 * none. If all accesses fall on few pages, naive is as fast as within the reach. */
static void check_concentration(struct rng *rng, const struct job_request *job)
{
    static struct strategy_answer least, most;
    struct job_request other = *job;
    struct job_request more = *job;

    other.concentration = 1e-9;
    assert_int_equal(strategy_plan(&fp, &other, &least, NULL), STATUS_OK);
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        const struct maybe_f64 before = placement_option(&answer, (enum strategy)s)->gbps;
        const struct maybe_f64 after = placement_option(&least, (enum strategy)s)->gbps;
        assert_int_equal(before.known, after.known);
        if (IS_KNOWN(before))
            assert_near(after.v, before.v, 1e-5);
    }
    if (job->allocation_count > 0) /* see test_layout.c */
        return;
    other.concentration = rng_unit(rng);
    more.concentration = other.concentration + (1 - other.concentration) * rng_unit(rng);
    check_not_faster(&other, job, "less concentration");
    check_not_faster(&more, &other, "less concentration");
    check_window_concentration(rng, &other);
    if (job->reserve_bytes > 0 || job->bytes <= fp.windows.reach_bytes.v)
        return;
    more.concentration = 1;
    other.bytes = fp.windows.reach_bytes.v - fp.windows.entry_bytes.v;
    assert_int_equal(strategy_plan(&fp, &more, &most, NULL), STATUS_OK);
    plan(&other);
    const struct maybe_f64 within = placement_option(&answer, STRATEGY_NAIVE)->gbps;
    const struct maybe_f64 naive = placement_option(&most, STRATEGY_NAIVE)->gbps;
    if (IS_KNOWN(naive) && IS_KNOWN(within))
        assert_near(naive.v, within.v, LOOSE);
}

static void test_properties(void **state)
{
    static struct strategy_answer again;
    const char *given = getenv("TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    struct rng rng = {.state = seed};
    int recommended[STRATEGY_COUNT] = {0};

    (void)state;
    printf("seed %llu (TEST_SEED)\n", (unsigned long long)seed);
    for (int round = 0; round < 8000; round++) {
        struct job_request job;
        random_fingerprint(&rng);
        random_job(&rng, &job);
        plan(&job);
        recommended[answer.options[0].strategy]++;
        check_order();
        check_means(&job);
        assert_int_equal(strategy_plan(&fp, &job, &again, NULL), STATUS_OK);
        assert_memory_equal(&answer, &again, sizeof(answer));
        check_monotone(&rng, &job);
        check_scattered(&rng, &job);
        check_concentration(&rng, &job);
        check_output(&rng, &job);
        check_batches(&rng, &job);
    }
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        printf("%s: %d\n", strategy_name((enum strategy)s), recommended[s]);
        assert_true(recommended[s] > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
