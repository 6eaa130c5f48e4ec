/* test_cache_cases.c: data caches of simulated GPUs that are difficult to measure. In some cases
 * the answers of the model are replaced with results of real GPUs. Other cases are seeds of
 * test_caches. */
#include "base/units.h"
#include "tests/share.h"
#include "tests/sim/sim_hierarchy.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_SEEDS = 30 };

/* An L1 of 224 KiB with a random victim, and an L2 of this size, both with lines of 128 bytes. */
static void measure_changed(sim_change_fn change, uint32_t seed, uint64_t l2_kib,
                            const char *policy, struct hierarchy_estimate *out)
{
    char text[512];

    (void)snprintf(text, sizeof text,
                   "sms=8 memory=8G latency=300 spread=40 noise=gauss:2 outliers=0.0005@3000 "
                   "seed=%u l1=64@2M/2;miss=9 l2cache=%lluK l2fill=64 l2line=128 memory_miss=410 "
                   "clock_pair=8 tail=0.09@600 array=256K const=32@64;miss=70;sets=4x8 "
                   "l1d=2048@128;miss=262;sets=8x256;sectors=4%s",
                   seed, (unsigned long long)l2_kib, policy);
    sim_hierarchy_changed(text, change, out);
}

static void measure_again(uint32_t seed, uint64_t l2_kib, const char *policy,
                          struct hierarchy_estimate *out)
{
    measure_changed(NULL, seed, l2_kib, policy, out);
}

/* If victims are random, some lines of a cycle that does not fit stay in the cache. So fewer loads
 * miss if the words are farther apart. A load that takes long by chance looks like a miss. */
static void lines_of_l1_repeat(void **state)
{
    static const char *const policies[] = {"", ";policy=random"};
    enum { SEEDS = 12 };

    (void)state;
    for (uint32_t k = 0; k < 2 * test_share(SEEDS, SEEDS / 3); k++) {
        struct hierarchy_estimate e;
        measure_again(1 + k / 2, 61440, policies[k % 2], &e);
        const struct cache_facts *const l1 = &e.caches[CACHE_L1];
        if (!IS_KNOWN(l1->line_bytes) || l1->line_bytes.v != 128 ||
            l1->replacement == REPLACEMENT_UNKNOWN)
            fail_msg("seed %u%s: a line of %llu (%s), %s", 1 + k / 2, policies[k % 2],
                     (unsigned long long)l1->line_bytes.v, reason_slug(l1->line_bytes.reason),
                     replacement_name(l1->replacement));
    }
}

/* Changes cycles of 1/16 to 5/16 more lines than fit. No load misses in the shortest cycle, and
 * every load misses in the longest, like in an H200. */
static void make_ends_plain(struct observation *o)
{
    enum { LINE = 128, FITS = 224 * KIB / LINE, HIT = 46, MISS = 308 };
    const struct probe_spec *const s = &o->spec;

    if (s->path != PATH_L1 || s->scattered || s->stride_bytes != LINE || s->points[0] <= FITS)
        return;
    for (uint32_t p = 0; p < s->point_count; p++)
        for (uint32_t k = 0; k < s->samples; k++)
            if (s->points[p] < FITS / 16 * 18)
                o->result.values[p * s->samples + k] = HIT;
            else if (s->points[p] > FITS / 16 * 20)
                o->result.values[p * s->samples + k] = MISS;
}

/* If lines are read in order, an H200 keeps a little more than the certain capacity. Some
 * footprints in which scattered loads miss then have no misses. In a footprint that is 1/16 longer
 * only a few pairs of lines miss. */
static void keep_what_is_in_order(struct observation *o)
{
    enum { HIT = 46, MISS = 308, PAIR = 8, LONGER = 224 * KIB / 32 / 16 * 17 + 1 };
    const struct probe_spec *const s = &o->spec;

    if (s->path != PATH_L1 || s->scattered || s->warm_laps == 0 || s->stride_bytes > 64 ||
        s->warm_path != PATH_L1)
        return;
    for (uint32_t p = 0; p < s->point_count; p++)
        for (uint32_t k = 0; k < s->samples; k++) {
            const uint64_t at = k % s->points[p];
            const bool missing = s->points[p] == LONGER && at / PAIR % 256 == 52;
            o->result.values[p * s->samples + k] = missing ? MISS : HIT;
        }
}

/* Words in every second sector may not overflow the cache. This is evidence only if words in all
 * sectors do overflow it. */
