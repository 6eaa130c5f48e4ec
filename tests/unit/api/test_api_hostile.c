/* test_api_hostile.c: request bodies, malformed and hostile requests, slow clients, and many
 * clients. The server must survive each case, and no measurement may start that was not
 * requested. */
#include "tests/unit/support/api_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- POST ---- */

static unsigned post(struct api_fixture *f, const char *type, const char *body, size_t bytes,
                     struct api_answer *out)
{
    char *request = malloc(bytes + 512);
    int head = snprintf(request, 512,
                        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: x\r\n%s%s%s"
                        "Content-Length: %zu\r\n\r\n",
                        type ? "Content-Type: " : "", type ? type : "", type ? "\r\n" : "", bytes);

    memcpy(request + head, body, bytes);
    api_ask_bytes(f, request, (size_t)head + bytes, out);
    free(request);
    return out->status;
}

static void test_post_measures(void **state)
{
    struct api_fixture *f = *state;
    struct api_answer a;

    assert_int_equal(post(f, NULL, "", 0, &a), 202);
    assert_non_null(strstr(a.head, "\r\nLocation: /v1/measurements/m-7\r\n"));
    assert_non_null(strstr(a.body, "\"m-7\""));
    assert_int_equal(f->fake.depth, DEPTH_FULL);
    free(a.body);
    assert_int_equal(post(f, "application/json", "{\"depth\": \"quick\"}", 18, &a), 202);
    assert_int_equal(f->fake.depth, DEPTH_QUICK);
    free(a.body);
    assert_int_equal(post(f, "application/json; charset=utf-8", "{}", 2, &a), 202);
    free(a.body);
    assert_int_equal(f->fake.submitted, 3);
    assert_int_equal(
        api_status_of(f, API_REQUEST("POST /v1/gpus/7/measurements", "Content-Length: 0\r\n")),
        404);
    json_decref(api_get(f, "/v1/measurements/m-7", 200));
    api_refused(f, "/v1/measurements/m-8", 404, "not-found", NULL);
    f->fake.submit_status = STATUS_FULL;
    assert_int_equal(post(f, NULL, "", 0, &a), 503);
    assert_non_null(strstr(a.head, "Retry-After: "));
    free(a.body);
}

static void test_post_refuses(void **state)
{
    static const struct {
        const char *body;
        const char *pointer;
    } cases[] = {
        {"{\"depth\": \"deep\"}", "/depth"},
        {"{\"depth\": 1}", "/depth"},
        {"{\"depth\": null}", "/depth"},
        {"{\"depth\": [\"quick\"]}", "/depth"},
        {"{\"depth\": \"quick\", \"deep\": true}", "/deep"},
        {"{\"a/b~c\": 1}", "/a~1b~0c"},
        {"{\"depth\": \"quick\", \"depth\": \"full\"}", "/depth"},
        {"[]", ""},
        {"\"quick\"", ""},
        {"{\"depth\": \"quick\"", ""},
        {"{\"depth\": \"quick\"} x", ""},
        {"{'depth': 1}", ""},
        {"\xef\xbb\xbf{}", ""},
        {"{\"depth\": \"\\u0000\"}", ""},
        {"{\"depth\": \"\xff\"}", ""},
        {"{\"depth\": 1e999}", ""},
        {"   ", ""},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", ""},
    };
    struct api_fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct api_answer a;
        json_t *p;
        json_t *first;
        unsigned status = post(f, "application/json", cases[i].body, strlen(cases[i].body), &a);
        if (status != 400)
            fail_msg("%s: %u", cases[i].body, status);
        p = json_loadb(a.body, a.body_bytes, 0, NULL);
        first = json_array_get(json_object_get(p, "errors"), 0);
        if (strcmp(api_text_in(first, "pointer"), cases[i].pointer) != 0)
            fail_msg("%s: blames %s", cases[i].body, api_text_in(first, "pointer"));
        json_decref(p);
        free(a.body);
    }
    assert_int_equal(f->fake.submitted, 0);
}

