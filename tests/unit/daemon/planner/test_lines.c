/* test_lines.c: the cost of reads of elements that are not aligned to sectors and lines. */
#include "tests/unit/support/placement_fixture.h"

#include "base/rng.h"
#include "base/units.h"
#include "planner/access_cost.h"
#include "planner/line_reuse.h"
#include "planner/params.h"
#include "planner/set_cost.h"
#include "planner/strategy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECTOR = 32, LINE = 128, LONG = 512 };

/* Nanoseconds of a read of a sector, a line, and four lines. */
static const double SECTOR_NS = 0.02;
static const double LINE_NS = 0.032;
static const double LONG_NS = 0.116;

static struct fingerprint fp;
static struct strategy_answer answer;

static struct rng seeded(void)
{
    const char *const given = getenv("TEST_SEED");
    struct rng rng = {given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL)};

    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return rng;
}

/* Makes a chip with reads of three sizes. */
static void make_chip(void)
{
    struct throughput *const t = &fp.throughput;

    placement_make_large(&fp);
    t->plateau_gbps = KNOWN_F64(LINE / LINE_NS);
    t->rate_count = 2;
    t->rates[0] = (struct access_rate){.access = ACCESS_READ,
                                       .transaction_bytes = SECTOR,
                                       .plateau_gbps = KNOWN_F64(SECTOR / SECTOR_NS)};
    t->rates[1] = (struct access_rate){.access = ACCESS_READ,
                                       .transaction_bytes = LONG,
                                       .plateau_gbps = KNOWN_F64(LONG / LONG_NS)};
}

