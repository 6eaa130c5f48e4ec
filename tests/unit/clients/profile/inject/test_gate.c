/* test_gate.c: threads in launch calls, streams and captures, over a GPU that stops and goes as a
 * test wants. */
#include "clients/profile/inject/gate.h"

#include "base/clock.h"
#include "clients/profile/inject/timer.h"
#include "tests/unit/clients/profile/inject/fake_api.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>

enum { THREADS = 4, LAUNCHES = 2000, STREAMS = 300 };

static int start(void **state)
{
    struct err err;
    (void)state;
    return timer_start(&fake_api, &err) == STATUS_OK ? 0 : -1;
}

/* Closes the gate. After a failure, the gate stays open for some seconds. */
static void close_gate(san_context context)
{
    while (!gate_close(context))
        sched_yield();
}

/* Tries to close the gate, until an attempt is not refused at once. */
static bool try_to_close(san_context context)
{
    for (;;) {
        const nsec_t begin = clock_monotonic();
        if (gate_close(context))
            return true;
        if (clock_monotonic() - begin >= NSEC_PER_SEC / 2)
            return false;
        sched_yield();
    }
}

/* ---- a thread in a launch call ---- */

static atomic_bool is_inside, may_leave, has_left;

static void *launch_slowly(void *unused)
{
    (void)unused;
    gate_enter();
    atomic_store(&is_inside, true);
    while (!atomic_load(&may_leave))
        sched_yield();
    (void)gate_leave();
    atomic_store(&has_left, true);
    return NULL;
}

static pthread_t start_launch(void)
{
    pthread_t thread;
    atomic_store(&may_leave, false);
    atomic_store(&is_inside, false);
    atomic_store(&has_left, false);
    assert_int_equal(pthread_create(&thread, NULL, launch_slowly, NULL), 0);
    return thread;
}

static void end_launch(pthread_t thread)
{
    atomic_store(&may_leave, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *let_leave(void *unused)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    atomic_store(&may_leave, true);
    return NULL;
}

static void closing_waits_for_threads_in_launch_calls(void **state)
{
    const pthread_t thread = start_launch();
    pthread_t other;

    (void)state;
    while (!atomic_load(&is_inside))
        sched_yield();
    assert_int_equal(pthread_create(&other, NULL, let_leave, NULL), 0);
    close_gate(fake_context(0));
    assert_true(atomic_load(&may_leave));
    gate_open();
    end_launch(thread);
    assert_int_equal(pthread_join(other, NULL), 0);
}

static void threads_wait_while_the_gate_is_closed(void **state)
{
    pthread_t thread;

    (void)state;
    close_gate(fake_context(0));
    thread = start_launch();
    assert_false(gate_close(fake_context(0))); /* it is closed already */
    gate_enter();                              /* the owner may launch */
    assert_false(gate_leave());
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_false(atomic_load(&is_inside));
    gate_open();
    while (!atomic_load(&is_inside))
        sched_yield();
    end_launch(thread);
}

static void a_thread_closes_the_gate_in_its_own_call(void **state)
{
    (void)state;
    gate_enter();
    gate_enter(); /* one launch call in another */
    close_gate(fake_context(0));
    gate_open();
    assert_false(gate_leave());
    assert_true(gate_leave());
    assert_false(gate_leave()); /* the begin of this call was not reported */
    close_gate(fake_context(0));
    gate_open();
}

static void the_gate_stays_open_in_captures(void **state)
{
    (void)state;
    gate_capture_ends(); /* of no capture */
    assert_false(gate_is_capturing());
    gate_capture_begins();
    gate_capture_begins();
    assert_true(gate_is_capturing());
    assert_false(gate_close(fake_context(0)));
    gate_capture_ends();
    assert_false(gate_close(fake_context(0)));
    gate_capture_ends();
    close_gate(fake_context(0));
    gate_open();
}

static void calls_whose_end_is_not_reported_are_forgotten(void **state)
{
    pthread_t thread = start_launch();

    (void)state;
    gate_enter();
    while (!atomic_load(&is_inside))
        sched_yield();
    gate_reset();
    close_gate(fake_context(0));
    gate_open();
    end_launch(thread); /* leaves a call that nothing counts any more */
    assert_false(gate_leave());
    thread = start_launch();
    while (!atomic_load(&is_inside))
        sched_yield();
    assert_false(try_to_close(fake_context(0)));
    end_launch(thread);
}

/* ---- streams ---- */

static void *go_soon(void *unused)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    fake_go();
    return NULL;
}