static void a_line_is_not_ruled_out_by_what_stays(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    measure_changed(keep_what_is_in_order, 1, 61440, ";policy=random", &e);
    assert_true(IS_KNOWN(e.caches[CACHE_L1].line_bytes));
    assert_int_equal(e.caches[CACHE_L1].line_bytes.v, 128);
}

static uint32_t one_of; /* one word of this number misses, if words are about two lines apart */

/* Adds misses to walks with a stride of 11/8 or 9/8 of two lines, whose footprint contains 8/11 of
 * the lines that fit. */
static void miss_where_a_hash_would(struct observation *o)
{
    enum { MISS = 308 };
    const struct probe_spec *const s = &o->spec;

    if (s->path != PATH_L1 || !s->scattered || (s->stride_bytes != 352 && s->stride_bytes != 288))
        return;
    for (uint32_t k = 0; k < s->point_count * s->samples; k++)
        if (k % one_of == 0)
            o->result.values[k] = MISS;
}

/* In a footprint that fits, 5 to 14 % of the loads of an H100 miss, because a hash chooses its
 * sets. This rate is above noise, and below the rate of a walk of every line. The misses do not
 * mean that the line is longer. */
static void a_hash_overflows_what_would_fit(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    one_of = 7;
    measure_changed(miss_where_a_hash_would, 1, 61440, ";policy=random", &e);
    assert_true(IS_KNOWN(e.caches[CACHE_L1].line_bytes));
    assert_int_equal(e.caches[CACHE_L1].line_bytes.v, 128);
}

/* In footprints of 218 to 224 KiB six loads miss, each in another place. Six misses are more than
 * chance explains, and too few for a conclusion. */
static void blur_the_end(struct observation *o)
{
    enum { SECTOR = 32, FIRST = 7000, LAST = 224 * KIB / SECTOR, RUNS = 3, MISS = 308 };
    const struct probe_spec *const s = &o->spec;

    if (s->path != PATH_L1 || !s->scattered || s->stride_bytes != SECTOR)
        return;
    for (uint32_t p = 0; p < s->point_count; p++) {
        const bool is_blurred = s->points[p] >= FIRST && s->points[p] <= LAST;
        const bool is_enough = p >= RUNS && s->points[p - RUNS] == s->points[p];
        for (uint32_t k = 1; is_blurred && !is_enough && k <= 2; k++)
            o->result.values[p * s->samples + (p * 1013 + k * 37) % s->samples] = MISS;
    }
}

/* A hash may put one line more than fits into a few sets, long before a cache is full. */
static void a_line_and_a_policy_need_no_sharp_end(void **state)
{
    static const struct {
        const char *name;
        enum replacement found;
    } policies[] = {{"random", REPLACEMENT_NOT_LRU}, {"lru", REPLACEMENT_LRU}};
    struct hierarchy_estimate e;
    const struct cache_facts *const l1 = &e.caches[CACHE_L1];

    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        char gpu[512];
        (void)snprintf(
            gpu, sizeof gpu,
            "sms=8 memory=8G latency=300 spread=40 l1=64@2M/2;miss=9 l2cache=60M l2fill=64 "
            "l2line=128 memory_miss=410 clock_pair=8 array=256K const=32@64;miss=70;sets=4x8 "
            "l1d=2048@128;miss=262;sets=8x256;sectors=4;policy=%s",
            policies[i].name);
        sim_hierarchy_changed(gpu, blur_the_end, &e);
        assert_true(IS_KNOWN(l1->fits_bytes) && l1->fits_bytes.v < 7000 * 32);
        assert_true(IS_KNOWN(l1->line_bytes));
        assert_int_equal(l1->line_bytes.v, 128);
        assert_int_equal(l1->sets.reason, REASON_NO_CONTRAST);
        assert_int_equal(l1->replacement, policies[i].found);
    }
}

/* In one set of 14 ways with random victims, seven of 15 lines miss in less than half of the laps.
 * The seven lines look like the lines of a second set. */
static void one_set_with_random_victims_is_not_two(void **state)
{
    struct hierarchy_estimate e;
    const struct cache_facts *const constant = &e.caches[CACHE_CONSTANT];

    (void)state;
    sim_hierarchy_changed(
        "sms=57 memory=8G latency=336 spread=9 noise=gauss:4 outliers=0.0050@800 seed=3894 "
        "l1=64@2M/2;miss=9 l2cache=1736704 l2fill=64 memory_miss=238 clock_pair=1 l2keeps=1 "
        "l2line=64 page_tables=64M@114 "
        "l1d=176@128;miss=120;sets=11x16;policy=fifo;block=4;sectors=4 "
        "const=14@128;miss=60;sets=14x1;policy=random;hash=xor;sectors=4",
        NULL, &e);
    assert_false(IS_KNOWN(constant->sets) && constant->sets.v != 1);
    assert_false(IS_KNOWN(constant->ways) && constant->ways.v != 14);
}

