/* test_worker.c: both ends of a measurement process. This program is its own worker: if started as
 * "... --worker", it serves descriptor 3. REACH_TEST_WORKER names its behavior. "real" is the real
 * worker with a simulated GPU. The other names are ways in which a worker process can fail. */
#include "worker/jsonl.h"
#include "worker/reap.h"
#include "worker/worker.h"

#include "tests/share.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define PLENTY (3600 * NSEC_PER_SEC)
#define SOON   (50 * NSEC_PER_MSEC)
#define GRACE  (10 * NSEC_PER_SEC)
/* grace period of children that never end by themselves */
#define SHORT_GRACE (300 * NSEC_PER_MSEC)

enum { CHILD_FD = 3, CHILD_EXIT = 7 };

/* ---- the worker's side ------------------------------------------------------------------- */

static void child_say(const char *text)
{
    if (write(CHILD_FD, text, strlen(text)) < 0) {
        _exit(1);
    }
}

/* Waits for a message that contains `verb`. */
static void child_await(const char *verb)
{
    static struct jsonl_reader reader = {.fd = CHILD_FD};
    const struct jsonl_wait wait = {.until = JSONL_NO_DEADLINE, .wake_fd = -1};
    char *line = NULL;
    size_t length = 0;

    do {
        if (jsonl_read(&reader, &wait, &line, &length) != JSONL_DONE) {
            _exit(0);
        }
    } while (!strstr(line, verb));
}

static void child_sleep(void)
{
    for (;;) {
        pause();
    }
}

static void child_killed(void)
{
    child_await("\"list\"");
    raise(SIGKILL);
}

static void child_exits(void)
{
    child_await("\"list\"");
    _exit(CHILD_EXIT);
}

static void child_silent(void)
{
    child_await("\"list\"");
    child_sleep();
}

static void child_stubborn(void)
{
    signal(SIGTERM, SIG_IGN);
    child_await("\"list\"");
    child_say("{\"ok\":\"list\",\"gpus\":[]}\n");
    child_sleep();
}

static void child_garbage(void)
{
    child_await("\"list\"");
    child_say("{\"ok\":\"list\",\n");
    child_sleep();
}

static void child_stranger(void)
{
    child_await("\"list\"");
    child_say("{\"ok\":\"close\"}\n");
    child_sleep();
}

static void child_endless(void)
{
    static char block[1 << 20];

    child_await("\"list\"");
    memset(block, ' ', sizeof block);
    while (write(CHILD_FD, block, sizeof block) > 0) {
    }
    _exit(0);
}

static void child_busy_once(void)
{
    child_await("\"list\"");
    child_say("{\"error\":\"gpu-busy\",\"text\":\"another process computes\"}\n");
    child_await("\"list\"");
    child_say("{\"ok\":\"list\",\"gpus\":[]}\n");
    child_sleep();
}

static void child_last_words(void)
{
    child_await("\"run\"");
    child_say("{\"error\":\"deadline\",\"text\":\"the kernel hangs\"}\n");
    _exit(CHILD_EXIT);
}

/* Sends an error that contains the number of descriptors of this process. */
static void child_counts_descriptors(void)
{
    char text[80];
    int open_count = 0;

    child_await("\"list\"");
    for (int fd = 0; fd < 256; fd++) {
        open_count += fcntl(fd, F_GETFD) >= 0;
    }
    snprintf(text, sizeof text, "{\"error\":\"conflict\",\"text\":\"%d\"}\n", open_count);
    child_say(text);
    child_sleep();
}

static const struct {
    const char *name;
    void (*run)(void);
} child_modes[] = {
    {"killed", child_killed},         {"exits", child_exits},
    {"silent", child_silent},         {"stubborn", child_stubborn},
    {"garbage", child_garbage},       {"stranger", child_stranger},
    {"endless", child_endless},       {"busy-once", child_busy_once},
    {"last-words", child_last_words}, {"counts-descriptors", child_counts_descriptors},
};

static int child_main(void)
{
    const char *mode = getenv("REACH_TEST_WORKER");

    for (size_t i = 0; mode && i < sizeof child_modes / sizeof child_modes[0]; i++) {
        if (strcmp(mode, child_modes[i].name) == 0) {
            child_modes[i].run();
        }
    }
    return worker_main(CHILD_FD, CHILD_FD);
}

