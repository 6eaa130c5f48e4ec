/* test_api_memory.c: every allocation during a request fails in turn, in the HTTP layer,
 * libmicrohttpd and jansson. The client receives the whole answer or 503, or its connection is
 * closed. The daemon survives, and the next request has the usual answer. */
#include "tests/unit/support/api_fixture.h"
#include "tests/unit/support/alloc_fail.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 20000, TARGET_BYTES = 200 };

static struct {
    uint64_t whole;
    uint64_t refused; /* 503 */
    uint64_t closed;
} seen;

/* The body of a refusal contains the id of its request, so only bodies of 200 are compared. */
static void assert_same(const struct api_answer *a, const struct api_answer *b)
{
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->body_bytes, b->body_bytes);
    if (a->status == 200)
        assert_memory_equal(a->body, b->body, a->body_bytes);
}

static void judge(const struct api_answer *got, const struct api_answer *good, uint64_t n)
{
    if (got->status == 503) {
        seen.refused++;
        if (got->body_bytes == 0 || !strstr(got->head, "Content-Type: application/problem+json"))
            fail_msg("allocation %llu: 503 says nothing: %s", (unsigned long long)n, got->head);
    } else if (got->status == 0) {
        assert_true(got->closed);
        seen.closed++;
    } else {
        seen.whole++;
        assert_same(got, good);
    }
}

/* Sends the request on an existing connection while the n-th allocation fails. The first request
 * fills the cache, so each request is sent in a generation of its own. */
static bool ask_short(struct api_fixture *f, const char *request, uint64_t n,
                      const struct api_answer *good)
{
    const struct snapshot *now = snapshot_acquire(f->cell);
    struct api_answer got;
    struct api_answer after;

    snapshot_publish(f->cell, snapshot_draft_copy(now));
    snapshot_release(now);
    alloc_fail_begin(n);
    api_ask(f, request, &got);
    alloc_fail.armed = false;
    const bool failed = alloc_fail.failures > 0;

    judge(&got, good, n);
    free(got.body);
    api_ask(f, request, &after);
    assert_same(&after, good);
    free(after.body);
    return failed;
}

static void every_allocation(struct api_fixture *f, const char *method, const char *target,
                             unsigned status)
{
    char request[TARGET_BYTES + 100];
    struct api_answer good;
    bool failed = true;
    uint64_t n = 1;

    api_line_of(request, sizeof(request), method, target, "");
    api_ask(f, request, &good);
    assert_int_equal(good.status, status);
    for (; failed && n < MOST; n++)
        failed = ask_short(f, request, n, &good);
    assert_false(failed); /* the last request had no allocation left that could fail */
    free(good.body);
}

static void test_requests(void **state)
{
    struct api_fixture *f = *state;
    static const struct {
        const char *method;
        const char *target;
        unsigned status;
    } cases[] = {
        {"GET", "/v1/gpus", 200},
        {"GET", "/v1/gpus/0/fingerprint", 200},
        {"GET", "/v1/gpus/0/scope?bytes=1GiB", 200},
        {"GET", "/v1/gpus/0/placement?bytes=4GiB", 200},
        {"GET", "/v1/gpus/0/plan?bytes=4GiB", 200},
        {"GET", "/v1/gpus/0/memory", 200},
        {"GET", "/v1/gpus/0/memory?bytes=1GiB", 200},
        {"GET", "/v1/gpus/0/caches", 200},
        {"GET", "/readyz", 200},
        {"GET", "/nowhere", 404},
        {"GET", "/v1/gpus/0/scope?bytes=much", 400},
        {"DELETE", "/v1/gpus", 405},
    };

    seen.whole = seen.refused = seen.closed = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        every_allocation(f, cases[i].method, cases[i].target, cases[i].status);
    print_message("%llu whole, %llu times 503, %llu closed\n", (unsigned long long)seen.whole,
                  (unsigned long long)seen.refused, (unsigned long long)seen.closed);
    assert_true(seen.refused > 0);
}

static int install(void **state)
{
    (void)state;
    alloc_fail_install();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {API_TEST(test_requests)};

    return cmocka_run_group_tests(tests, install, NULL);
}
