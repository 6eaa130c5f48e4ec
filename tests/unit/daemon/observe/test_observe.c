/* test_observe.c: an observation that is written as JSON and read back is the same. Other JSON is
 * not accepted as an observation. */
#include "tests/unit/support/as_json.h"
#include "tests/unit/support/any_observation.h"
#include "base/rng.h"
#include "observe/observe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUND_TRIPS = 300, SPOILINGS = 2000 };

/* Compares documents, because structs have padding. */
static void assert_same_json(json_t *take_a, json_t *take_b)
{
    assert_non_null(take_a);
    assert_int_equal(json_equal(take_a, take_b), 1);
    json_decref(take_a);
    json_decref(take_b);
}

static void assert_same_observation(const struct observation *a, const struct observation *b)
{
    assert_memory_equal(&a->spec, &b->spec, sizeof(a->spec));
    assert_int_equal(a->result.sm_count, b->result.sm_count);
    assert_memory_equal(a->result.sm_ids, b->result.sm_ids, sizeof(a->result.sm_ids));
    assert_int_equal(a->result.value_count, b->result.value_count);
    assert_memory_equal(a->result.values, b->result.values,
                        a->result.value_count * sizeof(*a->result.values));
    assert_memory_equal(&a->result.conditions, &b->result.conditions, sizeof(a->result.conditions));
    assert_int_equal(a->assessment.verdict, b->assessment.verdict);
    assert_string_equal(a->assessment.message, b->assessment.message);
}

/* Converts the observation to text and back, like a message. */
static json_t *through_text(json_t *take)
{
    json_error_t e;
    char *const text = json_dumps(take, JSON_COMPACT);
    json_t *again;

    assert_non_null(text);
    again = json_loads(text, JSON_REJECT_DUPLICATES, &e);
    assert_non_null(again);
    free(text);
    json_decref(take);
    return again;
}

/* If an observation is written and read without a JSON value for each number, the result is the
 * same. The test does this with the observation alone and in a message. */
static void assert_same_text(const struct observation *a, const json_t *json)
{
    static const char before[] = "{\"ok\":\"run\",\"observation\":";
    size_t bytes = 0;
    size_t length = 0;
    char *const rendered = json_writer_render(json, &bytes);
    char *const text = observation_to_text(a, &length);
    char *const line = calloc(1, sizeof before + length + 1);
    struct observation_values values;
    struct observation b = {0};
    struct err err = {0};
    int used;

    assert_non_null(rendered);
    assert_non_null(text);
    assert_non_null(line);
    assert_int_equal(length, bytes);
    assert_string_equal(text, rendered);
    used = sprintf(line, "%s%.*s}", before, (int)length - 1, text);
    length = (size_t)used;
    assert_int_equal(observation_take_values(line, &length, &values, &err), STATUS_OK);
    assert_int_equal(length, strlen(line));
    assert_int_equal(values.count, a->result.value_count);
    json_t *const short_json = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(short_json);
    assert_int_equal(
        observation_from_parts(json_object_get(short_json, "observation"), &values, &b, &err),
        STATUS_OK);
    assert_null(values.numbers);
    assert_same_observation(a, &b);
    observation_free(&b);
    json_decref(short_json);
    free(line);
    free(text);
    free(rendered);
}

/* A text that is not a list of valid numbers stays in the line, and the parser refuses the line. */
static void test_values_that_stay(void **state)
{
    static const char *const lines[] = {
        "",
        "{}",
        "{\"values\":[]}",
        "{\"values\":[",
        "{\"values\":[1",
        "{\"values\":[1,]}",
        "{\"values\":[,1]}",
        "{\"values\":[1,,2]}",
        "{\"values\":[1,-2]}",
        "{\"values\":[01]}",
        "{\"values\":[1.0]}",
        "{\"values\":[1e3]}",
        "{\"values\":[1, 2]}",
        "{\"values\":[4294967296]}",
        "{\"values\":[99999999999999999999999999]}",
        "{\"values\":[[1]]}",
        "{\"values\":[\"1\"]}",
        "{\"values\":[null]}",
        "{\"a\":\"\\\"values\\\":[1]\"}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct observation_values values;
        size_t length = strlen(lines[i]);
        char *const line = strdup(lines[i]);

        assert_non_null(line);
        assert_int_equal(observation_take_values(line, &length, &values, NULL), STATUS_OK);
        assert_string_equal(line, lines[i]);
        assert_int_equal(length, strlen(lines[i]));
        assert_null(values.numbers);
        free(line);
    }
}

