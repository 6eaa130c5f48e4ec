/* test_libreach.c: libreach with a daemon that works, that sends wrong answers, that does not
 * answer or that has ended. Other tests call libreach in wrong ways. Every failure must be an error
 * with a sentence, and no typed function may return an answer after a failure. */
#include "clients/c/reach.h"
#include "tests/share.h"
#include "tests/unit/support/stub_daemon.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU   "GPU-00000000-0000-0000-0000-000000000001"
#define OTHER "GPU-00000000-0000-0000-0000-000000000002"
#define FP_A  "fp00000000000000aa"
#define FP_B  "fp00000000000000bb"

#define BASIS(gpu, fp, stale)                                                                      \
    "\"gpu\":\"" gpu "\",\"fingerprint_id\":\"" fp "\",\"fingerprint_stale\":" stale               \
    ",\"origin\":\"simulated\""
#define WINDOWS                                                                                    \
    "[{\"index\":0,\"first_byte\":0,\"length_bytes\":600,\"sm_count\":2,\"group_count\":1},"       \
    "{\"index\":1,\"first_byte\":600,\"length_bytes\":400,\"sm_count\":1,\"group_count\":1}]"
#define PLACEMENT(basis, windows, table)                                                           \
    "{" basis ",\"bytes\":1000,\"advice\":\"windows\",\"window_count\":2,\"windows\":" windows     \
    ",\"window_of_sm\":" table                                                                     \
    ",\"headroom_bytes\":24,\"predicted_gbps\":12.5,\"naive_gbps\":null,\"naive_gbps_reason\":"    \
    "\"not-measured\",\"reason\":\"because\",\"of_tomorrow\":[1]}"
#define TABLE "[0,1,null,0]"
#define GOOD  PLACEMENT(BASIS(GPU, FP_A, "false"), WINDOWS, TABLE)

/* ---- a daemon and a handle ---- */

struct fixture {
    struct stub_daemon stub;
    struct stub_reply reply; /* the answer to all requests except the state of the GPU */
    const char *
        state; /* body of /v1/gpus/GPU; NULL means that `reply` is the answer to this request too */
    struct reach *reach;
    struct reach_answer *answer;
    struct reach_error error;
};

static struct stub_reply reply_of(void *cls, const char *target)
{
    const struct fixture *f = cls;

