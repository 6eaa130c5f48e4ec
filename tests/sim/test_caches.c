/* test_caches.c: the data caches of simulated GPUs. What tables 2 to 6 of Mei and Chu 2016 say of
 * the GTX560Ti, GTX780 and GTX980 is found without being told; of random hierarchies, what is
 * reported is right or not reported.
 *
 * REACH_CASES=n: GPUs (40, fewer under a sanitizer). REACH_SEED repeats a run. REACH_SHOW=1 prints
 * what was found.
 */
#include "analysis/caches/hierarchy.h"
#include "base/rng.h"
#include "base/units.h"
#include "campaign/campaign.h"
#include "gpu/gpu.h"
#include "gpu/sim/sim_desc.h"
#include "tests/share.h"
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
#include <time.h>

enum { CASES = 40, SANITIZED_CASES = 20, MOST_PROBES = 200, WARM_UP_US = 100, LINE_SEEDS = 30 };

static void ask(struct gpu *gpu, struct observation_set *set, const struct probe_spec *spec)
{
    struct err err = {0};

    if (sim_probe(gpu, set, spec, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void show(const struct hierarchy_estimate *e)
{
    if (!getenv("REACH_SHOW"))
        return;
    for (uint32_t k = 0; k < CACHE_KIND_COUNT; k++) {
        const struct cache_facts *const c = &e->caches[k];
        printf("# %-9s size %llu (%s) line %llu sector %llu fill %llu sets %u (%s) ways %u %s "
               "latency %.0f, miss %.0f, as L1: %s %s\n",
               cache_kind_name(c->kind), (unsigned long long)c->size_bytes.v,
               reason_slug(c->size_bytes.reason), (unsigned long long)c->line_bytes.v,
               (unsigned long long)c->sector_bytes.v, (unsigned long long)c->fill_bytes.v,
               c->sets.v, reason_slug(c->sets.reason), c->ways.v, replacement_name(c->replacement),
               c->latency_cycles.v, c->miss_latency_cycles.v, finding_name(c->same_as_l1),
               c->trace);
        for (uint32_t i = 0; i < c->carveout_count; i++)
            printf("#   with %llu of shared memory: %llu\n",
                   (unsigned long long)c->carveouts[i].shared_bytes,
                   (unsigned long long)c->carveouts[i].size_bytes.v);
    }
    printf("# memory: P1 %.0f P4 %.0f P5 %.0f P6 %.0f (%s) near %.0f far %.0f tail %.0f of %.3f\n",
           e->latency.p1_cycles.v, e->latency.p4_cycles.v, e->latency.p5_cycles.v,
           e->latency.p6_cycles.v, reason_slug(e->latency.p6_cycles.reason),
           e->latency.near_cycles.v, e->latency.far_cycles.v, e->latency.tail_cycles.v,
           e->latency.tail_share.v);
}

/* NULL, or what changes the answer to a probe. */
static void (*change_answer)(struct observation *o);

static void measure(const char *text, struct hierarchy_estimate *out)
{
    const struct probe_spec warm_up = campaign_warm_up(WARM_UP_US, 1);
    struct observation_set set = {.count = 0};
    struct gpu *gpu = NULL;
    struct err err = {0};
    uint32_t probes = 0;
    size_t values = 0;

    if (sim_open(text, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    gpu_describe(gpu, &set.gpu, &set.limits);
    ask(gpu, &set, &warm_up);
    for (hierarchy_estimate(&set, out); out->walks.ask_count > 0 && probes < MOST_PROBES;
         hierarchy_estimate(&set, out)) {
        for (uint32_t i = 0; i < out->walks.ask_count; i++, probes++) {
            ask(gpu, &set, &out->walks.asks[i]);
            if (change_answer)
                change_answer(&set.items[set.count - 1]);
        }
    }
    for (size_t i = 0; i < set.count; i++)
        values += set.items[i].result.value_count;
    if (getenv("REACH_SHOW"))
        printf("# %.160s\n# %u probes, %zu values\n", text, probes, values);
    show(out);
    if (out->walks.ask_count > 0)
        fail_msg("%s: asks again and again", text);
    observation_set_free(&set);
    gpu_close(gpu);
}

static void expect(const struct cache_facts *c, uint64_t size, uint64_t line, uint64_t sector,
                   uint32_t sets, uint32_t ways, enum replacement replacement)
{
    assert_true(IS_KNOWN(c->size_bytes) && IS_KNOWN(c->sets));
    assert_int_equal(c->size_bytes.v, size);
    assert_int_equal(c->line_bytes.v, line);
    assert_int_equal(c->sector_bytes.v, sector);
    assert_int_equal(c->sets.v, sets);
    assert_int_equal(c->ways.v, ways);
    assert_int_equal(c->replacement, replacement);
}

/* The paper's L2s: fills of 32 bytes, not LRU. */
static void expect_l2(const struct cache_facts *c, uint64_t size)
{
    assert_int_equal(c->size_bytes.v, size);
    assert_int_equal(c->fill_bytes.v, 32);
    assert_int_equal(c->line_bytes.v, 32);
    assert_int_equal(c->replacement, REPLACEMENT_NOT_LRU);
}

static void expect_page_tables(const struct fingerprint_latency *l, double cycles)
{
    assert_true(IS_KNOWN(l->p6_cycles));
    assert_true(fabs(l->p6_cycles.v - l->p5_cycles.v - cycles) < 0.1 * cycles);
}

static void gtx560ti(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    measure("gtx560ti", &e);
    expect(&e.caches[CACHE_L1], 16 * KIB, 128, 128, 32, 4, REPLACEMENT_NOT_LRU);
    assert_non_null(strchr(e.caches[CACHE_L1].trace, 'H'));
    assert_non_null(strchr(e.caches[CACHE_L1].trace, 'M'));
    expect(&e.caches[CACHE_READ_ONLY], 12 * KIB, 32, 32, 4, 96, REPLACEMENT_LRU);
    assert_int_equal(e.caches[CACHE_READ_ONLY].same_as_l1, FINDING_NO);
    expect_l2(&e.caches[CACHE_L2], 512 * KIB);
    /* Its memory is too short for pages that no level holds. */
    assert_int_equal(e.latency.p6_cycles.reason, REASON_BEYOND_MEMORY);
}

static void gtx780(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    measure("gtx780", &e);
    assert_int_equal(e.caches[CACHE_L1].size_bytes.known, MAYBE_NOT_OBSERVABLE);
    expect(&e.caches[CACHE_READ_ONLY], 12 * KIB, 32, 32, 4, 96, REPLACEMENT_LRU);
    expect_l2(&e.caches[CACHE_L2], 1536 * KIB);
    expect_page_tables(&e.latency, 300);
}

static void gtx980(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    measure("gtx980", &e);
    expect(&e.caches[CACHE_L1], 24 * KIB, 32, 32, 4, 192, REPLACEMENT_LRU);
    expect(&e.caches[CACHE_READ_ONLY], 24 * KIB, 32, 32, 4, 192, REPLACEMENT_LRU);
    assert_int_equal(e.caches[CACHE_READ_ONLY].same_as_l1, FINDING_YES);
    expect_l2(&e.caches[CACHE_L2], 2048 * KIB);
    expect_page_tables(&e.latency, 600);
}

/* ---- the same answer each time ---- */

/* An L1 of 224 KiB with a random victim, and an L2 of this size, both with lines of 128 bytes.
 */
static void measure_again(uint32_t seed, uint64_t l2_kib, const char *policy,
                          struct hierarchy_estimate *out)
{
    char text[512];

    (void)snprintf(text, sizeof text,
                   "sms=8 memory=8G latency=300 spread=40 noise=gauss:2 outliers=0.0005@3000 "
                   "seed=%u l1=64@2M/2;miss=9 l2cache=%lluK l2fill=64 l2line=128 memory_miss=410 "
                   "clock_pair=8 tail=0.09@600 array=256K const=32@64;miss=70;sets=4x8 "
                   "l1d=2048@128;miss=262;sets=8x256;sectors=4%s",
                   seed, (unsigned long long)l2_kib, policy);
    measure(text, out);
}

/* A random victim leaves some of the lines of a cycle that does not fit, so that fewer miss the
 * farther apart the words are. A load that takes long by chance looks like a miss. */
static void lines_of_l1_repeat(void **state)
{
    static const char *const policies[] = {"", ";policy=random"};
    enum { SEEDS = 12 };

    (void)state;
    for (uint32_t k = 0; k < 2 * SEEDS; k++) {
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

/* Cycles of 1/16 to 5/16 more lines than fit: nothing misses in the shortest, and everything in the
 * longest, as in an H200. */
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

/* Walked in order, an H200 keeps a little more than what fits for certain: a footprint in which
 * scattered loads miss has no misses then, and in one of 1/16 more only a few pairs of lines do. */
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

/* That one word of each two sectors does not overflow says nothing if all words do not either. */
static void a_line_is_not_ruled_out_by_what_stays(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    change_answer = keep_what_is_in_order;
    measure_again(1, 61440, ";policy=random", &e);
    change_answer = NULL;
    assert_true(IS_KNOWN(e.caches[CACHE_L1].line_bytes));
    assert_int_equal(e.caches[CACHE_L1].line_bytes.v, 128);
}

static uint32_t one_of; /* so many words at twice the distance of lines misses */

/* Words in 11/8 and 9/8 of two lines, of a footprint in which 8/11 of the lines that fit are
 * walked. */
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

/* Of what would fit, 5 to 14 % of the loads of an H100 missed: a hash chooses its sets. That is
 * more than where nothing misses and less than where every line is walked; but no longer line
 * misses together. */
static void a_hash_overflows_what_would_fit(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    change_answer = miss_where_a_hash_would;
    one_of = 7;
    measure_again(1, 61440, ";policy=random", &e);
    change_answer = NULL;
    assert_true(IS_KNOWN(e.caches[CACHE_L1].line_bytes));
    assert_int_equal(e.caches[CACHE_L1].line_bytes.v, 128);
}

/* In footprints of 218 to 224 KiB six loads miss, each in another place: more than by chance, and
 * too few to be sure. */
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

/* A hash may give a few sets one line too many long before a cache is full. */
static void a_line_needs_no_sharp_end(void **state)
{
    struct hierarchy_estimate e;
    const struct cache_facts *const l1 = &e.caches[CACHE_L1];

    (void)state;
    change_answer = blur_the_end;
    measure("sms=8 memory=8G latency=300 spread=40 l1=64@2M/2;miss=9 l2cache=60M l2fill=64 "
            "l2line=128 memory_miss=410 clock_pair=8 array=256K const=32@64;miss=70;sets=4x8 "
            "l1d=2048@128;miss=262;sets=8x256;sectors=4;policy=random",
            &e);
    change_answer = NULL;
    assert_true(IS_KNOWN(l1->fits_bytes) && l1->fits_bytes.v < 7000 * 32);
    assert_true(IS_KNOWN(l1->line_bytes));
    assert_int_equal(l1->line_bytes.v, 128);
    assert_int_equal(l1->sets.reason, REASON_NO_CONTRAST);
}

/* What fits beside shared memory needs no line. */
static void divisions_are_found_without_a_line(void **state)
{
    struct hierarchy_estimate e;
    const struct cache_facts *const l1 = &e.caches[CACHE_L1];

    (void)state;
    change_answer = miss_where_a_hash_would;
    one_of = 2;
    measure_again(1, 61440, ";policy=random", &e);
    change_answer = NULL;
    assert_false(IS_KNOWN(l1->line_bytes));
    assert_int_equal(l1->carveout_count, 6);
    for (uint32_t k = 0; k < l1->carveout_count; k++) {
        assert_true(IS_KNOWN(l1->carveouts[k].fits_bytes));
        /* The second is searched to the sector, the others in steps of a thirty-second. */
        assert_true(k <= 1 || l1->carveouts[k].fits_bytes.v < l1->carveouts[k - 1].fits_bytes.v);
    }
}

/* One of several lengths tells that it is not LRU, whatever the others look like. */
static void a_policy_needs_the_right_length(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    change_answer = make_ends_plain;
    measure_again(1, 61440, ";policy=random", &e);
    change_answer = NULL;
    assert_int_equal(e.caches[CACHE_L1].replacement, REPLACEMENT_NOT_LRU);
}

/* Cycles of 1/16, 3/16 and 5/16 more lines than fit: the same third of the lines misses in every
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

/* An H200 once missed the same lines in every lap of three lengths, and at other lengths now these
 * and now those. */
static void a_policy_needs_many_lengths(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    change_answer = make_three_lengths_steady;
    measure_again(1, 61440, ";policy=random", &e);
    change_answer = NULL;
    assert_int_equal(e.caches[CACHE_L1].replacement, REPLACEMENT_NOT_LRU);
}

/* An L1 of more lines than a run has loads: the run ends in the first lap. All SMs of the model
 * draw the same victims, so that one lap looks alike in all runs. */
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
        measure(text, &e);
        const struct cache_facts *const l1 = &e.caches[CACHE_L1];
        if (l1->replacement != cases[k % 3].replacement)
            fail_msg("%s%s: %s", shapes[k / 3], cases[k % 3].policy,
                     replacement_name(l1->replacement));
        assert_non_null(strchr(l1->trace, 'M'));
        assert_int_equal(strchr(l1->trace, 'H') != NULL, l1->replacement == REPLACEMENT_NOT_LRU);
    }
}

/* Of a footprint that is little longer than the L2, about as many loads miss as may miss of one
 * that fits: it is chance whether it counts as one. */
static void lines_of_l2_repeat(void **state)
{
    enum { SEEDS = 24, BORDER_KIB = 32 << 10, LEAST_KIB = 32 };

    (void)state;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        struct hierarchy_estimate e;
        measure_again(seed, BORDER_KIB - LEAST_KIB * (1 + seed % 6), "", &e);
        const struct cache_facts *const l2 = &e.caches[CACHE_L2];
        if (!IS_KNOWN(l2->line_bytes) || l2->line_bytes.v != 128 || !IS_KNOWN(l2->fits_bytes))
            fail_msg("seed %u: a line of %llu (%s)", seed, (unsigned long long)l2->line_bytes.v,
                     reason_slug(l2->line_bytes.reason));
    }
}

/* Loads of the longest footprint of the sweep that fits, of 1.5 MiB, are delayed by chance. */
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

/* A size does not end at a footprint that only the sweep took for one too long. */
static void a_size_of_l2_goes_on(void **state)
{
    enum { L2_KIB = 1792, STEP_KIB = 32 };
    struct hierarchy_estimate e;

    (void)state;
    change_answer = delay_longest;
    measure_again(1, L2_KIB, "", &e);
    change_answer = NULL;
    assert_true(IS_KNOWN(e.caches[CACHE_L2].fits_bytes));
    assert_in_range(e.caches[CACHE_L2].fits_bytes.v, (L2_KIB - STEP_KIB) * KIB,
                    (L2_KIB + STEP_KIB) * KIB);
}

/* The line of an L1 of this description has this length, whatever the noise, or is not known. */
static void expect_line(const char *l1, uint64_t line_bytes, uint32_t most_unknown)
{
    uint32_t unknown = 0;

    for (uint32_t seed = 1; seed <= LINE_SEEDS; seed++) {
        struct hierarchy_estimate e;
        char text[512];
        (void)snprintf(text, sizeof text,
                       "sms=8 memory=8G latency=345 noise=uniform:3 outliers=0.005@800 seed=%u "
                       "l1=64@2M/2;miss=9 l2cache=5603328 l2fill=64 memory_miss=408 clock_pair=11 "
                       "l1d=%s",
                       seed, l1);
        measure(text, &e);
        const struct maybe_u64 line = e.caches[CACHE_L1].line_bytes;
        unknown += !IS_KNOWN(line);
        if (IS_KNOWN(line) && line.v != line_bytes)
            fail_msg("seed %u: a line of %llu", seed, (unsigned long long)line.v);
    }
    assert_true(unknown <= most_unknown);
}

static void expect_short_line(const char *l1)
{
    expect_line(l1, 32, LINE_SEEDS / 3);
}

/* A set of seven ways holds one block of four lines and a part of the next. So the 260th of 448
 * lines overflows a set, though 448 lines fit elsewhere, and words that are spread over 518 miss
 * seldom. */
static void half_full_sets_are_no_shorter_lines(void **state)
{
    (void)state;
    expect_line("448@256;miss=131;sets=7x64;policy=random;block=4;sectors=4", 256, LINE_SEEDS);
}

/* Sets that are chosen for four lines in a row overflow together: by its neighbors a line looks
 * longer than it is, and only by the spacing it does not. */
static void blocks_of_sets_are_no_longer_lines(void **state)
{
    (void)state;
    expect_short_line("1024@32;miss=147;sets=16x64;policy=fifo;block=4");
}

/* Words at distances that have a divisor in common with the number of sets lie in some sets more
 * than in others. */
static void any_number_of_sets_is_spaced_evenly(void **state)
{
    (void)state;
    expect_short_line("300@32;miss=147;sets=10x30;policy=fifo");
    expect_short_line("432@32;miss=147;sets=12x36");
    expect_short_line("440@32;miss=147;sets=20x22;policy=fifo");
}

/* ---- random hierarchies ---- */

struct truth {
    uint64_t size, line, sector;
    uint32_t sets, ways;
    enum replacement replacement;
};

struct chip {
    char text[1024];
    struct truth l1, constant;
    bool has_ro;
    struct truth ro;
    uint64_t l2_bytes, fill;
    uint32_t latency, l1_miss, memory;
    uint32_t l2_keeps;
    uint64_t l2_line;
    uint32_t table_cycles; /* 0: it does not matter which page table a page is in */
};

static uint32_t right, not_sure, wrong;

/* Adds a cache of at most `most` bytes to the text. */
static void random_cache(struct rng *r, struct chip *c, const char *key, uint64_t most,
                         uint32_t miss, struct truth *out)
{
    static const char *const policies[] = {"", "", ";policy=fifo", ";policy=random"};
    const uint32_t policy = (uint32_t)rng_below(r, 4);
    const char *shape = "";
    size_t n = strlen(c->text);

    do {
        out->sector = 32ULL << rng_below(r, 2);
        out->line = out->sector << rng_below(r, 3);
        out->sets = 1U << rng_below(r, 8);
        if (rng_below(r, 4) == 0)
            out->sets = 1 + (uint32_t)rng_below(r, 40);
        out->ways = 1 + (uint32_t)rng_below(r, 16);
        out->size = out->line * out->sets * out->ways;
    } while (out->size > most || out->size < 1024);
    out->replacement = policy == 3 && out->ways > 1 ? REPLACEMENT_NOT_LRU : REPLACEMENT_LRU;
    if ((out->sets & (out->sets - 1)) == 0)
        shape = rng_below(r, 3) == 0 ? ";hash=xor" : rng_below(r, 3) == 0 ? ";block=4" : "";
    (void)snprintf(c->text + n, sizeof c->text - n, " %s=%u@%llu;miss=%u;sets=%ux%u%s%s;sectors=%u",
                   key, out->sets * out->ways, (unsigned long long)out->line, miss, out->ways,
                   out->sets, policies[policy], shape, (unsigned)(out->line / out->sector));
}

static void random_chip(struct rng *r, struct chip *c)
{
    static const char *const noises[] = {"none", "gauss:1.5", "gauss:4", "uniform:3"};
    static const double outliers[] = {0, 0.0005, 0.005};

    memset(c, 0, sizeof *c);
    c->latency = 150 + (uint32_t)rng_below(r, 200);
    c->l1_miss = 40 + (uint32_t)rng_below(r, 100);
    c->memory = 100 + (uint32_t)rng_below(r, 400);
    c->l2_bytes = (uint64_t)(256 + 32 * rng_below(r, 200)) * KIB;
    c->fill = 32ULL << rng_below(r, 3);
    c->has_ro = rng_below(r, 3) == 0;
    c->l2_keeps = (uint32_t)rng_below(r, 3);
    c->l2_line = c->fill << rng_below(r, 2);
    if (rng_below(r, 2) == 0)
        c->table_cycles = 60 + (uint32_t)rng_below(r, 500);
    (void)snprintf(c->text, sizeof c->text,
                   "sms=%u memory=8G latency=%u spread=%u noise=%s outliers=%.4f@800 seed=%u "
                   "l1=64@2M/2;miss=9 l2cache=%llu l2fill=%llu memory_miss=%u clock_pair=%u "
                   "l2keeps=%u l2line=%llu page_tables=%uM@%u",
                   2 + (uint32_t)rng_below(r, 60), c->latency, (uint32_t)rng_below(r, 30),
                   noises[rng_below(r, 4)], outliers[rng_below(r, 3)],
                   1 + (uint32_t)rng_below(r, 10000), (unsigned long long)c->l2_bytes,
                   (unsigned long long)c->fill, c->memory, 1 + (uint32_t)rng_below(r, 12),
                   c->l2_keeps, (unsigned long long)c->l2_line, 64U << rng_below(r, 5),
                   c->table_cycles);
    random_cache(r, c, "l1d", 256 * KIB, c->l1_miss, &c->l1);
    random_cache(r, c, "const", 16 * KIB, 60, &c->constant);
    if (c->has_ro)
        random_cache(r, c, "ro", 64 * KIB, c->l1_miss + 10, &c->ro);
}

static void count(const struct chip *chip, const char *what, bool known, uint64_t found,
                  uint64_t truth)
{
    right += known && found == truth;
    not_sure += !known;
    if (!known || found == truth)
        return;
    wrong++;
    printf("# WRONG: %s is %llu, found %llu: %s\n", what, (unsigned long long)truth,
           (unsigned long long)found, chip->text);
}

static void judge_cache(const struct chip *chip, const struct cache_facts *f, const struct truth *t)
{
    count(chip, "size", IS_KNOWN(f->size_bytes), f->size_bytes.v, t->size);
    count(chip, "line", IS_KNOWN(f->line_bytes), f->line_bytes.v, t->line);
    count(chip, "sector", IS_KNOWN(f->sector_bytes), f->sector_bytes.v, t->sector);
    count(chip, "sets", IS_KNOWN(f->sets), f->sets.v, t->sets);
    count(chip, "ways", IS_KNOWN(f->ways), f->ways.v, t->ways);
    count(chip, "replacement", f->replacement != REPLACEMENT_UNKNOWN, f->replacement,
          t->replacement);
}

/* To 15 %, because it is the difference of two modes; none where there is none. */
static void judge_page_tables(const struct chip *chip, const struct fingerprint_latency *l)
{
    const double longer = l->p6_cycles.v - l->p5_cycles.v;
    const bool known = IS_KNOWN(l->p6_cycles) || l->p6_cycles.known == MAYBE_NOT_OBSERVABLE;
    const bool close = IS_KNOWN(l->p6_cycles)
                           ? fabs(longer - chip->table_cycles) <= 0.15 * chip->table_cycles
                           : chip->table_cycles == 0;

    count(chip, "cycles of another page table", known,
          close ? chip->table_cycles : (uint64_t)fabs(longer), chip->table_cycles);
}

static void random_hierarchies(void **state)
{
    const char *const given = getenv("REACH_SEED");
    const char *const number = getenv("REACH_CASES");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    const uint32_t cases =
        number ? (uint32_t)strtoul(number, NULL, 0) : (uint32_t)test_share(CASES, SANITIZED_CASES);
    struct rng rng = {.state = seed};

    (void)state;
    printf("# REACH_SEED=%llu REACH_CASES=%u\n", (unsigned long long)seed, cases);
    for (uint32_t i = 0; i < cases; i++) {
        struct chip chip;
        struct hierarchy_estimate e;
        random_chip(&rng, &chip);
        measure(chip.text, &e);
        judge_cache(&chip, &e.caches[CACHE_L1], &chip.l1);
        judge_cache(&chip, &e.caches[CACHE_CONSTANT], &chip.constant);
        judge_cache(&chip, &e.caches[CACHE_READ_ONLY], chip.has_ro ? &chip.ro : &chip.l1);
        count(&chip, "as L1", e.caches[CACHE_READ_ONLY].same_as_l1 != FINDING_UNKNOWN,
              e.caches[CACHE_READ_ONLY].same_as_l1, chip.has_ro ? FINDING_NO : FINDING_YES);
        count(&chip, "fill of the L2", IS_KNOWN(e.caches[CACHE_L2].fill_bytes),
              e.caches[CACHE_L2].fill_bytes.v, chip.fill);
        count(&chip, "replacement of the L2", e.caches[CACHE_L2].replacement != REPLACEMENT_UNKNOWN,
              e.caches[CACHE_L2].replacement,
              chip.l2_keeps == SIM_L2_KEEPS_LAST ? REPLACEMENT_LRU : REPLACEMENT_NOT_LRU);
        count(&chip, "line of the L2", IS_KNOWN(e.caches[CACHE_L2].line_bytes),
              e.caches[CACHE_L2].line_bytes.v, chip.l2_line);
        judge_page_tables(&chip, &e.latency);
        /* To the step of the search, a thirty-second of the power of two below; three of a
         * thousand loads may miss in what counts as fitting. */
        const uint64_t size = e.caches[CACHE_L2].size_bytes.v;
        count(&chip, "size of the L2", IS_KNOWN(e.caches[CACHE_L2].size_bytes),
              size < chip.l2_bytes * 1.01 && size + chip.l2_bytes / 16 > chip.l2_bytes
                  ? chip.l2_bytes
                  : size,
              chip.l2_bytes);
    }
    printf("# %u numbers right, %u not sure, %u wrong\n", right, not_sure, wrong);
    assert_int_equal(wrong, 0);
    assert_true(right > 2 * not_sure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gtx560ti),
        cmocka_unit_test(gtx780),
        cmocka_unit_test(gtx980),
        cmocka_unit_test(lines_of_l1_repeat),
        cmocka_unit_test(a_line_is_not_ruled_out_by_what_stays),
        cmocka_unit_test(a_hash_overflows_what_would_fit),
        cmocka_unit_test(a_line_needs_no_sharp_end),
        cmocka_unit_test(divisions_are_found_without_a_line),
        cmocka_unit_test(a_policy_needs_the_right_length),
        cmocka_unit_test(a_policy_needs_many_lengths),
        cmocka_unit_test(a_policy_needs_two_laps),
        cmocka_unit_test(lines_of_l2_repeat),
        cmocka_unit_test(a_size_of_l2_goes_on),
        cmocka_unit_test(blocks_of_sets_are_no_longer_lines),
        cmocka_unit_test(half_full_sets_are_no_shorter_lines),
        cmocka_unit_test(any_number_of_sets_is_spaced_evenly),
        cmocka_unit_test(random_hierarchies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
