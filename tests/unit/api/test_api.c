/* test_api.c: each route and its answers, requested over a socket (api_fixture.h). */
#include "tests/unit/support/api_fixture.h"

#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_index_lists_routes(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f, "/", 200);
    json_t *routes = json_object_get(json, "routes");
    size_t i;
    json_t *route;

    assert_true(json_array_size(routes) >= 15);
    json_array_foreach(routes, i, route)
    {
        char request[256];
        char target[128];
        const char *path = api_text_in(route, "path");
        if (strcmp(api_text_in(route, "method"), "GET") != 0)
            continue;
        /* Every listed path exists, so the answer is never "no path". */
        snprintf(target, sizeof(target), "%s", path);
        api_line_of(request, sizeof(request), "PATCH", target, "");
        assert_int_equal(api_status_of(f, request), 405);
    }
    json_decref(json);
}

static void test_health_and_ready(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f, "/healthz", 200);

    assert_string_equal(api_text_in(json, "status"), "alive");
    json_decref(json);
    json = api_get(f, "/readyz", 200);
    assert_int_equal(json_array_size(json_object_get(json, "gpus")), 2);
    json_decref(json);
}

static void test_not_ready(void **state)
{
    struct api_fixture *f = *state;
    struct snapshot *s = snapshot_draft(0);
    char request[128];
    struct api_answer a;

    err_set(&s->source_error, STATUS_NO_DRIVER, "libcuda.so.1 was not found");
    snapshot_publish(f->cell, s);
    api_ask(f, api_line_of(request, sizeof(request), "GET", "/readyz", ""), &a);
    assert_int_equal(a.status, 503);
    assert_non_null(strstr(a.body, "libcuda.so.1 was not found"));
    assert_non_null(strstr(a.head, "Retry-After: "));
    free(a.body);
    api_refused(f, "/v1/gpus/0", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus/0/scope?bytes=1", 404, "not-found", NULL);
}

/* A list must not look empty while the driver is being queried. */
static void test_discovery(void **state)
{
    struct api_fixture *f = *state;
    struct snapshot *s = snapshot_draft(0);
    json_t *json = api_get(f, "/v1/gpus", 200);

    assert_string_equal(api_text_in(json, "discovery"), "done");
    json_decref(json);
    s->discovering = true;
    err_set(&s->source_error, STATUS_NOT_READY, "GPU discovery is running");
    snapshot_publish(f->cell, s);
    json = api_get(f, "/v1/gpus", 200);
    assert_string_equal(api_text_in(json, "discovery"), "running");
    json_decref(json);
    json = api_get(f, "/v1/fingerprints", 200);
    assert_string_equal(api_text_in(json, "discovery"), "running");
    json_decref(json);
    json = api_get(f, "/v1/node", 200);
    assert_string_equal(
        api_text_in(json_array_get(json_object_get(json, "sources"), 0), "discovery"), "running");
    json_decref(json);
    api_refused(f, "/v1/gpus/0", 503, "not-ready", NULL);
}

static void test_openapi(void **state)
{
    struct api_fixture *f = *state;
    char request[128];
    struct api_answer a;

    api_ask(f, api_line_of(request, sizeof(request), "GET", "/openapi.yaml", ""), &a);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.head, "Content-Type: application/yaml\r\n"));
    assert_memory_equal(a.body, "openapi: 3.1", 12);
    free(a.body);
}

/* Every route of the table is in the contract, and every path of the contract exists. */
static void test_openapi_has_every_route(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f, "/", 200);
    char request[128];
    char line[128];
    struct api_answer a;
    size_t i;
    json_t *route;
    size_t paths = 0;
    const char *last = "";

    api_ask(f, api_line_of(request, sizeof(request), "GET", "/openapi.yaml", ""), &a);
    json_array_foreach(json_object_get(json, "routes"), i, route)
    {
        snprintf(line, sizeof(line), "\n  %s:\n", api_text_in(route, "path"));
        if (!strstr(a.body, line))
            fail_msg("openapi.yaml lacks %s", api_text_in(route, "path"));
        paths += strcmp(api_text_in(route, "path"), last) != 0;
        last = api_text_in(route, "path");
    }
    for (const char *at = a.body; (at = strstr(at, "\n  /")); at++)
        paths--;
    assert_int_equal(paths, 0);
    free(a.body);
    json_decref(json);
}