static void test_values_that_are_taken(void **state)
{
    char line[] = "{\"a\":1,\"values\":[0,4294967295,10],\"b\":[2]}";
    size_t length = strlen(line);
    struct observation_values values;

    (void)state;
    assert_int_equal(observation_take_values(line, &length, &values, NULL), STATUS_OK);
    assert_string_equal(line, "{\"a\":1,\"values\":[],\"b\":[2]}");
    assert_int_equal(length, strlen(line));
    assert_int_equal(values.count, 3);
    assert_int_equal(values.numbers[1], UINT32_MAX);
    assert_int_equal(values.numbers[2], 10);
    free(values.numbers);
}

static void test_round_trip(void **state)
{
    struct rng r = {.state = 20261120};

    (void)state;
    print_message("seed %llu\n", (unsigned long long)r.state);
    for (int i = 0; i < ROUND_TRIPS; i++) {
        struct observation a = any_observation(&r);
        struct observation b = {0};
        struct err err = {0};
        json_t *const json = through_text(AS_JSON(observation_write, &a));

        assert_int_equal(observation_from_json(json, &b, &err), STATUS_OK);
        assert_same_observation(&a, &b);
        assert_same_text(&a, json);
        json_decref(json);
        observation_free(&a);
        observation_free(&b);
    }
}

/* Removes or changes a part of a document. The document must be refused with an error message, or
 * it must give an observation whose JSON is the same. */
static void spoil(struct rng *r, json_t *json)
{
    static const char *const victims[] = {"probe", "conditions", ""};
    const char *const victim = victims[rng_below(r, 3)];
    json_t *const object = victim[0] ? json_object_get(json, victim) : json;
    size_t skip = rng_below(r, json_object_size(object));
    void *iter = json_object_iter(object);
    char key[64];

    while (skip-- > 0)
        iter = json_object_iter_next(object, iter);
    (void)snprintf(key, sizeof(key), "%s", json_object_iter_key(iter));
    switch (rng_below(r, 6)) {
    case 0:
        json_object_del(object, key);
        break;
    case 1:
        json_object_set_new(object, key, json_integer(-1));
        break;
    case 2:
        json_object_set_new(object, key, json_string("x"));
        break;
    case 3:
        json_object_set_new(object, "unheard_of", json_true());
        break;
    case 4:
        json_object_set_new(object, key, json_integer(INT64_MAX));
        break;
    default:
        json_object_set_new(object, key, json_pack("[i,n]", 5));
        break;
    }
}

static void test_spoilt(void **state)
{
    struct rng r = {.state = 77};
    int refused = 0;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)r.state);
    for (int i = 0; i < SPOILINGS; i++) {
        struct observation a = any_observation(&r);
        struct observation b = {0};
        struct err err = {0};
        json_t *const json = AS_JSON(observation_write, &a);
        enum status s;

        spoil(&r, json);
        s = observation_from_json(json, &b, &err);
        if (s == STATUS_OK) {
            json_t *const again = AS_JSON(observation_write, &b);
            assert_non_null(again);
            json_decref(again);
        } else {
            assert_int_equal(s, STATUS_PROTOCOL);
            assert_true(strlen(err.text) > 5);
            assert_null(b.result.values);
            refused++;
        }
        json_decref(json);
        observation_free(&a);
        observation_free(&b);
    }
    assert_true(refused > SPOILINGS / 2);
}

static struct observation small_chase(void)
{
    struct observation o = {
        .spec = {.kind = PROBE_CHASE,
                 .stride_bytes = 2 << 20,
                 .point_count = 2,
                 .points = {16, 32},
                 .samples = 3,
                 .warm_laps = 1,
                 .sm_count = 1,
                 .sms = {7}},
        .result = {.sm_count = 2, .sm_ids = {6, 7}, .value_count = 6},
    };

    o.result.values = calloc(6, sizeof(uint32_t));
    assert_non_null(o.result.values);
    for (uint32_t i = 0; i < 6; i++)
        o.result.values[i] = 100 + i;
    return o;
}

