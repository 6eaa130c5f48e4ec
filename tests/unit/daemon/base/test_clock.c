/* test_clock.c: dates as text and back, and the properties of the monotonic clock. */
#include "base/clock.h"
#include "base/rng.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void known_dates(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z"},
        {951782400,
         "2000-02-29T00:00:00Z"}, /* 2000 is a leap year, though it is divisible by 100 */
        {1795215080, "2026-11-20T22:51:20Z"},
        {2147483648, "2038-01-19T03:14:08Z"}, /* the first second that needs more than 31 bits */
        {4107542400, "2100-03-01T00:00:00Z"}, /* not a leap year */
        {253402300799, "9999-12-31T23:59:59Z"},
    };
    char out[21];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(clock_rfc3339(cases[i].seconds, out, sizeof(out)), cases[i].text);
        assert_int_equal(clock_parse_rfc3339(cases[i].text), cases[i].seconds);
    }
}

static void refuses_other_forms(void **state)
{
    static const char *const bad[] = {
        "",
        "2026-11-20",
        "2026-11-20T22:51:20",
        "2026-11-20T22:51:20z",
        "2026-11-20t22:51:20Z",
        "2026-11-20 22:51:20Z",
        "2026-11-20T22:51:20.5Z",
        "2026-11-20T22:51:20+00:00",
        "2026-11-20T22:51:20Z ",
        " 2026-11-20T22:51:2Z",
        "2026-13-20T22:51:20Z",
        "2026-00-20T22:51:20Z",
        "2026-11-31T22:51:20Z",
        "2026-11-00T22:51:20Z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-11-20T24:00:00Z",
        "2026-11-20T22:60:00Z",
        "2026-11-20T22:51:60Z",
        "1969-12-31T23:59:59Z",
        "2026-1a-20T22:51:20Z",
        "-026-11-20T22:51:20Z",
        "2026/11/20T22:51:20Z",
    };

    (void)state;
    assert_int_equal(clock_parse_rfc3339(NULL), -1);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (clock_parse_rfc3339(bad[i]) != -1)
            fail_msg("\"%s\" was let through", bad[i]);
    }
}

/* The calendar of the C library is the reference. */
static void agrees_with_the_library(void **state)
{
    const uint64_t seed = 20263;
    struct rng rng = {.state = seed};

    (void)state;
    print_message("# seed %" PRIu64 "\n", seed);
    for (int i = 0; i < 20000; i++) {
        const time_t t = (time_t)rng_below(&rng, 253402300800);
        char text[21], expected[32];
        struct tm tm;
        clock_rfc3339(t, text, sizeof(text));
        assert_non_null(gmtime_r(&t, &tm));
        assert_int_equal(strftime(expected, sizeof(expected), "%FT%TZ", &tm), 20);
        assert_string_equal(text, expected);
        assert_int_equal(clock_parse_rfc3339(text), t);
    }
}

static void monotonic_never_goes_back(void **state)
{
    nsec_t before = clock_monotonic();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        const nsec_t now = clock_monotonic();
        assert_true(now >= before);
        before = now;
    }
}

/* The result is between two readings of the C library, to the second. */
static void wall_clock_is_that_of_the_library(void **state)
{
    (void)state;
    const time_t before = time(NULL);
    const int64_t now = clock_wall_seconds();
    const time_t after = time(NULL);

    assert_in_range(now, before - 1, after + 1); /* time() may read a clock of lower resolution */
}

/* A sleep of 20 ms takes at least 20 ms by a clock that counts nanoseconds. */
static void monotonic_counts_nanoseconds(void **state)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    const nsec_t before = clock_monotonic();

    (void)state;
    assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL), 0);
    assert_true(clock_monotonic() - before >= 20 * NSEC_PER_MSEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_dates),
        cmocka_unit_test(refuses_other_forms),
        cmocka_unit_test(agrees_with_the_library),
        cmocka_unit_test(monotonic_never_goes_back),
        cmocka_unit_test(monotonic_counts_nanoseconds),
        cmocka_unit_test(wall_clock_is_that_of_the_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