static void test_node(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f, "/v1/node", 200);
    json_t *source = json_array_get(json_object_get(json, "sources"), 0);

    assert_string_equal(api_text_in(json, "daemon_version"), "1.2.3-test");
    assert_true(strlen(api_text_in(json, "hostname")) > 0);
    assert_string_equal(api_text_in(source, "name"), "simulated");
    json_decref(json);
}

static void test_gpus(void **state)
{
    struct api_fixture *f = *state;
    char target[128];
    json_t *json = api_get(f, "/v1/gpus", 200);
    json_t *gpus = json_object_get(json, "gpus");

    assert_int_equal(json_array_size(gpus), 2);
    assert_string_equal(api_text_in(json_array_get(gpus, 0), "uuid"), API_UUID);
    assert_string_equal(api_text_in(json_array_get(gpus, 0), "fingerprint_id"), f->id);
    assert_string_equal(api_text_in(json_array_get(gpus, 0), "origin"), "simulated");
    assert_true(json_is_null(json_object_get(json_array_get(gpus, 0), "last_error")));
    assert_string_equal(api_text_in(json_object_get(json_array_get(gpus, 1), "last_error"), "slug"),
                        "gpu-busy");
    json_decref(json);
    json = api_get(f, "/v1/gpus/1", 200);
    assert_string_equal(api_text_in(json, "uuid"), API_UNMEASURED);
    json_decref(json);
    snprintf(target, sizeof(target), "/v1/gpus/%s", API_UUID);
    json = api_get(f, target, 200);
    assert_int_equal(json_integer_value(json_object_get(json, "index")), 0);
    json_decref(json);
}

static void test_unknown_gpu(void **state)
{
    static const char *const names[] = {
        "2", "-1", "00x", "GPU-none", "%2f", "18446744073709551616", "0%20", "%F0%9F%92%A5"};
    struct api_fixture *f = *state;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char target[128];
        snprintf(target, sizeof(target), "/v1/gpus/%s", names[i]);
        api_refused(f, target, 404, "not-found", NULL);
        snprintf(target, sizeof(target), "/v1/gpus/%s/placement?bytes=1G", names[i]);
        api_refused(f, target, 404, "not-found", NULL);
    }
}

static void test_fingerprint(void **state)
{
    struct api_fixture *f = *state;
    char target[128];
    json_t *json = api_get(f, "/v1/gpus/0/fingerprint", 200);

    assert_string_equal(api_text_in(json, "id"), f->id);
    json_decref(json);
    snprintf(target, sizeof(target), "/v1/gpus/0/fingerprint?at=%s", f->id);
    json = api_get(f, target, 200);
    assert_string_equal(api_text_in(json, "id"), f->id);
    json_decref(json);
    json_decref(api_get(f, "/v1/gpus/0/fingerprint?at=fp0000000000000001", 200));
    api_refused(f, "/v1/gpus/0/fingerprint?at=fp0000000000000002", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus/1/fingerprint", 404, "no-fingerprint", NULL);
    api_refused(f, "/v1/gpus/1/placement?bytes=1", 409, "no-fingerprint", NULL);
}

/* A survey's single request returns the same GPUs and fingerprints as the separate documents. */
static void test_all_fingerprints(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f, "/v1/fingerprints", 200);
    json_t *list = api_get(f, "/v1/gpus", 200);
    json_t *one = api_get(f, "/v1/gpus/0/fingerprint", 200);
    json_t *gpus = json_object_get(json, "gpus");
    size_t i;
    json_t *gpu;

    assert_non_null(json_object_get(json, "daemon_version"));
    assert_int_equal(json_array_size(gpus), 2);
    assert_true(json_equal(json_object_get(json_array_get(gpus, 0), "fingerprint"), one));
    assert_true(json_is_null(json_object_get(json_array_get(gpus, 1), "fingerprint")));
    json_array_foreach(json_object_get(list, "gpus"), i, gpu)
    {
        json_object_del(gpu, "links");
        json_object_del(json_array_get(gpus, i), "fingerprint");
        assert_true(json_equal(json_array_get(gpus, i), gpu));
    }
    json_decref(one);
    json_decref(list);
    json_decref(json);
    assert_int_equal(api_status_of(f, API_REQUEST("GET /v1/fingerprints", "If-None-Match: *\r\n")),
                     304);
    api_refused(f, "/v1/fingerprints?limit=1", 400, "invalid-argument", "limit");
}