    if (f->state && strcmp(target, "/v1/gpus/" GPU) == 0)
        return (struct stub_reply){.body = f->state};
    return f->reply;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->reply = (struct stub_reply){.tag = "one", .body = GOOD};
    stub_start(&f->stub, reply_of, f);
    assert_int_equal(reach_open(f->stub.where, &f->reach, &f->error), REACH_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    reach_answer_free(f->answer);
    reach_close(f->reach);
    stub_stop(&f->stub);
    free(f);
    return 0;
}

/* The test and the stub take turns: no request is in progress while `reply` changes. */
static enum reach_status ask(struct fixture *f, const char *gpu, uint64_t bytes,
                             uint64_t granularity)
{
    const struct reach_placement_request request = {
        .size = sizeof(request), .bytes = bytes, .granularity_bytes = granularity};

    reach_answer_free(f->answer);
    memset(&f->error, 0, sizeof(f->error));
    f->answer = (struct reach_answer *)f; /* the call must overwrite the pointer */
    return reach_get_placement(f->reach, gpu, &request, &f->answer, &f->error);
}

static const struct reach_windows *windows_of(const struct fixture *f)
{
    return &reach_answer_placement(f->answer)->windows;
}

static const struct reach_provenance *from(const struct fixture *f)
{
    return reach_answer_provenance(f->answer);
}

static void refused(struct fixture *f, enum reach_status wanted, const char *word)
{
    const enum reach_status got = ask(f, GPU, 1000, 0);

    if (got != wanted)
        fail_msg("%s and not %s: %s", reach_status_name(got), reach_status_name(wanted),
                 f->error.text);
    assert_null(f->answer);
    assert_int_equal(f->error.status, wanted);
    if (!strstr(f->error.text, word))
        fail_msg("no \"%s\" in: %s", word, f->error.text);
}

/* ---- answers ---- */

static void test_whole_answer(void **state)
{
    struct fixture *f = *state;
    uint32_t window = 77;

    const struct reach_placement *p;

    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    p = reach_answer_placement(f->answer);
    assert_non_null(p);
    assert_string_equal(from(f)->gpu_uuid, GPU);
    assert_string_equal(from(f)->fingerprint_id, FP_A);
    assert_int_equal(from(f)->origin, REACH_SIMULATED);
    assert_false(from(f)->stale);
    assert_int_equal(reach_answer_source(f->answer), REACH_FROM_DAEMON);
    assert_int_equal(reach_answer_http_status(f->answer), 200);
    assert_string_equal(reach_answer_body(f->answer, NULL), GOOD);
    assert_int_equal(p->bytes, 1000);
    assert_int_equal(p->advice, REACH_USE_WINDOWS);
    assert_string_equal(p->reason, "because");
    assert_int_equal(p->windows.window_count, 2);
    assert_int_equal(p->windows.window[1].first_byte, 600);
    assert_int_equal(p->windows.window[1].length_bytes, 400);
    assert_int_equal(p->windows.window[0].sm_count, 2);
    assert_int_equal(p->windows.window[1].group_count, 1);
    assert_int_equal(p->windows.sm_slots, 4);
    assert_true(p->headroom_bytes.known && p->headroom_bytes.value == 24);
    assert_true(p->predicted_gbps.known && p->predicted_gbps.value == 12.5);
    assert_string_equal(p->predicted_gbps.reason, "");
    assert_false(p->naive_gbps.known);
    assert_string_equal(p->naive_gbps.reason, "not-measured");
    assert_int_equal(reach_window_of_sm(&p->windows, 1, &window, NULL), REACH_OK);
    assert_int_equal(window, 1);
    assert_int_equal(reach_window_of_sm(&p->windows, 3, &window, NULL), REACH_OK);
    assert_int_equal(window, 0);
    /* The answer is only of this kind. */
    assert_null(reach_answer_plan(f->answer));
    assert_null(reach_answer_scope(f->answer));
    assert_null(reach_answer_fingerprint(f->answer));
    assert_null(reach_answer_explanation(f->answer));
    assert_null(reach_answer_option(f->answer, 0));
    assert_null(reach_answer_share(f->answer, 0));
    assert_null(reach_answer_gpu(f->answer, 0));
}

static void test_whole_json(void **state)
{
    struct fixture *f = *state;
    char *json = (char *)f;

    assert_int_equal(reach_get(f->reach, "/v1/gpus/0/placement?bytes=1000", &json, &f->error),
                     REACH_OK);
    assert_string_equal(json, GOOD);
    reach_free(json);
    /* A refusal also has a body. */
    f->reply = (struct stub_reply){.http_status = 400,
                                   .body = "{\"slug\":\"invalid-argument\",\"detail\":\"x\","
                                           "\"errors\":[{\"parameter\":\"bytes\"}]}"};
    assert_int_equal(reach_get(f->reach, "/v1/gpus/0/placement?bytes=0", &json, &f->error),
                     REACH_INVALID_ARGUMENT);
    assert_string_equal(json, f->reply.body);
    assert_string_equal(f->error.field, "bytes");
    assert_int_equal(f->error.http_status, 400);
    reach_free(json);
    /* A stale answer also has a body. */
    f->reply = (struct stub_reply){.body = PLACEMENT(BASIS(GPU, FP_A, "true"), WINDOWS, TABLE)};
    assert_int_equal(reach_get(f->reach, "/v1/gpus/0/placement?bytes=1", &json, &f->error),
                     REACH_STALE);
    assert_string_equal(json, f->reply.body);
    reach_free(json);
    /* If the response is invalid or missing, there is no body. */
    f->reply.body = "{}";
    assert_int_equal(reach_get(f->reach, "/v1/gpus/0/placement?bytes=2", &json, &f->error),
                     REACH_PROTOCOL);
    assert_null(json);
    f->reply.manner = STUB_CLOSES;
    assert_int_equal(reach_get(f->reach, "/v1/gpus", &json, &f->error), REACH_UNREACHABLE);
    assert_null(json);
    assert_int_equal(f->error.http_status, 0);
}

static void test_any_request(void **state)
{
    struct fixture *f = *state;
    const struct reach_request post = {.size = sizeof(post),
                                       .method = "POST",
                                       .target = "/v1/gpus/0/fingerprint",
                                       .body = "{\"depth\":\"quick\"}",
                                       .token = "secret"};
    struct reach_request wrong[] = {post, post, post, post, post, post, post};
    char long_token[600];

    memset(long_token, 'x', sizeof(long_token));
    long_token[sizeof(long_token) - 1] = '\0';
    f->reply = (struct stub_reply){.http_status = 202, .body = "{\"id\":\"m-1\"}"};
    assert_int_equal(reach_send(f->reach, &post, &f->answer, &f->error), REACH_OK);
    assert_int_equal(reach_answer_http_status(f->answer), 202);
    assert_string_equal(reach_answer_body(f->answer, NULL), f->reply.body);
    assert_null(from(f));
    assert_int_equal(reach_answer_check_gpu(f->answer, GPU, NULL), REACH_INVALID_ARGUMENT);
    reach_answer_free(f->answer);
    wrong[0].size = 0;
    wrong[1].method = "PUT";
    wrong[2].target = "v1/gpus";
    wrong[3].target = "/v1/gpus\r\nX: y";
    wrong[4].token = long_token;
    wrong[5].token = "secret\r\nX: y";
    wrong[6].accept = "text/\xc3\xa4";
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_int_equal(reach_send(f->reach, &wrong[i], &f->answer, &f->error),
                         REACH_INVALID_ARGUMENT);
        assert_null(f->answer);
    }
    assert_int_equal(f->stub.requests, 1);
}

