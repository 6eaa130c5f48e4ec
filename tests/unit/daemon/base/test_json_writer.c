/* test_json_writer.c: json_writer writes the same text as jansson for the same values. A real
 * number has the smallest number of digits that are read back as the same number. */
#include "base/json_writer.h"

#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns how many digits jansson needs to read back the same number. */
static size_t digits_of(double v)
{
    for (size_t digits = 15; digits < 17; digits++) {
        char text[64];
        snprintf(text, sizeof(text), "%.*g", (int)digits, v);
        if (strtod(text, NULL) == v)
            return digits;
    }
    return 17;
}

/* Ends the text and compares it with the value in jansson's format with `flags`. Frees the
 * value. */
static void same_as(struct json_writer *t, json_t *take, size_t flags)
{
    size_t bytes = 0;
    char *text = json_writer_end(t, &bytes);
    char *wanted = json_dumps(take, flags);

    assert_non_null(text);
    assert_non_null(wanted);
    assert_int_equal(bytes, strlen(wanted) + 1);
    assert_int_equal(text[bytes - 1], '\n');
    text[bytes - 1] = '\0';
    assert_string_equal(text, wanted);
    free(text);
    free(wanted);
    json_decref(take);
}

static void same(struct json_writer *t, json_t *take)
{
    same_as(t, take, JSON_COMPACT);
}

static void test_shapes(void **state)
{
    struct json_writer t;

    (void)state;
    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    json_writer_open(&t, "empty", '[');
    json_writer_close(&t, ']');
    json_writer_open(&t, "none", '{');
    json_writer_close(&t, '}');
    json_writer_open(&t, "list", '[');
    json_writer_u64(&t, NULL, 0);
    json_writer_open(&t, NULL, '[');
    json_writer_null(&t, NULL);
    json_writer_bool(&t, NULL, true);
    json_writer_close(&t, ']');
    json_writer_u64(&t, NULL, INT64_MAX);
    json_writer_close(&t, ']');
    json_writer_bool(&t, "no", false);
    json_writer_text(&t, "text", "");
    json_writer_close(&t, '}');
    same(&t, json_pack("{s:[],s:{},s:[i,[n,b],I],s:b,s:s}", "empty", "none", "list", 0, 1,
                       (json_int_t)INT64_MAX, "no", 0, "text", ""));
}

static void test_lists(void **state)
{
    static const int16_t edges[] = {0,    9,     10,        99, 100,       999, 1000,
                                    9999, 10000, INT16_MAX, -1, INT16_MIN, 5};
    enum { EDGES = sizeof(edges) / sizeof(*edges), LONG = 700 };
    int16_t many[LONG];
    struct json_writer t;
    json_t *wanted = json_object();
    json_t *lists[3] = {json_array(), json_array(), json_array()};

    (void)state;
    for (size_t i = 0; i < EDGES; i++)
        json_array_append_new(lists[1], edges[i] < 0 ? json_null() : json_integer(edges[i]));
    for (int i = 0; i < LONG; i++) {
        many[i] = (int16_t)(i * 47 - 100);
        json_array_append_new(lists[2], many[i] < 0 ? json_null() : json_integer(many[i]));
    }
    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    json_writer_i16s(&t, "none", edges, 0);
    json_writer_i16s(&t, "edges", edges, EDGES);
    json_writer_i16s(&t, "many", many, LONG);
    json_writer_u64(&t, "more", 7);
    json_writer_close(&t, '}');
    json_object_set_new(wanted, "none", lists[0]);
    json_object_set_new(wanted, "edges", lists[1]);
    json_object_set_new(wanted, "many", lists[2]);
    json_object_set_new(wanted, "more", json_integer(7));
    same(&t, wanted);
}

static void test_reals(void **state)
{
    static const double some[] = {0,
                                  -0.0,
                                  1,
                                  100,
                                  0.1,
                                  1.5,
                                  1e15,
                                  1e15 + 2,
                                  999999999999999.0,
                                  1e16,
                                  1e17,
                                  1e20,
                                  1e-5,
                                  1e-4,
                                  -3,
                                  DBL_MAX,
                                  DBL_MIN,
                                  5e-324,
                                  1.0 / 3,
                                  2999.7,
                                  1e-10,
                                  123456789012345680.0};
    uint64_t seed = 20261121;
    struct rng rng = {.state = seed};

    (void)state;
    printf("# seed %llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < sizeof(some) / sizeof(*some) + 20000; i++) {
        struct json_writer t;
        double v;
        uint64_t bits = rng_next(&rng);
        memcpy(&v, &bits, sizeof(v));
        if (i < sizeof(some) / sizeof(*some))
            v = some[i];
        else if (i % 3 == 0)
            v = (double)(bits % 100000000) / 1000;
        if (!isfinite(v))
            continue;
        json_writer_begin(&t, 0);
        json_writer_open(&t, NULL, '[');
        json_writer_real(&t, NULL, v);
        json_writer_close(&t, ']');
        same_as(&t, json_pack("[f]", v), JSON_COMPACT | JSON_REAL_PRECISION(digits_of(v)));
    }
}