static void test_etag(void **state)
{
    struct api_fixture *f = *state;
    char request[512];
    char fields[256];
    struct api_answer a;

    api_ask(f, api_line_of(request, sizeof(request), "GET", "/v1/gpus/0/fingerprint", ""), &a);
    snprintf(fields, sizeof(fields), "\r\nETag: \"%s\"\r\n", f->id);
    assert_non_null(strstr(a.head, fields));
    assert_non_null(strstr(a.head, "Cache-Control: no-cache"));
    free(a.body);
    snprintf(fields, sizeof(fields), "If-None-Match: \"other\", W/\"%s\"\r\n", f->id);
    api_ask(f, api_line_of(request, sizeof(request), "GET", "/v1/gpus/0/fingerprint", fields), &a);
    assert_int_equal(a.status, 304);
    assert_int_equal(a.body_bytes, 0);
    free(a.body);
    snprintf(fields, sizeof(fields), "If-None-Match: \"%sx\"\r\n", f->id);
    assert_int_equal(api_status_of(f, api_line_of(request, sizeof(request), "GET",
                                                  "/v1/gpus/0/fingerprint", fields)),
                     200);
    assert_int_equal(api_status_of(f, API_REQUEST("GET /v1/gpus", "If-None-Match: *\r\n")), 304);
    assert_int_equal(api_status_of(f, API_REQUEST("GET /readyz", "If-None-Match: *\r\n")), 304);
    /* A problem document is never answered with "not modified". */
    assert_int_equal(api_status_of(f, API_REQUEST("GET /v1/gpus/9", "If-None-Match: *\r\n")), 404);
}

static void test_new_generation_replaces_documents(void **state)
{
    struct api_fixture *f = *state;
    struct snapshot *s;
    const struct snapshot *now;
    json_t *json = api_get(f, "/v1/gpus/0", 200);

    assert_string_equal(api_text_in(json, "state"), "ready");
    json_decref(json);
    json_decref(api_get(f, "/v1/gpus/0/scope?bytes=4G", 200));
    now = snapshot_acquire(f->cell);
    s = snapshot_draft_copy(now);
    snapshot_release(now);
    s->gpus[0].state = GPU_STATE_LOST;
    s->gpus[0].fingerprint.windows.reach_bytes = KNOWN_U64(8 * GIB);
    s->gpus[0].fingerprint.windows.recommended_bytes = KNOWN_U64(8 * GIB - 2 * MIB);
    snapshot_publish(f->cell, s);
    json = api_get(f, "/v1/gpus/0", 200);
    assert_string_equal(api_text_in(json, "state"), "lost");
    json_decref(json);
    json = api_get(f, "/v1/gpus/0/scope?bytes=4G", 200);
    assert_string_equal(api_text_in(json, "advice"), "nothing-to-do");
    json_decref(json);
}

