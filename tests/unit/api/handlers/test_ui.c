/* test_ui.c: the files of the page at /ui/, requested over a socket (api_fixture.h): plain and
 * compressed, with their tags and policy. */
#include "tests/unit/support/api_fixture.h"

#include "api/handlers/ui_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 150 << 10, ETAG_BYTES = 64 };

static void ask(struct api_fixture *f, const struct ui_file *file, const char *fields,
                struct api_answer *out)
{
    char target[64];
    char request[512];

    snprintf(target, sizeof(target), "/ui/%s", file->name);
    api_ask(f, api_line_of(request, sizeof(request), "GET", target, fields), out);
}

static void etag_of(const struct api_answer *a, char out[ETAG_BYTES])
{
    const char *at = strstr(a->head, "ETag: ");

    assert_non_null(at);
    snprintf(out, ETAG_BYTES, "%.*s", (int)strcspn(at + 6, "\r"), at + 6);
}

static void test_every_file_in_both_codings(void **state)
{
    struct api_fixture *f = *state;
    struct api_answer a;
    size_t total = 0;
    size_t count = 0;

    for (const struct ui_file *file = ui_files; file->name; file++, count++) {
        ask(f, file, "", &a);
        assert_int_equal(a.status, 200);
        assert_null(strstr(a.head, "Content-Encoding"));
        assert_non_null(strstr(a.head, file->content_type));
        assert_int_equal(a.body_bytes, file->text_bytes);
        assert_memory_equal(a.body, file->text, file->text_bytes);
        free(a.body);
        ask(f, file, "Accept-Encoding: gzip\r\n", &a);
        assert_int_equal(a.status, 200);
        assert_non_null(strstr(a.head, "Content-Encoding: gzip\r\n"));
        assert_int_equal(a.body_bytes, file->gzip_bytes);
        assert_memory_equal(a.body, file->gzip, file->gzip_bytes);
        free(a.body);
        total += file->gzip_bytes;
    }
    assert_int_equal(count, 3);
    assert_true(total < PAGE_BYTES);
}

/* Accept-Encoding selects the coding, even if the same target was served in another coding
 * before. */
static void test_coding_is_negotiated(void **state)
{
    static const struct {
        const char *accepts;
        bool gzip;
    } cases[] = {{"gzip", true},       {"br", false},        {"gzip, deflate, br", true},
                 {"gzip;q=0", false},  {"identity", false},  {"br;q=1, gzip;q=0.1", true},
                 {"GZIP", true},       {"", false},          {"gzip;q=0.0, deflate", false},
                 {"gzippy", false},    {"x, gzip ,y", true}, {"*;q=0", false},
                 {"deflate, *", false}};
    struct api_fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char fields[96];
        struct api_answer a;
        snprintf(fields, sizeof(fields), "Accept-Encoding: %s\r\n", cases[i].accepts);
        ask(f, &ui_files[1], fields, &a);
        if ((strstr(a.head, "Content-Encoding: gzip") != NULL) != cases[i].gzip)
            fail_msg("\"%s\": %s", cases[i].accepts, a.head);
        assert_int_equal(a.body_bytes,
                         cases[i].gzip ? ui_files[1].gzip_bytes : ui_files[1].text_bytes);
        assert_non_null(strstr(a.head, "Vary: Accept-Encoding\r\n"));
        free(a.body);
    }
}

static void test_a_tag_for_each_coding(void **state)
{
    struct api_fixture *f = *state;
    static const char *const codings[] = {"", "Accept-Encoding: gzip\r\n"};

    for (const struct ui_file *file = ui_files; file->name; file++) {
        char tags[2][ETAG_BYTES];
        for (int i = 0; i < 2; i++) {
            char fields[192];
            struct api_answer a;
            ask(f, file, codings[i], &a);
            etag_of(&a, tags[i]);
            free(a.body);
            snprintf(fields, sizeof(fields), "%sIf-None-Match: %s\r\n", codings[i], tags[i]);
            ask(f, file, fields, &a);
            assert_int_equal(a.status, 304);
            assert_int_equal(a.body_bytes, 0);
            assert_non_null(strstr(a.head, tags[i]));
            assert_non_null(strstr(a.head, "Vary: Accept-Encoding\r\n"));
            free(a.body);
        }
        assert_string_not_equal(tags[0], tags[1]);
    }
}

static void test_policy(void **state)
{
    static const char *const must[] = {
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
        "connect-src 'self';",
        "frame-ancestors 'none'", "require-trusted-types-for 'script'",
        "X-Content-Type-Options: nosniff\r\n", "Cache-Control: no-cache\r\n"};
    struct api_fixture *f = *state;

    for (const struct ui_file *file = ui_files; file->name; file++) {
        struct api_answer a;
        ask(f, file, "", &a);
        for (size_t i = 0; i < sizeof(must) / sizeof(*must); i++)
            assert_non_null(strstr(a.head, must[i]));
        assert_null(strstr(a.head, "unsafe"));
        free(a.body);
    }
}

static void test_leads_there(void **state)
{
    struct api_fixture *f = *state;
    char request[128];
    struct api_answer a;

    api_ask(f, api_line_of(request, sizeof(request), "GET", "/ui", ""), &a);
    assert_int_equal(a.status, 308);
    assert_non_null(strstr(a.head, "Location: ui/\r\n"));
    assert_int_equal(a.body_bytes, 0);
    free(a.body);
}

static void test_no_other_file(void **state)
{
    struct api_fixture *f = *state;

    api_refused(f, "/ui/page.html", 404, "not-found", NULL);
    api_refused(f, "/ui//", 404, "not-found", NULL);
    api_refused(f, "/ui/../page.js", 404, "not-found", NULL);
    api_refused(f, "/ui/page.js/", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus//", 404, "not-found", NULL);
    api_refused(f, "/ui/?x=1", 400, "invalid-argument", "x");
}

static void test_not_for_probes(void **state)
{
    struct api_fixture *f = *state;

    f->role = API_FOR_PROBES;
    assert_int_equal(api_restart(f, 0, 0), 0);
    api_refused(f, "/ui", 404, "not-found", NULL);
    api_refused(f, "/ui/", 404, "not-found", NULL);
    api_refused(f, "/ui/page.js", 404, "not-found", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(test_every_file_in_both_codings),
        API_TEST(test_coding_is_negotiated),
        API_TEST(test_a_tag_for_each_coding),
        API_TEST(test_policy),
        API_TEST(test_leads_there),
        API_TEST(test_no_other_file),
        API_TEST(test_not_for_probes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
