/* test_libreach_environment.c: libreach with the variables that a scheduler set. The variables give
 * answers only about the GPUs of the job. Values that reachd did not write are ignored. */
#include "clients/c/reach.h"
#include "tests/unit/support/placement_fixture.h"
#include "tests/unit/support/stub_daemon.h"

#include "base/units.h"
#include "planner/job_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPU_A "GPU-00000000-0000-0000-0000-00000000000a"
#define GPU_B "GPU-00000000-0000-0000-0000-00000000000b"
#define OTHER "GPU-00000000-0000-0000-0000-00000000000c"

static const char ID[] = "fp0123456789abcdef";
static struct fingerprint fp;
static struct reach *reach;
static struct reach_error why;

static void put(const char *name, const char *uuid)
{
    struct err err;
    char *text;

    placement_make_large(&fp);
    (void)snprintf(fp.gpu.uuid, sizeof(fp.gpu.uuid), "%s", uuid);
    (void)snprintf(fp.gpu.name, sizeof(fp.gpu.name), "A chip");
    fp.gpu.memory_bytes = 137 * GIB;
    text = job_env_text(&fp, ID, &err);
    assert_non_null(text);
    assert_int_equal(setenv(name, text, 1), 0);
    free(text);
}

static int set_up(void **state)
{
    (void)state;
    unsetenv("REACHD_URL");
    put("REACH_JOB_0", GPU_A);
    put("REACH_JOB_2", GPU_B); /* GPU 1 was never measured */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    reach_close(reach);
    reach = NULL;
    unsetenv("REACH_JOB_0");
    unsetenv("REACH_JOB_2");
    unsetenv("REACHD_URL");
    return 0;
}

static void open_as(const char *where)
{
    if (reach_open(where, &reach, &why) != REACH_OK)
        fail_msg("%s", why.text);
}

static enum reach_status ask(const char *gpu, uint64_t bytes, struct reach_answer **out)
{
    const struct reach_placement_request request = {.size = sizeof(request), .bytes = bytes};

    return reach_get_placement(reach, gpu, &request, out, &why);
}

static void check_answer(const char *gpu, const char *uuid)
{
    struct reach_answer *answer = NULL;
    const struct reach_windows *windows;
    uint64_t covered = 0;

    if (ask(gpu, 100 * GIB, &answer) != REACH_OK || !answer) {
        fail_msg("%s", why.text);
        return;
    }
    windows = &reach_answer_placement(answer)->windows;
    assert_string_equal(reach_answer_provenance(answer)->gpu_uuid, uuid);
    assert_string_equal(reach_answer_provenance(answer)->fingerprint_id, ID);
    assert_int_equal(reach_answer_source(answer), REACH_FROM_ENVIRONMENT);
    assert_int_equal(reach_answer_check_gpu(answer, uuid, &why), REACH_OK);
    assert_int_equal(windows->window_count, 2);
    for (uint32_t w = 0; w < windows->window_count; w++)
        covered += windows->window[w].length_bytes;
    assert_true(covered == 100 * GIB);
    assert_int_equal(windows->sm_slots, 132);
    reach_answer_free(answer);
}

static void refused(const char *gpu, enum reach_status wanted)
{
    struct reach_answer *p = (struct reach_answer *)&why; /* the call must overwrite the pointer */
    const enum reach_status got = ask(gpu, GIB, &p);

    if (got != wanted)
        fail_msg("%s and not %s: %s", reach_status_name(got), reach_status_name(wanted), why.text);
    assert_null(p);
    assert_true(why.text[0] != '\0');
}

/* ---- a GPU by its name ---- */

static void test_alone(void **state)
{
    (void)state;
    open_as("env:");
    check_answer("0", GPU_A);
    check_answer(GPU_A, GPU_A);
    check_answer("gpu-00000000-0000-0000-0000-00000000000B", GPU_B);
    check_answer("2", GPU_B);
    refused("1", REACH_NOT_MEASURED);
    assert_non_null(strstr(why.text, "REACH_JOB_1"));
    refused("99999999", REACH_NOT_FOUND);
    refused(OTHER, REACH_WRONG_GPU);
    refused("a b", REACH_INVALID_ARGUMENT);
}