/* ---- the daemon's side ------------------------------------------------------------------- */

static const char *const simulated[] = {"k80", NULL};
static const struct gpu_options options = {.simulated = simulated};

static struct worker *start(const char *mode)
{
    struct worker *w = NULL;
    struct err err = {0};

    setenv("REACH_TEST_WORKER", mode, 1);
    assert_int_equal(worker_start("/proc/self/exe", &options, &w, &err), STATUS_OK);
    assert_non_null(w);
    return w;
}

/* The GPUs that a worker lists. */
struct listed {
    struct gpu_listed gpus[4];
    uint32_t count;
};

static void found(void *self, const struct gpu_listed *gpu)
{
    struct listed *const l = self;

    assert_true(l->count < 4);
    l->gpus[l->count++] = *gpu;
}

static enum status list(struct worker *w, nsec_t deadline, struct err *err)
{
    struct listed l = {.count = 0};

    return worker_list(w, deadline, found, &l, err);
}

static void stop_within(struct worker *w, nsec_t grace_ns)
{
    worker_stop(w, &(struct worker_timeouts){.grace_ns = grace_ns, .may_kill = true});
}

/* Stops the worker and checks that its process has ended and is not a zombie. */
static void stop(struct worker *w)
{
    pid_t pid = (pid_t)worker_pid(w);

    stop_within(w, strcmp(getenv("REACH_TEST_WORKER"), "real") == 0 ? GRACE : SHORT_GRACE);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
}

static const struct probe_spec *chase(void)
{
    static struct probe_spec spec;

    spec = (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = 2 << 20,
                               .point_count = 2,
                               .points = {4, 8},
                               .samples = 16,
                               .warm_laps = 2,
                               .sm_count = 1};
    return &spec;
}

static void test_measures_a_simulated_gpu(void **state)
{
    struct worker *w = start("real");
    struct gpu_identity opened;
    struct listed l = {.count = 0};
    struct gpu_limits limits = {0};
    struct observation o = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(worker_list(w, PLENTY, found, &l, &err), STATUS_OK);
    assert_int_equal(l.count, 1);
    assert_int_equal(l.gpus[0].error.status, STATUS_OK);
    assert_int_equal(l.gpus[0].identity.origin, ORIGIN_SIMULATED);
    assert_int_equal(worker_open(w, l.gpus[0].identity.uuid, PLENTY, &opened, &limits, &err),
                     STATUS_OK);
    assert_string_equal(opened.uuid, l.gpus[0].identity.uuid);
    assert_int_equal(limits.arena, ARENA_SIMULATED);
    assert_int_equal(worker_run(w, chase(), PLENTY, &o, &err), STATUS_OK);
    assert_int_equal(o.result.value_count, 32);
    assert_int_equal(o.spec.points[1], 8);
    assert_true(observation_chase(&o, 1)[15] > 0);
    observation_free(&o);
    stop(w);
}

/* Two requests in the pipe give two answers, in their order. */
static void test_two_questions_ahead(void **state)
{
    struct worker *w = start("real");
    struct listed l = {.count = 0};
    struct gpu_identity gpu;
    struct gpu_limits limits;
    struct probe_spec second = *chase();
    struct err err = {0};

    (void)state;
    second.samples = 8;
    assert_int_equal(worker_list(w, PLENTY, found, &l, &err), STATUS_OK);
    assert_int_equal(worker_open(w, l.gpus[0].identity.uuid, PLENTY, &gpu, &limits, &err),
                     STATUS_OK);
    assert_int_equal(worker_submit(w, chase(), PLENTY, &err), STATUS_OK);
    assert_int_equal(worker_submit(w, &second, PLENTY, &err), STATUS_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct observation o = {0};

        assert_int_equal(worker_await(w, PLENTY, &o, &err), STATUS_OK);
        assert_int_equal(o.spec.samples, i == 0 ? 16 : 8);
        observation_free(&o);
    }
    stop(w);
}

