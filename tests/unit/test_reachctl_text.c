/* test_reachctl_text.c: what reachctl makes of numbers. The program's objects are not in the
 * library, so the file itself is included. */
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

static void test_numbers(void **state)
{
    json_t *json =
        parse("{\"size\": 68685922304, \"count\": 65, \"gbps\": 2799.96, \"word\": \"lru\"}");
    char cell[TEXT_CELL_BYTES];

    (void)state;
    assert_string_equal(text_size(json, "size", cell), "63.97 GiB");
    assert_string_equal(text_count(json, "count", cell), "65");
    assert_string_equal(text_real(json, "gbps", 0, "GB/s", cell), "2800 GB/s");
    assert_string_equal(text_real(json, "gbps", 1, "", cell), "2800.0");
    assert_string_equal(text_word(json, "word", cell), "lru");
    json_decref(json);
}

static void test_absent_numbers(void **state)
{
    json_t *json =
        parse("{\"a\": null, \"a_reason\": \"too-little-data\", \"b\": null, \"b_reason\": "
              "\"not-observable: beyond-memory\", \"c\": null, \"d\": null, \"d_reason\": "
              "\"not-applicable\", \"e\": -1}");
    char cell[TEXT_CELL_BYTES];

    (void)state;
    assert_string_equal(text_size(json, "a", cell), "not sure (too-little-data)");
    assert_string_equal(text_count(json, "b", cell), "not observable (beyond-memory)");
    assert_string_equal(text_real(json, "c", 0, "GB/s", cell), "not sure (not-reported)");
    assert_string_equal(text_size(json, "missing", cell), "not sure (not-reported)");
    assert_string_equal(text_size(json, "d", cell), "-");
    assert_string_equal(text_size(json, "e", cell), "not sure (not-reported)");
    assert_string_equal(text_word(json, "a", cell), "-");
    json_decref(json);
}

static void test_ranges(void **state)
{
    static const struct {
        const char *json;
        const char *text;
    } cases[] = {{"[]", ""},
                 {"[7]", "7"},
                 {"[0,1,2,3,8,10,11]", "0-3,8,10-11"},
                 {"[0,2,4]", "0,2,4"},
                 {"[131]", "131"}};
    char out[128];
    char small[40];
    json_t *json;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json = parse(cases[i].json);
        assert_string_equal(text_ranges(json, out, sizeof(out)), cases[i].text);
        json_decref(json);
    }
    json = parse("[0,2,4,6,8,10,12,14,16,18,20]");
    text_ranges(json, small, sizeof(small));
    assert_string_equal(small + strlen(small) - 3, "...");
    json_decref(json);
}

static void test_table(void **state)
{
    struct text_table t;
    char(*cells)[TEXT_CELL_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    (void)state;
    text_table_begin(&t, ">n|name|>size");
    cells = text_table_row(&t);
    snprintf(cells[0], TEXT_CELL_BYTES, "10");
    snprintf(cells[1], TEXT_CELL_BYTES, "alpha");
    snprintf(cells[2], TEXT_CELL_BYTES, "1 MiB");
    cells = text_table_row(&t);
    snprintf(cells[0], TEXT_CELL_BYTES, "9");
    snprintf(cells[1], TEXT_CELL_BYTES, "b");
    text_table_end(&t, out);
    fclose(out);
    assert_string_equal(text, " n  name    size\n10  alpha  1 MiB\n 9  b           \n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_absent_numbers),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
