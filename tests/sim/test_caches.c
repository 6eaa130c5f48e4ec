/* test_caches.c: the data caches of simulated GPUs. The values in tables 2 to 6 of Mei and Chu 2016
 * for the GTX560Ti, GTX780 and GTX980 are found without prior knowledge. For random hierarchies
 * each reported value is right. REACH_CASES=n sets the number of GPUs (40, fewer under a
 * sanitizer). REACH_SEED repeats a run. REACH_SHOW=1 prints the results. */
#include "base/rng.h"
#include "base/units.h"
#include "gpu/sim/sim_desc.h"
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
#include <time.h>

enum { CASES = 40, SANITIZED_CASES = 20 };

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

/* The L2 caches of the paper have fills of 32 bytes and are not LRU. */
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
    sim_hierarchy("gtx560ti", &e);
    expect(&e.caches[CACHE_L1], 16 * KIB, 128, 128, 32, 4, REPLACEMENT_NOT_LRU);
    assert_non_null(strchr(e.caches[CACHE_L1].trace, 'H'));
    assert_non_null(strchr(e.caches[CACHE_L1].trace, 'M'));
    expect(&e.caches[CACHE_READ_ONLY], 12 * KIB, 32, 32, 4, 96, REPLACEMENT_LRU);
    assert_int_equal(e.caches[CACHE_READ_ONLY].same_as_l1, FINDING_NO);
    expect_l2(&e.caches[CACHE_L2], 512 * KIB);
    /* The memory of the GPU is too short to contain pages that no level holds. */
    assert_int_equal(e.latency.p6_cycles.reason, REASON_BEYOND_MEMORY);
}

static void gtx780(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    sim_hierarchy("gtx780", &e);
    assert_int_equal(e.caches[CACHE_L1].size_bytes.known, MAYBE_NOT_OBSERVABLE);
    expect(&e.caches[CACHE_READ_ONLY], 12 * KIB, 32, 32, 4, 96, REPLACEMENT_LRU);
    expect_l2(&e.caches[CACHE_L2], 1536 * KIB);
    expect_page_tables(&e.latency, 300);
}

static void gtx980(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    sim_hierarchy("gtx980", &e);
    expect(&e.caches[CACHE_L1], 24 * KIB, 32, 32, 4, 192, REPLACEMENT_LRU);
    expect(&e.caches[CACHE_READ_ONLY], 24 * KIB, 32, 32, 4, 192, REPLACEMENT_LRU);
    assert_int_equal(e.caches[CACHE_READ_ONLY].same_as_l1, FINDING_YES);
    expect_l2(&e.caches[CACHE_L2], 2048 * KIB);
    expect_page_tables(&e.latency, 600);
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
    uint32_t table_cycles; /* additional cycles of a load whose page has another page table; 0 if
                              there are none */
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

/* The tolerance is 15 %, because the value is the difference of two modes. Without a difference
 * there is no value. */
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
        sim_hierarchy(chip.text, &e);
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
        /* The tolerance is the step of the search, which is a thirty-second of the largest power of
         * two below the size. Three of a thousand loads may miss in a footprint that fits. */
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
        cmocka_unit_test(random_hierarchies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
