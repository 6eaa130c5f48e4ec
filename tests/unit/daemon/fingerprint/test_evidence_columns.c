/* test_evidence_columns.c: the evidence of the elements of a list, in columns beside the list. The
 * evidence is written, read back completely, and read from documents without columns. Incomplete
 * columns are refused. */
#include "tests/unit/support/as_json.h"
#include "tests/unit/support/any_fingerprint.h"
#include "base/rng.h"
#include "base/units.h"
#include "fingerprint/fingerprint.h"
#include "fingerprint/fingerprint_check.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUND_TRIPS = 300, GROUPS = 3 };

static const struct evidence rounds = {.method = EVIDENCE_ROUNDS, .repeats = 3, .margin = 0.5};
static const struct evidence wider = {.method = EVIDENCE_ROUNDS, .repeats = 3, .margin = 0.75};
static const struct evidence pairs = {.method = EVIDENCE_PAIRS, .repeats = 3, .margin = 0.5};
static const struct evidence oftener = {.method = EVIDENCE_ROUNDS, .repeats = 9, .margin = 0.5};
static const struct evidence none = {.method = EVIDENCE_NONE};

/* ---- written form ---- */

/* Makes three SMs, each in a group of its own, whose penalties have the evidence `e`. */
static void three_groups(const struct evidence *e, struct fingerprint *fp)
{
    fingerprint_init(fp);
    fp->gpu.sm_count = GROUPS;
    fp->topology.partition.group_count = GROUPS;
    for (uint32_t g = 0; g < GROUPS; g++) {
        struct sm_group *const group = &fp->topology.groups[g];
        fp->topology.partition.group_of_sm[g] = (uint16_t)g;
        group->sm_count = 1;
        group->miss_penalty_cycles = KNOWN_F64(80);
        if (e)
            group->evidence.miss_penalty_cycles = e[g];
    }
}

static json_t *parse(const char *text)
{
    json_t *const json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);

    if (!json)
        fail_msg("no JSON: %s", text);
    return json;
}

static void expect_written(struct evidence a, struct evidence b, struct evidence c,
                           const char *wanted)
{
    const struct evidence e[GROUPS] = {a, b, c};
    struct fingerprint fp;
    json_t *const json = parse(wanted);
    json_t *document;
    json_t *columns;

    three_groups(e, &fp);
    assert_int_equal(fingerprint_check(&fp, NULL), STATUS_OK);
    document = AS_JSON(fingerprint_write, &fp, NULL);
    columns = json_object_get(json_object_get(document, "topology"), "group_evidence");
    if (!json_equal(columns, json))
        fail_msg("not %s but %s", wanted, json_dumps(columns, JSON_COMPACT));
    json_decref(document);
    json_decref(json);
}

#define PENALTY(parts) "{\"miss_penalty_cycles\":{" parts "}}"

static void what_is_common_is_one_value(void **state)
{
    (void)state;
    expect_written(none, none, none, "{}");
    expect_written(rounds, rounds, rounds,
                   PENALTY("\"method\":\"rounds\",\"repeats\":3,\"margin\":0.5"));
    expect_written(rounds, wider, rounds,
                   PENALTY("\"method\":\"rounds\",\"repeats\":3,\"margin\":[0.5,0.75,0.5]"));
    expect_written(rounds, pairs, rounds,
                   PENALTY("\"method\":[\"rounds\",\"pairs\",\"rounds\"],\"repeats\":3,"
                           "\"margin\":0.5"));
    expect_written(rounds, rounds, oftener,
                   PENALTY("\"method\":\"rounds\",\"repeats\":[3,3,9],\"margin\":0.5"));
}

/* The margin of the element without evidence is null. Values that the other elements share are
 * written once. */
