/* test_api_reader.c: requests that read the database wait in a thread of their own, and no other
 * request waits. The database of these tests answers only when the test allows the answer. */
#include "tests/unit/support/api_fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HISTORY API_REQUEST("GET /v1/gpus/0/history", "")

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t entered; /* number of database calls that have begun */
    uint32_t allowed; /* number of database calls that may end */
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static enum status slow_history(void *self, const char *uuid, int64_t before, uint32_t limit,
                                struct json_writer *out, struct err *err)
{
    uint32_t mine;

    (void)self;
    (void)uuid;
    (void)before;
    (void)limit;
    (void)err;
    pthread_mutex_lock(&gate.mutex);
    mine = ++gate.entered;
    pthread_cond_broadcast(&gate.changed);
    while (gate.allowed < mine)
        pthread_cond_wait(&gate.changed, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
    json_writer_open(out, NULL, '{');
    json_writer_open(out, "fingerprints", '[');
    json_writer_close(out, ']');
    json_writer_null(out, "next");
    json_writer_close(out, '}');
    return STATUS_OK;
}

static void allow(uint32_t calls)
{
    pthread_mutex_lock(&gate.mutex);
    gate.allowed = calls;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.mutex);
}

static int set_up(void **state)
{
    struct api_fixture *f;

    api_set_up(state);
    f = *state;
    f->backend.history = slow_history;
    gate.entered = 0;
    gate.allowed = 0;
    return 0;
}

/* Sends the request and waits until the server has read it. */
static int ask_history(struct api_fixture *f)
{
    int fd = api_dial(f);

    api_send(f, fd, HISTORY, strlen(HISTORY));
    while (api_pump(f, -1, 0)) {
    }
    return fd;
}

static void await_entry(uint32_t calls)
{
    pthread_mutex_lock(&gate.mutex);
    while (gate.entered < calls)
        pthread_cond_wait(&gate.changed, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
}

static void expect_answer(struct api_fixture *f, int fd)
{
    struct api_answer a;

    api_read(f, fd, false, &a);
    assert_int_equal(a.status, 200);
    assert_true(strstr(a.head, "X-Request-Id: ") != NULL);
    assert_true(a.body && strstr(a.body, "\"fingerprints\":[]"));
    free(a.body);
    close(fd);
}

static void test_reading_stops_nobody(void **state)
{
    struct api_fixture *f = *state;
    int fd = ask_history(f);
    char byte;

    await_entry(1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(api_status_of(f, API_REQUEST("GET /healthz", "")), 200);
        assert_int_equal(api_status_of(f, API_REQUEST("GET /v1/gpus/0/fingerprint", "")), 200);
        /* A refused request does not need the database. */
        assert_int_equal(api_status_of(f, API_REQUEST("GET /v1/gpus/0/history?limit=x", "")), 400);
    }
    assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) < 0);
    allow(1);
    expect_answer(f, fd);
}

static void test_all_are_answered(void **state)
{
    struct api_fixture *f = *state;
    enum { COUNT = 40 };
    int fds[COUNT];

    for (int i = 0; i < COUNT; i++)
        fds[i] = ask_history(f);
    await_entry(1);
    allow(COUNT);
    for (int i = COUNT - 1; i >= 0; i--)
        expect_answer(f, fds[i]);
}

/* The connection is reused, and bytes of the next request may already have arrived. */
static void test_keeps_the_connection(void **state)
{
    static const char two[] = HISTORY API_REQUEST("GET /nowhere", "Connection: close\r\n");
    struct api_fixture *f = *state;
    int fd = api_dial(f);
    struct api_answer a;

    allow(3);
    for (int i = 0; i < 2; i++) {
        api_send(f, fd, HISTORY, strlen(HISTORY));
        api_read(f, fd, false, &a);
        assert_int_equal(a.status, 200);
        free(a.body);
    }
    api_send(f, fd, two, strlen(two));
    while (api_pump(f, -1, 100)) {
    }
    api_read(f, fd, false, &a);
    assert_int_equal(a.status, 200);
    assert_true(strstr(a.body, "no path /nowhere") !=
                NULL); /* the second request arrived in the same read */
    free(a.body);
    close(fd);
}

static void test_client_leaves(void **state)
{
    struct api_fixture *f = *state;
    int fd = ask_history(f);

    await_entry(1);
    close(fd);
    assert_int_equal(api_status_of(f, API_REQUEST("GET /healthz", "")), 200);
    allow(2);
    while (api_pump(f, -1, 50)) {
    }
    expect_answer(f, ask_history(f));
}

/* The deadline closes the connection, although the reader cannot be interrupted. */
static void test_deadline(void **state)
{
    struct api_fixture *f = *state;
    struct api_answer a;
    int fd;

    api_restart(f, NSEC_PER_SEC,
                0); /* a deadline that is long enough for the request to reach the reader */
    fd = ask_history(f);
    await_entry(1);
    while (api_pump(f, fd, API_HANG_MS)) {
        char byte;
        if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0)
            break;
    }
    allow(1);
    api_read(f, fd, false, &a);
    assert_int_equal(a.status, 0);
    assert_true(a.closed);
    close(fd);
    assert_int_equal(api_status_of(f, API_REQUEST("GET /healthz", "")), 200);
}

/* Returns whether the first thread of this process is asleep. */
static bool main_waits(void)
{
    char text[256] = "";
    char path[64];
    FILE *file;
    const char *name_end;

    /* qemu-user writes a /proc/self/stat of its own, which has no state. */
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
    file = fopen(path, "re");
    assert_non_null(file);
    (void)!fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

/* Allows the call only when the server, at its end, waits for the reader. */
static void *allow_late(void *arg)
{
    (void)arg;
    while (!main_waits())
        usleep(1000);
    allow(1);
    return NULL;
}

static void test_stops_while_it_reads(void **state)
{
    struct api_fixture *f = *state;
    int under_way = ask_history(f);
    int queued = ask_history(f);
    pthread_t late;

    await_entry(1);
    api_server_finish(f->server); /* waits for answers for a while, then continues without them */
    assert_int_equal(pthread_create(&late, NULL, allow_late, NULL), 0);
    api_restart(f, 0, 0);
    pthread_join(late, NULL);
    assert_int_equal(gate.entered, 1); /* the reader did not begin the queued request */
    assert_int_equal(api_status_of(f, API_REQUEST("GET /healthz", "")), 200);
    close(under_way);
    close(queued);
}

static void test_reader_moves(void **state)
{
    struct api_fixture *f = *state;
    int fd;

    assert_true(
        api_server_db_thread_is_alive(f->server)); /* the thread of the reader does not exist yet */
    fd = ask_history(f);
    await_entry(1);
    (void)api_server_db_thread_is_alive(f->server);
    assert_false(api_server_db_thread_is_alive(f->server));
    allow(1);
    expect_answer(f, fd);
    while (!api_server_db_thread_is_alive(f->server))
        usleep(1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reading_stops_nobody, set_up, api_tear_down),
        cmocka_unit_test_setup_teardown(test_all_are_answered, set_up, api_tear_down),
        cmocka_unit_test_setup_teardown(test_keeps_the_connection, set_up, api_tear_down),
        cmocka_unit_test_setup_teardown(test_client_leaves, set_up, api_tear_down),
        cmocka_unit_test_setup_teardown(test_deadline, set_up, api_tear_down),
        cmocka_unit_test_setup_teardown(test_stops_while_it_reads, set_up, api_tear_down),
        cmocka_unit_test_setup_teardown(test_reader_moves, set_up, api_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
