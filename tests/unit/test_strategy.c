/* test_strategy.c: the planner. First by hand, with numbers that can be checked on paper; then what
 * holds for every fingerprint and every job, on random ones. The seed is printed; TEST_SEED repeats
 * it. */
#include "tests/unit/placement_fixture.h"

#include "base/rng.h"
#include "base/units.h"
#include "placement/strategy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct fingerprint fp;
static struct strategy_answer answer;

static const struct strategy_option *option(const struct strategy_answer *a, enum strategy s)
{
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        if (a->options[i].strategy == s)
            return &a->options[i];
    }
    fail_msg("no option %s", strategy_name(s));
    return NULL;
}

static void plan(const struct job_request *job)
{
    struct err err = {.status = STATUS_OK};

    if (strategy_plan(&fp, job, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static double gbps(enum strategy s)
{
    const struct strategy_option *o = option(&answer, s);

    assert_true(o->possible);
    assert_true(IS_KNOWN(o->gbps));
    return o->gbps.v;
}

static void assert_near(double a, double b, double part)
{
    if (fabs(a - b) > part * fabs(b))
        fail_msg("%g is not %g", a, b);
}

/* The large chip: 64 GiB of reach, 4000 GB/s inside (0.032 ns an access), 1000 GB/s over 128 GiB
 * (0.128 ns). Over 96 GiB 1 / bytes is two thirds of the way from 128 to 64 GiB. */
static void test_naive_between_points(void **state)
{
    (void)state;
    placement_make_large(&fp);
    plan(&(struct job_request){.bytes = 32 * GIB});
    assert_near(gbps(STRATEGY_NAIVE), 4000, 1e-9);
    plan(&(struct job_request){.bytes = 128 * GIB});
    assert_near(gbps(STRATEGY_NAIVE), 1000, 1e-9);
    /* The curve's 64 GiB are the reach itself: what counts there is the plateau. */
    plan(&(struct job_request){.bytes = 96 * GIB});
    assert_near(gbps(STRATEGY_NAIVE), 128 / (0.032 + (0.128 - 0.032) * 2 / 3), 1e-9);
    assert_int_equal(option(&answer, STRATEGY_NAIVE)->bound, BOUND_TRANSLATION);
    assert_int_equal(answer.basis, BASIS_MEASURED);
}

static void test_inside_nothing_is_worth_doing(void **state)
{
    (void)state;
    placement_make_large(&fp);
    plan(&(struct job_request){.bytes = 64 * GIB - 2 * MIB, .look_gps = 1, .input_bytes = 4});
    assert_int_equal(answer.options[0].strategy, STRATEGY_NAIVE);
    assert_non_null(strstr(answer.reason, "Nothing is worth doing"));
    for (int i = 1; i < STRATEGY_COUNT; i++)
        assert_false(answer.options[i].possible);
    assert_false(answer.has_placement);
    assert_int_equal(answer.passes, 0);
    plan(&(struct job_request){.bytes = 64 * GIB - 2 * MIB + 1});
    assert_int_equal(answer.options[0].strategy, STRATEGY_NAIVE);
    plan(&(struct job_request){.bytes = 100 * GIB});
    assert_int_equal(answer.options[0].strategy, STRATEGY_WINDOWS);
}

/* Three passes over 128 GiB with a reach of 64 GiB less one entry. */
static void test_scopes_by_hand(void **state)
{
    struct job_request job = {.bytes = 128 * GIB, .look_gps = 50}; /* 0.02 ns a look */

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    assert_int_equal(answer.passes, 3);
    assert_true(answer.scope_bytes * 3 >= job.bytes && answer.scope_bytes < 43 * GIB);
    assert_near(gbps(STRATEGY_SCOPES), 128 / 0.06, 1e-3);
    assert_int_equal(option(&answer, STRATEGY_SCOPES)->bound, BOUND_LOOKING);
    assert_int_equal(option(&answer, STRATEGY_SCOPES)->passes, 3);
    /* Windows draw their own work: each position is looked at once. */
    assert_near(gbps(STRATEGY_WINDOWS), 3950, 0.01);
    job.look_gps = 1000;
    plan(&job);
    assert_near(gbps(STRATEGY_SCOPES), 4000, 1e-6);
    job.once = true;
    plan(&job);
    assert_false(option(&answer, STRATEGY_SCOPES)->possible);
    assert_false(option(&answer, STRATEGY_FILTERED_WINDOWS)->possible);
    assert_int_equal(answer.passes, 0);
}

/* 16 bytes of input an access: 0.004 ns a reading at 4000 GB/s; over a link of 100 GB/s 0.16 ns. */
static void test_input(void **state)
{
    struct job_request job = {.bytes = 128 * GIB, .input_bytes = 16, .accesses = 1000};

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    assert_false(option(&answer, STRATEGY_WINDOWS)->possible);
    assert_near(gbps(STRATEGY_NAIVE), 1000, 1e-9);
    assert_near(gbps(STRATEGY_SCOPES), 128 / (0.032 + 3 * 0.004), 1e-3);
    /* Read, written at twice the price, read again; filtered windows read together, once. */
    assert_near(gbps(STRATEGY_PARTITIONED_WINDOWS), 128 / (0.032 + 4 * 0.004), 0.02);
    assert_near(gbps(STRATEGY_FILTERED_WINDOWS), 128 / (0.032 + 0.004), 0.02);
    assert_near(option(&answer, STRATEGY_SCOPES)->extra_bytes_total.v, 32000, 1e-9);
    assert_near(option(&answer, STRATEGY_PARTITIONED_WINDOWS)->extra_bytes, 32, 1e-9);
    /* 8 bytes of output that three passes or windows add to: twice more, read and written. */
    job.output_bytes = 8;
    plan(&job);
    assert_near(gbps(STRATEGY_SCOPES), 128 / (0.032 + 3 * 0.004 + 2 * 0.004), 1e-3);
    assert_near(option(&answer, STRATEGY_SCOPES)->extra_bytes, 64, 1e-9);
    job.output_bytes = 0;
    job.deal_bytes = 32;
    plan(&job);
    assert_near(gbps(STRATEGY_PARTITIONED_WINDOWS), 128 / (0.032 + 0.004 + 3 * 0.008), 0.02);
    job.deal_bytes = 0;
    job.input_gbps = 100;
    plan(&job);
    /* The link is the limit, and works beside all else: nobody gains. */
    assert_near(gbps(STRATEGY_NAIVE), 128 / 0.16, 1e-9);
    assert_near(gbps(STRATEGY_SCOPES), 128 / 0.16, 1e-9);
    assert_near(option(&answer, STRATEGY_SCOPES)->extra_bytes, 64, 1e-9);
    assert_int_equal(option(&answer, STRATEGY_NAIVE)->bound, BOUND_INPUT);
    assert_int_equal(answer.options[0].strategy, STRATEGY_NAIVE);
    assert_non_null(strstr(answer.reason, "Nothing is worth doing"));
}

static void test_fixed_and_unknown(void **state)
{
    struct job_request job = {.bytes = 128 * GIB, .fixed = true};

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    for (int s = STRATEGY_WINDOWS; s < STRATEGY_COUNT; s++)
        assert_false(option(&answer, (enum strategy)s)->possible);
    assert_false(answer.has_placement);
    assert_int_equal(answer.options[0].strategy, STRATEGY_SCOPES);
    /* Of atomics nothing is known inside the reach: no number is made up. */
    job = (struct job_request){.bytes = 128 * GIB, .access = ACCESS_ATOMIC};
    plan(&job);
    assert_int_equal(answer.basis, BASIS_NONE);
    for (int i = 0; i < STRATEGY_COUNT; i++)
        assert_false(IS_KNOWN(answer.options[i].gbps));
    assert_int_equal(answer.options[0].strategy, STRATEGY_WINDOWS);
    job.fixed = true;
    plan(&job);
    assert_int_equal(answer.options[0].strategy, STRATEGY_NAIVE);
    /* What the job measured itself is enough: translation is that of the reads. */
    job = (struct job_request){
        .bytes = 128 * GIB, .access = ACCESS_ATOMIC, .inside_gbps = 500, .element_bytes = 32};
    plan(&job);
    assert_int_equal(answer.basis, BASIS_JOB);
    assert_near(gbps(STRATEGY_NAIVE), 32 / 0.128, 1e-9);
    assert_near(gbps(STRATEGY_WINDOWS), 500, 1e-3); /* even but for whole entries */
}

/* Sizes that were not measured: larger ones by the byte, smaller ones as the smallest measured;
 * translation by the access. */
static void test_sizes(void **state)
{
    (void)state;
    placement_make_large(&fp);
    plan(&(struct job_request){.bytes = 128 * GIB, .element_bytes = 4});
    assert_int_equal(answer.transaction_bytes, 32);
    assert_int_equal(answer.basis, BASIS_SCALED);
    assert_near(gbps(STRATEGY_NAIVE), 32 / 0.128, 1e-9);
    assert_near(answer.inside_gbps.v, 1000, 1e-9); /* 0.032 ns, as of a line */
    plan(&(struct job_request){.bytes = 128 * GIB, .element_bytes = 1024});
    assert_near(gbps(STRATEGY_NAIVE), 4000, 1e-9); /* 0.256 ns of memory hide 0.128 */
    assert_int_equal(answer.options[0].strategy, STRATEGY_NAIVE);
    /* With 512 measured too, 320 is half way between. */
    fp.throughput.rate_count = 1;
    fp.throughput.rates[0] = (struct access_rate){
        .access = ACCESS_READ,
        .transaction_bytes = 512,
        .plateau_gbps = KNOWN(4096),
        .point_count = 1,
        .points = {
            {.region_bytes = 128 * GIB, .naive_gbps = KNOWN(3000), .by_group_gbps = KNOWN(4096)}}};
    plan(&(struct job_request){.bytes = 32 * GIB, .element_bytes = 320});
    assert_int_equal(answer.basis, BASIS_BETWEEN);
    assert_near(gbps(STRATEGY_NAIVE), 320 / ((0.032 + 0.125) / 2), 1e-9);
    plan(&(struct job_request){.bytes = 128 * GIB, .element_bytes = 512});
    assert_int_equal(answer.basis, BASIS_MEASURED);
    assert_near(gbps(STRATEGY_NAIVE), 3000, 1e-9);
}

/* 1 GiB besides takes 512 entries and one: windows of 63 GiB less two entries, so 126 GiB no
 * longer fit two of them. */
static void test_reserve(void **state)
{
    struct job_request job = {.bytes = 126 * GIB};

    (void)state;
    placement_make_large(&fp);
    plan(&job);
    assert_int_equal(answer.placement.window_count, 2);
    job.reserve_bytes = GIB;
    plan(&job);
    assert_int_equal(answer.placement.window_count, 3);
    job.reserve_bytes = 64 * GIB;
    plan(&job);
    assert_int_equal(answer.options[0].strategy, STRATEGY_NAIVE);
    assert_false(answer.options[1].possible);
    assert_non_null(strstr(option(&answer, STRATEGY_WINDOWS)->why, "reserve"));
}

static void test_refusals(void **state)
{
    static const struct {
        struct job_request job;
        const char *word;
    } wrong[] = {
        {{.bytes = 0}, "bytes"},
        {{.bytes = GIB, .element_bytes = 1 << 21}, "element"},
        {{.bytes = GIB, .transaction_bytes = 1 << 21}, "transaction"},
        {{.bytes = GIB, .reserve_bytes = PLACEMENT_MAX_BYTES + 1}, "reserve"},
        {{.bytes = GIB, .look_gps = -1}, "look_gps"},
        {{.bytes = GIB, .inside_gbps = NAN}, "inside_gbps"},
        {{.bytes = GIB, .input_bytes = INFINITY}, "input_bytes"},
        {{.bytes = GIB, .input_gbps = 3}, "input_gbps"},
        {{.bytes = 128 * GIB, .windows = 2}, "windows"},
        {{.bytes = 128 * GIB, .windows = 9}, "windows"},
    };
    struct err err;

    (void)state;
    placement_make_large(&fp);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        err.status = STATUS_OK;
        assert_int_equal(strategy_plan(&fp, &wrong[i].job, &answer, &err), STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, wrong[i].word));
    }
    fp.windows.reach_bytes = UNKNOWN_U64(REASON_TOO_LITTLE_DATA);
    assert_int_equal(strategy_plan(&fp, &(struct job_request){.bytes = GIB}, &answer, &err),
                     STATUS_NOT_APPLICABLE);
    /* A reach beyond what could be probed: naive is all there is to do. */
    placement_make_large(&fp);
    fp.windows.reach_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    plan(&(struct job_request){.bytes = 100 * GIB});
    assert_int_equal(answer.options[0].strategy, STRATEGY_NAIVE);
    assert_false(answer.options[1].possible);
    /* Groups not known: scopes go on. */
    placement_make_large(&fp);
    fp.topology.partition.group_count = 0;
    plan(&(struct job_request){.bytes = 100 * GIB});
    assert_int_equal(answer.options[0].strategy, STRATEGY_SCOPES);
    assert_non_null(strstr(option(&answer, STRATEGY_WINDOWS)->why, "share a TLB"));
}

/* ---- properties ---- */

static const double LOOSE = 1e-9; /* of arithmetic, relative */

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
    if (rng_below(rng, 2) == 0) {
        fp.level_count = 1;
        fp.levels[0].reach_bytes = KNOWN_U64(fp.windows.reach_bytes.v * (2 + rng_below(rng, 9)));
        fp.levels[0].entry_bytes = KNOWN_U64(entry);
    }
}