static void test_sm_outside_of_table(void **state)
{
    struct fixture *f = *state;
    static const uint32_t outside[] = {4, 5, 511, 512, 65536, UINT32_MAX};
    struct reach_windows none = {.window_count = 0};
    uint32_t window = 77;

    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
        assert_int_equal(reach_window_of_sm(windows_of(f), outside[i], &window, &f->error),
                         REACH_NO_SUCH_SM);
        assert_int_equal(f->error.status, REACH_NO_SUCH_SM);
        assert_non_null(strstr(f->error.text, "ends with SM 3"));
    }
    assert_int_equal(reach_window_of_sm(windows_of(f), 2, &window, &f->error), REACH_NO_WINDOW);
    assert_non_null(strstr(f->error.text, "SM 2"));
    assert_int_equal(reach_window_of_sm(&none, 0, &window, &f->error), REACH_NO_WINDOW);
    assert_int_equal(window, 77);
    assert_int_equal(reach_window_of_sm(NULL, 0, &window, &f->error), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_window_of_sm(&none, 0, NULL, &f->error), REACH_INVALID_ARGUMENT);
}

static void test_plan_for_another_gpu(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    assert_int_equal(reach_answer_check_gpu(f->answer, GPU, &f->error), REACH_OK);
    assert_int_equal(
        reach_answer_check_gpu(f->answer, "gpu-00000000-0000-0000-0000-000000000001", &f->error),
        REACH_OK);
    assert_int_equal(reach_answer_check_gpu(f->answer, OTHER, &f->error), REACH_WRONG_GPU);
    assert_non_null(strstr(f->error.text, GPU));
    assert_non_null(strstr(f->error.text, OTHER));
    assert_int_equal(reach_answer_check_gpu(f->answer, "", &f->error), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_answer_check_gpu(f->answer, "GPU-0", NULL), REACH_WRONG_GPU);
    assert_int_equal(reach_answer_check_gpu(NULL, OTHER, &f->error), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_check_gpu(GPU, GPU, &f->error), REACH_OK);
    assert_int_equal(reach_check_gpu(GPU, OTHER, &f->error), REACH_WRONG_GPU);

    /* The daemon answers for a GPU other than the requested one. */
    f->reply.body = PLACEMENT(BASIS(OTHER, FP_A, "false"), WINDOWS, TABLE);
    f->reply.tag = "two";
    refused(f, REACH_WRONG_GPU, OTHER);
    /* A request by index contains no UUID for the comparison, but the earlier answer contains the
     * UUID. */
    assert_int_equal(ask(f, "0", 1000, 0), REACH_OK);
    assert_int_equal(reach_answer_check_gpu(f->answer, GPU, &f->error), REACH_WRONG_GPU);
}

