/* test_maybe.c: absent numbers have a reason, and names of reasons and origins are read back. */
#include "types/identity.h"
#include "base/maybe.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

static void zeroed_knows_nothing(void **state)
{
    struct maybe_u64 zeroed;

    (void)state;
    memset(&zeroed, 0, sizeof(zeroed));
    assert_false(IS_KNOWN(zeroed));
    assert_int_equal(zeroed.known, MAYBE_UNKNOWN);
}

static void constructors(void **state)
{
    const struct maybe_u32 a = KNOWN_U32(65);
    const struct maybe_u64 b = UNKNOWN_U64(REASON_NO_CONTRAST);
    const struct maybe_f64 c = NOT_OBSERVABLE_F64(REASON_BEYOND_MEMORY);

    (void)state;
    assert_true(IS_KNOWN(a));
    assert_int_equal(a.v, 65);
    assert_int_equal(a.reason, REASON_NONE);
    assert_false(IS_KNOWN(b));
    assert_int_equal(b.reason, REASON_NO_CONTRAST);
    assert_int_equal(b.v, 0);
    assert_int_equal(c.known, MAYBE_NOT_OBSERVABLE);
    assert_int_equal(c.reason, REASON_BEYOND_MEMORY);
}

static void reasons_lead_back(void **state)
{
    (void)state;
    assert_string_equal(reason_slug(REASON_NONE), "");
    for (int r = REASON_NONE + 1; r < REASON_COUNT; r++) {
        const char *slug = reason_slug((enum reason)r);
        assert_non_null(slug);
        assert_true(strlen(slug) > 0);
        assert_int_equal(strspn(slug, "abcdefghijklmnopqrstuvwxyz-"), strlen(slug));
        assert_int_equal(reason_from_slug(slug), r);
    }
    assert_string_equal(reason_slug(REASON_BEYOND_MEMORY), "beyond-memory");
}

static void unknown_reasons(void **state)
{
    (void)state;
    assert_int_equal(reason_from_slug("no-such-reason"), REASON_NOT_MEASURED);
    assert_int_equal(reason_from_slug(""), REASON_NOT_MEASURED);
    assert_int_equal(reason_from_slug(NULL), REASON_NOT_MEASURED);
    assert_string_equal(reason_slug(REASON_COUNT), "not-measured");
}

static void origins_lead_back(void **state)
{
    enum origin o = ORIGIN_IMPORTED;

    (void)state;
    assert_true(origin_from_name("measured", &o));
    assert_int_equal(o, ORIGIN_MEASURED);
    assert_true(origin_from_name("simulated", &o));
    assert_int_equal(o, ORIGIN_SIMULATED);
    assert_string_equal(origin_name(ORIGIN_IMPORTED), "imported");
    /* A prefix of a name is not accepted, and an unknown name does not change the output. */
    assert_false(origin_from_name("measure", &o));
    assert_false(origin_from_name("", &o));
    assert_false(origin_from_name(NULL, &o));
    assert_int_equal(o, ORIGIN_SIMULATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_knows_nothing), cmocka_unit_test(constructors),
        cmocka_unit_test(reasons_lead_back),    cmocka_unit_test(unknown_reasons),
        cmocka_unit_test(origins_lead_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
