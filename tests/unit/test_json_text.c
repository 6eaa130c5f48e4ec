/* test_json_text.c: what json_text writes is what jansson writes of the same values. */
#include "base/json_text.h"

#include "base/json_out.h"
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

/* Ends the text and holds it against the value, which goes. */
static void same(struct json_text *t, json_t *take)
{
    size_t bytes = 0;
    char *text = json_text_end(t, &bytes);
    char *wanted = json_dumps(take, JSON_COMPACT);

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

static void test_shapes(void **state)
{
    struct json_text t;

    (void)state;
    json_text_begin(&t, 0);
    json_text_open(&t, NULL, '{');
    json_text_open(&t, "empty", '[');
    json_text_close(&t, ']');
    json_text_open(&t, "none", '{');
    json_text_close(&t, '}');
    json_text_open(&t, "list", '[');
    json_text_u64(&t, NULL, 0);
    json_text_open(&t, NULL, '[');
    json_text_null(&t, NULL);
    json_text_bool(&t, NULL, true);
    json_text_close(&t, ']');
    json_text_u64(&t, NULL, INT64_MAX);
    json_text_close(&t, ']');
    json_text_bool(&t, "no", false);
    json_text_text(&t, "text", "");
    json_text_close(&t, '}');
    same(&t, json_pack("{s:[],s:{},s:[i,[n,b],I],s:b,s:s}", "empty", "none", "list", 0, 1,
                       (json_int_t)INT64_MAX, "no", 0, "text", ""));
}

static void test_lists(void **state)
{
    static const int16_t edges[] = {0,    9,     10,        99, 100,       999, 1000,
                                    9999, 10000, INT16_MAX, -1, INT16_MIN, 5};
    enum { EDGES = sizeof(edges) / sizeof(*edges), LONG = 700 };
    int16_t many[LONG];
    struct json_text t;
    json_t *wanted = json_object();
    json_t *lists[3] = {json_array(), json_array(), json_array()};

    (void)state;
    for (size_t i = 0; i < EDGES; i++)
        json_array_append_new(lists[1], edges[i] < 0 ? json_null() : json_integer(edges[i]));
    for (int i = 0; i < LONG; i++) {
        many[i] = (int16_t)(i * 47 - 100);
        json_array_append_new(lists[2], many[i] < 0 ? json_null() : json_integer(many[i]));
    }
    json_text_begin(&t, 0);
    json_text_open(&t, NULL, '{');
    json_text_i16s(&t, "none", edges, 0);
    json_text_i16s(&t, "edges", edges, EDGES);
    json_text_i16s(&t, "many", many, LONG);
    json_text_u64(&t, "more", 7);
    json_text_close(&t, '}');
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
        struct json_text t;
        double v;
        uint64_t bits = rng_next(&rng);
        memcpy(&v, &bits, sizeof(v));
        if (i < sizeof(some) / sizeof(*some))
            v = some[i];
        else if (i % 3 == 0)
            v = (double)(bits % 100000000) / 1000;
        if (!isfinite(v))
            continue;
        json_text_begin(&t, 0);
        json_text_open(&t, NULL, '[');
        json_text_real(&t, NULL, v);
        json_text_close(&t, ']');
        same(&t, json_pack("[f]", v));
    }
}

/* Of every size from 1 to 10^15, and such as lie in the middle between two that can be written. */
static void test_plain_reals(void **state)
{
    const char *given = getenv("REACH_SEED");
    struct rng rng = {.state = given ? strtoull(given, NULL, 0) : 20261121};

    (void)state;
    print_message("# REACH_SEED=%llu\n", (unsigned long long)rng.state);
    for (int round = 0; round < 60000; round++) {
        const double size = pow(10, 15 * rng_unit(&rng));
        const double eighths = (double)rng_below(&rng, 8000000000000000) / 8;
        const double decimal = floor(size * 1000) / 1000;
        const double below = nextafter(floor(size) + 1, 0);
        const double all[] = {size, eighths, decimal, below, nextafter(floor(size), INFINITY)};
        const double v = all[round % 5];
        struct json_text t;
        char wanted[64];
        size_t bytes = 0;
        char *text;
        json_text_begin(&t, 0);
        json_text_real(&t, NULL, v);
        text = json_text_end(&t, &bytes);
        snprintf(wanted, sizeof(wanted), "%.17g%s\n", v, v == floor(v) ? ".0" : "");
        if (v >= 1 && strchr(wanted, 'e') == NULL)
            assert_string_equal(text, wanted);
        free(text);
    }
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
        struct json_text t;
        json_t *wanted = json_array();
        json_text_begin(&t, 0);
        json_text_open(&t, NULL, '[');
        json_text_text(&t, NULL, some[i]);
        json_text_close(&t, ']');
        json_array_append_new(wanted, json_out_new_text(some[i]));
        same(&t, wanted);
    }
}

static void test_absent(void **state)
{
    struct json_text t;
    struct json_out o;

    (void)state;
    json_text_begin(&t, 0);
    json_out_begin(&o);
    json_text_open(&t, NULL, '{');
    for (int r = REASON_NOT_MEASURED; r < REASON_COUNT; r++) {
        char name[16];
        snprintf(name, sizeof(name), "r%d", r);
        json_text_u64_maybe(&t, name, UNKNOWN_U64((enum reason)r));
        json_out_u64_maybe(&o, name, UNKNOWN_U64((enum reason)r));
        name[0] = 'f';
        json_text_f64_maybe(&t, name, NOT_OBSERVABLE_F64((enum reason)r));
        json_out_f64_maybe(&o, name, NOT_OBSERVABLE_F64((enum reason)r));
    }
    json_text_u64_maybe(&t, "u", KNOWN_U64(7));
    json_out_u64_maybe(&o, "u", KNOWN_U64(7));
    json_text_f64_maybe(&t, "d", KNOWN_F64(0.25));
    json_out_f64_maybe(&o, "d", KNOWN_F64(0.25));
    json_text_close(&t, '}');
    same(&t, json_out_end(&o));
}

static void test_failures(void **state)
{
    struct json_text t;
    size_t bytes = 0;

    (void)state;
    json_text_begin(&t, 0);
    json_text_u64(&t, NULL, (uint64_t)INT64_MAX + 1);
    assert_null(json_text_end(&t, &bytes));
    json_text_begin(&t, 0);
    json_text_real(&t, NULL, INFINITY);
    json_text_text(&t, NULL, "goes on quietly");
    assert_null(json_text_end(&t, &bytes));
    json_text_begin(&t, 0);
    json_text_real(&t, NULL, NAN);
    assert_null(json_text_end(&t, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),   cmocka_unit_test(test_lists),
        cmocka_unit_test(test_reals),    cmocka_unit_test(test_plain_reals),
        cmocka_unit_test(test_texts),    cmocka_unit_test(test_absent),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