/* ---- ETags ---- */

static void test_confirmed_answer(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    f->reply.body = "not even looked at";
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    assert_int_equal(f->stub.requests, 2);
    assert_int_equal(f->stub.not_modified, 1);
    assert_int_equal(reach_answer_source(f->answer), REACH_FROM_DAEMON);
    assert_string_equal(reach_answer_body(f->answer, NULL), GOOD);
    assert_int_equal(windows_of(f)->window[1].length_bytes, 400);

    /* Another request has another answer. If the tag of the request changes, the answer is new. */
    f->reply.tag = "two";
    f->reply.body = PLACEMENT(BASIS(GPU, FP_B, "false"), WINDOWS, "[1,0,0]");
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    assert_string_equal(from(f)->fingerprint_id, FP_B);
    assert_int_equal(windows_of(f)->window_of_sm[0], 1);
    assert_int_equal(f->stub.not_modified, 1);
}

static void test_many_questions(void **state)
{
    struct fixture *f = *state;

    /* There are more answers than the cache holds, so the oldest answer is requested again. */
    for (int round = 0; round < 2; round++) {
        for (uint64_t granularity = 0; granularity < 100; granularity++)
            assert_int_equal(ask(f, GPU, 1000, granularity), REACH_OK);
    }
    assert_int_equal(f->stub.requests, 200);
    assert_int_equal(f->stub.not_modified, 0);
    assert_int_equal(ask(f, GPU, 1000, 99), REACH_OK);
    assert_int_equal(f->stub.not_modified, 1);
}

/* ---- stale ---- */

static void test_stale_is_an_error(void **state)
{
    struct fixture *f = *state;

    f->reply.body = PLACEMENT(BASIS(GPU, FP_A, "true"), WINDOWS, TABLE);
    refused(f, REACH_STALE, "stale");
    refused(f, REACH_STALE,
            "Measure again"); /* the daemon confirms the tag, and the answer is still stale */
    assert_int_equal(reach_allow(f->reach, REACH_ALLOW_STALE, &f->error), REACH_OK);
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    assert_true(from(f)->stale);
    assert_int_equal(reach_allow(f->reach, REACH_ALLOW_NOTHING, &f->error), REACH_OK);
    refused(f, REACH_STALE, FP_A);
}

#define STATE(state, fp, stale)                                                                    \
    "{\"index\":0,\"uuid\":\"" GPU                                                                 \
    "\",\"name\":\"x\",\"origin\":\"simulated\",\"sm_count\":4,\"memory_bytes\":1000,"             \
    "\"mig\":false,\"state\":\"" state "\",\"fingerprint_id\":" fp ",\"fingerprint_stale\":" stale \
    "}"

static void test_answer_goes_stale_later(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *body;
        enum reach_status status;
        const char *word;
    } cases[] = {
        {STATE("ready", "\"" FP_A "\"", "false"), REACH_OK, ""},
        {STATE("measuring", "\"" FP_A "\"", "false"), REACH_OK, ""},
        {STATE("stale", "\"" FP_A "\"", "true"), REACH_STALE, "become stale"},
        {STATE("ready", "\"" FP_B "\"", "false"), REACH_STALE, FP_B},
        {STATE("unknown", "null", "false"), REACH_NOT_MEASURED, "no longer has"},
        {STATE("lost", "\"" FP_A "\"", "false"), REACH_NOT_FOUND, "lost"},
        {"{}", REACH_PROTOCOL, "missing"},
    };

    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        f->state = cases[i].body;
        memset(&f->error, 0, sizeof(f->error));
        assert_int_equal(reach_revalidate(f->reach, f->answer, &f->error), cases[i].status);
        assert_int_equal(f->error.status, cases[i].status);
        assert_non_null(strstr(f->error.text, cases[i].word));
    }
    stub_stop(&f->stub);
    assert_int_equal(reach_revalidate(f->reach, f->answer, &f->error), REACH_UNREACHABLE);
    assert_int_equal(reach_revalidate(f->reach, NULL, &f->error), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_check_fingerprint(f->reach, GPU, "", &f->error), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_check_fingerprint(f->reach, "a/b", FP_A, &f->error),
                     REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_check_fingerprint(f->reach, GPU, FP_A, &f->error), REACH_UNREACHABLE);
}