static void test_head_and_methods(void **state)
{
    struct api_fixture *f = *state;
    struct api_answer a;

    api_ask(f, API_REQUEST("HEAD /v1/gpus", ""), &a);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body_bytes, 0);
    assert_non_null(strstr(a.head, "Content-Length: "));
    free(a.body);
    api_ask(f, API_REQUEST("PUT /v1/gpus", ""), &a);
    assert_int_equal(a.status, 405);
    assert_non_null(strstr(a.head, "\r\nAllow: GET, HEAD, OPTIONS\r\n"));
    free(a.body);
    api_ask(f, API_REQUEST("DELETE /v1/gpus/0/measurements", ""), &a);
    assert_int_equal(a.status, 405);
    assert_non_null(strstr(a.head, "\r\nAllow: POST, OPTIONS\r\n"));
    free(a.body);
    assert_int_equal(api_status_of(f, API_REQUEST("TRACE /", "")), 405);
    api_ask(f, API_REQUEST("OPTIONS /v1/measurements/m-7", ""), &a);
    assert_int_equal(a.status, 204);
    assert_non_null(strstr(a.head, "\r\nAllow: GET, HEAD, DELETE, OPTIONS\r\n"));
    free(a.body);
    assert_int_equal(api_status_of(f, API_REQUEST("OPTIONS /nowhere", "")), 404);
    assert_int_equal(api_status_of(f, API_REQUEST("get /v1/gpus", "")), 405);
    api_refused(f, "/v2/gpus", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus//", 404, "not-found", NULL);
    api_refused(f, "//v1/gpus", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus/../gpus", 404, "not-found", NULL);
    api_refused(f, "/v1/%2e%2e/gpus", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus/0/1/2/3/4/5/6/7/8/9", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus/0/fingerprint/1", 404, "not-found", NULL);
}

static void test_query_refusals(void **state)
{
    struct api_fixture *f = *state;

    api_refused(f, "/v1/gpus?x=1", 400, "invalid-argument", "x");
    api_refused(f, "/v1/gpus/0/scope?bytes=1G&acces=read", 400, "invalid-argument", "acces");
    api_refused(f, "/v1/gpus/0/scope?bytes=1G&bytes=2G", 400, "invalid-argument", NULL);
    api_refused(f, "/v1/gpus/0/scope", 400, "invalid-argument", "bytes");
    api_refused(f, "/v1/gpus/0/scope?bytes", 400, "invalid-argument", "bytes");
    api_refused(f, "/v1/gpus/0/scope?bytes=1G&access=swap", 400, "invalid-argument", "access");
    api_refused(f, "/v1/gpus/0/history?limit=0", 400, "invalid-argument", "limit");
    api_refused(f, "/v1/gpus/0/history?limit=1001", 400, "invalid-argument", "limit");
    api_refused(f, "/v1/gpus/0/history?cursor=-1", 400, "invalid-argument", "cursor");
    api_refused(f, "/v1/gpus/0/history?cursor=9223372036854775808", 400, "invalid-argument",
                "cursor");
    api_refused(f, "/v1/gpus/0/history?cursor=18446744073709551617", 400, "invalid-argument",
                "cursor");
    api_refused(f, "/v1/gpus/0/observations?run=1e3", 400, "invalid-argument", "run");
    api_refused(f, "/v1/gpus/0/placement?bytes=4G&windows=0", 400, "invalid-argument", "windows");
    api_refused(f, "/v1/gpus/0/placement?bytes=3G&windows=2", 422, "invalid-argument", "windows");
    api_refused(f, "/v1/gpus/0/placement?bytes=4G&windows=257", 400, "invalid-argument", "windows");
    api_refused(f, "/v1/gpus/0/placement?bytes=3G&granularity=2G", 422, "invalid-argument",
                "granularity");
    api_refused(f, "/v1/gpus/0/placement?bytes=3G&granularity=0", 400, "invalid-argument",
                "granularity");
}

static void refuse_sizes(struct api_fixture *f, const char *const *sizes, unsigned status)
{
    for (size_t i = 0; sizes[i]; i++) {
        char target[128];
        snprintf(target, sizeof(target), "/v1/gpus/0/scope?bytes=%s", sizes[i]);
        api_refused(f, target, status, "invalid-argument", "bytes");
        snprintf(target, sizeof(target), "/v1/gpus/0/placement?bytes=%s", sizes[i]);
        api_refused(f, target, status, "invalid-argument", "bytes");
    }
}

static void test_absurd_sizes(void **state)
{
    static const char *const malformed[] = {"0",    "-1",    "-5G", "",      "G",   "1e9",
                                            "0x10", "1GiBs", "nan", "1,,5G", "5G,", NULL};
    static const char *const impossible[] = {"9223372036854775808",
                                             "18446744073709551616",
                                             "99999999999999999999999T",
                                             "2000T",
                                             "1.0000000001K",
                                             NULL};

    refuse_sizes(*state, malformed, 400);
    refuse_sizes(*state, impossible, 422);
}

static void test_scope(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f, "/v1/gpus/0/scope?bytes=4GiB", 200);

    assert_string_equal(api_text_in(json, "advice"), "scopes");
    assert_string_equal(api_text_in(json, "gpu"), API_UUID);
    assert_string_equal(api_text_in(json, "fingerprint_id"), f->id);
    assert_string_equal(api_text_in(json, "origin"), "simulated");
    assert_string_equal(api_text_in(json, "access"), "read");
    assert_int_equal(json_integer_value(json_object_get(json, "bytes")), 4 * GIB);
    assert_int_equal(json_integer_value(json_object_get(json, "scope_bytes")), GIB - 2 * MIB);
    assert_int_equal(json_integer_value(json_object_get(json, "passes")), 5);
    assert_true(json_is_null(json_object_get(json, "naive_gbps")));
    assert_string_equal(api_text_in(json, "naive_gbps_reason"), "not-measured");
    json_decref(json);
    json = api_get(f, "/v1/gpus/0/scope?access=atomic&bytes=1%20MiB", 200);
    assert_string_equal(api_text_in(json, "advice"), "nothing-to-do");
    json_decref(json);
}

