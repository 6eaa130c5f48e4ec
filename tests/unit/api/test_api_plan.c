/* test_api_plan.c: answers and refusals of plan, split and explain over a socket (api_fixture.h).
 * The tests of the planner check the numbers. */
#include "tests/unit/support/api_fixture.h"

#include "base/units.h"
#include "planner/strategy.h"

#include <stdio.h>
#include <string.h>

static json_t *option_of(json_t *plan, const char *strategy)
{
    size_t i;
    json_t *option;

    json_array_foreach(json_object_get(plan, "options"), i, option)
    {
        if (strcmp(api_text_in(option, "strategy"), strategy) == 0)
            return option;
    }
    fail_msg("no option %s", strategy);
    return NULL;
}

static bool possible(json_t *plan, const char *strategy)
{
    return json_is_true(json_object_get(option_of(plan, strategy), "possible"));
}

/* The GPU has 4 groups of 4 SMs, a reach of 1 GiB, and 100 GB/s within the reach. The throughput
 * beyond the reach is unknown. */
static void test_plan(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f, "/v1/gpus/0/plan?bytes=1.5G&in_reach_gbps=80&element=64", 200);
    json_t *placement = json_object_get(json, "placement");

    assert_string_equal(api_text_in(json, "fingerprint_id"), f->id);
    assert_string_equal(api_text_in(json, "origin"), "simulated");
    assert_string_equal(api_text_in(json, "recommended"), "windows");
    assert_string_equal(api_text_in(json, "basis"), "scaled");
    assert_int_equal(json_integer_value(json_object_get(json, "transaction_bytes")), 64);
    assert_true(json_number_value(json_object_get(json, "in_reach_gbps")) == 80);
    assert_int_equal(json_array_size(json_object_get(json, "options")), STRATEGY_COUNT);
    assert_true(possible(json, "naive") && possible(json, "scopes") && possible(json, "windows"));
    assert_true(json_is_null(json_object_get(option_of(json, "naive"), "gbps")));
    assert_string_equal(api_text_in(option_of(json, "naive"), "gbps_reason"), "not-measured");
    assert_int_equal(json_integer_value(json_object_get(placement, "window_count")), 2);
    assert_int_equal(json_array_size(json_object_get(placement, "window_of_sm")), 16);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "scope"), "passes")),
                     2);
    json_decref(json);
    json = api_get(f, "/v1/gpus/0/plan?bytes=1.5G&no_sm_binding=true&single_pass=true", 200);
    assert_string_equal(api_text_in(json, "recommended"), "naive");
    assert_true(json_is_null(json_object_get(json, "placement")));
    assert_true(json_is_null(json_object_get(json, "scope")));
    json_decref(json);
    /* All parameters are used at once. */
    json = api_get(f,
                   "/v1/gpus/0/plan?bytes=1.5G&access=write&element=16&transaction=32&reserve=1M"
                   "&accesses=1000&no_sm_binding=false&single_pass=false&input_bytes=8&input_gbps="
                   "50.5&scan_gps=1e2"
                   "&in_reach_gbps=10&output_bytes=4&partition_bytes=12&granularity=4M&windows=3&"
                   "contiguous=0.3",
                   200);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json, "placement"), "window_count")), 3);
    assert_true(json_number_value(
                    json_object_get(option_of(json, "filtered-windows"), "extra_bytes")) == 48000);
    assert_true(json_number_value(json_object_get(json, "contiguous")) == 0.3);
    json_decref(json);
    json = api_get(f, "/v1/gpus/0/plan?bytes=1.5G&contiguous=0", 200);
    assert_true(json_number_value(json_object_get(json, "contiguous")) == 0);
    assert_string_equal(api_text_in(json, "naive_scattered_gbps_reason"), "not-measured");
    json_decref(json);
}

/* The request has two allocations, 1.5 GiB together. The answer has the part of each allocation in
 * each window and each pass. */