/* Sets one field of one part and checks that the error names the field. */
static void expect_refusal(const char *part, const char *field, json_t *value, const char *named)
{
    struct observation o = small_chase();
    struct observation out;
    struct err err = {0};
    json_t *const json = AS_JSON(observation_write, &o);
    json_t *const object = part[0] ? json_object_get(json, part) : json;

    assert_non_null(object);
    if (value)
        assert_int_equal(json_object_set_new(object, field, value), 0);
    else
        assert_int_equal(json_object_del(object, field), 0);
    assert_int_equal(observation_from_json(json, &out, &err), STATUS_PROTOCOL);
    if (!strstr(err.text, named))
        fail_msg("\"%s\" does not name %s", err.text, named);
    json_decref(json);
    observation_free(&o);
}

static void test_names_the_field(void **state)
{
    (void)state;
    expect_refusal("", "values", NULL, "values");
    expect_refusal("", "values", json_pack("[i,i]", 1, 2), "values");
    expect_refusal("", "values", json_pack("[i,i,i,i,i,f]", 1, 2, 3, 4, 5, 6.0), "values");
    expect_refusal("", "values", json_pack("[i,i,i,i,i,I]", 1, 2, 3, 4, 5, (json_int_t)1 << 32),
                   "values");
    expect_refusal("", "shape", json_pack("[i,i]", 3, 2), "shape");
    expect_refusal("", "shape", json_pack("[i]", 6), "shape");
    expect_refusal("", "sm_ids", json_pack("[i,i]", 7, 6), "sm_ids");
    expect_refusal("", "sm_ids", json_array(), "sm_ids");
    expect_refusal("", "sm_ids", json_pack("[i]", REACH_MAX_SMS), "sm_ids");
    expect_refusal("", "colour", json_string("red"), "colour");
    expect_refusal("", "conditions", json_array(), "conditions");
    expect_refusal("conditions", "arena", json_string("imagined"), "conditions.arena");
    expect_refusal("conditions", "started_at", json_integer(0), "conditions.started_at");
    expect_refusal("conditions", "started_at", json_string("yesterday"), "conditions.started_at");
    expect_refusal("conditions", "duration_ns", json_integer(-1), "conditions.duration_ns");
    expect_refusal("conditions", "sm_clock_khz", json_integer(1980000), "conditions.sm_clock_khz");
    expect_refusal("conditions", "weather", json_null(), "conditions.weather");
    expect_refusal("conditions", "arena_reason", json_string("x"), "conditions.arena_reason");
    expect_refusal("probe", "kind", json_string("guess"), "probe.kind");
    expect_refusal("probe", "samples", json_integer(PROBE_MAX_SAMPLES + 1), "samples");
    expect_refusal("probe", "samples", json_real(3.0), "probe.samples");
    expect_refusal("probe", "repeats", json_integer(1), "probe.repeats");
    expect_refusal("probe", "points", json_pack("[i,s]", 1, "2"), "probe.points");
    expect_refusal("probe", "sms", json_pack("[n]"), "probe.sms");
}

static void test_not_an_object(void **state)
{
    struct observation out;
    struct err err = {0};
    json_t *const array = json_array();

    (void)state;
    assert_int_equal(observation_from_json(array, &out, &err), STATUS_PROTOCOL);
    assert_int_equal(observation_from_json(NULL, &out, NULL), STATUS_PROTOCOL);
    json_decref(array);
}

/* The two kinds of absent numbers, unknown and not observable, are distinct, and each keeps its
 * reason. */
static void test_absent_numbers(void **state)
{
    struct observation o = small_chase();
    struct observation out;
    json_t *json;
    json_t *c;

    (void)state;
    o.result.conditions.sm_clock_khz = UNKNOWN_U32(REASON_NOT_REPORTED);
    o.result.conditions.other_processes = NOT_OBSERVABLE_U32(REASON_NOT_APPLICABLE);
    o.result.conditions.temperature_celsius = KNOWN_U32(41);
    json = AS_JSON(observation_write, &o);
    c = json_object_get(json, "conditions");
    assert_true(json_is_null(json_object_get(c, "sm_clock_khz")));
    assert_string_equal(json_string_value(json_object_get(c, "sm_clock_khz_reason")),
                        "not-reported");
    assert_string_equal(json_string_value(json_object_get(c, "other_processes_reason")),
                        "not-observable: not-applicable");
    assert_int_equal(json_integer_value(json_object_get(c, "temperature_celsius")), 41);
    assert_null(json_object_get(c, "temperature_celsius_reason"));
    assert_int_equal(observation_from_json(json, &out, NULL), STATUS_OK);
    assert_int_equal(out.result.conditions.other_processes.known, MAYBE_NOT_OBSERVABLE);
    assert_int_equal(out.result.conditions.sm_clock_khz.known, MAYBE_UNKNOWN);
    json_decref(json);
    observation_free(&o);
    observation_free(&out);
}