/* Decimal numbers of every size are read back unchanged, from the text of either writer. */
static void test_decimals(void **state)
{
    const char *given = getenv("REACH_SEED");
    struct rng rng = {.state = given ? strtoull(given, NULL, 0) : 20261121};

    (void)state;
    print_message("# REACH_SEED=%llu\n", (unsigned long long)rng.state);
    for (int round = 0; round < 60000; round++) {
        const int places = (int)rng_below(&rng, 9);
        const uint64_t most = (uint64_t)pow(10, 1 + (double)rng_below(&rng, 15));
        const uint64_t number = rng_below(&rng, most);
        const double decimal = (double)number / pow(10, places);
        const double v = round % 4 ? decimal : nextafter(decimal, INFINITY);
        struct json_writer t;
        json_writer_begin(&t, 0);
        json_writer_open(&t, NULL, '[');
        json_writer_real(&t, NULL, v);
        json_writer_real(&t, NULL, -v);
        json_writer_close(&t, ']');
        same_as(&t, json_pack("[f,f]", v, -v), JSON_COMPACT | JSON_REAL_PRECISION(digits_of(v)));
    }
}

static void test_figures(void **state)
{
    struct json_writer t;

    (void)state;
    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    json_writer_figure_maybe(&t, "f", KNOWN_F64(4210.4498010530451));
    json_writer_figure_maybe(&t, "margin", KNOWN_F64(0.91100000000000003));
    json_writer_figure_maybe(&t, "none", UNKNOWN_F64(REASON_NOT_MEASURED));
    json_writer_close(&t, '}');
    size_t bytes = 0;
    char *text = json_writer_end(&t, &bytes);
    assert_string_equal(text, "{\"f\":4210.45,\"margin\":0.911,\"none\":null,"
                              "\"none_reason\":\"not-measured\"}\n");
    free(text);
}

/* Writes any value, with names and texts that need an escape, on one line and on several. */
static void test_values(void **state)
{
    static const char source[] =
        "{\"a\":[],\"b\":{},\"\\\"n\\n\\u0001\\u00e9\":[1,-2,0,-9223372036854775808,"
        "9223372036854775807,"
        "[null,true,false,[[0.25]]],{\"x\":{\"y\":\"\\\\ \\t\"}}],\"\":\"\",\"z\":-1.5}";

    (void)state;
    for (uint32_t indent = 0; indent < 4; indent++) {
        json_t *value = json_loads(source, 0, NULL);
        struct json_writer t;
        assert_non_null(value);
        json_writer_begin(&t, 0);
        t.indent = indent;
        json_writer_value(&t, NULL, value);
        same_as(&t, value, indent ? JSON_INDENT((size_t)indent) : JSON_COMPACT);
    }
}

/* Keys are sorted by name at every depth, like jansson sorts them, because an id is the hash of
 * this text. */
static void test_sorted(void **state)
{
    json_t *const value = json_pack("{s:i, s:{s:i, s:[{s:i, s:i}], s:n}, s:s}", "b", 1, "a", "z", 2,
                                    "", "y", 3, "x", 4, "z1", "B", "t");
    struct json_writer t;

    (void)state;
    assert_non_null(value);
    json_writer_begin(&t, 0);
    t.sorted = true;
    json_writer_value(&t, NULL, value);
    same_as(&t, value, JSON_COMPACT | JSON_SORT_KEYS);
}