static void random_job(struct rng *rng, struct job_request *job)
{
    *job = (struct job_request){
        .bytes = 1 + rng_below(rng, fp.windows.reach_bytes.v * 6),
        .access = (enum access)rng_below(rng, ACCESS_COUNT),
        .element_bytes = (uint32_t)rng_below(rng, 2000),
        .fixed = rng_below(rng, 5) == 0,
        .once = rng_below(rng, 5) == 0,
    };
    if (rng_below(rng, 2) == 0)
        job->look_gps = 0.01 + 100 * rng_unit(rng);
    if (rng_below(rng, 2) == 0)
        job->input_bytes = 0.5 + 64 * rng_unit(rng);
    if (job->input_bytes > 0 && rng_below(rng, 2) == 0)
        job->input_gbps = 1 + 500 * rng_unit(rng);
    if (rng_below(rng, 3) == 0)
        job->inside_gbps = 1 + 3000 * rng_unit(rng);
    if (rng_below(rng, 3) == 0)
        job->reserve_bytes = rng_below(rng, fp.windows.reach_bytes.v);
    if (rng_below(rng, 4) == 0)
        job->output_bytes = 16 * rng_unit(rng);
    if (rng_below(rng, 4) == 0)
        job->deal_bytes = 16 * rng_unit(rng);
    if (rng_below(rng, 4) == 0)
        job->accesses = 1 + rng_below(rng, 1000000);
}