static void test_placement(void **state)
{
    struct api_fixture *f = *state;
    json_t *json = api_get(f, "/v1/gpus/0/placement?bytes=1.5G", 200);
    json_t *windows = json_object_get(json, "windows");
    json_t *of_sm = json_object_get(json, "window_of_sm");

    assert_string_equal(api_text_in(json, "advice"), "windows");
    assert_string_equal(api_text_in(json, "origin"), "simulated");
    assert_int_equal(json_integer_value(json_object_get(json, "window_count")), 2);
    assert_int_equal(json_array_size(windows), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(windows, 1), "first_byte")),
                     768 * MIB);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(windows, 0), "sm_count")),
                     8);
    assert_int_equal(json_array_size(of_sm), 16);
    assert_int_equal(json_integer_value(json_object_get(json, "headroom_bytes")), 256 * MIB);
    assert_true(json_number_value(json_object_get(json, "predicted_gbps")) == 100);
    json_decref(json);
    json = api_get(f, "/v1/gpus/0/placement?bytes=1.5G&windows=4&granularity=4K", 200);
    assert_int_equal(json_integer_value(json_object_get(json, "window_count")), 4);
    json_decref(json);
    json = api_get(f, "/v1/gpus/0/placement?bytes=5G", 200);
    assert_string_equal(api_text_in(json, "advice"), "not-enough-groups");
    assert_true(json_is_null(json_object_get(json, "headroom_bytes")));
    json_decref(json);
}

static void test_same_question_same_answer(void **state)
{
    struct api_fixture *f = *state;
    struct api_answer first;
    struct api_answer second;

    api_ask(f, API_REQUEST("GET /v1/gpus/0/placement?bytes=3G", ""), &first);
    for (int i = 0; i < 100; i++) { /* more requests than the cache has places */
        char request[128];
        char target[64];
        snprintf(target, sizeof(target), "/v1/gpus/0/scope?bytes=%d", i + 1);
        assert_int_equal(api_status_of(f, api_line_of(request, sizeof(request), "GET", target, "")),
                         200);
    }
    api_ask(f, API_REQUEST("GET /v1/gpus/0/placement?bytes=3G", ""), &second);
    assert_int_equal(first.body_bytes, second.body_bytes);
    assert_memory_equal(first.body, second.body, first.body_bytes);
    free(first.body);
    free(second.body);
}

