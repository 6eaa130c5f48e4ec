/* test_end.c: the end of the process in a handler of a signal, which may have stopped a thread that
 * has a lock. Children of the test call a function that takes the lock again and again, until the
 * handler ends them. */
#include "clients/profile/inject/recorder.h"
#include "clients/profile/inject/timer.h"
#include "clients/profile/inject/writer.h"

#include "base/clock.h"
#include "tests/share.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 24, FIRST_US = 2000, STEP_US = 313 };
#define LONGEST_NS (45 * NSEC_PER_SEC)

static void (*end_child)(void);

static void on_signal(int number)
{
    (void)number;
    end_child();
    _exit(0);
}

static void __attribute__((noreturn)) run_child(int number, void (*use)(void))
{
    const struct itimerval after = {.it_value.tv_usec = FIRST_US + number * STEP_US};

    (void)signal(SIGALRM, on_signal);
    (void)setitimer(ITIMER_REAL, &after, NULL);
    for (;;)
        use();
}

static void check_end(void (*use)(void), void (*end)(void))
{
    const uint64_t begin = clock_monotonic();
    pid_t children[CHILDREN];
    int hanging = 0;

    if (TEST_SANITIZED)
        skip(); /* a sanitizer runs handlers where no lock is held */
    end_child = end;
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            run_child(i, use);
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status = 0;
        pid_t ended;
        while ((ended = waitpid(children[i], &status, WNOHANG)) == 0 &&
               clock_monotonic() - begin < LONGEST_NS)
            nanosleep(&(struct timespec){.tv_nsec = NSEC_PER_MSEC}, NULL);
        if (ended == 0) {
            (void)kill(children[i], SIGKILL);
            (void)waitpid(children[i], &status, 0);
            hanging++;
        } else {
            assert_int_equal(status, 0);
        }
    }
    assert_int_equal(hanging, 0);
}

static void use_recorder(void)
{
    (void)recorder_has_context(NULL);
}

static void the_recorder_ends(void **state)
{
    (void)state;
    check_end(use_recorder, recorder_end);
}

static void use_timer(void)
{
    (void)timer_is_reached(0);
}

static void the_timer_ends(void **state)
{
    (void)state;
    check_end(use_timer, timer_end);
}

static void use_writer(void)
{
    static bool is_started;
    struct err err;

    if (!is_started)
        assert_int_equal(writer_start("/nowhere", &err), STATUS_OK);
    is_started = true;
    writer_problem("the test uses the lock");
}

static void the_writer_ends(void **state)
{
    (void)state;
    check_end(use_writer, writer_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recorder_ends),
        cmocka_unit_test(the_timer_ends),
        cmocka_unit_test(the_writer_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