static void check_order(void)
{
    bool seen[STRATEGY_COUNT] = {false};
    bool naive_known = IS_KNOWN(option(&answer, STRATEGY_NAIVE)->gbps);

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
            assert_near(o->times_naive.v * option(&answer, STRATEGY_NAIVE)->gbps.v, o->gbps.v,
                        1e-6);
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

    if (job->bytes <= limit && job->reserve_bytes == 0)
        assert_int_equal(answer.options[0].strategy, STRATEGY_NAIVE);
    for (int s = STRATEGY_WINDOWS; s < STRATEGY_COUNT; s++)
        in_windows = in_windows || option(&answer, (enum strategy)s)->possible;
    assert_true(answer.has_placement || !in_windows);
    if (answer.has_placement) {
        assert_true(job->reserve_bytes < limit);
        limit -= job->reserve_bytes;
        placement_check_cover(&answer.placement, job->bytes);
        placement_check_sms(&fp, &answer.placement);
        for (uint32_t w = 0; w < answer.placement.window_count; w++)
            assert_true(answer.placement.windows[w].length_bytes <= limit);
    }
    assert_int_equal(answer.passes > 0, option(&answer, STRATEGY_SCOPES)->possible);
    if (answer.passes > 0) {
        assert_true(answer.passes > 1);
        assert_true(answer.scope_bytes * answer.passes >= job->bytes);
        assert_true(answer.scope_bytes * (answer.passes - 1) < job->bytes);
    }
}