/* ---- a daemon that has ended or does not answer ---- */

static void test_daemon_goes_away(void **state)
{
    struct fixture *f = *state;
    struct reach_answer *held;
    uint32_t window = 77;

    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    held = f->answer;
    f->answer = NULL;
    stub_stop(&f->stub);
    refused(f, REACH_UNREACHABLE, "systemctl start reachd");

    /* The answer that the job holds is still valid, and its age is known. */
    assert_int_equal(reach_window_of_sm(&reach_answer_placement(held)->windows, 1, &window, NULL),
                     REACH_OK);
    assert_int_equal(window, 1);
    assert_true(reach_answer_age_ms(held) < 3600000);

    /* The answer to an earlier request is returned again if the job allows it. The source of the
     * answer is the cache. */
    assert_int_equal(reach_allow(f->reach, REACH_ALLOW_CACHED, &f->error), REACH_OK);
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    assert_int_equal(reach_answer_source(f->answer), REACH_FROM_CACHE);
    assert_true(reach_answer_age_ms(f->answer) >= reach_answer_age_ms(held));
    assert_string_equal(reach_answer_body(f->answer, NULL), reach_answer_body(held, NULL));
    reach_answer_free(held);
    /* An answer that was never received is not in the cache. */
    assert_int_equal(ask(f, GPU, 1000, 8), REACH_UNREACHABLE);
    assert_int_equal(ask(f, OTHER, 1000, 0), REACH_UNREACHABLE);
    assert_int_equal(reach_allow(f->reach, REACH_ALLOW_NOTHING, &f->error), REACH_OK);
    refused(f, REACH_UNREACHABLE, "no daemon answers");
}

static void test_cached_answer_of_an_older_fingerprint(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(reach_allow(f->reach, REACH_ALLOW_CACHED, &f->error), REACH_OK);
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    f->reply = (struct stub_reply){.tag = "two",
                                   .body = PLACEMENT(BASIS(GPU, FP_B, "false"), WINDOWS, TABLE)};
    assert_int_equal(ask(f, GPU, 1000, 8), REACH_OK);
    f->reply.manner = STUB_CLOSES;
    assert_int_equal(ask(f, GPU, 1000, 8), REACH_OK);
    assert_int_equal(reach_answer_source(f->answer), REACH_FROM_CACHE);
    assert_string_equal(from(f)->fingerprint_id, FP_B);
    refused(f, REACH_UNREACHABLE,
            "broke"); /* the cached answer belongs to fingerprint FP_A, not FP_B */

    /* The result is the same if the answer has become stale in the meantime. */
    f->reply = (struct stub_reply){.tag = "three",
                                   .body = PLACEMENT(BASIS(GPU, FP_B, "true"), WINDOWS, TABLE)};
    refused(f, REACH_STALE, "stale");
    f->reply.manner = STUB_CLOSES;
    assert_int_equal(ask(f, GPU, 1000, 8), REACH_UNREACHABLE);
    refused(f, REACH_STALE, "stale");
}

static void test_answer_that_the_daemon_takes_back(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(reach_allow(f->reach, REACH_ALLOW_CACHED, &f->error), REACH_OK);
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    f->reply = (struct stub_reply){
        .http_status = 404, .body = "{\"slug\":\"not-found\",\"detail\":\"there is no such GPU\"}"};
    refused(f, REACH_NOT_FOUND, "no such GPU");
    f->reply.manner = STUB_CLOSES;
    refused(f, REACH_UNREACHABLE, "broke");
}

static void test_bad_manners(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(reach_set_timeout_ms(f->reach, 100, &f->error), REACH_OK);
    f->reply.manner = STUB_SILENT;
    refused(f, REACH_TIMEOUT, "within");
    assert_int_equal(reach_set_timeout_ms(f->reach, 3600000, &f->error), REACH_OK);
    f->reply.manner = STUB_CLOSES;
    refused(f, REACH_UNREACHABLE, "broke");
    f->reply.manner = STUB_BREAKS;
    refused(f, REACH_UNREACHABLE, "broke");
    f->reply.manner = STUB_BABBLES;
    refused(f, REACH_PROTOCOL, "not one of reachd");
    f->reply.manner = STUB_SAYS;
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
}

