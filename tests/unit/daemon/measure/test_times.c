/* test_times.c: the times of a measurement are summed by what was probed. */
#include "measure/times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

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
    measure_times_log(&t, "GPU-0"); /* without a probe in most rows */
}

/* A worker that reports more time for memory than for the whole probe gives no huge number. */
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
        cmocka_unit_test(test_never_negative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
