/* test_auth.c: authorization of requests that change something, the sockets that they arrive on,
 * and request ids. */
#include "tests/unit/support/api_fixture.h"

#include "api/handlers/auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char TOKEN[] = "correct-horse-battery";

static void test_compare(void **state)
{
    char longest[2048] = "Bearer ";

    (void)state;
    assert_true(auth_is_allowed(TOKEN, "Bearer correct-horse-battery"));
    assert_true(auth_is_allowed(TOKEN, "bearer   correct-horse-battery"));
    assert_true(auth_is_allowed(NULL, NULL));
    assert_true(auth_is_allowed("", "Bearer x"));
    assert_false(auth_is_allowed(TOKEN, NULL));
    assert_false(auth_is_allowed(TOKEN, ""));
    assert_false(auth_is_allowed(TOKEN, "Bearer"));
    assert_false(auth_is_allowed(TOKEN, "Bearer "));
    assert_false(auth_is_allowed(TOKEN, "Bearercorrect-horse-battery"));
    assert_false(auth_is_allowed(TOKEN, "Basic correct-horse-battery"));
    assert_false(auth_is_allowed(TOKEN, "Bearer correct-horse-batterx"));
    assert_false(auth_is_allowed(TOKEN, "Bearer correct-horse-batter"));
    assert_false(auth_is_allowed(TOKEN, "Bearer correct-horse-battery2"));
    assert_false(auth_is_allowed(TOKEN, "Bearer Correct-horse-battery"));
    assert_false(auth_is_allowed(TOKEN, "Bearer correct-horse-battery correct-horse-battery"));
    memset(longest + 7, 'a', 2000);
    assert_false(auth_is_allowed(TOKEN, longest));
    assert_false(
        auth_is_allowed(longest + 7, longest)); /* too long for a comparison with the token */
}

#define WITH(token) "Authorization: Bearer " token "\r\n"

static void test_changes_need_the_token(void **state)
{
    static const char *const changes[] = {"POST /v1/gpus/0/measurements",
                                          "DELETE /v1/measurements/m-7"};
    struct api_fixture *f = *state;
    char request[512];
    struct api_answer a;

    f->token = TOKEN;
    api_restart(f, 0, 0);
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: x\r\n\r\n", changes[i]);
        api_ask(f, request, &a);
        assert_int_equal(a.status, 401);
        assert_non_null(strstr(a.head, "\r\nWWW-Authenticate: Bearer realm=\"reachd\"\r\n"));
        assert_non_null(strstr(a.head, "application/problem+json"));
        assert_null(strstr(a.body, TOKEN));
        free(a.body);
        snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: x\r\n%s\r\n", changes[i],
                 WITH("correct-horse-batterx"));
        assert_int_equal(api_status_of(f, request), 401);
        snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: x\r\n%s%s\r\n", changes[i],
                 WITH("correct-horse-battery"), WITH("correct-horse-battery"));
        assert_int_equal(api_status_of(f, request), 400);
    }
    assert_int_equal(f->fake.submitted + f->fake.cancelled, 0);
    assert_int_equal(api_status_of(f, API_REQUEST("POST /v1/gpus/0/measurements",
                                                  WITH("correct-horse-battery"))),
                     202);
    assert_int_equal(
        api_status_of(f, API_REQUEST("DELETE /v1/measurements/m-7", WITH("correct-horse-battery"))),
        202);
    assert_int_equal(f->fake.submitted + f->fake.cancelled, 2);
    /* Requests that only read need no token. A refusal does not reveal whether a path or method
     * exists. */
    assert_int_equal(api_status_of(f, API_REQUEST("GET /v1/gpus", "")), 200);
    assert_int_equal(api_status_of(f, API_REQUEST("POST /v1/gpus", "")), 405);
    assert_int_equal(api_status_of(f, API_REQUEST("POST /v1/nothing", "")), 404);
}

static void test_token_can_change(void **state)
{
    struct api_fixture *f = *state;

    f->token = TOKEN;
    api_restart(f, 0, 0);
    api_server_set_token(f->server, "another-one-of-these");
    assert_int_equal(
        api_status_of(f, API_REQUEST("DELETE /v1/measurements/m-7", WITH("correct-horse-battery"))),
        401);
    assert_int_equal(
        api_status_of(f, API_REQUEST("DELETE /v1/measurements/m-7", WITH("another-one-of-these"))),
        202);
}

static void test_cancel(void **state)
{
    struct api_fixture *f = *state;
    json_t *p;
    struct api_answer a;

    assert_int_equal(api_status_of(f, API_REQUEST("DELETE /v1/measurements/m-7", "")), 202);
    f->fake.ended = true;
    assert_int_equal(
        api_status_of(f, API_REQUEST("DELETE /v1/measurements/m-7", "If-None-Match: *\r\n")), 200);
    f->fake.cancel_status = STATUS_CONFLICT;
    api_ask(f, API_REQUEST("DELETE /v1/measurements/m-7", ""), &a);
    assert_int_equal(a.status, 409);
    p = json_loadb(a.body, a.body_bytes, 0, NULL);
    assert_string_equal(api_text_in(p, "slug"), "conflict");
    json_decref(p);
    free(a.body);
    f->fake.cancel_status = STATUS_NOT_FOUND;
    assert_int_equal(api_status_of(f, API_REQUEST("DELETE /v1/measurements/m-8", "")), 404);
    assert_int_equal(f->fake.cancelled, 2);
}