/* ---- invalid answers ---- */

static void test_contradictions(void **state)
{
    struct fixture *f = *state;
    static const char *const bodies[] = {
        "",
        "[]",
        "{}",
        "<html>",
        "{\"a\":1,\"a\":2}",
        PLACEMENT(BASIS(GPU, "", "false"), WINDOWS, TABLE),
        PLACEMENT(BASIS("", FP_A, "false"), WINDOWS, TABLE),
        PLACEMENT(BASIS(GPU, FP_A, "0"), WINDOWS, TABLE),
        PLACEMENT(BASIS(GPU, FP_A, "false"), WINDOWS, "[0,2,null,0]"), /* there is no window 2 */
        PLACEMENT(BASIS(GPU, FP_A, "false"), WINDOWS,
                  "[0,-1,null,0]"), /* an SM without a window must have null, not -1 */
        PLACEMENT(BASIS(GPU, FP_A, "false"), WINDOWS, "[0,null,null,0]"),
        PLACEMENT(BASIS(GPU, FP_A, "false"), WINDOWS, "[0,1,1,0]"), /* one SM too many */
        PLACEMENT(BASIS(GPU, FP_A, "false"), WINDOWS, "[0,1.5,null,0]"),
        PLACEMENT(BASIS(GPU, FP_A, "false"), WINDOWS, "\"x\""),
        PLACEMENT(BASIS(GPU, FP_A, "false"), WINDOWS, "[]"),
        PLACEMENT(BASIS(GPU, FP_A, "false"), "[]", TABLE),
        PLACEMENT(BASIS(GPU, FP_A, "false"),
                  "[{\"first_byte\":0,\"length_bytes\":600,\"sm_count\":2,\"group_count\":1},"
                  "{\"first_byte\":601,\"length_bytes\":399,\"sm_count\":1,\"group_count\":1}]",
                  TABLE), /* a gap */
        PLACEMENT(BASIS(GPU, FP_A, "false"),
                  "[{\"first_byte\":0,\"length_bytes\":600,\"sm_count\":2,\"group_count\":1},"
                  "{\"first_byte\":599,\"length_bytes\":401,\"sm_count\":1,\"group_count\":1}]",
                  TABLE), /* an overlap */
        PLACEMENT(BASIS(GPU, FP_A, "false"),
                  "[{\"first_byte\":0,\"length_bytes\":600,\"sm_count\":2,\"group_count\":1},"
                  "{\"first_byte\":600,\"length_bytes\":401,\"sm_count\":1,\"group_count\":1}]",
                  TABLE), /* the windows exceed the allocation */
        PLACEMENT(BASIS(GPU, FP_A, "false"),
                  "[{\"first_byte\":0,\"length_bytes\":600,\"sm_count\":2,\"group_count\":1},"
                  "{\"first_byte\":600,\"length_bytes\":399,\"sm_count\":1,\"group_count\":1}]",
                  TABLE), /* the windows cover a byte less than the allocation */
        PLACEMENT(BASIS(GPU, FP_A, "false"),
                  "[{\"first_byte\":0,\"length_bytes\":1000,\"sm_count\":2,\"group_count\":1},"
                  "{\"first_byte\":1000,\"length_bytes\":0,\"sm_count\":1,\"group_count\":1}]",
                  TABLE), /* an empty window */
    };

    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        f->reply.body = bodies[i];
        refused(f, REACH_PROTOCOL, "");
        assert_true(strlen(f->error.text) > 20);
    }
    /* The cache does not contain the refused bodies either. */
    assert_int_equal(f->stub.not_modified, 0);
    f->reply.body = GOOD;
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
}

static void test_answer_to_another_question(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, GPU, 2000, 0), REACH_PROTOCOL);
    assert_null(f->answer);
    assert_non_null(strstr(f->error.text, "1000"));
    assert_int_equal(ask(f, GPU, 2000, 0),
                     REACH_PROTOCOL); /* the cache does not contain the answer either */
}