static void test_several_allocations(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f,
                           "/v1/gpus/0/plan?bytes=1G,512M&touches=1,2&element=128,16&"
                           "in_reach_gbps=80&granularity=128,64&written_bytes=8",
                           200);
    json_t *windows = json_object_get(json_object_get(json, "placement"), "windows");
    json_t *allocations = json_object_get(json, "allocations");
    json_t *parts = json_object_get(json_array_get(windows, 1), "parts");

    assert_int_equal(json_array_size(windows), 2);
    assert_int_equal(json_array_size(parts), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(parts, 0), "first_byte")),
                     512 * MIB);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(parts, 1), "first_byte")),
                     256 * MIB);
    assert_int_equal(json_array_size(allocations), 2);
    assert_true(json_number_value(json_object_get(json_array_get(allocations, 1), "touches")) == 2);
    assert_true(json_number_value(json_object_get(json, "item_bytes")) == 128 + 2 * 32);
    assert_null(json_object_get(json, "element_bytes"));
    json_decref(json);
    json = api_get(f, "/v1/gpus/0/scope?bytes=1G,512M", 200);
    assert_int_equal(json_array_size(json_object_get(json, "scopes")), 2);
    json_decref(json);
    /* A request for one allocation has an answer without a list. If the allocation is touched
     * twice, the answer has a list of one. */
    json = api_get(f, "/v1/gpus/0/plan?bytes=1.5G&touches=1", 200);
    assert_null(json_object_get(json, "allocations"));
    json_decref(json);
    json = api_get(f, "/v1/gpus/0/plan?bytes=1.5G&touches=2", 200);
    assert_int_equal(json_array_size(json_object_get(json, "allocations")), 1);
    json_decref(json);
}

static void test_split(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f, "/v1/gpus/0/split?bytes=512M,1.5G&weight=1,1.0", 200);
    json_t *jobs = json_object_get(json, "jobs");
    json_t *second = json_array_get(jobs, 1);

    assert_int_equal(json_array_size(jobs), 2);
    assert_int_equal(json_array_size(json_object_get(second, "sms")), 8);
    assert_int_equal(json_array_size(json_object_get(second, "groups")), 2);
    assert_int_equal(json_array_size(json_object_get(second, "windows")), 2);
    assert_true(json_is_true(json_object_get(second, "fits")));
    json_decref(json);
}

static void test_explain(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f, "/v1/gpus/0/explain?bytes=512M&gbps=10", 200);

    assert_string_equal(api_text_in(json, "verdict"), "not-translation");
    assert_true(json_number_value(json_object_get(json, "in_reach_gbps")) == 100);
    assert_true(json_number_value(json_object_get(json, "loss_gbps")) == 90);
    assert_true(json_array_size(json_object_get(json, "checks")) > 1);
    json_decref(json);
    json = api_get(f, "/v1/gpus/0/explain?bytes=4G&gbps=10", 200);
    assert_string_equal(api_text_in(json, "verdict"), "cannot-say");
    assert_true(json_is_null(json_object_get(json, "expected_gbps")));
    json_decref(json);
}