/* The capacity beside an amount of shared memory is found even if the line length is unknown. */
static void divisions_are_found_without_a_line(void **state)
{
    struct hierarchy_estimate e;
    const struct cache_facts *const l1 = &e.caches[CACHE_L1];

    (void)state;
    one_of = 2;
    measure_changed(miss_where_a_hash_would, 1, 61440, ";policy=random", &e);
    assert_false(IS_KNOWN(l1->line_bytes));
    assert_int_equal(l1->carveout_count, 6);
    for (uint32_t k = 0; k < l1->carveout_count; k++) {
        assert_true(IS_KNOWN(l1->carveouts[k].fits_bytes));
        /* The second size is searched with a resolution of a sector, the others with a resolution
         * of a thirty-second. */
        assert_true(k <= 1 || l1->carveouts[k].fits_bytes.v < l1->carveouts[k - 1].fits_bytes.v);
    }
}

/* One cycle length is enough to prove that the cache is not LRU, whatever the misses at other
 * lengths are. */
static void a_policy_needs_the_right_length(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    measure_changed(make_ends_plain, 1, 61440, ";policy=random", &e);
    assert_int_equal(e.caches[CACHE_L1].replacement, REPLACEMENT_NOT_LRU);
}

/* In cycles of 1/16, 3/16 and 5/16 more lines than fit, the same third of the lines misses in every
 * lap. */
static void make_three_lengths_steady(struct observation *o)
{
    enum { LINE = 128, FITS = 224 * KIB / LINE, HIT = 46, MISS = 308 };
    const struct probe_spec *const s = &o->spec;

    if (s->path != PATH_L1 || s->scattered || s->stride_bytes != LINE || s->points[0] < FITS)
        return;
    for (uint32_t p = 0; p < s->point_count; p++)
        for (uint32_t sixteenths = 17; sixteenths <= 21; sixteenths += 2)
            for (uint32_t k = 0;
                 llabs((long long)s->points[p] - FITS / 16 * sixteenths) < FITS / 100 &&
                 k < s->samples;
                 k++)
                o->result.values[p * s->samples + k] = k % s->points[p] % 3 == 0 ? MISS : HIT;
}

/* An H200 misses the same lines in every lap of three lengths, and different lines at other
 * lengths. */
static void a_policy_needs_many_lengths(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    measure_changed(make_three_lengths_steady, 1, 61440, ";policy=random", &e);
    assert_int_equal(e.caches[CACHE_L1].replacement, REPLACEMENT_NOT_LRU);
}

/* An L1 has more lines than a run has loads, so the run ends in the first lap. All SMs of the model
 * draw the same victims, so one lap is the same in all runs. */
static void a_policy_needs_two_laps(void **state)
{
    static const struct {
        const char *policy;
        enum replacement replacement;
    } cases[] = {{"", REPLACEMENT_LRU},
                 {";policy=fifo", REPLACEMENT_LRU},
                 {";policy=random", REPLACEMENT_NOT_LRU}};
    static const char *const shapes[] = {"2432@32;miss=45;sets=19x128",
                                         "4096@32;miss=45;sets=16x256",
                                         "8192@32;miss=45;sets=16x512"};

    (void)state;
    for (uint32_t k = 0; k < 3 * sizeof shapes / sizeof shapes[0]; k++) {
        struct hierarchy_estimate e;
        char text[512];
        (void)snprintf(text, sizeof text,
                       "sms=18 memory=8G latency=247 noise=gauss:1.5 outliers=0.005@800 seed=%u "
                       "l1=64@2M/2;miss=9 l2cache=2850816 l2fill=32 memory_miss=213 clock_pair=8 "
                       "l1d=%s;hash=xor%s",
                       k + 1, shapes[k / 3], cases[k % 3].policy);
        sim_hierarchy(text, &e);
        const struct cache_facts *const l1 = &e.caches[CACHE_L1];
        if (l1->replacement != cases[k % 3].replacement)
            fail_msg("%s%s: %s", shapes[k / 3], cases[k % 3].policy,
                     replacement_name(l1->replacement));
        assert_non_null(strchr(l1->trace, 'M'));
        assert_int_equal(strchr(l1->trace, 'H') != NULL, l1->replacement == REPLACEMENT_NOT_LRU);
    }
}

/* In a footprint that is little longer than the L2, the miss rate is near the limit for a footprint
 * that fits. The footprint counts as fitting by chance. */