/* No strategy is faster with `worse` than with `better`. */
static void check_not_faster(const struct job_request *better, const struct job_request *worse,
                             const char *what)
{
    static struct strategy_answer a, b;

    assert_int_equal(strategy_plan(&fp, better, &a, NULL), STATUS_OK);
    assert_int_equal(strategy_plan(&fp, worse, &b, NULL), STATUS_OK);
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        const struct maybe_f64 before = option(&a, (enum strategy)s)->gbps;
        const struct maybe_f64 after = option(&b, (enum strategy)s)->gbps;
        if (IS_KNOWN(before) && IS_KNOWN(after) && after.v > before.v * (1 + LOOSE))
            fail_msg("%s makes %s faster: %.12g, then %.12g", what, strategy_name((enum strategy)s),
                     before.v, after.v);
    }
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

    base.look_gps = job->look_gps > 0 ? job->look_gps : 1 + 10 * rng_unit(rng);
    other = base;
    other.look_gps /= 1 + rng_unit(rng) * 9;
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
        assert_true(!option(&more, STRATEGY_PARTITIONED_WINDOWS)->possible);
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
    }
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        printf("%s: %d\n", strategy_name((enum strategy)s), recommended[s]);
        assert_true(recommended[s] > 0);
    }
}

static void test_names(void **state)
{
    enum strategy s;

    (void)state;
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        assert_true(strategy_from_name(strategy_name((enum strategy)i), &s));
        assert_int_equal(s, i);
    }
    assert_false(strategy_from_name("magic", &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_naive_between_points),
        cmocka_unit_test(test_inside_nothing_is_worth_doing),
        cmocka_unit_test(test_scopes_by_hand),
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_fixed_and_unknown),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
