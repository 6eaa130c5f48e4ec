/* test_units.c: sizes are read exactly or refused with a reason, and printed sizes are read
 * back. */
#include "base/rng.h"
#include "base/units.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void reads_what_people_write(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"0B", 0},
        {"137438953472", 137438953472u},
        {"137GiB", 137 * GIB},
        {"80G", 80 * GIB},
        {"80g", 80 * GIB},
        {"80gib", 80 * GIB},
        {"80GB", 80000000000u},
        {"80gb", 80000000000u},
        {"137 GB", 137000000000u},
        {"137GIB", 137 * GIB},
        {"1kB", 1000},
        {"1KB", 1000},
        {"1.5MB", 1500000},
        {"0.001MB", 1000},
        {"2TB", 2000000000000u},
        {"2t", (uint64_t)2 << 40},
        {"9223372.036854775807TB", INT64_MAX},
        {"1.5GiB", 1536 * MIB},
        {"2 MiB", 2 * MIB},
        {"128K", 128 * KIB},
        {"128 k", 128 * KIB},
        {"64T", 65536 * GIB},
        {"0.5K", 512},
        {"1.0", 1},
        {"007", 7},
        {"1.50000000000000000000000000000000K", 1536},
        {"8388607TiB", (uint64_t)8388607 << 40},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775807.0", INT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        uint64_t bytes = 12345;
        struct err err = {0};
        if (units_parse_bytes(good[i].text, &bytes, &err) != STATUS_OK)
            fail_msg("\"%s\": %s", good[i].text, err.text);
        if (bytes != good[i].bytes)
            fail_msg("\"%s\" gave %" PRIu64, good[i].text, bytes);
    }
}

static void refuses_with_the_reason(void **state)
{
    static const struct {
        const char *text;
        const char *reason; /* part of the message */
    } bad[] = {
        {NULL, "empty"},
        {"", "empty"},
        {"-1", "negative"},
        {"-0.5G", "negative"},
        {"abc", "not a number"},
        {" 5", "not a number"},
        {"+5", "not a number"},
        {".5K", "not a number"},
        {"5.", "not a number"},
        {"5.K", "not a number"},
        {"NaN", "not a number"},
        {"inf", "not a number"},
        {"1e12", "exponent"},
        {"1e11", "write 100000000000 or 100GB"},
        {"1E+11", "exponent"},
        {"1.5e3K", "exponent"},
        {"1e", "unknown unit"},
        {"137,000", "use a decimal point"},
        {"137,000,000 kB", "has a comma"},
        {"0x10", "unknown unit"},
        {"1P", "unknown unit"},
        {"1Ki", "unknown unit"},
        {"1KiBs", "unknown unit"},
        {"1 ", "unknown unit"},
        {"1  K", "unknown unit"},
        {"1K ", "unknown unit"},
        {"1,5G", "has a comma"},
        {"1GBB", "unknown unit"},
        {"1BB", "unknown unit"},
        {"0.3K", "not a whole number"},
        {"0.0001kB", "not a whole number"},
        {"1.5", "not a whole number"},
        {"0.5B", "not a whole number"},
        {"0.00000000000000000000000000000000001T", "not a whole number"},
        {"8388607.999999046325683594 T", "not a whole number"},
        {"9223372036854775808", "too large"},
        {"18446744073709551616", "too large"},
        {"8388608TiB", "too large"},
        {"9223373TB", "too large"},
        {"9223372.036854775808TB", "too large"},
        {"9007199254740992K", "too large"},
        {"99999999999999999999999999999999999999999999999999G", "too large"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t bytes = 12345;
        struct err err = {0};
        const char *shown = bad[i].text ? bad[i].text : "(null)";
        if (units_parse_bytes(bad[i].text, &bytes, &err) != STATUS_INVALID_ARGUMENT)
            fail_msg("\"%s\" was let through as %" PRIu64, shown, bytes);
        if (!strstr(err.text, bad[i].reason))
            fail_msg("\"%s\" was refused with: %s", shown, err.text);
        assert_int_equal(bytes, 12345); /* untouched */
    }
    assert_int_equal(units_parse_bytes("x", &(uint64_t){0}, NULL), STATUS_INVALID_ARGUMENT);
}

static void long_bad_text_is_not_repeated_in_full(void **state)
{
    char text[5000];
    struct err err = {0};
    uint64_t bytes;

    (void)state;
    memset(text, 'G', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(units_parse_bytes(text, &bytes, &err), STATUS_INVALID_ARGUMENT);
    assert_true(strlen(err.text) < 150);
}

static void prints_the_shortest(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1000, "1000"},
        {1023, "1023"},
        {1024, "1K"},
        {1536, "1536"}, /* 1.5K has the same length, so the exact number is printed */
        {128 * KIB, "128K"},
        {2 * MIB, "2M"},
        {1536 * KIB, "1.5M"},
        {64 * GIB, "64G"},
        {137 * GIB, "137G"},
        {GIB + 1, "1073741825"},
        {(uint64_t)1 << 62, "4194304T"},
        {INT64_MAX, "9223372036854775807"},
        {UINT64_MAX, "18446744073709551615"},
    };
    char out[24];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(units_print_bytes(cases[i].bytes, out, sizeof(out)), cases[i].text);
}

static void printed_is_read_back(void **state)
{
    const uint64_t seed = 20261;
    struct rng rng = {.state = seed};
    char out[24];

    (void)state;
    print_message("# seed %" PRIu64 "\n", seed);
    for (int i = 0; i < 100000; i++) {
        /* The numbers have all magnitudes, and all numbers of trailing zero bits. */
        const uint64_t bytes = rng_next(&rng) >> (1 + rng_below(&rng, 63)) << rng_below(&rng, 20) &
                               (uint64_t)INT64_MAX;
        uint64_t again = 0;
        struct err err = {0};
        units_print_bytes(bytes, out, sizeof(out));
        if (units_parse_bytes(out, &again, &err) != STATUS_OK || again != bytes)
            fail_msg("%" PRIu64 " was printed as %s and read as %" PRIu64, bytes, out, again);
        assert_null(strchr(out, ' '));
    }
}

static void durations_have_a_whole_number_and_a_unit(void **state)
{
    static const struct {
        const char *text;
        uint64_t seconds;
        const char *printed;
    } good[] = {{"90s", 90, "90s"},       {"60s", 60, "1m"},
                {"1h", 3600, "1h"},       {"7d", 7 * 86400, "7d"},
                {"48h", 2 * 86400, "2d"}, {"0s", 0, "0d"},
                {"0030m", 1800, "30m"},   {"999999999d", 999999999ull * 86400, "999999999d"}};
    static const char *const bad[] = {"",    "h",   "1",  "1 h",         "1.5h", "-1h",
                                      "1hh", "1ms", "1H", "9999999999s", "1h ",  "h1"};
    char out[24];
    uint64_t seconds = 0;
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        assert_int_equal(units_parse_seconds(good[i].text, &seconds, &err), STATUS_OK);
        assert_int_equal(seconds, good[i].seconds);
        assert_string_equal(units_print_seconds(seconds, out, sizeof(out)), good[i].printed);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (units_parse_seconds(bad[i], &seconds, &err) != STATUS_INVALID_ARGUMENT)
            fail_msg("\"%s\" was read as %" PRIu64 " s", bad[i], seconds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_people_write),
        cmocka_unit_test(refuses_with_the_reason),
        cmocka_unit_test(long_bad_text_is_not_repeated_in_full),
        cmocka_unit_test(prints_the_shortest),
        cmocka_unit_test(printed_is_read_back),
        cmocka_unit_test(durations_have_a_whole_number_and_a_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