static void lines_of_l2_repeat(void **state)
{
    enum { SEEDS = 24, BORDER_KIB = 32 << 10, LEAST_KIB = 32 };

    (void)state;
    for (uint32_t seed = 1; seed <= test_share(SEEDS, SEEDS / 4); seed++) {
        struct hierarchy_estimate e;
        measure_again(seed, BORDER_KIB - LEAST_KIB * (1 + seed % 6), "", &e);
        const struct cache_facts *const l2 = &e.caches[CACHE_L2];
        if (!IS_KNOWN(l2->line_bytes) || l2->line_bytes.v != 128 || !IS_KNOWN(l2->fits_bytes))
            fail_msg("seed %u: a line of %llu (%s)", seed, (unsigned long long)l2->line_bytes.v,
                     reason_slug(l2->line_bytes.reason));
    }
}

/* The longest footprint of the sweep that fits is 1.5 MiB. Some of its loads are delayed by
 * chance. */
static void delay_longest(struct observation *o)
{
    enum { LINES = 3 * MIB / 2 / 128, SWEEP_POINTS = 20, DELAYED = 12, LATE = 2000 };
    const struct probe_spec *const s = &o->spec;

    if (!s->sweep_footprint || s->point_count < SWEEP_POINTS)
        return;
    for (uint32_t p = 0; p < s->point_count; p++)
        for (uint32_t k = 0; s->points[p] == LINES && k < DELAYED; k++)
            o->result.values[p * s->samples + k * 64] = LATE;
}

/* A footprint that only the sweep classified as too long does not limit the measured size. */
static void a_size_of_l2_goes_on(void **state)
{
    enum { L2_KIB = 1792, STEP_KIB = 32 };
    struct hierarchy_estimate e;

    (void)state;
    measure_changed(delay_longest, 1, L2_KIB, "", &e);
    assert_true(IS_KNOWN(e.caches[CACHE_L2].fits_bytes));
    assert_in_range(e.caches[CACHE_L2].fits_bytes.v, (L2_KIB - STEP_KIB) * KIB,
                    (L2_KIB + STEP_KIB) * KIB);
}

/* In the second walk of footprints of 1.5 MiB and more, few of the first loads miss. The miss rate
 * is about the limit for a footprint that fits. */
static void spare_border(struct observation *o)
{
    enum { LINES = 3 * MIB / 2 / 128, HIT = 250, MISS = 700, MISSES = 5 };
    const struct probe_spec *const s = &o->spec;

    if (!s->sweep_footprint || s->points[0] < LINES || s->points[0] > LINES + 2)
        return;
    for (uint32_t k = 0; k < s->samples; k++)
        o->result.values[k] = k < MISSES ? MISS : HIT;
}

/* By chance, a footprint that is a little too long can count as fitting. Two walks of the footprint
 * are made, and both walks count. */
static void a_size_of_l2_ends(void **state)
{
    enum { L2_KIB = 1516, STEP_KIB = 32 };
    struct hierarchy_estimate e;

    (void)state;
    measure_changed(spare_border, 1, L2_KIB, "", &e);
    assert_true(IS_KNOWN(e.caches[CACHE_L2].fits_bytes));
    assert_in_range(e.caches[CACHE_L2].fits_bytes.v, (L2_KIB - STEP_KIB) * KIB, L2_KIB * KIB);
}

/* A few of the loads that measure only the time of a hit are delayed by chance. Because of that
 * noise most footprints below the size count as too long. */
static void a_size_of_l2_knows_the_noise(void **state)
{
    enum { L2_BYTES = 3407872, STEP = 64 * KIB };
    struct hierarchy_estimate e;

    (void)state;
    sim_hierarchy("sms=32 memory=8G latency=229 spread=23 noise=none outliers=0.0050@800 seed=1297 "
                  "l1=64@2M/2;miss=9 l2cache=3407872 l2fill=32 memory_miss=224 clock_pair=2 "
                  "l2keeps=0 l2line=64 page_tables=64M@0 l1d=20@64;miss=50;sets=5x4;policy=random;"
                  "sectors=2 const=28@256;miss=60;sets=7x4;hash=xor;sectors=4",
                  &e);
    const struct maybe_u64 size = e.caches[CACHE_L2].size_bytes;
    if (IS_KNOWN(size))
        assert_in_range(size.v, L2_BYTES - STEP, L2_BYTES + STEP);
}

/* Checks that the line length of an L1 of this description is this number or unknown. The length
 * may be unknown for at most `most_unknown` of LINE_SEEDS seeds of the noise. */
