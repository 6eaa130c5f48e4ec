/* test_status.c: the error table is complete and stable, and the two functions that fill an error
 * never overrun. */
#include "base/status.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void every_status_is_described(void **state)
{
    (void)state;
    for (int s = 0; s < STATUS_COUNT; s++) {
        const struct status_info *info = status_info((enum status)s);
        assert_non_null(info->slug);
        assert_true(strlen(info->slug) > 0);
        assert_int_equal(strspn(info->slug, "abcdefghijklmnopqrstuvwxyz-"), strlen(info->slug));
        /* The texts are sentences, because they are shown unchanged. */
        assert_int_equal(info->message[strlen(info->message) - 1], '.');
        assert_int_equal(info->next_step[strlen(info->next_step) - 1], '.');
    }
}

static void slugs_are_unique_and_lead_back(void **state)
{
    (void)state;
    for (int s = 0; s < STATUS_COUNT; s++)
        assert_int_equal(status_from_slug(status_info((enum status)s)->slug), s);
}

/* Clients compare these names, so a changed name needs a new version of the API. */
static void slugs_that_clients_know(void **state)
{
    (void)state;
    assert_string_equal(status_info(STATUS_GPU_BUSY)->slug, "gpu-busy");
    assert_string_equal(status_info(STATUS_NOT_FOUND)->slug, "not-found");
    assert_string_equal(status_info(STATUS_INVALID_ARGUMENT)->slug, "invalid-argument");
    assert_string_equal(status_info(STATUS_NO_DRIVER)->slug, "no-driver");
    assert_string_equal(status_info(STATUS_READ_ONLY)->slug, "read-only");
}

static void unknown_is_internal(void **state)
{
    (void)state;
    assert_ptr_equal(status_info(STATUS_COUNT), status_info(STATUS_INTERNAL));
    assert_ptr_equal(status_info((enum status) - 1), status_info(STATUS_INTERNAL));
    assert_int_equal(status_from_slug("no-such-slug"), STATUS_INTERNAL);
    assert_int_equal(status_from_slug(""), STATUS_INTERNAL);
    assert_int_equal(status_from_slug(NULL), STATUS_INTERNAL);
}

static void set_fills_and_returns(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(err_set(&err, STATUS_IO, "cannot open %s: %d", "x.db", 13), STATUS_IO);
    assert_int_equal(err.status, STATUS_IO);
    assert_string_equal(err.text, "cannot open x.db: 13");
    assert_int_equal(err_set(NULL, STATUS_FULL, "dropped"), STATUS_FULL);
    assert_int_equal(err_no_memory(&err, "%u rows", 7u), STATUS_NO_MEMORY);
    assert_string_equal(err.text, "cannot allocate 7 rows: out of memory");
}

static void a_hint_of_its_own_wins(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(err_set_hint(&err, STATUS_NOT_FOUND, "Make a survey.", "no survey %d", 7),
                     STATUS_NOT_FOUND);
    assert_string_equal(err.text, "no survey 7");
    assert_string_equal(err_next_step(&err), "Make a survey.");
    err_prefix(&err, "report");
    assert_string_equal(err_next_step(&err), "Make a survey.");
    err_set(&err, STATUS_NOT_FOUND, "no GPU");
    assert_string_equal(err_next_step(&err), status_info(STATUS_NOT_FOUND)->next_step);
    assert_int_equal(err_set_hint(NULL, STATUS_FULL, "Wait.", "dropped"), STATUS_FULL);
}

/* A hint that applies to only one route or command is set by that route or command. */
static void the_table_fits_everywhere(void **state)
{
    static const char *const narrow[] = {"GET /",      "POST /", "reachctl",
                                         "state file", "--",     "128 MiB"};

    (void)state;
    for (int s = 0; s < STATUS_COUNT; s++) {
        for (size_t i = 0; i < sizeof(narrow) / sizeof(*narrow); i++)
            assert_null(strstr(status_info((enum status)s)->next_step, narrow[i]));
    }
}

