/* test_disabled.c: K80s that lack other SMs than the profile lacks, measured end to end. The
 * missing pair must be among the candidates. */
#include "gpu/sim/sim_profiles.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIE_SMS = 15, DIE_GROUPS = 5, TEXT_BYTES = 256 };

/* Writes the second level of the K80 without the SMs a and b of the die. Groups are in the order of
 * the die.
 */
static void k80_without(uint32_t a, uint32_t b, char *out)
{
    int n = snprintf(out, TEXT_BYTES, "k80 l2=65@2M/");

    for (uint32_t g = 0; g < DIE_GROUPS; g++) {
        const char *between = g > 0 ? ":" : "";
        for (uint32_t p = g; p < DIE_SMS; p += DIE_GROUPS) {
            if (p == a || p == b)
                continue;
            n += snprintf(out + n, TEXT_BYTES - (size_t)n, "%s%u", between,
                          p - (p > a ? 1 : 0) - (p > b ? 1 : 0));
            between = ",";
        }
    }
    (void)snprintf(out + n, TEXT_BYTES - (size_t)n, ";miss=55;sets=17+8x6;miss_ns=6");
}

/* Pairs from appendix A of the paper, and others. */
static const struct {
    uint32_t a, b, candidates;
} pairs[] = {
    {10, 11, 1}, {10, 13, 1}, {10, 14, 2}, {13, 14, 3},
    {5, 10, 1},  {0, 1, 3},   {2, 8, 1},   {0, 11, 2},
};

static void test_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct sim_measure m;
        char text[TEXT_BYTES];
        bool found = false;
        k80_without(pairs[i].a, pairs[i].b, text);
        if (sim_measure(text, DEPTH_QUICK, NULL, NULL, &m) != STATUS_OK)
            fail_msg("%s: %s", text, m.err.text);
        const struct topology *t = &m.fp.topology;
        assert_true(IS_KNOWN(t->full_sm_count));
        assert_int_equal(t->full_sm_count.v, DIE_SMS);
        assert_int_equal(t->nominal_group_sms.v, 3);
        assert_int_equal(t->disabled.sm_count.v, 2);
        assert_int_equal(t->disabled.candidate_count.v, pairs[i].candidates);
        for (uint32_t k = 0; k < t->disabled.listed; k++)
            found = found || (t->disabled.candidates[k][0] == pairs[i].a &&
                              t->disabled.candidates[k][1] == pairs[i].b);
        assert_true(found);
        sim_measure_free(&m);
    }
}

/* Groups without a common order give "not sure", and no number. */
static void test_irregular(void **state)
{
    struct sim_measure m;

    (void)state;
    if (sim_measure("k80 l2=65@2M/0,1,5,12:2,8:3,4,10,11:6,7,9;miss=55;sets=17+8x6;miss_ns=6",
                    DEPTH_QUICK, NULL, NULL, &m) != STATUS_OK)
        fail_msg("%s", m.err.text);
    assert_int_equal(m.fp.topology.partition.group_count, 4);
    assert_int_equal(m.fp.topology.full_sm_count.known, MAYBE_UNKNOWN);
    assert_int_equal(m.fp.topology.full_sm_count.reason, REASON_IRREGULAR);
    assert_string_equal(m.fp.topology.disabled.signature, "");
    sim_measure_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_irregular),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