static void closing_waits_for_each_stream(void **state)
{
    pthread_t thread;

    (void)state;
    for (int i = 0; i < STREAMS; i++)
        gate_saw_stream(fake_context(1), fake_stream(i), fake_stream(i));
    close_gate(fake_context(1));
    gate_open();
    for (int i = 0; i < STREAMS; i += 2) { /* their last work counts too */
        if (i == 200)
            fake_stop();
        gate_destroys_stream(fake_stream(i));
    }
    assert_int_equal(pthread_create(&thread, NULL, go_soon, NULL), 0);
    close_gate(fake_context(1));
    assert_false(atomic_load(&fake.is_stopped));
    gate_open();
    assert_int_equal(pthread_join(thread, NULL), 0);
    gate_forget_streams(fake_context(1));
}

static void streams_of_destroyed_contexts_are_not_used(void **state)
{
    unsigned calls;

    (void)state;
    for (int i = 0; i < 10; i++)
        gate_saw_stream(fake_context(2), fake_stream(i), fake_stream(i));
    gate_forget_streams(fake_context(2));
    calls = atomic_load(&fake.calls);
    gate_destroys_stream(fake_stream(3));
    close_gate(fake_context(2));
    gate_open();
    assert_int_equal(fake.calls, calls);
    gate_saw_stream(fake_context(2), fake_stream(9), fake_stream(9)); /* it is seen anew */
    close_gate(fake_context(2));
    gate_open();
    assert_true(atomic_load(&fake.calls) > calls);
    gate_forget_streams(fake_context(2));
}

/* A new stream can have the handle of a destroyed stream. */
static void destroyed_streams_hold_no_marks(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        gate_saw_stream(fake_context(3), fake_stream(7), fake_stream(7));
        gate_destroys_stream(fake_stream(7));
    }
    for (int i = 0; i < 200; i++)
        assert_true(timer_mark(fake_context(4), fake_stream(0)) >= 0);
    for (int i = 0; i < 4; i++)
        timer_forget(fake_context(i));
    gate_forget_streams(fake_context(3));
}

/* ---- threads ---- */

static _Atomic int launching;
static _Atomic unsigned closed_count, problems;

static void *launch_often(void *number)
{
    const int thread = (int)(uintptr_t)number;
    for (int i = 0; i < LAUNCHES; i++) {
        const int stream = 10 * thread + i % 10;
        gate_enter();
        atomic_fetch_add(&launching, 1);
        gate_saw_stream(fake_context(0), fake_stream(stream), fake_stream(stream));
        atomic_fetch_sub(&launching, 1);
        if (i % 100 == 0 && gate_close(fake_context(0))) {
            atomic_fetch_add(&problems, atomic_load(&launching) != 0);
            atomic_fetch_add(&closed_count, 1);
            gate_open();
        }
        if (i % 50 == 0)
            gate_destroys_stream(fake_stream(stream));
        (void)gate_leave();
    }
    return NULL;
}

static void only_the_owner_is_inside(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(problems, 0);
    assert_true(closed_count > 0);
    close_gate(fake_context(0));
    gate_open();
}

/* ---- limits: each failure makes the next attempt rarer, so these tests are the last ---- */

static void closing_has_a_limit_for_launch_calls(void **state)
{
    const pthread_t thread = start_launch();

    (void)state;
    while (!atomic_load(&is_inside))
        sched_yield();
    assert_false(try_to_close(fake_context(0)));
    end_launch(thread);
    assert_false(gate_close(fake_context(0))); /* the next attempt comes later */
    gate_enter();                              /* the gate is open */
    assert_true(gate_leave());
    close_gate(fake_context(0));
    gate_open();
}

static void closing_has_a_limit_for_the_gpu(void **state)
{
    (void)state;
    gate_saw_stream(fake_context(5), fake_stream(5), fake_stream(5));
    fake_stop();
    assert_false(try_to_close(fake_context(5)));
    fake_go();
    fake_fail("mark", 1); /* a stream that takes no mark is not known to be idle */
    while (atomic_load(&fake.failures) > 0)
        assert_false(gate_close(fake_context(5)));
    close_gate(fake_context(5));
    gate_open();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_waits_for_threads_in_launch_calls),
        cmocka_unit_test(threads_wait_while_the_gate_is_closed),
        cmocka_unit_test(a_thread_closes_the_gate_in_its_own_call),
        cmocka_unit_test(the_gate_stays_open_in_captures),
        cmocka_unit_test(closing_waits_for_each_stream),
        cmocka_unit_test(streams_of_destroyed_contexts_are_not_used),
        cmocka_unit_test(destroyed_streams_hold_no_marks),
        cmocka_unit_test(only_the_owner_is_inside),
        cmocka_unit_test(calls_whose_end_is_not_reported_are_forgotten),
        cmocka_unit_test(closing_has_a_limit_for_launch_calls),
        cmocka_unit_test(closing_has_a_limit_for_the_gpu),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