static void test_an_error_keeps_the_worker(void **state)
{
    struct worker *w = start("real");
    struct gpu_identity gpu;
    struct gpu_limits limits;
    struct observation o = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(worker_run(w, chase(), PLENTY, &o, &err), STATUS_CONFLICT);
    assert_non_null(strstr(err.text, "no GPU is open"));
    assert_int_equal(worker_open(w, "GPU-none", PLENTY, &gpu, &limits, &err), STATUS_NOT_FOUND);
    assert_int_equal(list(w, PLENTY, &err), STATUS_OK);
    stop(w);

    w = start("busy-once");
    assert_int_equal(list(w, PLENTY, &err), STATUS_GPU_BUSY);
    assert_string_equal(err.text, "another process computes");
    assert_int_equal(list(w, PLENTY, &err), STATUS_OK);
    stop(w);
}

static void test_a_dead_worker_is_a_lost_gpu(void **state)
{
    static const struct {
        const char *mode, *words, *next_step;
    } cases[] = {{"killed", "SIGKILL", "memory limit"}, {"exits", "exited with code 7", "Xid"}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct worker *w = start(cases[i].mode);
        struct err err = {0}, again = {0};

        assert_int_equal(list(w, PLENTY, &err), STATUS_GPU_LOST);
        assert_non_null(strstr(err.text, cases[i].words));
        assert_int_equal(list(w, PLENTY, &again), STATUS_GPU_LOST);
        assert_string_equal(err.text, again.text);
        assert_non_null(strstr(err_next_step(&err), cases[i].next_step));
        assert_string_equal(err_next_step(&err), err_next_step(&again));
        stop(w);
    }
}

/* If a worker exits, the error has the worker's reason, even if another request was already
 * sent. */
static void test_last_words_are_heard(void **state)
{
    struct worker *w = start("last-words");
    struct observation o = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(worker_submit(w, chase(), PLENTY, &err), STATUS_OK);
    assert_int_equal(worker_submit(w, chase(), PLENTY, &err), STATUS_OK);
    assert_int_equal(worker_await(w, PLENTY, &o, &err), STATUS_DEADLINE);
    assert_string_equal(err.text, "the kernel hangs");
    assert_int_equal(worker_await(w, PLENTY, &o, &err), STATUS_GPU_LOST);
    stop(w);
}

static void test_a_late_answer_ends_the_conversation(void **state)
{
    struct worker *w = start("silent");
    struct err err = {0};

    (void)state;
    assert_int_equal(list(w, SOON, &err), STATUS_DEADLINE);
    assert_int_equal(list(w, PLENTY, &err), STATUS_DEADLINE);
    stop(w);
}

static void test_broken_answers(void **state)
{
    static const char *const modes[] = {"garbage", "stranger", "endless"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct worker *w = start(modes[i]);
        struct err err = {0};

        assert_int_equal(list(w, PLENTY, &err), STATUS_PROTOCOL);
        assert_int_equal(list(w, PLENTY, &err), STATUS_PROTOCOL);
        stop(w);
    }
}

static void *cancel_soon(void *w)
{
    usleep(20 * 1000);
    worker_cancel(w);
    return NULL;
}

static void test_another_thread_cancels(void **state)
{
    struct worker *w = start("silent");
    struct err err = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, w), 0);
    assert_int_equal(list(w, PLENTY, &err), STATUS_CANCELLED);
    assert_int_equal(list(w, PLENTY, &err), STATUS_CANCELLED);
    pthread_join(thread, NULL);
    stop(w);
}

static void test_a_stubborn_worker_is_killed(void **state)
{
    struct worker *w = start("stubborn");
    struct err err = {0};
    pid_t pid = (pid_t)worker_pid(w);

    (void)state;
    assert_int_equal(list(w, PLENTY, &err), STATUS_OK);
    stop_within(w, SHORT_GRACE);
    assert_int_equal(kill(pid, 0), -1);
}

static void test_only_the_socket_is_inherited(void **state)
{
    int leak = open("/dev/null", O_RDONLY); /* not close-on-exec */
    struct worker *w = start("counts-descriptors");
    struct err err = {0};

    (void)state;
    assert_true(leak >= 0);
    assert_int_equal(list(w, PLENTY, &err), STATUS_CONFLICT);
    assert_string_equal(err.text, "4");
    stop(w);
    close(leak);
}