/* The socket for probes answers probes and reports every other path as unknown. */
static void test_probe_socket(void **state)
{
    struct api_fixture *f = *state;

    f->role = API_FOR_PROBES;
    api_restart(f, 0, 0);
    json_decref(api_get(f, "/healthz", 200));
    json_decref(api_get(f, "/readyz", 200));
    api_refused(f, "/v1/gpus", 404, "not-found", NULL);
    api_refused(f, "/v1/gpus/0/placement?bytes=1G", 404, "not-found", NULL);
    assert_int_equal(api_status_of(f, API_REQUEST("POST /v1/gpus/0/measurements", "")), 404);
    assert_int_equal(api_status_of(f, API_REQUEST("OPTIONS /healthz", "")), 204);
    assert_int_equal(f->fake.submitted, 0);
}

/* Returns the value of X-Request-Id, or "" if there is none. */
static const char *id_in(const struct api_answer *a, char out[128])
{
    const char *at = strcasestr(a->head, "\r\nX-Request-Id: ");

    out[0] = '\0';
    if (at)
        sscanf(at, "\r\n%*s %127s", out);
    return out;
}

static void test_request_ids(void **state)
{
    static const char *const ignored[] = {"a b", "a\"b", "a;b", "\xc3\xa4",
                                          "12345678901234567890123456789012345678901234567890"
                                          "12345678901234567890"};
    struct api_fixture *f = *state;
    char request[256];
    char first[128];
    char second[128];
    struct api_answer a;
    json_t *p;

    api_ask(f, API_REQUEST("GET /v1/gpus/9", ""), &a);
    assert_int_equal(strlen(id_in(&a, first)), 16);
    p = json_loadb(a.body, a.body_bytes, 0, NULL);
    assert_string_equal(api_text_in(p, "request_id"), first);
    json_decref(p);
    free(a.body);
    api_ask(f, API_REQUEST("GET /v1/gpus/9", ""), &a);
    assert_string_not_equal(id_in(&a, second), first);
    free(a.body);
    /* The response has the request id that the client sent, even if the answer comes from the
     * cache. */
    for (int i = 0; i < 2; i++) {
        api_ask(f, API_REQUEST("GET /v1/gpus", "X-Request-Id: job-42.a:b\r\n"), &a);
        assert_int_equal(a.status, 200);
        assert_string_equal(id_in(&a, first), "job-42.a:b");
        assert_true(a.body_bytes > 10);
        free(a.body);
        api_ask(f, API_REQUEST("GET /v1/gpus", "If-None-Match: *\r\nX-Request-Id: again\r\n"), &a);
        assert_int_equal(a.status, 304);
        assert_string_equal(id_in(&a, first), "again");
        free(a.body);
        api_ask(f, API_REQUEST("GET /v1/gpus", ""), &a);
        assert_string_equal(id_in(&a, first), "");
        free(a.body);
    }
    for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++) {
        snprintf(request, sizeof(request),
                 "GET /v1/gpus/9 HTTP/1.1\r\nHost: x\r\nX-Request-Id: %s\r\n\r\n", ignored[i]);
        api_ask(f, request, &a);
        assert_int_equal(strlen(id_in(&a, first)), 16);
        free(a.body);
    }
    api_ask(f, API_REQUEST("POST /v1/gpus/0/measurements", ""), &a);
    assert_int_equal(strlen(id_in(&a, first)), 16);
    free(a.body);
}

/* A cached answer is returned only for the target that it belongs to. */
static void test_remembered_answers(void **state)
{
    struct api_fixture *f = *state;
    char target[128];

    for (int round = 0; round < 2; round++) {
        for (uint64_t bytes = 1; bytes < 600; bytes++) { /* more answers than the cache holds */
            json_t *json;
            snprintf(target, sizeof(target), "/v1/gpus/0/scope?bytes=%llu",
                     (unsigned long long)bytes);
            json = api_get(f, target, 200);
            assert_int_equal(json_integer_value(json_object_get(json, "bytes")), bytes);
            json_decref(json);
        }
    }
    assert_int_equal(api_status_of(f, API_REQUEST("HEAD /v1/gpus/0/scope?bytes=7", "")), 200);
    assert_int_equal(api_status_of(f, API_REQUEST("POST /v1/gpus/0/scope?bytes=7", "")), 405);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare),    API_TEST(test_changes_need_the_token),
        API_TEST(test_token_can_change),   API_TEST(test_cancel),
        API_TEST(test_probe_socket),       API_TEST(test_request_ids),
        API_TEST(test_remembered_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
