/* test_evidence.c: makes evidence and checks its validity. test_fingerprint and
 * test_evidence_columns check the JSON of evidence, and tests/sim/test_evidence checks the evidence
 * of an analysis. */
#include "fingerprint/evidence.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static void names_round_trip(void **state)
{
    (void)state;
    for (int m = EVIDENCE_NONE; m < EVIDENCE_METHOD_COUNT; m++) {
        enum evidence_method back = EVIDENCE_METHOD_COUNT;
        assert_non_null(evidence_method_name((enum evidence_method)m));
        assert_true(
            evidence_method_from_name(evidence_method_name((enum evidence_method)m), &back));
        assert_int_equal(back, m);
    }
    enum evidence_method kept = EVIDENCE_TRACES;
    assert_false(evidence_method_from_name("guess", &kept));
    assert_false(evidence_method_from_name(NULL, &kept));
    assert_int_equal(kept, EVIDENCE_TRACES);
}

static void margins_stay_in_range(void **state)
{
    static const double margins[] = {-INFINITY, -1, 0, 0.0004, 0.5, 0.9999, 1, 7, INFINITY, NAN};

    (void)state;
    for (size_t i = 0; i < sizeof margins / sizeof margins[0]; i++) {
        const struct evidence e = evidence_make(EVIDENCE_REFINE, i, margins[i]);
        assert_null(evidence_fault(e, true));
        assert_true(e.repeats >= 1);
        assert_true(isnan(margins[i]) || margins[i] < 0 || e.margin <= margins[i]);
    }
    assert_float_equal(evidence_make(EVIDENCE_REFINE, 1, 0.98765).margin, 0.987, 1e-12);
    assert_float_equal(evidence_make(EVIDENCE_REFINE, 1, NAN).margin, 0, 0);
    assert_int_equal(evidence_make(EVIDENCE_REFINE, UINT64_MAX, 0).repeats, UINT32_MAX);
}

static void the_weaker_of_two_counts(void **state)
{
    const struct evidence a = evidence_make(EVIDENCE_REFINE, 15, 0.25);
    const struct evidence b = evidence_make(EVIDENCE_TRACES, 3, 0.75);
    const struct evidence both = evidence_weaker(a, b);

    (void)state;
    assert_int_equal(both.method, EVIDENCE_REFINE);
    assert_int_equal(both.repeats, 3);
    assert_float_equal(both.margin, 0.25, 0);
}

static void repeats_that_agree_have_a_margin(void **state)
{
    static const double same[] = {100, 100, 100};
    static const double near[] = {99, 100, 101};
    static const double wild[] = {1, 100, 300};
    static const double none[] = {0, 0};

    (void)state;
    assert_float_equal(evidence_of_repeats(EVIDENCE_RANDOM_READS, same, 3).margin, 1, 0);
    assert_float_equal(evidence_of_repeats(EVIDENCE_RANDOM_READS, near, 3).margin, 0.98, 1e-12);
    assert_float_equal(evidence_of_repeats(EVIDENCE_RANDOM_READS, wild, 3).margin, 0, 0);
    assert_float_equal(evidence_of_repeats(EVIDENCE_RANDOM_READS, none, 2).margin, 0, 0);
    /* a single number gives no spread */
    assert_float_equal(evidence_of_repeats(EVIDENCE_RANDOM_READS, same, 1).margin, 0, 0);
    assert_int_equal(evidence_of_repeats(EVIDENCE_RANDOM_READS, same, 3).repeats, 3);
}

static void expect_fault(struct evidence e, bool known, const char *says)
{
    const char *const fault = evidence_fault(e, known);

    assert_non_null(fault);
    if (!strstr(fault, says))
        fail_msg("\"%s\" does not say %s", fault, says);
}

static void faults_are_told(void **state)
{
    const struct evidence good = {.method = EVIDENCE_REFINE, .repeats = 3, .margin = 0.5};
    struct evidence e = good;

    (void)state;
    assert_null(evidence_fault(good, true));
    assert_null(evidence_fault((struct evidence){.method = EVIDENCE_NONE}, true));
    assert_null(evidence_fault((struct evidence){.method = EVIDENCE_NONE}, false));
    expect_fault(good, false, "absent");
    e.repeats = 0;
    expect_fault(e, true, "without repeats");
    e = good;
    e.method = EVIDENCE_NONE;
    expect_fault(e, true, "without a method");
    e = good;
    e.method = EVIDENCE_METHOD_COUNT;
    expect_fault(e, true, "does not exist");
    e = good;
    e.margin = 1.01;
    expect_fault(e, true, "margin");
    e.margin = NAN;
    expect_fault(e, true, "margin");
    e = (struct evidence){.method = EVIDENCE_NONE, .margin = 0.5};
    expect_fault(e, false, "margin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_round_trip),
        cmocka_unit_test(margins_stay_in_range),
        cmocka_unit_test(the_weaker_of_two_counts),
        cmocka_unit_test(repeats_that_agree_have_a_margin),
        cmocka_unit_test(faults_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
