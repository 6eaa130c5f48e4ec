/* test_libreach_threads.c: one handle, many threads, and a daemon whose fingerprint changes often.
 * The test is meant for the thread sanitizer. Each answer must come from one fingerprint and match
 * its request. */
#include "clients/c/reach.h"
#include "tests/share.h"
#include "tests/unit/support/stub_daemon.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU "GPU-00000000-0000-0000-0000-000000000001"

enum { THREADS = 8, ROUNDS = 200, BODIES = 4096, BODY_BYTES = 1024 };

static atomic_bool stop;

/* Bodies must outlive the reply. Only the thread of the stub writes them. */
struct changing {
    unsigned count;
    char tags[BODIES][16];
    char bodies[BODIES][BODY_BYTES];
};

/* Every 32 requests bring a new fingerprint, and every fourth request finds a closed connection.
 * The scope repeats the number of the fingerprint, so that a mixture of two answers is detected. */
static struct stub_reply reply_of(void *cls, const char *target)
{
    struct changing *c = cls;
    const unsigned n = c->count++ % BODIES;
    const unsigned generation = c->count / 32;
    const char *bytes = strstr(target, "bytes=");
    const bool stale = generation % 3 == 2;
    char *body = c->bodies[n];

    snprintf(c->tags[n], sizeof(c->tags[n]), "g%u", generation);
    if (!bytes)
        snprintf(body, BODY_BYTES,
                 "{\"index\":0,\"uuid\":\"" GPU
                 "\",\"name\":\"x\",\"origin\":\"simulated\",\"sm_count\":4,\"memory_bytes\":9,"
                 "\"mig\":false,\"state\":\"ready\",\"fingerprint_id\":\"fp%016x\","
                 "\"fingerprint_stale\":%s}",
                 generation, stale ? "true" : "false");
    else
        snprintf(body, BODY_BYTES,
                 "{\"gpu\":\"" GPU "\",\"fingerprint_id\":\"fp%016x\",\"fingerprint_stale\":%s,"
                 "\"origin\":\"simulated\",\"bytes\":%" PRIu64
                 ",\"access\":\"read\",\"advice\":\"scopes\",\"scope_bytes\":%u,\"passes\":1,"
                 "\"predicted_gbps\":%u.5,\"naive_gbps\":1,\"reason\":\"%u\"}",
                 generation, stale ? "true" : "false", (uint64_t)strtoull(bytes + 6, NULL, 10),
                 1000000 + generation, generation, generation);
    return (struct stub_reply){
        .manner = n % 4 == 3 ? STUB_CLOSES : STUB_SAYS, .tag = c->tags[n], .body = body};
}

struct worker {
    struct reach *reach;
    unsigned seed;
    unsigned answers;
    const char *wrong; /* text of the first failure; a static string */
    pthread_t thread;
};

static void blame(struct worker *w, const char *what)
{
    if (!w->wrong)
        w->wrong = what;
}

static void scan_field(struct worker *w, const struct reach_answer *answer, uint64_t bytes)
{
    const struct reach_provenance *p = reach_answer_provenance(answer);
    const struct reach_scope *s = reach_answer_scope(answer);
    const unsigned generation = (unsigned)(s->scope_bytes - 1000000);
    char id[32];
    char reason[32];

    snprintf(id, sizeof(id), "fp%016x", generation);
    snprintf(reason, sizeof(reason), "%u", generation);
    if (s->bytes != bytes)
        blame(w, "an answer to another question");
    if (strcmp(p->fingerprint_id, id) != 0 || strcmp(s->reason, reason) != 0 ||
        s->predicted_gbps.value != generation + 0.5 || p->stale != (generation % 3 == 2))
        blame(w, "an answer mixed from two fingerprints");
    w->answers++;
}

static void *work(void *cls)
{
    struct worker *w = cls;

    for (int i = 0; i < ROUNDS; i++) {
        const struct reach_scope_request request = {.size = sizeof(request),
                                                    .bytes = 1 + (w->seed + (unsigned)i * 7) % 5};
        struct reach_answer *scope = NULL;
        struct reach_error error = {.status = REACH_OK};
        const enum reach_status status = reach_get_scope(w->reach, GPU, &request, &scope, &error);

        if (status == REACH_OK && scope)
            scan_field(w, scope, request.bytes);
        else if (status != error.status || scope ||
                 (status != REACH_UNREACHABLE && status != REACH_STALE))
            blame(w, "a failure of another kind");
        if (scope && i % 8 == 0)
            reach_revalidate(w->reach, scope, NULL);
        if (i % 16 == 0)
            reach_allow(w->reach, i % 32 ? REACH_ALLOW_CACHED : REACH_ALLOW_STALE, NULL);
        if (i % 16 == 8)
            reach_set_timeout_ms(w->reach, 3600000, NULL);
        reach_answer_free(scope);
    }
    return NULL;
}