static void test_no_executable(void **state)
{
    struct worker *w = NULL;
    struct err err = {0};

    (void)state;
    if (test_emulated())
        skip(); /* under qemu-user, posix_spawn reports no failure of the program */
    assert_int_equal(worker_start("/nowhere/reachd", &options, &w, &err), STATUS_IO);
    assert_null(w);
    assert_non_null(strstr(err.text, "/nowhere/reachd"));
    stop_within(NULL, GRACE);
}

/* ---- worker_main by hand: lines in, lines out --------------------------------------------- */

/* Runs worker_main in a child with `input`. Returns the exit code, and writes the answers to
 * `output`. */
static int by_hand(const char *input, size_t length, char *output, size_t output_size)
{
    int in[2], out[2], status = 0;
    size_t n = 0;
    ssize_t got;

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        close(in[1]);
        close(out[0]);
        _exit(worker_main(in[0], out[1]));
    }
    close(in[0]);
    close(out[1]);
    assert_int_equal(write(in[1], input, length), (ssize_t)length);
    close(in[1]);
    while (n + 1 < output_size && (got = read(out[0], output + n, output_size - 1 - n)) > 0) {
        n += (size_t)got;
    }
    output[n] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_bad_messages(void **state)
{
    static const struct {
        const char *input;
        const char *answer; /* part of the expected answer */
        int exit_code;
    } cases[] = {
        {"", "", 0},
        {"{\"do\":\"close\"}\n", "{\"ok\":\"close\"}", 0},
        {"nonsense\n", "\"error\":\"protocol\"", 65},
        {"[1]\n", "a message is a JSON object", 65},
        {"{\"do\":\"close\",\"do\":\"close\"}\n", "\"error\":\"protocol\"", 65},
        {"{\"do\":\"close\"}", "the last line has no end", 65},
        {"{\"do\":\"dance\"}\n", "\\\"do\\\" must be", 0},
        {"{}\n", "\\\"do\\\" must be", 0},
        {"{\"do\":7}\n", "\\\"do\\\" must be", 0},
        {"{\"do\":\"list\",\"colour\":1}\n", "colour", 0},
        {"{\"do\":\"options\",\"simulated\":7}\n", "simulated", 0},
        {"{\"do\":\"options\",\"simulated\":[7]}\n", "simulated", 0},
        {"{\"do\":\"options\",\"libcuda\":7}\n", "libcuda", 0},
        {"{\"do\":\"options\",\"no_vmm\":7}\n", "no_vmm", 0},
        {"{\"do\":\"options\",\"deadline_ms\":-1}\n", "deadline_ms", 0},
        {"{\"do\":\"options\",\"deadline_ms\":4294967296}\n", "deadline_ms", 0},
        {"{\"do\":\"options\",\"memory_limit_bytes\":1.5}\n", "memory_limit_bytes", 0},
        {"{\"do\":\"options\",\"simulated\":[\"k80\"]}\n{\"do\":\"open\",\"uuid\":7}\n", "uuid", 0},
        {"{\"do\":\"options\",\"simulated\":[\"k80\"]}\n{\"do\":\"open\",\"uuid\":\"x\"}\n",
         "\"error\":\"not-found\"", 0},
        {"{\"do\":\"options\",\"simulated\":[\"k80\"]}\n{\"do\":\"run\"}\n", "no GPU is open", 0},
        {"{\"do\":\"options\",\"simulated\":[\"k80\"]}\n{\"do\":\"open\"}\n{\"do\":\"open\"}\n",
         "open already", 0},
        {"{\"do\":\"options\",\"simulated\":[\"k80\"]}\n{\"do\":\"open\"}\n"
         "{\"do\":\"options\"}\n",
         "close the GPU to change options", 0},
        {"{\"do\":\"options\",\"simulated\":[\"k80\"]}\n{\"do\":\"open\"}\n"
         "{\"do\":\"run\",\"probe\":{\"kind\":\"chase\"}}\n",
         "\"error\":\"protocol\"", 0},
    };
    char output[8192];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *input = cases[i].input;
        int code = by_hand(input, strlen(input), output, sizeof output);

        if (code != cases[i].exit_code || !strstr(output, cases[i].answer)) {
            print_error("%s-> %d %s\n", input, code, output);
        }
        assert_int_equal(code, cases[i].exit_code);
        assert_non_null(strstr(output, cases[i].answer));
    }
    assert_int_equal(by_hand("{\"do\":\"close\"}\0\n", 16, output, sizeof output), 65);
}

