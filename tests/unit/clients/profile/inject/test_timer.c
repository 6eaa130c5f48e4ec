/* test_timer.c: marks and watches over a GPU that stops and goes as a test wants. */
#include "clients/profile/inject/timer.h"

#include "base/clock.h"
#include "tests/unit/clients/profile/inject/fake_api.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>

enum { MARKS = 256, CONTEXTS = 16, THREADS = 4 };

static _Atomic uint64_t times[THREADS * 1000];
static _Atomic unsigned done_count;

static void note_time(void *what, uint64_t ns)
{
    atomic_store((_Atomic uint64_t *)what, ns);
    atomic_fetch_add(&done_count, 1);
}

static void wait_for(unsigned count)
{
    while (atomic_load(&done_count) < count)
        sched_yield();
}

static int start(void **state)
{
    struct err err;
    (void)state;
    return timer_start(&fake_api, &err) == STATUS_OK ? 0 : -1;
}

static void marks_are_reached_when_the_gpu_writes_them(void **state)
{
    int a, b;

    (void)state;
    fake_stop();
    a = timer_mark(fake_context(0), fake_stream(1));
    b = timer_mark(fake_context(0), fake_stream(2));
    assert_true(a >= 0 && b >= 0 && a != b);
    assert_false(timer_is_reached(a));
    fake_go_in(fake_stream(1));
    assert_true(timer_is_reached(a));
    assert_false(timer_is_reached(b));
    fake_go();
    assert_true(timer_is_reached(b));
    timer_free_mark(a);
    timer_free_mark(b);
    timer_free_mark(-1);
}

static void a_time_is_reported_once(void **state)
{
    const unsigned before = atomic_load(&done_count);
    int begin, end;

    (void)state;
    fake_stop();
    begin = timer_mark(fake_context(0), fake_stream(1));
    end = timer_mark(fake_context(0), fake_stream(2));
    timer_watch(begin, 0, end, note_time, &times[0]);
    timer_wait(); /* ends by its limit */
    assert_int_equal(done_count, before);
    fake_go_in(fake_stream(1));
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    fake_go();
    wait_for(before + 1);
    assert_in_range(times[0], 1000000, UINT64_MAX);
    timer_wait();
}

/* The thread of the timer may sleep while a launch begins. */
static void a_time_begins_when_the_caller_has_seen_the_mark(void **state)
{
    const unsigned before = atomic_load(&done_count);
    int begin, end;

    (void)state;
    fake_stop();
    begin = timer_mark(fake_context(0), fake_stream(1));
    assert_int_equal(timer_see(begin), 0);
    fake_go_in(fake_stream(1));
    const uint64_t seen_ns = timer_see(begin);
    assert_true(seen_ns > 0 && seen_ns <= clock_monotonic());
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    end = timer_mark(fake_context(0), fake_stream(1));
    timer_watch(begin, seen_ns, end, note_time, &times[0]);
    fake_go();
    wait_for(before + 1);
    assert_in_range(times[0], 30000000, UINT64_MAX);
    timer_wait();
}

/* A freed mark that the GPU has not written is not used, so a late write does no harm. */
static void marks_are_used_again_after_the_gpu_has_written_them(void **state)
{
    int marks[MARKS];

    (void)state;
    fake_stop();
    for (int i = 0; i < MARKS; i++) {
        marks[i] = timer_mark(fake_context(0), fake_stream(i % 2));
        assert_true(marks[i] >= 0);
    }
    assert_int_equal(timer_mark(fake_context(0), fake_stream(0)), -1);
    for (int i = 0; i < MARKS; i++)
        timer_free_mark(marks[i]);
    assert_int_equal(timer_mark(fake_context(0), fake_stream(0)), -1);
    fake_go_in(fake_stream(1));
    for (int i = 0; i < MARKS / 2; i++) {
        marks[i] = timer_mark(fake_context(0), fake_stream(2));
        assert_true(marks[i] >= 0);
        assert_false(timer_is_reached(marks[i]));
    }
    assert_int_equal(timer_mark(fake_context(0), fake_stream(0)), -1);
    fake_go_in(fake_stream(0));
    for (int i = 0; i < MARKS / 2; i++) {
        assert_false(timer_is_reached(marks[i]));
        timer_free_mark(marks[i]);
    }
    fake_go();
}