static void expect_line(const char *l1, uint64_t line_bytes, uint32_t most_unknown)
{
    const uint32_t seeds = test_share(LINE_SEEDS, LINE_SEEDS / 3);
    uint32_t unknown = 0;

    for (uint32_t seed = 1; seed <= seeds; seed++) {
        struct hierarchy_estimate e;
        char text[512];
        (void)snprintf(text, sizeof text,
                       "sms=8 memory=8G latency=345 noise=uniform:3 outliers=0.005@800 seed=%u "
                       "l1=64@2M/2;miss=9 l2cache=5603328 l2fill=64 memory_miss=408 clock_pair=11 "
                       "l1d=%s",
                       seed, l1);
        sim_hierarchy(text, &e);
        const struct maybe_u64 line = e.caches[CACHE_L1].line_bytes;
        unknown += !IS_KNOWN(line);
        if (IS_KNOWN(line) && line.v != line_bytes)
            fail_msg("seed %u: a line of %llu", seed, (unsigned long long)line.v);
    }
    assert_true(unknown * LINE_SEEDS <= most_unknown * seeds);
}

static void expect_short_line(const char *l1)
{
    expect_line(l1, 32, LINE_SEEDS / 3);
}

/* A set of seven ways holds one block of four lines and a part of the next. So the 260th of 448
 * lines overflows a set, though 448 lines fit elsewhere. Words that are spread over 518 lines
 * rarely miss. */
static void half_full_sets_are_no_shorter_lines(void **state)
{
    (void)state;
    expect_line("448@256;miss=131;sets=7x64;policy=random;block=4;sectors=4", 256, LINE_SEEDS);
}

/* If four adjacent lines have the same set, they overflow together. A line looks longer because of
 * its neighbors, and only walks with other spacings show the true length. */
static void blocks_of_sets_are_no_longer_lines(void **state)
{
    (void)state;
    expect_short_line("1024@32;miss=147;sets=16x64;policy=fifo;block=4");
}

/* If the distance of words and the number of sets have a common divisor, some sets contain more
 * words than others. */
static void any_number_of_sets_is_spaced_evenly(void **state)
{
    (void)state;
    expect_short_line("300@32;miss=147;sets=10x30;policy=fifo");
    expect_short_line("432@32;miss=147;sets=12x36");
    expect_short_line("440@32;miss=147;sets=20x22;policy=fifo");
}

/* With stretches of 1 GiB there are only eight first loads, which are too few for a decision. With
 * stretches half as long there are sixteen, and every second one is as fast as any load. */
static void half_a_page_table_is_none(void **state)
{
    enum { LONGER = 350, BESIDE = LONGER * 15 / 100 };
    struct hierarchy_estimate e;

    (void)state;
    sim_hierarchy("sms=5 memory=8G latency=213 spread=6 noise=gauss:4 outliers=0.0005@800 "
                  "seed=9029 l1=64@2M/2;miss=9 l2cache=4521984 l2fill=64 memory_miss=322 "
                  "clock_pair=3 l2keeps=2 l2line=128 page_tables=1024M@350 "
                  "l1d=507@64;miss=138;sets=13x39;sectors=1 "
                  "const=144@64;miss=60;sets=9x16;hash=xor;sectors=2",
                  &e);
    const double longer = e.latency.p6_cycles.v - e.latency.p5_cycles.v;
    assert_true(IS_KNOWN(e.latency.p5_cycles));
    assert_true(!IS_KNOWN(e.latency.p6_cycles) || fabs(longer - LONGER) < BESIDE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_l1_repeat),
        cmocka_unit_test(a_line_is_not_ruled_out_by_what_stays),
        cmocka_unit_test(a_hash_overflows_what_would_fit),
        cmocka_unit_test(a_line_and_a_policy_need_no_sharp_end),
        cmocka_unit_test(one_set_with_random_victims_is_not_two),
        cmocka_unit_test(divisions_are_found_without_a_line),
        cmocka_unit_test(a_policy_needs_the_right_length),
        cmocka_unit_test(a_policy_needs_many_lengths),
        cmocka_unit_test(a_policy_needs_two_laps),
        cmocka_unit_test(lines_of_l2_repeat),
        cmocka_unit_test(a_size_of_l2_goes_on),
        cmocka_unit_test(a_size_of_l2_ends),
        cmocka_unit_test(a_size_of_l2_knows_the_noise),
        cmocka_unit_test(half_full_sets_are_no_shorter_lines),
        cmocka_unit_test(blocks_of_sets_are_no_longer_lines),
        cmocka_unit_test(any_number_of_sets_is_spaced_evenly),
        cmocka_unit_test(half_a_page_table_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