static void prefix_goes_before(void **state)
{
    struct err err = {0};

    (void)state;
    err_set(&err, STATUS_GPU_LOST, "context is gone");
    assert_int_equal(err_prefix(&err, "gpu %d", 3), STATUS_GPU_LOST);
    assert_string_equal(err.text, "gpu 3: context is gone");
    assert_int_equal(err.status, STATUS_GPU_LOST);
    (void)err_prefix(NULL, "no listener");
}

/* The arguments may come from the text that is about to be replaced. */
static void text_may_quote_itself(void **state)
{
    struct err err = {0};

    (void)state;
    err_set(&err, STATUS_IO, "inner");
    err_set(&err, STATUS_CORRUPT, "outer (%s)", err.text);
    assert_string_equal(err.text, "outer (inner)");
    err_prefix(&err, "%s again", err.text);
    assert_string_equal(err.text, "outer (inner) again: outer (inner)");
}

static void long_texts_are_cut_and_terminated(void **state)
{
    struct err err = {0};
    char big[3 * sizeof(err.text)];

    (void)state;
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    err_set(&err, STATUS_IO, "%s", big);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    err_prefix(&err, "%s", big);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_int_equal(err.status, STATUS_IO);
}

/* Text from a request or a driver must neither forge lines in a log nor end in half a character. */
static void text_is_one_line_of_whole_characters(void **state)
{
    struct err err = {0};

    (void)state;
    err_set(&err, STATUS_IO, "a\nb\tc\x1b[31m\x7f");
    assert_string_equal(err.text, "a b c [31m ");
    for (size_t pad = sizeof(err.text) - 8; pad < sizeof(err.text); pad++) {
        char text[sizeof(err.text) + 8];
        const size_t room = sizeof(err.text) - 1 - pad;
        memset(text, 'x', pad);
        memcpy(text + pad, "\xe2\x82\xac", 4); /* the euro sign: three bytes */
        err_set(&err, STATUS_IO, "%s", text);
        assert_int_equal(strlen(err.text), pad + (room < 3 ? room : 3));
        if (room >= 3)
            assert_string_equal(err.text + pad, "\xe2\x82\xac");
        else
            assert_int_equal(strspn(err.text + pad, "?"), room);
    }
}

/* Each byte that is not part of a character (RFC 3629) becomes a question mark. Characters stay
 * unchanged. */
static void text_is_valid_utf8(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xf0\x9f\x98\x80!", "\xf0\x9f\x98\x80!"},
        {"\xed\x9f\xbf\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xf4\x8f\xbf\xbf"},
        {"a\xff"
         "b",
         "a?b"},
        {"\x80", "?"},
        {"\xc0\xaf", "??"},           /* overlong */
        {"\xe0\x80\xaf", "???"},      /* overlong */
        {"\xed\xa0\x80", "???"},      /* a surrogate */
        {"\xf4\x90\x80\x80", "????"}, /* above U+10FFFF */
        {"\xe2\x82", "??"},           /* the text ends in the middle of a character */
        {"\xe2x", "?x"},
    };
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        err_set(&err, STATUS_IO, "%s", cases[i].in);
        assert_string_equal(err.text, cases[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_is_described),
        cmocka_unit_test(slugs_are_unique_and_lead_back),
        cmocka_unit_test(slugs_that_clients_know),
        cmocka_unit_test(unknown_is_internal),
        cmocka_unit_test(set_fills_and_returns),
        cmocka_unit_test(a_hint_of_its_own_wins),
        cmocka_unit_test(the_table_fits_everywhere),
        cmocka_unit_test(prefix_goes_before),
        cmocka_unit_test(text_may_quote_itself),
        cmocka_unit_test(long_texts_are_cut_and_terminated),
        cmocka_unit_test(text_is_one_line_of_whole_characters),
        cmocka_unit_test(text_is_valid_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