static void gaps_are_null(void **state)
{
    (void)state;
    expect_written(rounds, none, rounds,
                   PENALTY("\"method\":\"rounds\",\"repeats\":3,\"margin\":[0.5,null,0.5]"));
    expect_written(none, none, wider,
                   PENALTY("\"method\":\"rounds\",\"repeats\":3,\"margin\":[null,null,0.75]"));
    expect_written(none, rounds, pairs,
                   PENALTY("\"method\":[null,\"rounds\",\"pairs\"],\"repeats\":3,"
                           "\"margin\":[null,0.5,0.5]"));
    expect_written(oftener, rounds, none,
                   PENALTY("\"method\":\"rounds\",\"repeats\":[9,3,null],"
                           "\"margin\":[0.5,0.5,null]"));
}

/* The elements themselves contain no evidence. */
static void elements_have_none(void **state)
{
    const struct evidence e[GROUPS] = {rounds, rounds, rounds};
    struct fingerprint fp;
    json_t *document;
    json_t *groups;

    (void)state;
    three_groups(e, &fp);
    document = AS_JSON(fingerprint_write, &fp, NULL);
    groups = json_object_get(json_object_get(document, "topology"), "groups");
    assert_int_equal(json_array_size(groups), GROUPS);
    for (size_t g = 0; g < GROUPS; g++)
        assert_null(json_object_get(json_array_get(groups, g), "evidence"));
    json_decref(document);
}

/* ---- reading back ---- */

static uint64_t seed_of_this_run(void)
{
    const char *const text = getenv("TEST_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 0) : 2611;

    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* compares two structs of evidence */
#define SAME_EVIDENCE(a, b)                                                                        \
    same_evidence((const struct evidence *)&(a), (const struct evidence *)&(b),                    \
                  sizeof(a) / sizeof(struct evidence))

static void same_evidence(const struct evidence *a, const struct evidence *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(a[i].method, b[i].method);
        assert_int_equal(a[i].repeats, b[i].repeats);
        assert_true(!(a[i].margin < b[i].margin) && !(a[i].margin > b[i].margin));
    }
}

static void same_lists(const struct fingerprint *a, const struct fingerprint *b)
{
    const struct throughput *const t = &a->throughput;
    const struct throughput *const u = &b->throughput;

    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++)
        SAME_EVIDENCE(a->topology.groups[g].evidence, b->topology.groups[g].evidence);
    for (uint32_t i = 0; i < FINGERPRINT_MAX_CURVE; i++)
        SAME_EVIDENCE(t->curve[i].evidence, u->curve[i].evidence);
    for (uint32_t i = 0; i < FINGERPRINT_MAX_RATES; i++)
        for (uint32_t k = 0; k < FINGERPRINT_MAX_RATE_POINTS; k++)
            SAME_EVIDENCE(t->rates[i].points[k].evidence, u->rates[i].points[k].evidence);
}

/* How often each form of a column occurs, for lists with more than one element. */
struct seen {
    uint32_t single_margin;
    uint32_t margins;
    uint32_t gaps;
    uint32_t methods;
    uint32_t repeats;
    uint32_t gaps_in_methods;
    uint32_t absent; /* some element has the number, but there is no column for it */
};

static bool has_null(const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (json_is_null(json_array_get(array, i)))
            return true;
    return false;
}

/* The names of the columns of a list, and the numbers that can have one. */
struct shape {
    const char *field;
    const char *const *names;
    uint32_t number_count;
};
static const char *const group_names[] = {"miss_penalty_cycles", "random_read_gbps", "alone_gbps",
                                          "beyond_gbps"};
static const char *const curve_names[] = {"naive_gbps", "by_group_gbps", "by_sm_gbps"};
static const struct shape groups_shape = {"group_evidence", group_names, 4};
static const struct shape curve_shape = {"curve_evidence", curve_names, 3};
static const struct shape points_shape = {"point_evidence", curve_names, 2};

