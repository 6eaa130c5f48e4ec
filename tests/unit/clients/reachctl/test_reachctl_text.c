/* test_reachctl_text.c: the printed form of fields of a document in reachctl. The objects of the
 * program are not in a library, so this test includes the source file text.c itself. */
#include "clients/reachctl/text.c"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

struct expansion {
    const char *template;
    const char *text;
};

static void check(const char *document, const struct expansion *cases, size_t count)
{
    json_t *json = parse(document);

    for (size_t i = 0; i < count; i++) {
        char out[128];
        assert_string_equal(text_expand(json, cases[i].template, out, sizeof(out)), cases[i].text);
    }
    json_decref(json);
}

#define CHECK(document, cases) check(document, cases, sizeof(cases) / sizeof(*(cases)))

static void test_numbers(void **state)
{
    static const struct expansion cases[] = {
        {"{size:B}", "63.97 GiB"},
        {"{count:d}", "65"},
        {"{gbps:0 GB/s}", "2800 GB/s"},
        {"{gbps:1}", "2800.0"},
        {"{word}", "lru"},
        {"a {count:d} b{word}c", "a 65 blruc"},
        {"", ""},
    };

    (void)state;
    CHECK("{\"size\": 68685922304, \"count\": 65, \"gbps\": 2799.96, \"word\": \"lru\"}", cases);
}

static void test_absent_numbers(void **state)
{
    static const struct expansion cases[] = {
        {"{a:B}", "not sure (too-little-data)"},
        {"{b:d}", "not observable (beyond-memory)"},
        {"{c:0 GB/s}", "not sure (not-reported)"},
        {"{missing:B}", "not sure (not-reported)"},
        {"{d:B}", "-"},
        {"{e:B}", "not sure (not-reported)"},
        {"{a}", "-"},
        {"{a?:d}", "not sure (too-little-data)"},
        {"<{missing?:d}>", "<>"},
        {"{zero:-d} {zero:d} {one:-d}", "- 0 1"},
        {"{deep.a:d}", "not sure (disturbed)"},
    };

    (void)state;
    CHECK("{\"a\": null, \"a_reason\": \"too-little-data\", \"b\": null, \"b_reason\": "
          "\"not-observable: beyond-memory\", \"c\": null, \"d\": null, \"d_reason\": "
          "\"not-applicable\", \"e\": -1, \"zero\": 0, \"one\": 1, "
          "\"deep\": {\"a\": null, \"a_reason\": \"disturbed\"}}",
          cases);
}

static void test_paths_and_lists(void **state)
{
    static const struct expansion cases[] = {
        {"{deep.er.count:d}", "7"},
        {"{list.1:d}", "5"},
        {"{list:n}", "3"},
        {"{yes:y}, {no:y}", "yes, no"},
    };

    (void)state;
    CHECK("{\"deep\": {\"er\": {\"count\": 7}}, \"list\": [4, 5, 9], \"yes\": true, \"no\": false}",
          cases);
}

static void test_ranges(void **state)
{
    static const struct expansion cases[] = {
        {"{a:r}", ""},      {"{b:r}", "7"},   {"{c:r}", "0-3,8,10-11"},
        {"{d:r}", "0,2,4"}, {"{e:r}", "131"},
    };
    json_t *json = json_pack("{s:[]}", "many");
    char out[TEXT_LINE_BYTES];

    (void)state;
    CHECK("{\"a\": [], \"b\": [7], \"c\": [0,1,2,3,8,10,11], \"d\": [0,2,4], \"e\": [131]}", cases);
    for (int i = 0; i < 512; i++)
        json_array_append_new(json_object_get(json, "many"), json_integer((json_int_t)2 * i));
    text_expand(json, "{many:r}", out, sizeof(out));
    assert_string_equal(out + strlen(out) - 3, "...");
    json_decref(json);
}

static void test_what_does_not_fit_is_cut(void **state)
{
    json_t *json = parse("{\"word\": \"abcdefgh\"}");

    (void)state;
    for (size_t size = 1; size < 12; size++) {
        char out[12];
        memset(out, 'x', sizeof(out));
        text_expand(json, "-{word}-", out, size);
        assert_int_equal(strlen(out), size - 1 < 10 ? size - 1 : 10);
    }
    json_decref(json);
}

static void test_table(void **state)
{
    json_t *rows = parse("[{\"n\": 10, \"name\": \"alpha\", \"size\": 1048576}, "
                         "{\"n\": 9, \"name\": \"b\"}]");
    FILE *const saved = stdout;
    char *text = NULL;
    size_t bytes = 0;

    (void)state;
    stdout = open_memstream(&text, &bytes);
    text_table(rows, ">n {n:d}|name {name}|>size {size?:B}|># {#}");
    fclose(stdout);
    stdout = saved;
    assert_string_equal(text, " n  name    size  #\n10  alpha  1 MiB  0\n 9  b             1\n");
    free(text);
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_absent_numbers),
        cmocka_unit_test(test_paths_and_lists),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_what_does_not_fit_is_cut),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
