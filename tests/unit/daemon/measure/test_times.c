/* test_times.c: the times of a measurement are summed for each kind of probe and logged. */
#include "measure/times.h"

#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES = 4096 };

static struct observation answer(enum probe_kind kind, nsec_t all_ns, nsec_t memory_ns)
{
    return (struct observation){
        .spec.kind = kind,
        .result.conditions.duration_ns = all_ns,
        .result.time = {memory_ns, 3, 5, 7},
    };
}

static void test_rows(void **state)
{
    struct measure_times t = {0};
    struct observation chase = answer(PROBE_CHASE, 100, 40);
    struct observation runs = answer(PROBE_READ, 1000, 900);
    struct observation pinned = answer(PROBE_READ, 50, 0);

    (void)state;
    runs.spec.run_bytes = 1;
    pinned.spec.memory = MEMORY_HOST_PINNED;
    measure_times_add(&t, &chase);
    measure_times_add(&t, &chase);
    measure_times_add(&t, &runs);
    measure_times_add(&t, &pinned);
    assert_int_equal(t.rows[PROBE_CHASE].probes, 2);
    assert_int_equal(t.rows[PROBE_CHASE].device_ns, 120);
    assert_int_equal(t.rows[PROBE_CHASE].time.memory_ns, 80);
    assert_int_equal(t.rows[PROBE_CHASE].time.query_ns, 6);
    assert_int_equal(t.rows[PROBE_CHASE].time.messages_ns, 10);
    assert_int_equal(t.rows[PROBE_CHASE].time.idle_ns, 14);
    assert_int_equal(t.rows[PROBE_READ].probes, 0);
    assert_int_equal(t.rows[PROBE_KIND_COUNT].device_ns, 100);
    assert_int_equal(t.rows[PROBE_KIND_COUNT + 1 + MEMORY_HOST_PINNED].device_ns, 50);
}

/* Runs measure_times_log in a child, because a process chooses the destination of its log once. */
static void logged(const struct measure_times *t, char *out)
{
    int ends[2];
    int status = 0;
    size_t used = 0;
    ssize_t n;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        unsetenv("JOURNAL_STREAM");
        if (dup2(ends[1], STDERR_FILENO) < 0)
            _exit(1);
        log_set_format(LOG_FORMAT_TEXT);
        log_set_level(LOG_LEVEL_DEBUG);
        measure_times_log(t, "GPU-0");
        _exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], out + used, TEXT_BYTES - 1 - used)) > 0)
        used += (size_t)n;
    out[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static struct measure_times_row row_of_ms(uint32_t probes, nsec_t device, nsec_t memory,
                                          nsec_t query, nsec_t messages, nsec_t idle)
{
    return (struct measure_times_row){.probes = probes,
                                      .device_ns = device * NSEC_PER_MSEC,
                                      .time = {memory * NSEC_PER_MSEC, query * NSEC_PER_MSEC,
                                               messages * NSEC_PER_MSEC, idle * NSEC_PER_MSEC}};
}

static const char LINES[] =
    "debug: gpu GPU-0: time of chase                          2 probes, ms: device    10.0, "
    "memory    20.0, queries   30.0, messages   40.0, waiting for the next   50.0\n"
    "debug: gpu GPU-0: time of runs                           3 probes, ms: device   100.0, "
    "memory   200.0, queries  300.0, messages  400.0, waiting for the next  500.0\n"
    "debug: gpu GPU-0: time of host-pinned memory             4 probes, ms: device  1000.0, "
    "memory  2000.0, queries 3000.0, messages 4000.0, waiting for the next 5000.0\n"
    "debug: gpu GPU-0: time of all                            9 probes, ms: device  1110.0, "
    "memory  2220.0, queries 3330.0, messages 4440.0, waiting for the next 5550.0\n"
    "debug: gpu GPU-0: time of the daemon, ms: open 1.0, probes 2.0 (8 steps: choose 5.0, "
    "store 6.0, await 7.0), derive 3.0, close 4.0\n";

/* The log has a line for each kind of probe that was made, a line with their sum, and a line for
 * the daemon. Each time is in its own line. */
static void test_log_lines(void **state)
{
    struct measure_times t = {.open_ns = 1 * NSEC_PER_MSEC,
                              .probe_ns = 2 * NSEC_PER_MSEC,
                              .derive_ns = 3 * NSEC_PER_MSEC,
                              .close_ns = 4 * NSEC_PER_MSEC,
                              .choose_ns = 5 * NSEC_PER_MSEC,
                              .store_ns = 6 * NSEC_PER_MSEC,
                              .await_ns = 7 * NSEC_PER_MSEC,
                              .steps = 8};
    char text[TEXT_BYTES];

    (void)state;
    t.rows[PROBE_CHASE] = row_of_ms(2, 10, 20, 30, 40, 50);
    t.rows[PROBE_KIND_COUNT] = row_of_ms(3, 100, 200, 300, 400, 500);
    t.rows[PROBE_KIND_COUNT + 1 + MEMORY_HOST_PINNED] = row_of_ms(4, 1000, 2000, 3000, 4000, 5000);
    logged(&t, text);
    assert_string_equal(text, LINES);
}

/* If a worker reports more time for memory than for the whole probe, the difference does not wrap
 * to a huge number. */
static void test_never_negative(void **state)
{
    struct measure_times t = {0};
    const struct observation odd = answer(PROBE_ROUND, 10, 11);

    (void)state;
    measure_times_add(&t, &odd);
    assert_int_equal(t.rows[PROBE_ROUND].device_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_log_lines),
        cmocka_unit_test(test_never_negative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