static struct gpu_identity a_gpu(void)
{
    return (struct gpu_identity){.uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef",
                                 .name = "A \"quoted\" name \xc3\xa9",
                                 .serial = "1650",
                                 .pci_bus_id = "0000:3b:00.0",
                                 .compute_major = 12,
                                 .compute_minor = 1,
                                 .sm_count = 132,
                                 .memory_bytes = (uint64_t)141 << 30,
                                 .l2_cache_bytes = 50 << 20,
                                 .driver_version = "580.159.04",
                                 .cuda_version = "13.0",
                                 .mig = true,
                                 .origin = ORIGIN_SIMULATED};
}

static void test_identity(void **state)
{
    struct gpu_identity id = a_gpu();
    struct gpu_identity out;
    struct err err = {0};
    json_t *json = AS_JSON(identity_json_write, &id);

    (void)state;
    assert_int_equal(gpu_identity_from_json(json, &out, &err), STATUS_OK);
    assert_same_json(AS_JSON(identity_json_write, &id), AS_JSON(identity_json_write, &out));
    json_object_set_new(json, "compute_capability", json_string("9"));
    assert_int_equal(gpu_identity_from_json(json, &out, &err), STATUS_PROTOCOL);
    assert_non_null(strstr(err.text, "compute_capability"));
    json_decref(json);

    memset(id.serial, 0, sizeof(id.serial));
    id.l2_cache_bytes = 0;
    json = AS_JSON(identity_json_write, &id);
    assert_true(json_is_null(json_object_get(json, "serial")));
    assert_string_equal(json_string_value(json_object_get(json, "l2_cache_bytes_reason")),
                        "not-reported");
    assert_int_equal(gpu_identity_from_json(json, &out, &err), STATUS_OK);
    assert_same_json(AS_JSON(identity_json_write, &id), AS_JSON(identity_json_write, &out));
    json_object_set_new(json, "origin", json_string("guessed"));
    assert_int_equal(gpu_identity_from_json(json, &out, &err), STATUS_PROTOCOL);
    json_decref(json);

    (void)snprintf(id.name, sizeof(id.name), "cut \xc3"); /* the text ends with half a character */
    json = AS_JSON(identity_json_write, &id);
    assert_string_equal(json_string_value(json_object_get(json, "name")), "cut ?");
    json_decref(json);
}