static void test_one_handle_many_threads(void **state)
{
    struct changing *changing = calloc(1, sizeof(*changing));
    struct worker workers[THREADS];
    struct stub_daemon stub;
    struct reach *reach;
    unsigned answers = 0;

    (void)state;
    assert_non_null(changing);
    stub_start(&stub, reply_of, changing);
    assert_int_equal(reach_open(stub.where, &reach, NULL), REACH_OK);
    reach_set_timeout_ms(reach, 3600000, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.reach = reach, .seed = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        answers += workers[i].answers;
        if (workers[i].wrong)
            fail_msg("thread %u: %s", i, workers[i].wrong);
    }
    assert_true(answers > THREADS * ROUNDS / 8);
    reach_close(reach);
    stub_stop(&stub);
    free(changing);
}

/* ---- fork ---- */

static void *work_until_stopped(void *cls)
{
    struct worker *w = cls;

    while (!atomic_load(&stop))
        work(w);
    return NULL;
}

/* Threads of the parent use the handle during the fork. Each child has the idle connections and the
 * cache of that moment. The child must neither hang nor receive an answer that belongs to the
 * parent. The test does not run with a sanitizer, because a child inherits locks of its malloc that
 * other threads hold. */
static void test_fork_beside_running_calls(void **state)
{
    struct changing *changing;
    const unsigned forks = getenv("REACH_LONG") ? 400 : 4;
    struct worker workers[THREADS / 2];
    struct stub_daemon stub;
    struct reach *reach;

    (void)state;
    if (TEST_SANITIZED)
        skip();
    changing = calloc(1, sizeof(*changing));
    assert_non_null(changing);
    stub_start(&stub, reply_of, changing);
    assert_int_equal(reach_open(stub.where, &reach, NULL), REACH_OK);
    reach_set_timeout_ms(reach, 3600000, NULL);
    for (unsigned i = 0; i < THREADS / 2; i++) {
        workers[i] = (struct worker){.reach = reach, .seed = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work_until_stopped, &workers[i]),
                         0);
    }
    for (unsigned i = 0; i < forks; i++) {
        const pid_t child = fork();
        int status = -1;

        if (child == 0) {
            struct worker w = {.reach = reach, .seed = i};
            work(&w);
            reach_close(reach);
            _exit(w.wrong || !w.answers);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS / 2; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].wrong)
            fail_msg("thread %u: %s", i, workers[i].wrong);
    }
    reach_close(reach);
    stub_stop(&stub);
    free(changing);
}

/* ---- offline ---- */

static void *plan(void *cls)
{
    struct worker *w = cls;

    for (int i = 0; i < ROUNDS; i++) {
        const struct reach_job job = {.size = sizeof(job),
                                      .bytes = (uint64_t)1 << (20 + (w->seed + (unsigned)i) % 18)};
        struct reach_answer *p = NULL;

        if (reach_get_plan(w->reach, "0", &job, &p, NULL) != REACH_OK)
            blame(w, "no plan");
        else if (reach_answer_plan(p)->bytes != job.bytes || !reach_answer_option(p, 0)->possible)
            blame(w, "not the plan");
        reach_answer_free(p);
    }
    return NULL;
}

static void test_one_file_many_threads(void **state)
{
    struct worker workers[THREADS];
    struct reach *reach = NULL;
    struct reach_error error;

    (void)state;
    if (reach_open("file:docs/measurements/nvidia-h200-b76f831d-2026-11-21/fingerprint-full.json",
                   &reach, &error) != REACH_OK)
        fail_msg("%s (run from the root of the project)", error.text);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.reach = reach, .seed = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, plan, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].wrong)
            fail_msg("thread %u: %s", i, workers[i].wrong);
    }
    reach_close(reach);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_handle_many_threads),
        cmocka_unit_test(test_fork_beside_running_calls),
        cmocka_unit_test(test_one_file_many_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