/* Returns the nanoseconds per item of a strategy, or 0 if it is not predicted. */
static double option_ns(const struct job_request *job, enum strategy s)
{
    struct err err = {.status = STATUS_OK};

    if (strategy_plan(&fp, job, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < STRATEGY_COUNT; i++)
        if (answer.options[i].strategy == s && IS_KNOWN(answer.options[i].gbps))
            return answer.item_bytes / answer.options[i].gbps.v;
    return 0;
}

static double naive_ns(const struct job_request *job)
{
    const double ns = option_ns(job, STRATEGY_NAIVE);

    assert_true(ns > 0);
    return ns;
}

static double reads_ns(uint32_t element)
{
    const struct job_request job = {.bytes = 32 * GIB, .element_bytes = element};

    return naive_ns(&job);
}

static void check_within(double value, double expected, double share)
{
    if (!(fabs(value - expected) <= share * fabs(expected)))
        fail_msg("%.17g instead of %.17g", value, expected);
}

static void check_near(double value, double expected)
{
    check_within(value, expected, 1e-9);
}

static void touched_bytes_are_the_mean_of_all_positions(void **state)
{
    (void)state;
    for (uint32_t element = 1; element <= 600; element++) {
        uint64_t units = 0;
        for (uint32_t k = 0; k < LINE; k++)
            units += ((uint64_t)(k + 1) * element - 1) / LINE - (uint64_t)k * element / LINE + 1;
        assert_int_equal(access_cost_touched_bytes(element, LINE) * LINE, units * LINE);
    }
}

static void an_aligned_element_costs_what_was_measured(void **state)
{
    (void)state;
    make_chip();
    check_near(reads_ns(4), SECTOR_NS);
    check_near(reads_ns(32), SECTOR_NS);
    check_near(reads_ns(64), SECTOR_NS + (LINE_NS - SECTOR_NS) / 3);
    check_near(reads_ns(128), LINE_NS);
    check_near(reads_ns(256), LINE_NS + (LONG_NS - LINE_NS) / 3);
    check_near(reads_ns(512), LONG_NS);
}

static void a_further_line_costs_a_line_without_its_sectors(void **state)
{
    const double sector = (LINE_NS - SECTOR_NS) / 3;
    const double line = (LONG_NS - LINE_NS) / 3 - 4 * sector;

    (void)state;
    make_chip();
    check_near(reads_ns(36), SECTOR_NS + sector + 0.25 * line); /* two sectors in 1.25 lines */
    assert_int_equal(answer.item_bytes, 64);
    check_near(reads_ns(96), SECTOR_NS + 2 * sector + 0.5 * line);
    check_near(reads_ns(100), LINE_NS + 0.75 * line);
}

static void without_all_sizes_a_line_costs_nothing(void **state)
{
    (void)state;
    for (int missing = 0; missing < 2; missing++) {
        make_chip();
        fp.throughput.rates[missing].access = ACCESS_ATOMIC;
        check_near(reads_ns(96),
                   missing == 0 ? LINE_NS : SECTOR_NS + 2 * (LINE_NS - SECTOR_NS) / 3);
    }
}

static void other_accesses_have_no_lines(void **state)
{
    struct job_request job = {.bytes = 32 * GIB, .element_bytes = 100, .access = ACCESS_ATOMIC};

    (void)state;
    make_chip();
    fp.throughput.rates[0].access = ACCESS_ATOMIC;
    check_near(naive_ns(&job), SECTOR_NS * 128 / SECTOR);
    job.access = ACCESS_READ;
    job.transaction_bytes = 96; /* given, so not adjacent elements */
    check_near(naive_ns(&job), LINE_NS);
}

/* A longer element has no fewer bytes, and lies in no fewer sectors and lines, if it is aligned
 * alike. */
static void longer_elements_are_not_faster(void **state)
{
    struct rng rng = seeded();

    (void)state;
    make_chip();
    for (int round = 0; round < 300; round++) {
        const uint32_t unit = 4U << rng_below(&rng, 6);
        const uint32_t shorter = unit * (1 + 2 * (uint32_t)rng_below(&rng, 40));
        const uint32_t longer = shorter + 2 * unit * (1 + (uint32_t)rng_below(&rng, 40));
        assert_true(reads_ns(longer) > reads_ns(shorter) * (1 - 1e-12));
    }
}

static struct job_request adjacent_reads(double lines)
{
    return (struct job_request){.bytes = 32 * GIB, .element_bytes = 8, .lines = lines};
}

/* 16 adjacent elements of 8 bytes have one line and four sectors. */
static void adjacent_elements_share_a_line(void **state)
{
    const struct job_request job = adjacent_reads(1.0 / 16);

    (void)state;
    make_chip();
    assert_true(fabs(naive_ns(&job) * 16 / LINE_NS - 1) < 0.01);
}

static void fewer_lines_are_faster(void **state)
{
    struct rng rng = seeded();

    (void)state;
    make_chip();
    for (int round = 0; round < 300; round++) {
        struct job_request job = {.bytes = 32 * GIB,
                                  .element_bytes = 4 * (1 + (uint32_t)rng_below(&rng, 300)),
                                  .written_bytes = (double)rng_below(&rng, 300)};
        const double apart = naive_ns(&job);
        job.lines = 1e6;
        check_near(naive_ns(&job), apart);
        job.lines = (double)access_cost_touched_bytes(job.element_bytes, LINE) / LINE * (1 - 1e-12);
        assert_true(fabs(naive_ns(&job) / apart - 1) < 1e-6 || job.element_bytes > LONG);
        job.lines *= rng_unit(&rng) + 1e-6;
        const double some = naive_ns(&job);
        job.lines /= 2;
        assert_true(some <= apart * (1 + 1e-6) || job.element_bytes > LONG);
        assert_true(naive_ns(&job) <= some * (1 + 1e-9));
    }
}

static void add_sets(void)
{
    static const uint64_t sizes[] = {16 * MIB, 48 * MIB, 96 * MIB};
    static const double ns[] = {0.010, 0.0104, 0.02};

    fp.gpu.l2_cache_bytes = 64 * MIB;
    fp.working_set_count = 3;
    for (uint32_t i = 0; i < 3; i++)
        fp.working_sets[i] = (struct working_set){
            .transaction_bytes = LINE, .set_bytes = sizes[i], .same_gbps = KNOWN_F64(LINE / ns[i])};
}

static void lines_that_are_read_often_come_from_the_l2(void **state)
{
    struct job_request job = {.bytes = 32 * GIB};
    double before;

    (void)state;
    make_chip();
    job.line_concentration = 0.9;
    check_near(naive_ns(&job), LINE_NS); /* the L2 is not known */
    add_sets();
    assert_int_equal(set_cost_l2_keeps(&fp).v, 48 * MIB);
    job.line_concentration = 1e-6;
    before = naive_ns(&job);
    assert_true(before <= LINE_NS && before > 0.99 * LINE_NS); /* 48 MiB of 32 GiB */
    for (int i = 1; i <= 20; i++) {
        job.line_concentration = i / 20.0;
        const double ns = naive_ns(&job);
        assert_true(ns <= before && ns >= 0.0104 * (1 - 1e-9));
        before = ns;
    }
    check_near(before, 0.0104); /* nearly all reads fall on one line */
}

/* Each SM has an L1, which is empty when a launch begins: a short launch has no more hits than
 * lines that occur again. */
static void the_l1_keeps_lines_of_a_launch(void **state)
{
    const struct job_request even = {.bytes = 32 * GIB, .accesses = 1ULL << 24};
    double before[11];

    (void)state;
    make_chip();
    add_sets();
    for (int i = 0; i <= 10; i++) {
        struct job_request job = even;
        job.line_concentration = 0.05 + 0.09 * i;
        before[i] = naive_ns(&job);
    }
    memmove(fp.working_sets + 1, fp.working_sets,
            fp.working_set_count++ * sizeof(*fp.working_sets));
    fp.working_sets[0] = (struct working_set){
        .transaction_bytes = LINE, .set_bytes = 64 * KIB, .same_gbps = KNOWN_F64(LINE / 0.003)};
    for (int known = 0; known < 2; known++) {
        fp.caches[CACHE_L1].fits_bytes = UNKNOWN_U64(REASON_NOT_MEASURED);
        fp.caches[CACHE_L1].size_bytes =
            known ? KNOWN_U64(128 * KIB) : UNKNOWN_U64(REASON_NOT_MEASURED);
        for (int i = 0; i <= 10; i++) {
            struct job_request job = even;
            double last = INFINITY;
            job.line_concentration = 0.05 + 0.09 * i;
            if (!known)
                check_near(naive_ns(&job), before[i]);
            for (; known && job.accesses > 1 << 10; job.accesses /= 8) {
                const double ns = naive_ns(&job) - 1e4 / (double)job.accesses; /* the launch */
                assert_true(ns <= before[i] && ns > 0.003);
                assert_true(job.accesses == even.accesses || ns >= last * (1 - 1e-6));
                last = ns;
            }
        }
    }
    assert_true(before[10] > 0.0104);
}

/* Counts the misses in a simulated cache. A line that was read again since its load stays for
 * another turn (CLOCK), so the cache nearly replaces the line that was used the longest time ago.
 */
static void misses_are_those_of_a_cache(void **state)
{
    enum { LINES = 20000, KEEPS = 2000, SHORT = 6000, WARM = 100000, READS = 200000 };
    static bool read_since[LINES + 1]; /* the last one is no line */
    static bool is_in[LINES + 1];
    struct rng rng = seeded();

    (void)state;
    for (int round = 0; round < 6; round++) {
        const double c = 0.15 * round;
        struct line_reuse reuse = {
            .concentration = c, .lines = LINES, .kept_bytes = 1, .cache_bytes = KEEPS};
        uint32_t order[KEEPS]; /* lines in the order of their loads, as a ring */
        uint64_t missed = 0;
        uint64_t at_first = 0; /* of the first reads, in which the cache becomes full */
        uint32_t used = 0;
        memset(read_since, 0, sizeof(read_since));
        memset(is_in, 0, sizeof(is_in));
        for (int i = 0; i < KEEPS; i++)
            order[i] = LINES;
        for (uint32_t i = 0; i < WARM + READS; i++) {
            const uint32_t line = (uint32_t)(LINES * pow(rng_unit(&rng), 1 / (1 - c)));
            if (is_in[line]) {
                read_since[line] = true;
                continue;
            }
            missed += i >= WARM;
            at_first += i < SHORT;
            while (is_in[order[used]] && read_since[order[used]]) {
                read_since[order[used]] = false;
                used = (used + 1) % KEEPS;
            }
            is_in[order[used]] = false;
            order[used] = line;
            is_in[line] = true;
            read_since[line] = false;
            used = (used + 1) % KEEPS;
        }
        if (!(fabs((double)missed / READS - line_reuse_misses(&reuse)) < 0.04))
            fail_msg("concentration %.2f misses %.3f, computed %.3f", c, (double)missed / READS,
                     line_reuse_misses(&reuse));
        reuse.reads = SHORT;
        if (!(fabs((double)at_first / SHORT - line_reuse_misses(&reuse)) < 0.04))
            fail_msg("concentration %.2f first misses %.3f, computed %.3f", c,
                     (double)at_first / SHORT, line_reuse_misses(&reuse));
    }
}

static void other_data_take_room(void **state)
{
    struct line_reuse reuse = {
        .concentration = 0.8, .lines = 1e8, .kept_bytes = 128, .cache_bytes = 5e7};
    double before = line_reuse_misses(&reuse);

    (void)state;
    for (int i = 0; i < 10; i++) {
        reuse.other_bytes += 64;
        const double missed = line_reuse_misses(&reuse);
        assert_true(missed > before && missed < 1);
        before = missed;
    }
}

/* Beside writes of the same size, reads are no faster than lines. */
static void reads_and_writes_share_memory(void **state)
{
    struct job_request job = {.bytes = 32 * GIB, .element_bytes = 512, .written_bytes = 512};

    (void)state;
    make_chip();
    check_near(naive_ns(&job), 2 * 512 * LINE_NS / LINE);
    job.written_bytes = 256;
    check_near(naive_ns(&job), (LONG_NS + 4 * LINE_NS) / 2 + 2 * LINE_NS);
    job.element_bytes = job.written_bytes = 64; /* a sector takes longer than its bytes */
    check_near(naive_ns(&job), SECTOR_NS + (LINE_NS - SECTOR_NS) / 3 + LINE_NS / 2);
}

static void the_first_launch_has_its_own_time(void **state)
{
    struct job_request job = {.bytes = 32 * GIB, .accesses = 1000, .launch_us = 6};

    (void)state;
    make_chip();
    check_near(naive_ns(&job), LINE_NS + 6);
    job.first_launch_us = 2.5;
    check_near(naive_ns(&job), LINE_NS + 2.5);
    job.accesses = 0;
    check_near(naive_ns(&job), LINE_NS);
}

/* The cost of a large batch does not depend on launches, and a larger batch has no higher cost per
 * item. */
static void cost_falls_with_the_batch(void **state)
{
    struct job_request job = {.bytes = 32 * GIB, .element_bytes = 44, .first_launch_us = 2.5};
    const double alone = naive_ns(&job);
    double before = INFINITY;

    (void)state;
    for (job.accesses = 1; job.accesses < 1ULL << 50; job.accesses *= 3) {
        const double ns = naive_ns(&job);
        assert_true(ns < before);
        before = ns;
    }
    assert_true(before / alone - 1 < 1e-6);
}

/* Each further read of a chain takes the time of a slow load, in every pass. */
static void dependent_reads_add_their_latency(void **state)
{
    struct job_request job = {.bytes = 32 * GIB, .accesses = 1000, .launch_us = 6};

    (void)state;
    make_chip();
    fp.latency.tail_cycles = UNKNOWN_F64(REASON_NOT_MEASURED);
    fp.parallelism.latency_ns = UNKNOWN_F64(REASON_NOT_MEASURED);
    job.dependent_reads = 12;
    check_near(naive_ns(&job), LINE_NS + 6); /* no latency is known */
    fp.parallelism.latency_ns = KNOWN_F64(400);
    check_near(naive_ns(&job), LINE_NS + 6 + 4);
    fp.latency.tail_cycles = KNOWN_F64(1000);
    fp.conditions.sm_clock_khz = KNOWN_U32(2000000);
    check_near(naive_ns(&job), LINE_NS + 6 + 5);
    for (job.dependent_reads = 0; job.dependent_reads <= 2; job.dependent_reads++)
        check_near(naive_ns(&job), LINE_NS + 6);
    job.dependent_reads = 12;
    job.accesses = 0;
    check_near(naive_ns(&job), LINE_NS);
}

/* The last chain and the busiest bank end under a scan that is longer than the accesses. */
static void a_scan_hides_the_ends_of_accesses(void **state)
{
    struct job_request job = {.bytes = 32 * GIB, .accesses = 1000000, .launch_us = 6};
    const double launch = 0.006;

    (void)state;
    make_chip();
    fp.latency.tail_cycles = KNOWN_F64(1000);
    fp.conditions.sm_clock_khz = KNOWN_U32(2000000);
    job.busiest_bank_ns = 3;
    job.scan_gps = 1 / (LINE_NS / 2);
    check_near(naive_ns(&job), LINE_NS + 0.003 + launch);
    job.scan_gps = 1 / (LINE_NS + 0.002);
    check_near(naive_ns(&job), LINE_NS + 0.003 + launch);
    job.scan_gps = 1 / (LINE_NS + 0.004);
    check_near(naive_ns(&job), LINE_NS + 0.004 + launch);
    job.dependent_reads = 12; /* 5 us more, and threads that wait */
    check_near(naive_ns(&job), LINE_NS + 0.003 + 0.005 + launch);
    job.scan_gps = 1 / LINE_NS;
    job.dependent_reads = 1;
    job.busiest_bank_ns = 0;
    check_near(naive_ns(&job), LINE_NS * pow(2, 1.0 / 6) + launch);
}

/* No strategy is faster than its scan, and a slower scan makes none faster. */
static void a_slower_scan_is_not_faster(void **state)
{
    struct rng rng = seeded();

    (void)state;
    make_chip();
    fp.latency.tail_cycles = KNOWN_F64(1000);
    fp.conditions.sm_clock_khz = KNOWN_U32(2000000);
    for (int round = 0; round < 300; round++) {
        struct job_request job = {.bytes = (1 + rng_below(&rng, 200)) * GIB,
                                  .element_bytes = 4 * (1 + (uint32_t)rng_below(&rng, 300)),
                                  .input_bytes = 8,
                                  .accesses = 1ULL << rng_below(&rng, 34),
                                  .busiest_bank_ns = 10 * rng_unit(&rng),
                                  .dependent_reads = (uint32_t)rng_below(&rng, 50)};
        double before[STRATEGY_COUNT];
        for (int s = 0; s < STRATEGY_COUNT; s++)
            before[s] = option_ns(&job, (enum strategy)s);
        for (job.scan_gps = 1000; job.scan_gps > 0.1; job.scan_gps /= 4)
            for (int s = 0; s < STRATEGY_COUNT; s++) {
                const double ns = option_ns(&job, (enum strategy)s);
                assert_true((ns > 0) == (before[s] > 0));
                assert_true(ns >= before[s] * (1 - 1e-9));
                assert_true(ns == 0 || s == STRATEGY_WINDOWS || s == STRATEGY_SIDES ||
                            ns >= 1 / job.scan_gps * (1 - 1e-9));
                before[s] = ns;
            }
    }
}

/* Scopes wait for a chain in each pass, and one pass over windows waits once. */
static void each_pass_has_a_chain(void **state)
{
    const struct job_request job = {.bytes = 137 * GIB, .accesses = 1000000, .input_bytes = 8};
    struct job_request longer = job;
    double before[STRATEGY_COUNT];

    (void)state;
    make_chip();
    fp.latency.tail_cycles = KNOWN_F64(1000);
    fp.conditions.sm_clock_khz = KNOWN_U32(2000000);
    longer.dependent_reads = 102;
    for (int s = 0; s < STRATEGY_COUNT; s++)
        before[s] = option_ns(&job, (enum strategy)s);
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        const double ns = option_ns(&longer, (enum strategy)s);
        const uint64_t passes = s == STRATEGY_SCOPES ? answer.passes : 1;
        if (before[s] > 0)
            check_within(ns - before[s], 0.05 * (double)passes, 1e-6);
    }
    assert_true(before[STRATEGY_SCOPES] > 0 && before[STRATEGY_FILTERED_WINDOWS] > 0);
}