static void test_limits(void **state)
{
    const struct gpu_limits limits = {.arena = ARENA_PLAIN,
                                      .range_bytes = 1,
                                      .backing_bytes = 2,
                                      .granule_bytes = 3,
                                      .device_memory_bytes = 4,
                                      .free_bytes = INT64_MAX,
                                      .host_total_bytes = 5,
                                      .host_nodes = 0xb,
                                      .pcie_generation = KNOWN_U32(6),
                                      .pcie_lanes_supported = KNOWN_U32(16),
                                      .pcie_lanes = UNKNOWN_U32(REASON_NOT_REPORTED),
                                      .locality_domains = KNOWN_U32(2),
                                      .locality_domain_sms = UNKNOWN_U32(REASON_NOT_SUPPORTED),
                                      .sm_count = REACH_MAX_SMS};
    struct gpu_limits out;
    struct err err = {0};
    json_t *const json = AS_JSON(gpu_limits_write, &limits);

    (void)state;
    assert_int_equal(gpu_limits_from_json(json, &out, &err), STATUS_OK);
    assert_int_equal(out.sm_count, REACH_MAX_SMS);
    assert_int_equal(out.host_total_bytes, 5);
    assert_int_equal(out.host_nodes, 0xb);
    assert_int_equal(out.pcie_generation.v, 6);
    assert_int_equal(out.pcie_lanes.reason, REASON_NOT_REPORTED);
    assert_int_equal(out.locality_domains.v, 2);
    assert_int_equal(out.locality_domain_sms.reason, REASON_NOT_SUPPORTED);
    assert_same_json(AS_JSON(gpu_limits_write, &limits), AS_JSON(gpu_limits_write, &out));
    assert_int_equal(out.pcie_lanes_supported.v, 16);
    json_object_del(json, "pcie_lanes_supported");
    assert_int_equal(gpu_limits_from_json(json, &out, &err), STATUS_OK);
    assert_int_equal(out.pcie_generation.v, 6);
    assert_int_equal(out.pcie_lanes_supported.reason, REASON_NOT_MEASURED);
    json_object_del(json, "pcie_generation");
    json_object_del(json, "pcie_lanes");
    json_object_del(json, "pcie_lanes_reason");
    json_object_del(json, "locality_domains");
    json_object_del(json, "locality_domain_sms");
    json_object_del(json, "locality_domain_sms_reason");
    assert_int_equal(gpu_limits_from_json(json, &out, &err), STATUS_OK);
    assert_int_equal(out.pcie_lanes.reason,
                     REASON_NOT_MEASURED); /* a recording of an older release lacks the number */
    assert_int_equal(out.locality_domains.reason, REASON_NOT_MEASURED);
    json_object_set_new(json, "sm_count", json_integer(REACH_MAX_SMS + 1));
    assert_int_equal(gpu_limits_from_json(json, &out, &err), STATUS_PROTOCOL);
    assert_non_null(strstr(err.text, "limits.sm_count"));
    json_decref(json);
}

/* A document has the number of a NUMA node only if the probe names the node. */
static void test_node(void **state)
{
    struct probe_spec spec = {.kind = PROBE_CHASE,
                              .stride_bytes = 128,
                              .point_count = 1,
                              .points = {1},
                              .samples = 1,
                              .sm_count = 1,
                              .memory = MEMORY_HOST_REGISTERED};
    struct probe_spec out;
    struct err err = {0};

    (void)state;
    for (spec.node = 0; spec.node <= PROBE_MAX_NODES; spec.node++) {
        json_t *const json = AS_JSON(probe_spec_write, &spec);
        const json_t *const node = json_object_get(json, "node");
        assert_true(spec.node > 0 ? json_integer_value(node) == spec.node - 1 : !node);
        assert_int_equal(probe_spec_from_json(json, &out, &err), STATUS_OK);
        assert_true(probe_same(&spec, &out));
        json_decref(json);
    }
}

/* A document has `output` only if the probe writes what it reads. */
static void test_output(void **state)
{
    struct probe_spec spec = {.kind = PROBE_READ,
                              .point_count = 1,
                              .points = {1 << 20},
                              .repeats = 1,
                              .duration_us = 1000,
                              .transaction_bytes = 256,
                              .window_count = 1,
                              .window_sms = 1,
                              .memory = MEMORY_HOST_PINNED};
    struct probe_spec out;
    struct err err = {0};

    (void)state;
    for (spec.output = 0; spec.output <= 1; spec.output++) {
        json_t *const json = AS_JSON(probe_spec_write, &spec);
        assert_int_equal(json_is_true(json_object_get(json, "output")), spec.output);
        assert_int_equal(probe_spec_from_json(json, &out, &err), STATUS_OK);
        assert_true(probe_same(&spec, &out));
        json_decref(json);
    }
}

/* If a spec was not checked, reading it causes no access outside its arrays. */
static void test_absurd_spec(void **state)
{
    struct probe_spec spec = {.kind = PROBE_CHASE, .point_count = PROBE_MAX_POINTS + 1};

    (void)state;
    assert_null(AS_JSON(probe_spec_write, &spec));
    spec = (struct probe_spec){.kind = PROBE_CHASE, .point_count = 1, .points = {UINT64_MAX}};
    assert_null(AS_JSON(probe_spec_write, &spec));
}