static void test_gpus_and_fingerprint(void **state)
{
    const struct reach_fingerprint *known;
    struct reach_answer *gpus = NULL;
    struct reach_answer *answer = NULL;

    (void)state;
    open_as("env:");
    assert_int_equal(reach_get_gpus(reach, &gpus, &why), REACH_OK);
    assert_int_equal(reach_answer_gpu_count(gpus), 3);
    assert_int_equal(reach_answer_gpu(gpus, 2)->index, 2);
    assert_string_equal(reach_answer_gpu(gpus, 2)->uuid, GPU_B);
    assert_int_equal(reach_answer_gpu(gpus, 2)->state, REACH_STATE_READY);
    assert_int_equal(reach_answer_gpu(gpus, 1)->state, REACH_STATE_UNKNOWN);
    assert_string_equal(reach_answer_gpu(gpus, 1)->fingerprint_id, "");
    assert_int_equal(reach_get_fingerprint(reach, "0", &answer, &why), REACH_OK);
    known = reach_answer_fingerprint(answer);
    assert_string_equal(reach_answer_provenance(answer)->fingerprint_id, ID);
    assert_string_equal(known->name, "A chip");
    assert_true(known->reach_bytes.known && known->reach_bytes.value == 64.0 * (double)GIB);
    assert_int_equal(known->group_count, 8);
    assert_int_equal(reach_revalidate(reach, answer, &why), REACH_NOT_SUPPORTED);
    reach_answer_free(gpus);
    reach_answer_free(answer);
}

static void test_every_other_question(void **state)
{
    const uint64_t bytes[] = {GIB, GIB};
    const struct reach_scope_request scope = {.size = sizeof(scope), .bytes = 100 * GIB};
    const struct reach_job job = {.size = sizeof(job), .bytes = 100 * GIB};
    const struct reach_split_request split = {
        .size = sizeof(split), .job_count = 2, .bytes = bytes};
    const struct reach_explain_request explain = {
        .size = sizeof(explain), .bytes = GIB, .observed_gbps = 1};
    struct reach_answer *s = NULL;
    struct reach_answer *p = NULL;
    struct reach_answer *shares = NULL;
    struct reach_answer *e = NULL;

    (void)state;
    open_as("env:");
    assert_int_equal(reach_get_scope(reach, "0", &scope, &s, &why), REACH_OK);
    assert_int_equal(reach_answer_scope(s)->passes, 2);
    assert_int_equal(reach_get_plan(reach, "0", &job, &p, &why), REACH_OK);
    assert_int_equal(reach_answer_check_gpu(p, GPU_A, &why), REACH_OK);
    assert_int_equal(reach_get_split(reach, "0", &split, &shares, &why), REACH_OK);
    assert_int_equal(reach_answer_split(shares)->job_count, 2);
    assert_string_equal(reach_answer_provenance(shares)->fingerprint_id, ID);
    assert_int_equal(reach_get_explain(reach, "0", &explain, &e, &why), REACH_OK);
    assert_string_equal(reach_answer_provenance(e)->fingerprint_id, ID);
    reach_answer_free(s);
    reach_answer_free(p);
    reach_answer_free(shares);
    reach_answer_free(e);
}

/* A request that only a daemon can answer is refused like in the API. */
static void test_requests_for_a_daemon(void **state)
{
    static const char *const targets[] = {"/v1/node",
                                          "/metrics",
                                          "/readyz",
                                          "/v1/gpus/0/history",
                                          "/v1/gpus/0/observations",
                                          "/v1/gpus/0/fingerprint?at=fp0000000000000001"};

    (void)state;
    open_as("env:");
    for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
        char *json = NULL;
        assert_int_equal(reach_get(reach, targets[i], &json, &why), REACH_NOT_SUPPORTED);
        assert_int_equal(why.http_status, 501);
        assert_non_null(strstr(json, "\"not-supported\""));
        reach_free(json);
    }
}