/* The wait for the busiest bank grows with the square root of the reads. A launch of more reads is
 * longer, and the share of the wait vanishes. */
static void the_busiest_bank_ends_last(void **state)
{
    struct job_request even = {.bytes = 32 * GIB, .first_launch_us = 2.5, .accesses = 1};
    struct job_request job = even;
    double before = 0;
    double share = INFINITY;

    (void)state;
    make_chip();
    job.busiest_bank_ns = 5;
    for (uint64_t n = 1; n < 1ULL << 50; n *= 3) {
        job.accesses = even.accesses = n;
        const double all = naive_ns(&even) * (double)n;
        const double waits = naive_ns(&job) * (double)n - all;
        assert_true(waits > 0 && all + waits > before);
        check_within(waits, 5 * sqrt((double)n), 1e-3);
        before = all + waits;
        share = waits / all;
    }
    assert_true(share < 1e-4);
    job.accesses = even.accesses = 10000;
    job.lines = even.lines = 1.0 / 16; /* reads of a line are one read */
    check_within(naive_ns(&job) - naive_ns(&even), 5 * 25 / 10000.0, 1e-6);
    job.access = even.access = ACCESS_ATOMIC;
    job.in_reach_gbps = even.in_reach_gbps = 1000;
    check_near(naive_ns(&job), naive_ns(&even));
}