static void calls_that_fail_give_no_mark(void **state)
{
    int mark;

    (void)state;
    for (int i = 0; i < 2 * MARKS; i++) { /* no mark is lost */
        fake_fail("mark", 1);
        assert_int_equal(timer_mark(fake_context(0), fake_stream(0)), -1);
    }
    fake_fail("alloc_host", 1);
    assert_int_equal(timer_mark(fake_context(1), fake_stream(0)), -1);
    mark = timer_mark(fake_context(1), fake_stream(0));
    assert_true(mark >= 0);
    timer_free_mark(mark);
}

/* The memory of a destroyed context is freed, and AddressSanitizer finds a later read. */
static void nothing_reads_the_memory_of_a_destroyed_context(void **state)
{
    const unsigned before = atomic_load(&done_count);
    int mark, begin, end, other;

    (void)state;
    fake_stop();
    other = timer_mark(fake_context(3), fake_stream(2));
    mark = timer_mark(fake_context(2), fake_stream(1));
    begin = timer_mark(fake_context(2), fake_stream(1));
    end = timer_mark(fake_context(2), fake_stream(1));
    fake_go_in(fake_stream(1));
    times[1] = 99;
    {
        const int late = timer_mark(fake_context(2), fake_stream(1));
        timer_watch(begin, 0, late, note_time, &times[1]);
    }
    timer_free_mark(end);
    timer_forget(fake_context(2));
    fake_destroy_context(fake_context(2));
    wait_for(before + 1);
    assert_int_equal(times[1], 0);
    assert_true(timer_is_reached(mark));
    assert_false(timer_is_reached(other));
    timer_free_mark(mark);
    timer_free_mark(other);
    fake_go();
    mark = timer_mark(fake_context(2), fake_stream(1)); /* another context with this handle */
    assert_true(timer_is_reached(mark));
    timer_free_mark(mark);
}

static void more_contexts_than_places_have_no_marks(void **state)
{
    int count = 0;

    (void)state;
    for (int i = 0; i < 2 * CONTEXTS; i++) {
        const int mark = timer_mark(fake_context(i), fake_stream(0));
        count += mark >= 0;
        timer_free_mark(mark);
    }
    assert_int_equal(count, CONTEXTS);
    for (int i = 0; i < 2 * CONTEXTS; i++) {
        timer_forget(fake_context(i));
        fake_destroy_context(fake_context(i));
    }
    assert_int_equal(fake.misuses, 0);
}

static void *time_often(void *number)
{
    const int thread = (int)(uintptr_t)number;
    for (int i = 0; i < 1000; i++) {
        const int begin = timer_mark(fake_context(thread % 2), fake_stream(thread));
        const int end = timer_mark(fake_context(thread % 2), fake_stream(thread));
        if (begin >= 0 && end >= 0) {
            timer_watch(begin, 0, end, note_time, &times[thread * 1000 + i]);
        } else {
            timer_free_mark(begin);
            timer_free_mark(end);
            note_time(&times[thread * 1000 + i], 0);
        }
        if (i % 100 == 0)
            timer_wait();
    }
    return NULL;
}

static void threads_share_the_timer(void **state)
{
    const unsigned before = atomic_load(&done_count);
    pthread_t threads[THREADS];

    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, time_often, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    wait_for(before + THREADS * 1000);
}

/* Must be the last test. */
static void nothing_is_timed_at_the_end(void **state)
{
    const unsigned before = atomic_load(&done_count);
    int begin, end;

    (void)state;
    fake_stop();
    begin = timer_mark(fake_context(0), fake_stream(0));
    end = timer_mark(fake_context(0), fake_stream(0));
    timer_watch(begin, 0, end, note_time, &times[2]);
    timer_end();
    for (int i = 0; i < 2; i++)
        fake_destroy_context(fake_context(i));
    wait_for(before + 1);
    assert_int_equal(times[2], 0);
    assert_int_equal(timer_mark(fake_context(0), fake_stream(0)), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_reached_when_the_gpu_writes_them),
        cmocka_unit_test(a_time_is_reported_once),
        cmocka_unit_test(a_time_begins_when_the_caller_has_seen_the_mark),
        cmocka_unit_test(marks_are_used_again_after_the_gpu_has_written_them),
        cmocka_unit_test(calls_that_fail_give_no_mark),
        cmocka_unit_test(nothing_reads_the_memory_of_a_destroyed_context),
        cmocka_unit_test(more_contexts_than_places_have_no_marks),
        cmocka_unit_test(threads_share_the_timer),
        cmocka_unit_test(nothing_is_timed_at_the_end),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