static void test_post_types_and_sizes(void **state)
{
    struct api_fixture *f = *state;
    size_t limit = 64 << 10;
    char *large = malloc(limit + 1);
    struct api_answer a;

    assert_int_equal(post(f, "text/plain", "{}", 2, &a), 415);
    free(a.body);
    memset(large, ' ', limit + 1);
    large[0] = '{';
    large[limit - 1] = '}';
    assert_int_equal(post(f, "application/json", large, limit, &a), 202);
    free(a.body);
    assert_int_equal(post(f, "application/json", large, limit + 1, &a), 413);
    assert_non_null(strstr(a.body, "body-too-large"));
    free(a.body);
    memset(large, ',', limit);
    assert_int_equal(post(f, "application/json", large, limit, &a), 400);
    free(a.body);
    free(large);
    /* The request is refused because of Content-Length, before the server reads any byte of the
     * body. */
    assert_int_equal(api_status_of(f, API_REQUEST("POST /v1/gpus/0/measurements",
                                                  "Content-Length: 10737418240\r\n")),
                     413);
    assert_int_equal(api_status_of(f, API_REQUEST("POST /v1/gpus/0/measurements",
                                                  "Content-Length: 9223372036854775807\r\n")),
                     413);
}

static void test_chunked(void **state)
{
    struct api_fixture *f = *state;
    char *request = malloc(3 << 20);
    struct api_answer a;
    size_t at;

    assert_int_equal(api_status_of(f, "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: x\r\n"
                                      "Content-Type: application/json\r\n"
                                      "Transfer-Encoding: chunked\r\n\r\n"
                                      "7\r\n{\"depth\r\nb\r\n\": \"matrix\"}\r\n0\r\n\r\n"),
                     400); /* the second chunk is one byte longer than its size line */
    assert_int_equal(api_status_of(f, "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: x\r\n"
                                      "Transfer-Encoding: chunked\r\n\r\n"
                                      "7\r\n{\"depth\r\nc\r\n\": \"matrix\"}\r\n0\r\n\r\n"),
                     202);
    assert_int_equal(f->fake.depth, DEPTH_MATRIX);
    at = (size_t)sprintf(request, "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: x\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n200000\r\n");
    memset(request + at, ' ', 0x200000);
    at += 0x200000;
    at += (size_t)sprintf(request + at, "\r\n0\r\n\r\n");
    api_ask_bytes(f, request, at, &a);
    assert_int_equal(a.status, 413);
    free(a.body);
    free(request);
}

/* ---- hostile requests ---- */