static void test_environment(void **state)
{
    static const char ASK[] = API_REQUEST("GET /v1/gpus/0/environment", "Accept: text/plain\r\n");
    struct api_fixture *f = *state;
    char begins[64];
    struct api_answer answer;
    const struct snapshot *now;
    struct snapshot *s;

    snprintf(begins, sizeof(begins), "REACH_FINGERPRINT_ID=%s\n", f->id);
    for (int i = 0; i < 2;
         i++) { /* the first answer is computed, the second comes from the cache */
        api_ask(f, ASK, &answer);
        assert_int_equal(answer.status, 200);
        assert_non_null(strstr(answer.head, "Content-Type: text/plain; charset=utf-8\r\n"));
        assert_non_null(strstr(answer.head, "ETag: "));
        assert_int_equal(strncmp(answer.body, begins, strlen(begins)), 0);
        assert_non_null(strstr(answer.body, "\nREACH_JOB={\"version\":1,"));
        assert_int_equal(answer.body[answer.body_bytes - 1], '\n');
        free(answer.body);
    }
    api_refused(f, "/v1/gpus/1/environment", 409, "no-fingerprint", NULL);
    api_refused(f, "/v1/gpus/9/environment", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus/0/environment?bytes=1", 400, "invalid-argument", "bytes");
    now = snapshot_acquire(f->cell);
    s = snapshot_draft_copy(now);
    snapshot_release(now);
    s->gpus[0].fingerprint_stale = true;
    snapshot_publish(f->cell, s);
    api_refused(f, "/v1/gpus/0/environment", 409, "stale-fingerprint", NULL);
}

static void test_history_and_observations(void **state)
{
    struct api_fixture *f = *state;

    json_decref(api_get(f, "/v1/gpus/0/history", 200));
    assert_int_equal(f->fake.before, 0);
    assert_int_equal(f->fake.limit, 100);
    json_decref(api_get(f, "/v1/gpus/0/history?limit=7&cursor=9", 200));
    assert_int_equal(f->fake.before, 9);
    assert_int_equal(f->fake.limit, 7);
    json_decref(api_get(f, "/v1/gpus/0/observations?run=3&cursor=11", 200));
    assert_int_equal(f->fake.run, 3);
    assert_int_equal(f->fake.before, 11);
    json_decref(api_get(f, "/v1/gpus/0/observations/3", 200));
    api_refused(f, "/v1/gpus/0/observations/99", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus/0/observations/0", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus/0/observations/x", 404, "not-found", NULL);
}

static void csv_is(struct api_fixture *f, const char *id, const char *accept, const char *expected)
{
    char request[256];
    char target[64];
    char fields[128];
    struct api_answer a;

    snprintf(target, sizeof(target), "/v1/gpus/0/observations/%s", id);
    snprintf(fields, sizeof(fields), "Accept: %s\r\n", accept);
    api_ask(f, api_line_of(request, sizeof(request), "GET", target, fields), &a);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.head, "\r\nVary: Accept\r\n"));
    if (expected)
        assert_string_equal(a.body, expected);
    else
        assert_int_equal(a.body[0], '{');
    free(a.body);
}

static void test_csv(void **state)
{
    struct api_fixture *f = *state;

    csv_is(f, "3", "text/csv", "pages,sample,cycles\n8,0,100\n8,1,101\n16,0,200\n16,1,201\n");
    csv_is(f, "4", "text/csv;q=0.9, application/json;q=0.5",
           "region_bytes,repeat,sm,elapsed_ns,lines\n4096,0,0,1000,10\n4096,0,5,1000,20\n"
           "4096,1,0,1001,11\n4096,1,5,1001,21\n");
    csv_is(f, "5", "text/*",
           "repeat,thrashed,sm,slice_page,cycles\n0,0,0,0,1\n0,0,5,0,2\n0,1,0,0,3\n0,1,5,0,4\n");
    csv_is(f, "6", "text/csv",
           "repeat,sm,page,cycles\n0,0,0,270\n0,7,0,450\n1,0,0,271\n1,7,0,451\n");
    csv_is(f, "3", "*/*", NULL);
    csv_is(f, "3", "text/csv;q=0.1, */*", NULL);
    assert_int_equal(
        api_status_of(f, API_REQUEST("GET /v1/gpus/0/observations/3", "Accept: image/png\r\n")),
        406);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(test_index_lists_routes),
        API_TEST(test_health_and_ready),
        API_TEST(test_not_ready),
        API_TEST(test_discovery),
        API_TEST(test_openapi),
        API_TEST(test_openapi_has_every_route),
        API_TEST(test_node),
        API_TEST(test_gpus),
        API_TEST(test_unknown_gpu),
        API_TEST(test_fingerprint),
        API_TEST(test_all_fingerprints),
        API_TEST(test_etag),
        API_TEST(test_new_generation_replaces_documents),
        API_TEST(test_head_and_methods),
        API_TEST(test_query_refusals),
        API_TEST(test_absurd_sizes),
        API_TEST(test_scope),
        API_TEST(test_placement),
        API_TEST(test_same_question_same_answer),
        API_TEST(test_environment),
        API_TEST(test_history_and_observations),
        API_TEST(test_csv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
