/* test_member.c: units, labels and keys of rows, and the required parts of every row of a
 * fingerprint. */
#include "fingerprint/members.h"
#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct member *row(const char *object, const char *name)
{
    return object_member(object_member(&fingerprint_object, object)->object, name);
}

static void a_unit_is_the_end_of_a_name(void **state)
{
    (void)state;
    assert_string_equal(member_unit(object_member(&level_object, "entry_bytes")), "bytes");
    assert_string_equal(member_unit(object_member(&level_object, "miss_penalty_cycles")), "cycles");
    assert_string_equal(member_unit(row("throughput", "plateau_gbps")), "GB/s");
    assert_string_equal(member_unit(row("contiguity", "contiguous_miss_ns")), "ns");
    assert_string_equal(member_unit(row("conditions", "sm_clock_khz")), "kHz");
    assert_string_equal(member_unit(object_member(&level_object, "ways")), "");
}

static void a_label_is_the_name_without_its_unit(void **state)
{
    char label[MEMBER_LABEL_BYTES];

    (void)state;
    assert_string_equal(member_label(object_member(&level_object, "miss_penalty_cycles"), label),
                        "miss penalty");
    assert_string_equal(member_label(object_member(&level_object, "shared_by"), label),
                        "shared by");
    assert_string_equal(member_label(row("latency", "p1_cycles"), label), "P1");
}

static void keys_tell_elements_apart(void **state)
{
    const struct member *const rates = row("throughput", "rates");
    const struct access_rate a = {.access = ACCESS_READ, .transaction_bytes = 32};
    const struct access_rate b = {.access = ACCESS_READ, .transaction_bytes = 512};
    const struct curve_point far = {.region_bytes = INT64_MAX - 1},
                             near = {.region_bytes = 64 * GIB};
    const struct member *const curve = row("throughput", "curve");
    char text[64];

    (void)state;
    assert_string_equal(object_key(rates->object, &a, 0, text, sizeof text), "read,32");
    assert_string_equal(object_key(curve->object, &near, 0, text, sizeof text), "64G");
    assert_string_equal(member_element(curve, &near, 0, text, sizeof text), "region of 64 GiB ");
    assert_true(object_compare_keys(rates->object, &a, &b) < 0);
    assert_true(object_compare_keys(rates->object, &b, &b) == 0);
    assert_true(object_compare_keys(curve->object, &far, &near) > 0);
}

/* Each row that is in the document has a sentence of documentation and a valid range. */
static void expect_rows(const struct object *o, unsigned *count)
{
    assert_non_null(o->name);
    assert_non_null(o->doc);
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        const size_t n = m->doc ? strlen(m->doc) : 0;

        *count += 1;
        if (m->name && (n < 2 || m->doc[n - 1] != '.'))
            fail_msg("%s.%s has no sentence", o->name, m->name);
        if (m->max > 0 && m->max < m->min)
            fail_msg("%s.%s has no range", o->name, m->name);
        if (m->relation != RELATION_NONE)
            assert_non_null(object_member(o, m->other));
        if (m->object)
            expect_rows(m->object, count);
    }
}

static void every_row_has_a_sentence(void **state)
{
    unsigned count = 0;

    (void)state;
    expect_rows(&fingerprint_object, &count);
    assert_true(count > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_is_the_end_of_a_name),
        cmocka_unit_test(a_label_is_the_name_without_its_unit),
        cmocka_unit_test(keys_tell_elements_apart),
        cmocka_unit_test(every_row_has_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