static void test_guard(void **state)
{
    static const char *const refused_400[] = {
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
        "Content-Length: 2\r\n\r\n{}",
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
        "Content-Length: 3\r\n\r\n{}",
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n"
        "\r\n0\r\n\r\n",
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /v1/gpus/0/measurements HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\n",
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nContent-Length : 2\r\n\r\n{}",
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n{}",
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nContent-Length: 0x2\r\n\r\n{}",
        "GET / HTTP/1.1\r\nHost: a\r\nX-A: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX(A): b\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /v1/gpus%00x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /v1/gpus/0/scope?bytes=1%00 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /% HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%0d%0aX: HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET v1/gpus HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    };
    struct api_fixture *f = *state;

    for (size_t i = 0; i < sizeof(refused_400) / sizeof(*refused_400); i++) {
        unsigned status = api_status_of(f, refused_400[i]);
        if (status != 400)
            fail_msg("%s: %u", refused_400[i], status);
        assert_int_equal(api_status_of(f, API_REQUEST("GET /healthz", "")), 200); /* still there */
    }
    assert_int_equal(f->fake.submitted, 0);
}

static void test_raw_nul(void **state)
{
    static const char in_path[] = "GET /heal\0thz HTTP/1.1\r\nHost: a\r\n\r\n";
    static const char in_value[] = "GET /healthz HTTP/1.1\r\nHost: a\r\nX-A: b\0c\r\n\r\n";
    struct api_fixture *f = *state;
    struct api_answer a;

    api_ask_bytes(f, in_path, sizeof(in_path) - 1, &a);
    assert_int_equal(a.status, 400);
    free(a.body);
    api_ask_bytes(f, in_value, sizeof(in_value) - 1, &a);
    free(a.body); /* the library truncates the value of the field, but the request is complete */
    assert_int_equal(api_status_of(f, API_REQUEST("GET /healthz", "")), 200);
}

static void test_long_targets(void **state)
{
    struct api_fixture *f = *state;
    char *request = malloc(80000);
    struct api_answer a;
    size_t at = (size_t)sprintf(request, "GET /");

    memset(request + at, 'a', 70000);
    strcpy(request + at + 70000, " HTTP/1.1\r\nHost: a\r\n\r\n");
    api_ask(f, request, &a);
    assert_int_equal(a.status, 414);
    free(a.body);
    memset(request + at, 'a', 4000);
    strcpy(request + at + 4000, " HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nUser-Agent: b\r\n\r\n");
    api_ask(f, request, &a);
    assert_int_equal(a.status, 404);
    free(a.body);
    /* A short target beside long fields. */
    at = (size_t)sprintf(request, "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Long: ");
    memset(request + at, 'c', 4000);
    strcpy(request + at + 4000, "\r\n\r\n");
    api_ask(f, request, &a);
    assert_int_equal(a.status, 200);
    free(a.body);
    memset(request + at, 'c', 6000);
    strcpy(request + at + 6000, "\r\n\r\n");
    api_ask(f, request, &a);
    assert_int_equal(a.status, 431);
    free(a.body);
    at = (size_t)sprintf(request, "GET /v1/gpus?");
    for (int i = 0; i < 40; i++)
        at += (size_t)sprintf(request + at, "p%d=1&", i);
    strcpy(request + at, " HTTP/1.1\r\nHost: a\r\n\r\n");
    api_ask(f, request, &a);
    assert_int_equal(a.status, 400);
    free(a.body);
    free(request);
}

static void test_absolute_form(void **state)
{
    struct api_fixture *f = *state;

    assert_int_equal(api_status_of(f, API_REQUEST("GET http://x/healthz", "")), 200);
    assert_int_equal(api_status_of(f, API_REQUEST("GET http://x", "")), 200);
    assert_int_equal(api_status_of(f, API_REQUEST("GET ftp://x/healthz", "")), 400);
}

static void test_keep_alive_and_pipelining(void **state)
{
    struct api_fixture *f = *state;
    int fd = api_dial(f);
    struct api_answer a;
    const char *one = API_REQUEST("GET /healthz", "");

    for (int i = 0; i < 3; i++) {
        api_send(f, fd, one, strlen(one));
        api_read(f, fd, false, &a);
        assert_int_equal(a.status, 200);
        assert_false(a.closed);
        free(a.body);
    }
    close(fd);
}

/* The server must not treat a refused body as the next request. */
static void test_refusal_closes(void **state)
{
    struct api_fixture *f = *state;
    int fd = api_dial(f);
    struct api_answer a;
    static const char smuggled[] =
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
        "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

    api_send(f, fd, smuggled, sizeof(smuggled) - 1);
    api_read(f, fd, false, &a);
    assert_int_equal(a.status, 400);
    assert_non_null(strcasestr(a.head, "\r\nConnection: close\r\n"));
    free(a.body);
    api_read(f, fd, false, &a);
    assert_int_equal(a.status, 0);
    assert_true(a.closed);
    free(a.body);
    assert_int_equal(f->fake.submitted, 0);
    close(fd);
}

/* With 128 ready connections, the library's own epoll thread stalls. */
static void test_exactly_128_ready(void **state)
{
    static const int counts[] = {127, 128, 129, 256, 384};
    struct api_fixture *f = *state;
    const char *request = API_REQUEST("GET /healthz", "");
    int fds[384];

    api_restart(f, 0, 400);
    for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
        for (int i = 0; i < counts[c]; i++) {
            fds[i] = api_dial(f);
            api_send(f, fds[i], request, strlen(request));
        }
        for (int i = 0; i < counts[c]; i++) {
            struct api_answer a;
            api_read(f, fds[i], false, &a);
            assert_int_equal(a.status, 200);
            free(a.body);
        }
        for (int i = 0; i < counts[c]; i++)
            close(fds[i]);
        while (api_pump(f, -1, 0)) {
        }
    }
}