static void test_accessors(void **state)
{
    struct observation o = small_chase();

    (void)state;
    assert_int_equal(observation_chase(&o, 1)[2], 105);
    observation_free(&o);
    assert_null(o.result.values);

    o = (struct observation){
        .spec = {.kind = PROBE_ROUND, .repeats = 2, .slice_pages = 3},
        .result = {.sm_count = 5, .value_count = 60},
    };
    o.result.values = calloc(60, sizeof(uint32_t));
    for (uint32_t i = 0; i < 60; i++)
        o.result.values[i] = i;
    assert_int_equal(observation_round(&o, 1, 1, 4)[2], 59);
    assert_int_equal(observation_round(&o, 1, 0, 2)[1], 30 + 6 + 1);
    o.spec = (struct probe_spec){.kind = PROBE_PAIRS, .sm_count = 2, .slice_pages = 3};
    assert_int_equal(observation_pair(&o, 1, 1, 0)[0], 30 + 15);
    o.spec = (struct probe_spec){.kind = PROBE_READ, .point_count = 5, .repeats = 2};
    o.result.values[18] = 1000; /* point 1, repeat 1: 19 to 23 lines of each SM in 1000 ns */
    assert_float_equal(observation_read_gbps(&o, 1, 1), (19 + 20 + 21 + 22 + 23) * 0.128, 1e-9);
    assert_float_equal(observation_read_sm_gbps(&o, 1, 1, 4), 23 * 0.128, 1e-9);
    o.spec.transaction_bytes = 32; /* the number of reads is the same, but each read is shorter */
    assert_float_equal(observation_read_gbps(&o, 1, 1), (19 + 20 + 21 + 22 + 23) * 0.032, 1e-9);
    assert_float_equal(observation_read_sm_gbps(&o, 1, 1, 4), 23 * 0.032, 1e-9);
    assert_float_equal(observation_read_gbps(&o, 0, 0), 0.0,
                       0.0); /* point 0 has no time, so it has no throughput */
    observation_free(&o);
}

/* Reads of the curve have no kind of access, like in observations of older releases. Other reads
 * have a kind of access. */
static void test_access(void **state)
{
    struct probe_spec spec = {.kind = PROBE_READ,
                              .point_count = 1,
                              .points = {1 << 30},
                              .repeats = 1,
                              .duration_us = 1000,
                              .window_count = 1,
                              .window_sms = 1};
    struct probe_spec again;
    struct err err = {0};
    json_t *json = AS_JSON(probe_spec_write, &spec);

    (void)state;
    assert_non_null(json);
    assert_null(json_object_get(json, "access"));
    assert_null(json_object_get(json, "transaction_bytes"));
    json_object_set_new(json, "access", json_string("read"));
    assert_int_equal(probe_spec_from_json(json, &again, &err), STATUS_PROTOCOL);
    assert_non_null(strstr(err.text, "transaction_bytes"));
    json_object_set_new(json, "transaction_bytes", json_integer(32));
    assert_int_equal(probe_spec_from_json(json, &again, &err), STATUS_OK);
    assert_int_equal(again.transaction_bytes, 32);
    json_object_set_new(json, "access", json_string("swap"));
    assert_int_equal(probe_spec_from_json(json, &again, &err), STATUS_PROTOCOL);
    assert_non_null(strstr(err.text, "access"));
    json_object_set_new(json, "access", json_string("write"));
    json_object_set_new(json, "transaction_bytes", json_integer(512));
    assert_int_equal(probe_spec_from_json(json, &again, &err), STATUS_PROTOCOL);
    json_decref(json);
    spec.access = ACCESS_COUNT;
    assert_null(AS_JSON(probe_spec_write, &spec));
}

static void test_set(void **state)
{
    struct observation_set set = {0};
    struct err err = {0};

    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        struct observation o = small_chase();
        o.spec.base_bytes = i * PROBE_LINE_BYTES;
        assert_int_equal(observation_set_add(&set, &o, &err), STATUS_OK);
        assert_null(o.result.values); /* taken */
    }
    assert_int_equal(set.count, 100);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(set.items[i].spec.base_bytes, i * PROBE_LINE_BYTES);
    observation_set_free(&set);
    assert_int_equal(set.count, 0);
    observation_set_free(&set); /* a second call for the same set is valid */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_values_that_stay),
        cmocka_unit_test(test_values_that_are_taken),
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_names_the_field),
        cmocka_unit_test(test_not_an_object),
        cmocka_unit_test(test_absent_numbers),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_node),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_absurd_spec),
        cmocka_unit_test(test_accessors),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_access),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