static void scan_field(const json_t *columns, const struct shape *shape, size_t elements,
                       struct seen *seen)
{
    assert_true(json_is_object(columns));
    for (uint32_t k = 0; elements > 1 && k < shape->number_count; k++) {
        const json_t *const column = json_object_get(columns, shape->names[k]);
        const json_t *const method = json_object_get(column, "method");
        const json_t *const margin = json_object_get(column, "margin");
        seen->absent += !column;
        seen->single_margin += json_is_number(margin);
        seen->margins += json_is_array(margin) && !has_null(margin);
        seen->gaps += has_null(margin);
        seen->methods += json_is_array(method);
        seen->repeats += json_is_array(json_object_get(column, "repeats"));
        seen->gaps_in_methods += has_null(method);
    }
}

/* One of the lists that may have columns. */
struct list {
    const struct shape *shape;
    json_t *owner; /* borrowed object that has the list and its columns as fields */
    const char *name;
};
enum { MOST_LISTS = 2 + FINGERPRINT_MAX_RATES };

static uint32_t lists_of(const json_t *document, struct list *out)
{
    json_t *const throughput = json_object_get(document, "throughput");
    const json_t *const rates = json_object_get(throughput, "rates");
    uint32_t n = 0;

    out[n++] = (struct list){&groups_shape, json_object_get(document, "topology"), "groups"};
    out[n++] = (struct list){&curve_shape, throughput, "curve"};
    for (size_t i = 0; i < json_array_size(rates); i++)
        out[n++] = (struct list){&points_shape, json_array_get(rates, i), "points"};
    return n;
}