static void test_alone_without_any(void **state)
{
    (void)state;
    tear_down(state);
    assert_int_equal(reach_open("env:", &reach, &why), REACH_NOT_FOUND);
    assert_null(reach);
    setenv("REACH_JOB_0", "", 1);
    assert_int_equal(reach_open("env:", &reach, &why), REACH_NOT_FOUND);
    setenv("REACH_JOB_0", "{\"version\":1}", 1);
    assert_int_equal(reach_open("env:", &reach, &why), REACH_CORRUPT);
    assert_non_null(strstr(why.text, "REACH_JOB_0"));
    setenv("REACH_JOB_0", "{\"version\":2}", 1);
    assert_int_equal(reach_open("env:", &reach, &why), REACH_CORRUPT);
    assert_non_null(strstr(why.text, "version 2"));
    assert_int_equal(reach_open("env:x", &reach, &why), REACH_INVALID_ARGUMENT);
    assert_null(reach);
}

/* ---- environment and daemon ---- */

static struct stub_reply says(void *cls, const char *target)
{
    (void)target;
    return (struct stub_reply){.body = cls};
}

static char from_daemon[] =
    "{\"gpu\":\"" OTHER "\",\"fingerprint_id\":\"fp00000000000000dd\","
    "\"fingerprint_stale\":false,\"origin\":\"simulated\",\"bytes\":1073741824,"
    "\"advice\":\"nothing-to-do\",\"window_count\":1,\"windows\":[{\"index\":0,"
    "\"first_byte\":0,\"length_bytes\":1073741824,\"sm_count\":1,\"group_count\":1}],"
    "\"window_of_sm\":[0],\"headroom_bytes\":1,\"predicted_gbps\":1,\"naive_gbps\":1,"
    "\"reason\":\"r\"}";

static void test_comes_before_a_daemon(void **state)
{
    struct reach_answer *p = NULL;
    struct stub_daemon stub;

    (void)state;
    stub_start(&stub, says, from_daemon);
    setenv("REACHD_URL", stub.where, 1);
    open_as(NULL);
    check_answer(GPU_A, GPU_A);
    check_answer(GPU_B, GPU_B);
    refused(OTHER, REACH_WRONG_GPU); /* a handle has one source */
    assert_int_equal(atomic_load(&stub.requests), 0);
    reach_close(reach);
    /* If a source is named, the handle uses no other source. */
    open_as(stub.where);
    refused(GPU_A, REACH_WRONG_GPU);
    assert_int_equal(ask(OTHER, GIB, &p), REACH_OK);
    assert_string_equal(reach_answer_provenance(p)->fingerprint_id, "fp00000000000000dd");
    assert_int_equal(reach_answer_source(p), REACH_FROM_DAEMON);
    reach_answer_free(p);
    stub_stop(&stub);
}

/* Only a daemon can check whether an answer is still valid, and the check uses a second handle. */
static void test_revalidated_by_a_daemon(void **state)
{
    static char replaced[] =
        "{\"index\":0,\"uuid\":\"" GPU_A "\",\"name\":\"n\",\"origin\":\"simulated\","
        "\"state\":\"ready\",\"sm_count\":132,\"memory_bytes\":1,\"mig\":false,"
        "\"fingerprint_id\":\"fp00000000000000dd\",\"fingerprint_stale\":false}";
    struct reach_answer *p = NULL;
    struct stub_daemon stub;

    (void)state;
    stub_start(&stub, says, replaced);
    open_as("");
    assert_int_equal(ask(GPU_A, GIB, &p), REACH_OK);
    reach_close(reach);
    open_as(stub.where);
    assert_int_equal(reach_revalidate(reach, p, &why), REACH_STALE);
    reach_answer_free(p);
    stub_stop(&stub);
}

static void test_damaged_text_is_ignored(void **state)
{
    char *text = getenv("REACH_JOB_0");

    (void)state;
    text[strlen(text) / 2] ^= 1;
    open_as(NULL);
    refused(GPU_A, REACH_WRONG_GPU);
    refused("0", REACH_NOT_MEASURED);
    check_answer(GPU_B, GPU_B);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_alone),
        CASE(test_gpus_and_fingerprint),
        CASE(test_every_other_question),
        CASE(test_alone_without_any),
        CASE(test_requests_for_a_daemon),
        CASE(test_comes_before_a_daemon),
        CASE(test_revalidated_by_a_daemon),
        CASE(test_damaged_text_is_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