/* ---- deadline and end ---- */

static bool closed_without_answer(struct api_fixture *f, const char *begin)
{
    int fd = api_dial(f);
    struct api_answer a;

    api_send(f, fd, begin, strlen(begin));
    api_read(f, fd, false, &a);
    close(fd);
    free(a.body);
    return a.closed && a.status == 0;
}

static void test_deadline(void **state)
{
    struct api_fixture *f = *state;

    api_restart(f, 20 * NSEC_PER_MSEC, 0);
    assert_true(closed_without_answer(f, "GET /heal"));
    assert_true(closed_without_answer(f, "GET /healthz HTTP/1.1\r\nHost:"));
    assert_true(closed_without_answer(f, "POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\n"
                                         "Content-Length: 10\r\n\r\n{"));
    assert_true(closed_without_answer(f, ""));
    assert_int_equal(api_status_at_last(f, API_REQUEST("GET /healthz", "")), 200);
}

/* A client that holds all connections loses them at the deadline. */
static void test_full_house_recovers(void **state)
{
    struct api_fixture *f = *state;
    int fds[4];

    api_restart(f, 20 * NSEC_PER_MSEC, 4);
    for (int i = 0; i < 4; i++) {
        fds[i] = api_dial(f);
        api_send(f, fds[i], "GET /", 5);
    }
    assert_int_equal(api_status_at_last(f, API_REQUEST("GET /healthz", "")), 200);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

static void test_stop_finishes_answers(void **state)
{
    struct api_fixture *f = *state;
    const char *request = API_REQUEST("GET /v1/gpus/0/fingerprint", "");
    int fd = api_dial(f);
    char buffer[64];

    api_send(f, fd, request, strlen(request));
    while (api_pump(f, -1, 0)) {
    }
    api_restart(f, 0, 0);
    assert_true(recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0);
    assert_memory_equal(buffer, "HTTP/1.1 200", 12);
    close(fd);
}

static void test_refuses_no_listener(void **state)
{
    struct api_fixture *f = *state;
    struct api_options options = {.listen_count = 0};
    struct api_server *server = NULL;
    struct err err;

    assert_int_equal(api_server_new(&options, f->cell, &f->backend, &server, &err),
                     STATUS_INVALID_ARGUMENT);
    options.listen_count = 5;
    assert_int_equal(api_server_new(&options, f->cell, &f->backend, &server, &err),
                     STATUS_INVALID_ARGUMENT);
    api_server_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(test_post_measures),
        API_TEST(test_post_refuses),
        API_TEST(test_post_types_and_sizes),
        API_TEST(test_chunked),
        API_TEST(test_guard),
        API_TEST(test_raw_nul),
        API_TEST(test_long_targets),
        API_TEST(test_absolute_form),
        API_TEST(test_keep_alive_and_pipelining),
        API_TEST(test_refusal_closes),
        API_TEST(test_exactly_128_ready),
        API_TEST(test_deadline),
        API_TEST(test_full_house_recovers),
        API_TEST(test_stop_finishes_answers),
        API_TEST(test_refuses_no_listener),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