/* Objects have names of every length in any order, with lists and objects between them. */
static void write_any(struct json_writer *t, struct rng *r, const char *name, int depth)
{
    const bool is_object = depth == 0 || rng_below(r, 2);

    json_writer_open(t, name, is_object ? '{' : '[');
    for (uint64_t i = 0, first = rng_below(r, 90); i < rng_below(r, 9); i++) {
        char member[16];
        (void)snprintf(member, sizeof member, "%s%u", rng_below(r, 2) ? "a" : "a_b",
                       (unsigned)((first + i * 7) % 90));
        if (depth < 3 && rng_below(r, 3) == 0)
            write_any(t, r, is_object ? member : NULL, depth + 1);
        else
            json_writer_text(t, is_object ? member : NULL, "x, {\"y\": 1}");
    }
    json_writer_close(t, is_object ? '}' : ']');
}

static void test_sorted_as_written(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng r = {.state = seed};
        struct json_writer t;
        size_t bytes;
        json_writer_begin(&t, 0);
        write_any(&t, &r, NULL, 0);
        char *const text = json_writer_end(&t, &bytes);
        json_t *const value = json_loadb(text, bytes, 0, NULL);
        assert_non_null(value);
        free(text);
        r.state = seed;
        json_writer_begin(&t, 0);
        t.sorted = true;
        write_any(&t, &r, NULL, 0);
        same_as(&t, value, JSON_COMPACT | JSON_SORT_KEYS);
    }
}

/* Returns the text with each byte that is not UTF-8 replaced by '?'. */
static json_t *text_value(const char *text)
{
    char ascii[64];
    size_t n = 0;

    for (; text[n]; n++)
        ascii[n] = (unsigned char)text[n] < 0x80 ? text[n] : '?';
    ascii[n] = '\0';
    json_t *const utf8 = json_string(text);

    return utf8 ? utf8 : json_string(ascii);
}

static void test_texts(void **state)
{
    static const char *const some[] = {"plain",
                                       "a \"quoted\" \\ text",
                                       "\b\f\n\r\t\x01\x1f\x7f",
                                       "\xc3\xa9",
                                       "\xff bad \xc3",
                                       "\xf0\x9f\x92\xa5/",
                                       "\xed\xa0\x80 half of a pair",
                                       "\"",
                                       ""};

    (void)state;
    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
        struct json_writer t;
        json_t *wanted = json_array();
        json_writer_begin(&t, 0);
        json_writer_open(&t, NULL, '[');
        json_writer_text(&t, NULL, some[i]);
        json_writer_close(&t, ']');
        json_array_append_new(wanted, text_value(some[i]));
        same(&t, wanted);
    }
}

static void want_absent(json_t *wanted, const char *name, enum known known, enum reason reason)
{
    char field[REASON_FIELD_BYTES];
    char text[REASON_TEXT_BYTES];

    json_object_set_new(wanted, name, json_null());
    json_object_set_new(wanted, reason_field(name, field),
                        json_string(reason_text(known, reason, text)));
}

static void test_absent(void **state)
{
    struct json_writer t;
    json_t *wanted = json_object();

    (void)state;
    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    for (int r = REASON_NOT_MEASURED; r < REASON_COUNT; r++) {
        char name[16];
        snprintf(name, sizeof(name), "r%d", r);
        json_writer_u64_maybe(&t, name, UNKNOWN_U64((enum reason)r));
        want_absent(wanted, name, MAYBE_UNKNOWN, (enum reason)r);
        name[0] = 'f';
        json_writer_f64_maybe(&t, name, NOT_OBSERVABLE_F64((enum reason)r));
        want_absent(wanted, name, MAYBE_NOT_OBSERVABLE, (enum reason)r);
    }
    json_writer_u64_maybe(&t, "u", KNOWN_U64(7));
    json_object_set_new(wanted, "u", json_integer(7));
    json_writer_f64_maybe(&t, "d", KNOWN_F64(0.25));
    json_object_set_new(wanted, "d", json_real(0.25));
    json_writer_close(&t, '}');
    same(&t, wanted);
}

static void test_failures(void **state)
{
    struct json_writer t;
    size_t bytes = 0;

    (void)state;
    json_writer_begin(&t, 0);
    json_writer_u64(&t, NULL, (uint64_t)INT64_MAX + 1);
    assert_null(json_writer_end(&t, &bytes));
    json_writer_begin(&t, 0);
    json_writer_real(&t, NULL, INFINITY);
    json_writer_text(&t, NULL, "continues quietly");
    assert_null(json_writer_end(&t, &bytes));
    json_writer_begin(&t, 0);
    json_writer_real(&t, NULL, NAN);
    assert_null(json_writer_end(&t, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_sorted),
        cmocka_unit_test(test_sorted_as_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