static void test_problems(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int http_status;
        const char *body;
        enum reach_status status;
        const char *word;
    } cases[] = {
        {400, "{\"slug\":\"invalid-argument\",\"detail\":\"bytes is 0\"}", REACH_INVALID_ARGUMENT,
         "bytes is 0"},
        {404, "{\"slug\":\"not-found\",\"detail\":\"no GPU 7\",\"next_step\":\"List them.\"}",
         REACH_NOT_FOUND, "List them."},
        {409, "{\"slug\":\"no-fingerprint\",\"detail\":\"x\"}", REACH_NOT_MEASURED, "x"},
        {409, "{\"slug\":\"not-applicable\",\"detail\":\"x\"}", REACH_NOT_MEASURED, "x"},
        {503, "{\"slug\":\"full\",\"detail\":\"busy\"}", REACH_UNAVAILABLE, "busy"},
        {500, "<html>", REACH_UNAVAILABLE, "HTTP 500"},
        {404, "<html>", REACH_PROTOCOL, "HTTP 404"},
        {500, "{\"slug\":\"internal\",\"detail\":\"a bug\"}", REACH_INTERNAL, "a bug"},
        {401, "{\"slug\":\"unauthorized\",\"detail\":\"x\"}", REACH_UNAUTHORIZED, "x"},
        {302, "", REACH_PROTOCOL, "HTTP 302"},
        {304, "", REACH_PROTOCOL, "HTTP 304"},
        {418, "{\"slug\":\"teapot\",\"detail\":\"a\\u001bb\"}", REACH_PROTOCOL, "a b"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        f->reply.http_status = cases[i].http_status;
        f->reply.body = cases[i].body;
        refused(f, cases[i].status, cases[i].word);
    }
}

/* ---- wrong use ---- */

static void test_open(void **state)
{
    static const char *const wrong[] = {"x",          "ftp://a",      "unix:",      "unix:relative",
                                        "http://a b", "http://a?b=c", "127.0.0.1:1"};
    char where[300] = "unix:/";
    struct reach *reach = (struct reach *)where;
    struct reach_error error;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_int_equal(reach_open(wrong[i], &reach, &error), REACH_INVALID_ARGUMENT);
        assert_null(reach);
        assert_true(strlen(error.text) > 10);
    }
    memset(where + 6, 'x', 200);
    assert_int_equal(reach_open(where, &reach, &error), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_open(NULL, NULL, &error), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_open("http://127.0.0.1:1/", &reach, &error), REACH_OK);
    reach_close(reach);
    setenv("REACHD_URL", "nonsense", 1);
    assert_int_equal(reach_open(NULL, &reach, &error), REACH_INVALID_ARGUMENT);
    setenv("REACHD_URL", "unix:/nowhere/at/all", 1);
    assert_int_equal(reach_open("", &reach, &error), REACH_OK);
    unsetenv("REACHD_URL");
    reach_close(reach);
    reach_close(NULL);
    reach_free(NULL);
}

static void test_arguments(void **state)
{
    struct fixture *f = *state;
    const struct reach_placement_request request = {.size = sizeof(request), .bytes = 1000};
    const struct reach_placement_request sizeless = {.bytes = 1000};
    const struct reach_scope_request scope = {
        .size = sizeof(scope), .bytes = 1000, .access = (enum reach_access)9};
    static const char *const names[] = {NULL, "", "0/../1", "a b", "GPU?x=1", "%30"};
    struct reach_answer *out = (struct reach_answer *)f;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_int_equal(ask(f, names[i], 1000, 0), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_get_placement(NULL, GPU, &request, &f->answer, NULL),
                     REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_get_placement(f->reach, GPU, NULL, &f->answer, NULL),
                     REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_get_placement(f->reach, GPU, &request, NULL, NULL),
                     REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_get_gpus(f->reach, NULL, NULL), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_get_fingerprint(f->reach, GPU, NULL, NULL), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_get_scope(f->reach, GPU, &scope, &out, &f->error),
                     REACH_INVALID_ARGUMENT);
    assert_null(out);
    assert_string_equal(f->error.field, "access");
    assert_int_equal(reach_get_placement(f->reach, GPU, &sizeless, &out, &f->error),
                     REACH_INVALID_ARGUMENT);
    assert_string_equal(f->error.field, "size");
    assert_int_equal(reach_set_timeout_ms(f->reach, 0, NULL), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_set_timeout_ms(f->reach, 3600001, NULL), REACH_INVALID_ARGUMENT);
    assert_int_equal(reach_allow(f->reach, 8, NULL), REACH_INVALID_ARGUMENT);
    assert_int_equal(f->stub.requests, 0);
}