/* No job is shorter with a wait than without one, in any strategy. */
static void waits_shorten_no_strategy(void **state)
{
    struct rng rng = seeded();

    (void)state;
    make_chip();
    fp.latency.tail_cycles = KNOWN_F64(1000);
    fp.conditions.sm_clock_khz = KNOWN_U32(2000000);
    for (int round = 0; round < 200; round++) {
        struct job_request job = {.bytes = (1 + rng_below(&rng, 137)) * GIB,
                                  .element_bytes = 1U << rng_below(&rng, 11),
                                  .accesses = 1ULL << rng_below(&rng, 40),
                                  .input_bytes = 8,
                                  .lines = rng_unit(&rng)};
        double before[STRATEGY_COUNT];
        for (int s = 0; s < STRATEGY_COUNT; s++)
            before[s] = option_ns(&job, (enum strategy)s);
        job.dependent_reads = (uint32_t)(1 + rng_below(&rng, 100));
        job.busiest_bank_ns = PARAM_LEAST_REAL + 10 * rng_unit(&rng);
        for (int s = 0; s < STRATEGY_COUNT; s++)
            assert_true(option_ns(&job, (enum strategy)s) >= before[s] * (1 - 1e-12));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(touched_bytes_are_the_mean_of_all_positions),
        cmocka_unit_test(an_aligned_element_costs_what_was_measured),
        cmocka_unit_test(a_further_line_costs_a_line_without_its_sectors),
        cmocka_unit_test(without_all_sizes_a_line_costs_nothing),
        cmocka_unit_test(other_accesses_have_no_lines),
        cmocka_unit_test(longer_elements_are_not_faster),
        cmocka_unit_test(adjacent_elements_share_a_line),
        cmocka_unit_test(fewer_lines_are_faster),
        cmocka_unit_test(lines_that_are_read_often_come_from_the_l2),
        cmocka_unit_test(the_l1_keeps_lines_of_a_launch),
        cmocka_unit_test(misses_are_those_of_a_cache),
        cmocka_unit_test(other_data_take_room),
        cmocka_unit_test(reads_and_writes_share_memory),
        cmocka_unit_test(the_first_launch_has_its_own_time),
        cmocka_unit_test(cost_falls_with_the_batch),
        cmocka_unit_test(dependent_reads_add_their_latency),
        cmocka_unit_test(a_scan_hides_the_ends_of_accesses),
        cmocka_unit_test(a_slower_scan_is_not_faster),
        cmocka_unit_test(each_pass_has_a_chain),
        cmocka_unit_test(the_busiest_bank_ends_last),
        cmocka_unit_test(waits_shorten_no_strategy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