static void all_comes_back(void **state)
{
    struct rng r = {.state = seed_of_this_run()};
    struct seen seen[3] = {{0}};

    (void)state;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        struct list lists[MOST_LISTS];
        struct fingerprint a;
        struct fingerprint b;
        struct err err = {0};
        json_t *json;
        uint32_t n;

        any_fingerprint(&r, &a);
        json = AS_JSON(fingerprint_write, &a, NULL);
        n = lists_of(json, lists);
        for (uint32_t k = 0; k < n; k++)
            scan_field(json_object_get(lists[k].owner, lists[k].shape->field), lists[k].shape,
                       json_array_size(json_object_get(lists[k].owner, lists[k].name)),
                       &seen[k < 2 ? k : 2]);
        if (fingerprint_from_json(json, &b, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        same_lists(&a, &b);
        json_decref(json);
    }
    for (int k = 0; k < 3; k++)
        assert_true(seen[k].single_margin && seen[k].margins && seen[k].gaps && seen[k].methods &&
                    seen[k].repeats && seen[k].gaps_in_methods && seen[k].absent);
}

/* ---- the previous layout ---- */

static const json_t *entry(const json_t *column, const char *part, size_t i)
{
    const json_t *const value = json_object_get(column, part);

    return json_is_array(value) ? json_array_get(value, i) : value;
}

/* Moves the columns of one list into its elements, which is the layout of older documents. */
static void put_inside(const struct list *list)
{
    const json_t *const elements = json_object_get(list->owner, list->name);
    json_t *const columns = json_object_get(list->owner, list->shape->field);

    for (size_t i = 0; i < json_array_size(elements); i++) {
        json_t *const evidence = json_object();
        const char *name;
        json_t *column;
        json_object_foreach(columns, name, column)
        {
            if (!json_is_null(entry(column, "margin", i)))
                json_object_set_new(evidence, name,
                                    json_pack("{s:O,s:O,s:O}", "method", entry(column, "method", i),
                                              "repeats", entry(column, "repeats", i), "margin",
                                              entry(column, "margin", i)));
        }
        json_object_set_new(json_array_get(elements, i), "evidence", evidence);
    }
    json_object_del(list->owner, list->shape->field);
}

static void old_documents_read_the_same(void **state)
{
    struct rng r = {.state = seed_of_this_run() + 1};

    (void)state;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        struct list lists[MOST_LISTS];
        struct fingerprint a;
        struct fingerprint b;
        struct err err = {0};
        char id_a[FINGERPRINT_ID_BYTES];
        char id_b[FINGERPRINT_ID_BYTES];
        json_t *json;
        uint32_t n;

        any_fingerprint(&r, &a);
        json = AS_JSON(fingerprint_write, &a, NULL);
        n = lists_of(json, lists);
        for (uint32_t k = 0; k < n; k++)
            put_inside(&lists[k]);
        if (fingerprint_from_json(json, &b, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        same_lists(&a, &b);
        assert_int_equal(fingerprint_id(&a, id_a, NULL), STATUS_OK);
        assert_int_equal(fingerprint_id(&b, id_b, NULL), STATUS_OK);
        assert_string_equal(id_a, id_b);
        json_decref(json);
    }
}

/* ---- refused columns ---- */

/* Expects that a document is refused if the column of the penalties of its three groups is
 * `column`. */
static enum status read_penalty(const char *column, struct fingerprint *out, struct err *err)
{
    struct fingerprint fp;
    json_t *document;
    json_t *columns;
    enum status s;

    three_groups(NULL, &fp);
    document = AS_JSON(fingerprint_write, &fp, NULL);
    columns = json_object_get(json_object_get(document, "topology"), "group_evidence");
    json_object_set_new(columns, "miss_penalty_cycles", parse(column));
    s = fingerprint_from_json(document, out, err);
    json_decref(document);
    return s;
}

static void expect_refused(const char *column, const char *says)
{
    struct fingerprint fp;
    struct err err = {0};

    if (read_penalty(column, &fp, &err) != STATUS_CORRUPT)
        fail_msg("taken: %s", column);
    if (!strstr(err.text, says))
        fail_msg("%s: \"%s\" does not say \"%s\"", column, err.text, says);
}

#define COLUMN(method, repeats, margin)                                                            \
    "{\"method\":" method ",\"repeats\":" repeats ",\"margin\":" margin "}"
#define AT "topology.group_evidence.miss_penalty_cycles"

/* These columns are accepted. The tests below make the smallest possible faults in them. */
static void whole_columns_are_taken(void **state)
{
    static const char *const whole[] = {
        COLUMN("\"rounds\"", "3", "0.5"),
        COLUMN("\"rounds\"", "3", "1"),
        COLUMN("\"rounds\"", "3", "[null,0.5,0]"),
        COLUMN("[null,\"pairs\",\"rounds\"]", "[null,1,4294967295]", "[null,0.5,0]"),
        /* the column is longer than needed, but consistent */
        COLUMN("[\"rounds\",\"rounds\",\"rounds\"]", "[3,3,3]", "[0.5,0.5,0.5]"),
        /* a newer release may add fields */
        "{\"method\":\"rounds\",\"repeats\":3,\"margin\":0.5,\"weather\":\"fair\"}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        struct fingerprint fp;
        struct err err = {0};
        if (read_penalty(whole[i], &fp, &err) != STATUS_OK)
            fail_msg("%s: %s", whole[i], err.text);
        assert_int_equal(fp.topology.groups[2].evidence.miss_penalty_cycles.method,
                         EVIDENCE_ROUNDS);
        assert_true(fp.topology.groups[2].evidence.miss_penalty_cycles.repeats >= 3);
    }
}

static void lists_of_the_wrong_length_are_refused(void **state)
{
    (void)state;
    expect_refused(COLUMN("\"rounds\"", "3", "[0.5,0.5]"), AT ".margin: has 2 entries");
    expect_refused(COLUMN("\"rounds\"", "3", "[0.5,0.5,0.5,0.5]"), AT ".margin: has 4 entries");
    expect_refused(COLUMN("\"rounds\"", "3", "[]"), AT ".margin: has 0 entries");
    expect_refused(COLUMN("\"rounds\"", "[3,3]", "0.5"), AT ".repeats: has 2 entries");
    expect_refused(COLUMN("[\"rounds\"]", "3", "0.5"), AT ".method: has 1 entries");
}

/* A margin is refused for an element that has no method or no repeats. The reverse is also
 * refused. */
static void nulls_at_different_places_are_refused(void **state)
{
    (void)state;
    expect_refused(COLUMN("[null,\"pairs\",\"rounds\"]", "3", "0.5"),
                   AT ".method: must be a string");
    expect_refused(COLUMN("\"rounds\"", "[3,null,4]", "0.5"), AT ".repeats: must be an integer");
    expect_refused(COLUMN("[null,\"pairs\",\"rounds\"]", "3", "[0.5,null,0.5]"), AT ".method: ");
    expect_refused(COLUMN("[\"rounds\",\"pairs\",\"pairs\"]", "3", "[0.5,null,0.5]"),
                   AT ".method: must be null for element 1");
    expect_refused(COLUMN("\"rounds\"", "[3,4,4]", "[0.5,null,0.5]"),
                   AT ".repeats: must be null for element 1");
    expect_refused(COLUMN("\"rounds\"", "3", "[null,null,null]"), AT ".margin: must be known");
    expect_refused(COLUMN("\"rounds\"", "3", "null"), AT ".margin: must be known");
}

static void wrong_values_are_refused(void **state)
{
    (void)state;
    expect_refused(COLUMN("\"guess\"", "3", "0.5"), AT ".method: is unknown to this release");
    expect_refused(COLUMN("\"none\"", "3", "0.5"), AT ".method: is unknown to this release");
    expect_refused(COLUMN("[\"rounds\",\"guess\",\"pairs\"]", "3", "0.5"),
                   AT ".method: is unknown");
    expect_refused(COLUMN("7", "3", "0.5"), AT ".method: must be a string");
    expect_refused(COLUMN("null", "3", "0.5"), AT ".method: must be a string");
    expect_refused(COLUMN("{}", "3", "0.5"), AT ".method: must be a string");
    expect_refused(COLUMN("\"rounds\"", "0", "0.5"), AT ".repeats: must be an integer from 1");
    expect_refused(COLUMN("\"rounds\"", "-3", "0.5"), AT ".repeats: must be an integer from 1");
    expect_refused(COLUMN("\"rounds\"", "4294967296", "0.5"), AT ".repeats: must be an integer");
    expect_refused(COLUMN("\"rounds\"", "3.0", "0.5"), AT ".repeats: must be an integer from 1");
    expect_refused(COLUMN("\"rounds\"", "\"3\"", "0.5"), AT ".repeats: must be an integer from 1");
    expect_refused(COLUMN("\"rounds\"", "3", "\"0.5\""), AT ".margin: must be a number");
    expect_refused(COLUMN("\"rounds\"", "3", "[0.5,[0.5],0.5]"), AT ".margin: must be a number");
    expect_refused(COLUMN("\"rounds\"", "3", "[0.5,true,0.5]"), AT ".margin: must be a number");
    expect_refused(COLUMN("\"rounds\"", "3", "1.01"), "groups[0].miss_penalty_cycles");
    expect_refused(COLUMN("\"rounds\"", "3", "[0.5,0.5,-0.1]"), "groups[2].miss_penalty_cycles");
    expect_refused("{\"repeats\":3,\"margin\":0.5}", AT ".method: missing");
    expect_refused("{\"method\":\"rounds\",\"margin\":0.5}", AT ".repeats: missing");
    expect_refused("{\"method\":\"rounds\",\"repeats\":3}", AT ".margin: missing");
    expect_refused("[]", AT ": must be an object");
    expect_refused("null", AT ": must be an object");
}

/* Reads a document with one change: `value` replaces the field `field` of its topology, its
 * throughput or its first rate. */
static void expect_list_refused(uint32_t list, const char *field, const char *value,
                                const char *says)
{
    const struct evidence e[GROUPS] = {rounds, rounds, rounds};
    struct list lists[MOST_LISTS];
    struct fingerprint fp;
    struct err err = {0};
    json_t *document;

    three_groups(e, &fp);
    fp.throughput.rate_count = 1;
    fp.throughput.rates[0].access = ACCESS_WRITE;
    fp.throughput.rates[0].transaction_bytes = 32;
    document = AS_JSON(fingerprint_write, &fp, NULL);
    assert_int_equal(fingerprint_from_json(document, &fp, NULL), STATUS_OK);
    assert_int_equal(lists_of(document, lists), 3);
    json_object_set_new(lists[list].owner, field, parse(value));
    assert_int_equal(fingerprint_from_json(document, &fp, &err), STATUS_CORRUPT);
    if (!strstr(err.text, says))
        fail_msg("%s: \"%s\" does not say \"%s\"", value, err.text, says);
    json_decref(document);
}

/* Columns of an empty list, of values that are not objects, and of unknown numbers are refused. */
static void columns_that_fit_no_list_are_refused(void **state)
{
    static const char naive[] = "{\"naive_gbps\":" COLUMN("\"rounds\"", "3", "0.5") "}";

    (void)state;
    expect_list_refused(0, "groups", "[]", AT ".margin: must be known");
    expect_list_refused(0, "group_evidence", "[]", "topology.group_evidence: must be an object");
    expect_list_refused(1, "curve_evidence", "null", "throughput.curve_evidence: must be an obj");
    expect_list_refused(2, "point_evidence", "7", "throughput.rates[0].point_evidence: must be");
    expect_list_refused(1, "curve_evidence", naive, "curve_evidence.naive_gbps.margin: must be");
    expect_list_refused(2, "point_evidence", naive, "point_evidence.naive_gbps.margin: must be");
    expect_list_refused(0, "group_evidence",
                        "{\"alone_gbps\":" COLUMN("\"rounds\"", "3", "0.5") "}",
                        "groups[0].alone_gbps is absent and has evidence");
}

/* Reads a document with columns and, in the old place of one element, evidence of one number. */
static enum status read_with_old(const char *number, struct fingerprint *out, struct err *err)
{
    const struct evidence e[GROUPS] = {rounds, none, rounds};
    struct fingerprint fp;
    json_t *document;
    json_t *group;
    enum status s;

    three_groups(e, &fp);
    fp.topology.groups[1].alone_gbps = KNOWN_F64(5);
    document = AS_JSON(fingerprint_write, &fp, NULL);
    group = json_array_get(json_object_get(json_object_get(document, "topology"), "groups"), 1);
    json_object_set_new(group, "evidence",
                        json_pack("{s:o}", number, parse(COLUMN("\"pairs\"", "1", "0.25"))));
    s = fingerprint_from_json(document, out, err);
    json_decref(document);
    return s;
}

static void what_is_told_twice_is_refused(void **state)
{
    struct fingerprint fp;
    struct err err = {0};

    (void)state;
    assert_int_equal(read_with_old("miss_penalty_cycles", &fp, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, AT ".method: is in element 1 of the list too"));
    assert_int_equal(read_with_old("alone_gbps", &fp, &err), STATUS_OK);
    assert_int_equal(fp.topology.groups[1].evidence.alone_gbps.method, EVIDENCE_PAIRS);
    assert_int_equal(fp.topology.groups[2].evidence.miss_penalty_cycles.method, EVIDENCE_ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_common_is_one_value),
        cmocka_unit_test(gaps_are_null),
        cmocka_unit_test(elements_have_none),
        cmocka_unit_test(all_comes_back),
        cmocka_unit_test(old_documents_read_the_same),
        cmocka_unit_test(whole_columns_are_taken),
        cmocka_unit_test(lists_of_the_wrong_length_are_refused),
        cmocka_unit_test(nulls_at_different_places_are_refused),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(columns_that_fit_no_list_are_refused),
        cmocka_unit_test(what_is_told_twice_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
