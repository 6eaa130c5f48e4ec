/* test_mei.c: golden tests from Mei and Chu, Dissecting GPU Memory Hierarchy through
 * Microbenchmarking, 2016. Caches of the paper are levels of the model and are walked like in the
 * paper. The replacement in figure 11 is also an input of the analysis.
 *
 * A level of the model is a cache if its entry is a line. Words have 4 bytes.
 */
#include "base/units.h"
#include "gpu/sim/sim_tlb.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

enum { WORD_BYTES = 4 };

/* Writes a cache of `sets` sets of `ways` lines. */
static struct sim_level cache(uint64_t line_bytes, uint32_t sets, uint32_t ways)
{
    return (struct sim_level){.entry_bytes = line_bytes,
                              .entries = sets * ways,
                              .walkers = 1,
                              .sectors = 1,
                              .run_count = 1,
                              .runs = {{.ways = ways, .count = sets}},
                              .instance_count = 1};
}

static struct sim_tlb *start(const struct sim_level *desc)
{
    struct sim_tlb *const t = sim_tlb_new(desc, 1);
    assert_non_null(t);
    return t;
}

/* Walks `n` places in a cycle: `warm` laps, and then one lap. Returns the number of misses of the
 * last lap. */
static uint32_t misses_of_a_lap(const struct sim_level *desc, uint64_t stride_bytes, uint32_t n,
                                uint32_t warm)
{
    struct sim_tlb *const t = start(desc);
    uint32_t misses = 0;

    for (uint32_t lap = 0; lap <= warm; lap++)
        for (uint32_t i = 0; i < n; i++)
            misses += !sim_tlb_touch(t, 0, i * stride_bytes) && lap == warm;
    sim_tlb_free(t);
    return misses;
}

/* Section 4.1, figures 2 and 3: a cache of 12 words, lines of 2 words, 3 sets of 2 ways. A cycle of
 * 13 words misses at the first, the seventh and the thirteenth word of every lap. */
static void twelve_words(void **state)
{
    const struct sim_level desc = cache(2 * WORD_BYTES, 3, 2);
    struct sim_tlb *const t = start(&desc);

    (void)state;
    for (uint32_t i = 0; i < 13 * 10; i++) {
        const uint32_t word = i % 13;
        const bool hit = sim_tlb_touch(t, 0, (uint64_t)word * WORD_BYTES);
        if (i >= 13)
            assert_int_equal(hit, word != 0 && word != 6 && word != 12);
    }
    sim_tlb_free(t);
    assert_int_equal(misses_of_a_lap(&desc, WORD_BYTES, 12, 2), 0);
}

/* Table 5 and section 4.3: the texture L1 of Kepler has 12 KB, lines of 32 bytes, and 4 sets of 96
 * ways. Bits 7 and 8 of the address choose the set. Average latencies do not identify this
 * structure; the number of missing lines does. */
static void texture_cache_of_the_gtx780(void **state)
{
    struct sim_level desc = cache(32, 4, 96);

    (void)state;
    desc.block = 4;
    assert_int_equal(misses_of_a_lap(&desc, 32, 12 * 1024 / 32, 2), 0);
    for (uint32_t more = 1; more <= 16; more++) {
        /* Added lines go to one set until it has four more lines than ways, and then to the next
         * set. */
        const uint32_t full = more / 4;
        const uint32_t rest = more % 4;
        assert_int_equal(misses_of_a_lap(&desc, 32, 384 + more, 2),
                         full * 100 + (rest ? 96 + rest : 0));
    }
    assert_int_equal(misses_of_a_lap(&desc, 32, 384 + 1, 2), 97); /* a cycle of 12 KB and a line */
    assert_int_equal(misses_of_a_lap(&desc, 32, 12800 / 32, 2),
                     400); /* a cycle of 12.5 KB: all lines miss */
}

/* Figure 11: a set of 4 ways of the GTX560Ti's L1 and the lines 3, 35, 68, 100 and 129 of a
 * cycle. The ways 2, 3, 2, 1, 2, 4 are replaced in turn, again and again. This order explains
 * the trace. */
static void figure_11(void **state)
{
    static const uint32_t lines[] = {3, 35, 68, 100, 129};
    static const char expected[] = "MHMMHMMHMMHMM";
    struct sim_level desc = cache(128, 1, 4);
    char seen[sizeof expected] = "";
    uint32_t misses = 0;

    (void)state;
    desc.policy = SIM_CYCLE;
    desc.cycle_count = 6;
    memcpy(desc.cycle, (const uint8_t[]){2, 3, 2, 1, 2, 4}, 6);
    struct sim_tlb *const t = start(&desc);
    for (uint32_t i = 0; i < 4; i++)
        assert_false(sim_tlb_touch(t, 0, lines[i] * 128ULL));
    for (uint32_t i = 0; i < 6000; i++) {
        const bool hit = sim_tlb_touch(t, 0, lines[(i + 4) % 5] * 128ULL);
        misses += !hit;
        if (i < strlen(expected))
            seen[i] = hit ? 'H' : 'M';
    }
    printf("# figure 11: %s\n", seen);
    assert_string_equal(seen, expected);
    assert_int_equal(misses, 4000); /* two of three accesses miss after many laps */
    sim_tlb_free(t);
}

/* From traces, the analysis finds that such a level does not evict the oldest line. If the same
 * level has LRU, the analysis finds LRU. */
static void figure_11_is_not_lru(void **state)
{
    static const struct {
        const char *policy;
        enum replacement replacement;
    } cases[] = {{";policy=cycle:2,3,2,1,2,4", REPLACEMENT_NOT_LRU}, {"", REPLACEMENT_LRU}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sim_measure m;
        char text[160];
        (void)snprintf(text, sizeof text,
                       "sms=2 memory=4G noise=gauss:1.5 l1=128@2M/sm;sets=4x32;miss=60%s",
                       cases[i].policy);
        if (sim_measure(text, DEPTH_FULL, NULL, NULL, &m) != STATUS_OK)
            fail_msg("%s: %s", text, m.err.text);
        assert_int_equal(m.fp.level_count, 1);
        printf("# %s: %s, margin %.2f\n", text, replacement_name(m.fp.levels[0].replacement),
               m.fp.levels[0].evidence.replacement.margin);
        assert_int_equal(m.fp.levels[0].replacement, cases[i].replacement);
        sim_measure_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twelve_words),
        cmocka_unit_test(texture_cache_of_the_gtx780),
        cmocka_unit_test(figure_11),
        cmocka_unit_test(figure_11_is_not_lru),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