static void test_words(void **state)
{
    const unsigned char bytes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255};
    char text[REACH_UUID_BYTES];

    (void)state;
    assert_string_equal(reach_uuid_text(bytes, false, text),
                        "GPU-00010203-0405-0607-0809-0a0b0c0d0eff");
    assert_string_equal(reach_uuid_text(bytes, true, text),
                        "MIG-00010203-0405-0607-0809-0a0b0c0d0eff");
    assert_string_equal(reach_status_name(REACH_WRONG_GPU), "wrong-gpu");
    assert_string_equal(reach_status_name((enum reach_status)99), "unknown");
    assert_string_equal(reach_strategy_name(REACH_FILTERED_WINDOWS), "filtered-windows");
    assert_string_equal(reach_strategy_name(REACH_SIDES), "sides");
    assert_null(reach_strategy_name((enum reach_strategy)6));
    assert_null(reach_access_name((enum reach_access)3));
    assert_true(strlen(reach_version()) > 0);
    assert_string_equal(reach_advice_name(REACH_NOT_ENOUGH_GROUPS), "not-enough-groups");
    assert_null(reach_advice_name(REACH_ADVICE_OTHER));
    assert_string_equal(reach_origin_name(REACH_IMPORTED), "imported");
    assert_null(reach_origin_name((enum reach_origin)4));
    assert_int_equal(reach_answer_age_ms(NULL), 0);
    assert_null(reach_answer_body(NULL, NULL));
    assert_null(reach_answer_provenance(NULL));
    reach_answer_free(NULL);
}

/* The id of a response equals the id of the request, or the response has no id. */
static void test_response_to_another_request(void **state)
{
    struct fixture *f = *state;

    f->reply.id = "0123456789abcdef";
    refused(f, REACH_PROTOCOL, "is to another request: X-Request-Id is 0123456789abcdef, not ");
    f->reply.id = "";
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    f->reply.id = NULL;
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
}

/* The test does not run with a sanitizer, because a child inherits the locks of its malloc that the
 * stub's thread holds. */
static void test_fork_leaves_the_parent_its_connection(void **state)
{
    struct fixture *f = *state;
    int status = -1;
    pid_t child;

    if (TEST_SANITIZED)
        skip();
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    child = fork();
    if (child == 0) {
        reach_close(f->reach);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    f->reply = (struct stub_reply){.body = GOOD};
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    assert_int_equal(atomic_load(&f->stub.connections), 1);
    child = fork();
    if (child == 0)
        _exit(ask(f, GPU, 1000, 0) != REACH_OK);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(ask(f, GPU, 1000, 0), REACH_OK);
    assert_int_equal(atomic_load(&f->stub.connections), 2);
}

#define WITH_DAEMON(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DAEMON(test_whole_answer),
        WITH_DAEMON(test_whole_json),
        WITH_DAEMON(test_any_request),
        WITH_DAEMON(test_sm_outside_of_table),
        WITH_DAEMON(test_plan_for_another_gpu),
        WITH_DAEMON(test_confirmed_answer),
        WITH_DAEMON(test_many_questions),
        WITH_DAEMON(test_stale_is_an_error),
        WITH_DAEMON(test_answer_goes_stale_later),
        WITH_DAEMON(test_daemon_goes_away),
        WITH_DAEMON(test_cached_answer_of_an_older_fingerprint),
        WITH_DAEMON(test_answer_that_the_daemon_takes_back),
        WITH_DAEMON(test_bad_manners),
        WITH_DAEMON(test_contradictions),
        WITH_DAEMON(test_answer_to_another_question),
        WITH_DAEMON(test_problems),
        WITH_DAEMON(test_response_to_another_request),
        WITH_DAEMON(test_fork_leaves_the_parent_its_connection),
        cmocka_unit_test(test_open),
        WITH_DAEMON(test_arguments),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