static void test_refusals(void **state)
{
    static const struct refusal {
        const char *query;
        const char *blame;
    } wrong[] = {
        {"plan", "bytes"},
        {"plan?bytes=0", "bytes"},
        {"plan?bytes=1G&byte=1", "byte"},
        {"plan?bytes=1G&weight=1", "weight"},
        {"plan?bytes=1G&access=swap", "access"},
        {"plan?bytes=1G&element=0", "element"},
        {"plan?bytes=1G,0", "bytes"},
        {"plan?bytes=1G,1G&touches=1,-1", "touches"},
        {"plan?bytes=1G,1G&granularity=1,2P", "granularity"},
        {"plan?bytes=1G&written_bytes=0", "written_bytes"},
        {"plan?bytes=1G&launch_us=-1", "launch_us"},
        {"plan?bytes=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "bytes"},
        {"plan?bytes=1G&reserve=-1", "reserve"},
        {"plan?bytes=1G&accesses=0", "accesses"},
        {"plan?bytes=1G&accesses=1.5", "accesses"},
        {"plan?bytes=1G&no_sm_binding=yes", "no_sm_binding"},
        {"plan?bytes=1G&single_pass=", "single_pass"},
        {"plan?bytes=1G&input_bytes=0", "input_bytes"},
        {"plan?bytes=1G&input_bytes=nan", "input_bytes"},
        {"plan?bytes=1G&input_bytes=1e9", "input_bytes"},
        {"plan?bytes=1G&scan_gps=-1", "scan_gps"},
        {"plan?bytes=1G&scan_gps=0x10", "scan_gps"},
        {"plan?bytes=1G&in_reach_gbps=1e999", "in_reach_gbps"},
        {"plan?bytes=1G&in_reach_gbps=1-2", "in_reach_gbps"},
        {"plan?bytes=1G&contiguous=1.1", "contiguous"},
        {"plan?bytes=1G&contiguous=-1", "contiguous"},
        {"plan?bytes=1G&contiguous=", "contiguous"},
        {"plan?bytes=1G&contiguous=0.0.", "contiguous"},
        {"explain?bytes=1G&gbps=1&contiguous=half", "contiguous"},
        {"plan?bytes=3G&windows=257", "windows"},
        {"split", "bytes"},
        {"split?bytes=", "bytes"},
        {"split?bytes=1G,", "bytes"},
        {"split?bytes=1G,,2G", "bytes"},
        {"split?bytes=1G,0", "bytes"},
        {"split?bytes=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "bytes"},
        {"split?bytes=1G,2G&weight=1,x", "weight"},
        {"explain?bytes=1G", "gbps"},
        {"explain?gbps=1", "bytes"},
        {"explain?bytes=1G&gbps=0", "gbps"},
        {"explain?bytes=1G&gbps=-3", "gbps"},
        {"explain?bytes=1G&gbps=1&windows=2", "windows"},
    };
    /* These requests are well-formed but impossible. */
    static const struct refusal impossible[] = {
        {"plan?bytes=1G,1G&element=1,2,3", "element"},
        {"plan?bytes=1G&element=1,2", "element"},
        {"plan?bytes=1G,1G&touches=0", "touches"},
        {"scope?bytes=1G,1G&granularity=1G", "granularity"},
        {"plan?bytes=1G&element=2M", "element"},
        {"plan?bytes=1G&transaction=4G", "transaction"},
        {"plan?bytes=1G&reserve=2000T", "reserve"},
        {"plan?bytes=1G&input_gbps=5", "input_gbps"},
        {"plan?bytes=3G&windows=2", "windows"},
        {"plan?bytes=3G&granularity=2G", "granularity"},
        {"split?bytes=1G,1G,1G,1G,1G", "bytes"},
        {"split?bytes=1G,2G&weight=1", "weight"},
        {"split?bytes=1G,2G&weight=1,2,3", "weight"},
        {"split?bytes=1G,2G&weight=0,1", "weight"},
    };
    struct api_fixture *f = *state;
    char target[128];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        snprintf(target, sizeof(target), "/v1/gpus/0/%s", wrong[i].query);
        api_refused(f, target, 400, "invalid-argument", wrong[i].blame);
    }
    for (size_t i = 0; i < sizeof(impossible) / sizeof(*impossible); i++) {
        snprintf(target, sizeof(target), "/v1/gpus/0/%s", impossible[i].query);
        api_refused(f, target, 422, "invalid-argument", impossible[i].blame);
    }
    api_refused(f, "/v1/gpus/1/plan?bytes=1", 409, "no-fingerprint", NULL);
    api_refused(f, "/v1/gpus/1/split?bytes=1", 409, "no-fingerprint", NULL);
    api_refused(f, "/v1/gpus/1/explain?bytes=1&gbps=1", 409, "no-fingerprint", NULL);
    api_refused(f, "/v1/gpus/7/plan?bytes=1", 404, "not-found", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(test_plan),     API_TEST(test_several_allocations),
        API_TEST(test_split),    API_TEST(test_explain),
        API_TEST(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