/* SIGTERM ends a waiting worker, which closes its GPU. The exit code is 0, so the signal does not
 * kill the process. */
static void test_sigterm_is_an_orderly_end(void **state)
{
    int pair[2], status = 0;
    char answer[4096];
    static const char hello[] = "{\"do\":\"options\",\"simulated\":[\"k80\"]}\n{\"do\":\"open\"}\n";

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    pid_t pid = fork();

    if (pid == 0) {
        close(pair[0]);
        _exit(worker_main(pair[1], pair[1]));
    }
    close(pair[1]);
    assert_int_equal(write(pair[0], hello, sizeof hello - 1), (ssize_t)(sizeof hello - 1));
    assert_true(read(pair[0], answer, sizeof answer) > 0);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(pair[0]);
}

/* ---- lines ------------------------------------------------------------------------------- */

static void test_lines_in_pieces(void **state)
{
    const struct jsonl_wait wait = {.until = JSONL_NO_DEADLINE, .wake_fd = -1};
    const struct jsonl_wait no_wait = {.until = 0, .wake_fd = -1};
    struct jsonl_reader reader = {0};
    char *line = NULL;
    size_t length = 0;
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    reader.fd = pair[0];
    assert_int_equal(write(pair[1], "one\n\ntwo\nthr", 12), 12);
    assert_int_equal(jsonl_read(&reader, &wait, &line, &length), JSONL_DONE);
    assert_string_equal(line, "one");
    assert_int_equal(jsonl_read(&reader, &wait, &line, &length), JSONL_DONE);
    assert_int_equal(length, 0);
    assert_int_equal(jsonl_read(&reader, &wait, &line, &length), JSONL_DONE);
    assert_string_equal(line, "two");
    assert_int_equal(jsonl_read(&reader, &no_wait, &line, &length), JSONL_TIMEOUT);
    assert_int_equal(write(pair[1], "ee\n", 3), 3);
    assert_int_equal(jsonl_read(&reader, &wait, &line, &length), JSONL_DONE);
    assert_string_equal(line, "three");
    close(pair[1]);
    assert_int_equal(jsonl_read(&reader, &wait, &line, &length), JSONL_END);
    jsonl_reader_free(&reader);
    close(pair[0]);
}

static void test_describe_an_end(void **state)
{
    char text[100];

    (void)state;
    assert_string_equal(reap_describe(3 << 8, text, sizeof text), "exited with code 3");
    assert_string_equal(reap_describe(SIGSEGV, text, sizeof text),
                        "was killed by SIGSEGV (Segmentation fault)");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measures_a_simulated_gpu),
        cmocka_unit_test(test_two_questions_ahead),
        cmocka_unit_test(test_an_error_keeps_the_worker),
        cmocka_unit_test(test_a_dead_worker_is_a_lost_gpu),
        cmocka_unit_test(test_last_words_are_heard),
        cmocka_unit_test(test_a_late_answer_ends_the_conversation),
        cmocka_unit_test(test_broken_answers),
        cmocka_unit_test(test_another_thread_cancels),
        cmocka_unit_test(test_a_stubborn_worker_is_killed),
        cmocka_unit_test(test_only_the_socket_is_inherited),
        cmocka_unit_test(test_no_executable),
        cmocka_unit_test(test_bad_messages),
        cmocka_unit_test(test_sigterm_is_an_orderly_end),
        cmocka_unit_test(test_lines_in_pieces),
        cmocka_unit_test(test_describe_an_end),
    };

    if (argc == 2 && strcmp(argv[1], "--worker") == 0) {
        return child_main();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
