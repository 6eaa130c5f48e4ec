/* test_kernels.c: counted launches, and the choice of launches to time and to record. The table
 * belongs to the process, so each test launches kernels of its own names. */
#include "clients/profile/inject/kernels.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND 1000000000u

static const struct kernel_limits generous = {.launches = 3, .tool_ns = 1000ull * SECOND};
static const uint32_t block[3] = {64, 1, 1};
static unsigned seed;
static _Atomic unsigned problems; /* that threads have found */

static void start(const struct kernel_limits *limits)
{
    kernels_start(limits);
}

/* A launch with `blocks` blocks. */
struct launch {
    struct kernel *kernel;
    uint32_t shape;
    enum kernel_step step;
};

static struct launch launch_with(const char *name, uint32_t blocks, bool in_graph, bool is_ready)
{
    const uint32_t grid[3] = {blocks, 1, 1};
    struct launch l = {.shape = KERNEL_SHAPES};
    l.kernel = kernels_launch(name, name, 0, grid, block, in_graph, is_ready, &l.shape, &l.step);
    return l;
}

static struct launch launch(const char *name)
{
    return launch_with(name, 100, false, false);
}

/* Copies the kernel of a name; the state of the test is as good as what the writer gets. */
static struct kernel get(const char *name)
{
    struct kernel k;
    for (uint32_t i = 0; kernels_get(i, &k); i++) {
        if (strcmp(k.name, name) == 0)
            return k;
    }
    fail_msg("there is no kernel %s", name);
    return k;
}

static void short_launches_are_timed_three_times_then_recorded(void **state)
{
    (void)state;
    start(&generous);
    for (int i = 0; i < 3; i++) {
        const struct launch l = launch("short");
        const uint64_t before = kernels_changes();
        assert_int_equal(l.step, KERNEL_TIME);
        kernels_timed(l.kernel, l.shape, 50000);
        assert_true(kernels_changes() > before);
    }
    for (int i = 0; i < 3; i++) { /* a recorded shape is not recorded again */
        const struct launch l = launch("short");
        assert_int_equal(l.step, i == 0 ? KERNEL_RECORD : KERNEL_LAUNCH);
        if (i == 0)
            kernels_recorded(l.kernel, l.shape, 100, 1000, 1, 1);
    }
    for (uint64_t n = 7; n <= 64; n++) { /* launches 8, 16, .. follow changes of the data */
        const struct launch l = launch("short");
        assert_int_equal(l.step,
                         n == 8 || n == 16 || n == 32 || n == 64 ? KERNEL_TIME : KERNEL_LAUNCH);
    }
    assert_int_equal(get("short").launches, 64);
    assert_int_equal(get("short").blocks, 6400);
}

static void long_launches_are_timed_once(void **state)
{
    struct launch l;

    (void)state;
    start(&generous);
    l = launch("long");
    assert_int_equal(l.step, KERNEL_TIME);
    kernels_timed(l.kernel, l.shape, 5000000);
    assert_int_equal(launch("long").step, KERNEL_RECORD);
}

static void first_launches_are_recorded_if_they_can_be(void **state)
{
    struct launch l;

    (void)state;
    start(&generous);
    l = launch_with("first", 100, false, true);
    assert_int_equal(l.step, KERNEL_RECORD);
    kernels_recorded(l.kernel, l.shape, 100, 1000, 1, 1);
    assert_int_equal(launch_with("first", 100, false, true).step, KERNEL_TIME);
    assert_int_equal(launch_with("first", 200, false, true).step, KERNEL_TIME);
    /* A kernel that cannot be recorded is timed. */
    l = launch_with("refused at first", 100, false, true);
    kernels_refuse(l.kernel, "because");
    assert_int_equal(launch_with("refused at first", 100, false, true).step, KERNEL_TIME);
    assert_string_equal(get("refused at first").refused, "because");
}

static void skipped_launches_are_not_recorded(void **state)
{
    struct launch l;

    (void)state;
    start(&(struct kernel_limits){.launches = 3, .skip = 2, .tool_ns = 1000ull * SECOND});
    assert_false(kernels_want_first());
    assert_int_equal(launch_with("skipped", 1, false, true).step, KERNEL_TIME);
    assert_int_equal(launch_with("skipped", 2, false, true).step, KERNEL_TIME);
    assert_int_equal(get("skipped").shape_count, 0);
    assert_int_equal(launch_with("skipped", 3, false, false).step, KERNEL_RECORD); /* patches */
    l = launch_with("skipped", 3, false, true);
    assert_int_equal(l.step, KERNEL_RECORD);
    kernels_recorded(l.kernel, l.shape, 100, 1000, 1, 1);
    assert_int_equal(launch_with("skipped", 3, false, true).step, KERNEL_TIME);
}

static void refused_kernels_are_only_timed(void **state)
{
    struct launch l = {0};

    (void)state;
    start(&generous);
    for (int i = 0; i < 3; i++) {
        l = launch("refused");
        kernels_timed(l.kernel, l.shape, 100000);
    }
    kernels_refuse(l.kernel, "because");
    for (int i = 4; i <= 9; i++)
        assert_int_equal(launch("refused").step, i == 4 || i == 8 ? KERNEL_TIME : KERNEL_LAUNCH);
}

static void each_kernel_is_recorded_at_most_this_often(void **state)
{
    (void)state;
    start(&(struct kernel_limits){.launches = 2, .tool_ns = 1000ull * SECOND});
    for (uint32_t blocks = 1; blocks <= 4; blocks++) { /* each shape is recorded on its own */
        struct launch l = launch_with("shapes", blocks, false, false);
        assert_int_equal(l.step, KERNEL_TIME);
        kernels_timed(l.kernel, l.shape, 1000000);
        l = launch_with("shapes", blocks, false, false);
        assert_int_equal(l.step, blocks <= 2 ? KERNEL_RECORD : KERNEL_TIME);
        if (blocks <= 2)
            kernels_recorded(l.kernel, l.shape, 10, 1000, 1, 1);
    }
    assert_int_equal(get("shapes").recorded, 2);
    assert_int_equal(get("shapes").shape_count, 4);
}

static void recordings_end_with_their_time(void **state)
{
    struct launch l;

    (void)state;
    /* A recording is assumed to take 30 times the time of its launch: 1.5 s do not fit in 1 s. */
    start(&(struct kernel_limits){.launches = 3, .tool_ns = SECOND});
    assert_true(kernels_want_first());
    l = launch("too long");
    kernels_timed(l.kernel, l.shape, 50000000);
    assert_int_equal(launch("too long").step, KERNEL_TIME);
    kernels_spent_first(SECOND / 2);
    assert_false(kernels_want_first());
    assert_int_equal(launch_with("too late", 1, false, true).step, KERNEL_TIME);
    start(&(struct kernel_limits){.launches = 3, .tool_ns = 0});
    assert_false(kernels_want_first());
}

static void kernels_with_little_time_are_not_recorded(void **state)
{
    struct launch l = {0};

    (void)state;
    start(&generous);
    l = launch("most of the time");
    kernels_timed(l.kernel, l.shape, 100ull * SECOND);
    for (int i = 0; i < 3; i++) {
        l = launch("little");
        kernels_timed(l.kernel, l.shape, 20000);
    }
    assert_int_equal(launch("little").step, KERNEL_TIME);
    assert_int_equal(launch("little").step, KERNEL_LAUNCH);
}

/* The next sample fills most of the room, whether the last was too large or too small. */
static void the_sample_follows_the_room(void **state)
{
    const struct launch l = launch("sample");

    (void)state;
    start(&generous);
    kernels_recorded(l.kernel, l.shape, 10000, 1000, 1, 1); /* ten times the room */
    assert_in_range(get("sample").every, 11, 16);
    assert_false(get("sample").shapes[0].recorded);
    kernels_recorded(l.kernel, l.shape, 900, 1000, 14, 1); /* fits */
    assert_true(get("sample").shapes[0].recorded);
    kernels_recorded(l.kernel, l.shape, 10, 1000, 100, 1); /* a hundredth of the room */
    assert_in_range(get("sample").every, 1, 3);
    kernels_recorded(l.kernel, l.shape, 1, 1000, 100, 1);
    assert_int_equal(get("sample").every, 1);
}

/* The number of blocks of two such launches exceeds 64 bits. */
static void huge_grids_have_times(void **state)
{
    static const uint32_t grid[3] = {INT32_MAX, UINT16_MAX, UINT16_MAX};
    struct kernel k;

    (void)state;
    start(&generous);
    for (int i = 0; i < 5; i++) {
        struct launch l = {.shape = KERNEL_SHAPES};
        l.kernel = kernels_launch("vast", "vast", 0, grid, block, false, false, &l.shape, &l.step);
        if (l.step == KERNEL_TIME)
            kernels_timed(l.kernel, l.shape, SECOND);
        if (l.step == KERNEL_RECORD) /* the sample needs more than 2^32 times the room */
            kernels_recorded(l.kernel, l.shape, UINT64_MAX, 1, UINT32_MAX, 1);
    }
    k = get("vast");
    assert_int_equal(k.every, UINT32_MAX);
    assert_float_equal(kernel_all_ns(&k) / (5.0 * SECOND), 1, 0.01);
}

static int compare(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

/* The time of a shape is the median of its last times, without the time of a launch itself. */
static void times_are_medians(void **state)
{
    uint64_t times[64], last[KERNEL_TIMES];
    const struct launch l = launch("median");

    (void)state;
    start(&generous);
    kernels_timed(launch("empty").kernel, 0, 4000); /* the shortest launch of all */
    for (size_t n = 1; n <= 64; n++) {
        const size_t count = n < KERNEL_TIMES ? n : KERNEL_TIMES;
        times[n - 1] = 16u * (1000u + (unsigned)rand_r(&seed) % 100000u);
        kernels_timed(l.kernel, l.shape, times[n - 1]);
        memcpy(last, times + n - count, count * sizeof last[0]);
        qsort(last, count, sizeof last[0], compare);
        assert_int_equal(get("median").shapes[0].ns, last[(count - 1) / 2] - 4000);
    }
    assert_int_equal(get("median").timed, 64);
    kernels_timed(l.kernel, KERNEL_SHAPES, 16); /* of no shape: only the shortest time changes */
    assert_int_equal(get("median").timed, 64);
    /* A time longer than the table can hold becomes its longest time. */
    kernels_timed(launch("endless").kernel, 0, UINT64_MAX);
    assert_in_range(get("endless").shapes[0].ns, 16ull * UINT32_MAX - 4000, 16ull * UINT32_MAX);
}

static void shapes_without_room_take_the_time_per_block(void **state)
{
    struct kernel k;

    (void)state;
    start(&generous);
    for (uint32_t i = 1; i <= KERNEL_SHAPES + 4; i++) {
        const struct launch l = launch_with("many shapes", 1000 * i, false, false);
        assert_int_equal(l.shape, i <= KERNEL_SHAPES ? i - 1 : KERNEL_SHAPES);
        kernels_timed(l.kernel, l.shape, 1000000 * i);
    }
    k = get("many shapes");
    assert_int_equal(kernel_all_launches(&k), KERNEL_SHAPES + 4);
    /* 1 + 2 + .. + 10 = 55 ms; the last digits depend on the shortest launch */
    assert_in_range((uint64_t)kernel_all_ns(&k), 54800000, 55000000);
    k = get("empty");
    assert_int_equal(kernel_all_launches(&k), 1);
}

static void kernels_that_were_not_timed_have_no_time(void **state)
{
    struct kernel k;

    (void)state;
    (void)launch("not timed");
    k = get("not timed");
    assert_true(kernel_all_ns(&k) == 0);
    assert_int_equal(k.timed, 0);
    k.launches = 0;
    assert_true(kernel_all_ns(&k) == 0);
}

static void kernels_in_graphs_are_never_timed_alone(void **state)
{
    (void)state;
    start(&generous);
    assert_int_equal(launch_with("in graph", 10, true, false).step, KERNEL_LAUNCH);
    assert_int_equal(launch_with("in graph", 10, true, false).step, KERNEL_RECORD);
    assert_int_equal(launch_with("in graph at once", 10, true, true).step, KERNEL_RECORD);
}

static void graphs_share_their_time_among_kernels_without_one(void **state)
{
    const struct launch known = launch("known node"), a = launch("node a"), b = launch("node b");
    const struct kernel_node nodes[] = {
        {known.kernel, known.shape}, {a.kernel, a.shape}, {b.kernel, b.shape}};

    (void)state;
    start(&generous);
    kernels_timed(known.kernel, known.shape, 3000000);
    kernels_graph_timed(nodes, 3, 9000000);
    assert_in_range(get("node a").shapes[0].ns, 2990000, 3010000);
    assert_int_equal(get("node a").shapes[0].ns, get("node b").shapes[0].ns);
    assert_int_equal(get("known node").timed, 1);
    kernels_graph_timed(nodes, 3, 900000000); /* all are known */
    assert_int_equal(get("node a").timed, 1);
    /* A graph that is shorter than the kernels whose times are known gives no time. */
    {
        const struct launch c = launch("node c");
        const struct kernel_node two[] = {{known.kernel, known.shape}, {c.kernel, c.shape}};
        kernels_graph_timed(two, 2, 1000);
        assert_int_equal(get("node c").timed, 0);
    }
    {
        const struct kernel_node other = {known.kernel, KERNEL_SHAPES};
        kernels_graph_timed(&other, 1, 1000);
        kernels_graph_timed(NULL, 0, 1000);
    }
}

static void graphs_are_timed_at_powers_of_two(void **state)
{
    const char graphs[300] = {0};

    (void)state;
    for (int n = 1; n <= 20; n++)
        assert_int_equal(kernels_graph_launch(&graphs[0]), n <= 4 || n == 8 || n == 16);
    for (int i = 1; i < 300; i++) /* the table holds 256 */
        assert_int_equal(kernels_graph_launch(&graphs[i]), i < 256);
}

static void handles_are_forgotten_when_a_module_is_unloaded(void **state)
{
    static const char handle;
    const uint32_t grid[3] = {1, 1, 1};
    char name[] = "before";
    struct launch l;

    (void)state;
    (void)kernels_launch(&handle, name, 0, grid, block, false, false, &l.shape, &l.step);
    kernels_forget_functions();
    strcpy(name, "after"); /* the same handle and the same address of a name */
    l.kernel = kernels_launch(&handle, name, 0, grid, block, false, false, &l.shape, &l.step);
    assert_string_equal(l.kernel->name, "after");
    assert_int_equal(get("before").launches, 1);
    /* Another GPU has a kernel of its own. */
    l.kernel = kernels_launch(&handle, name, 1, grid, block, false, false, &l.shape, &l.step);
    assert_int_equal(l.kernel->device, 1);
    assert_int_equal(l.kernel->launches, 1);
}

static void *launch_often(void *name)
{
    for (int i = 0; i < 5000; i++) {
        const struct launch l = launch_with(i % 2 ? name : "shared", (uint32_t)i % 8, false, false);
        struct kernel k;
        if (l.step == KERNEL_TIME)
            kernels_timed(l.kernel, l.shape, 1000u + (unsigned)i);
        if (l.step == KERNEL_RECORD)
            kernels_recorded(l.kernel, l.shape, 5, 10, 1, 1);
        if (kernels_get((uint32_t)i % 8, &k) && kernel_all_ns(&k) < 0)
            atomic_fetch_add(&problems, 1);
        if (i % 1000 == 0)
            kernels_forget_functions();
    }
    return NULL;
}

static void threads_share_the_table(void **state)
{
    static char names[4][8] = {"one", "two", "three", "four"};
    pthread_t threads[4];
    const uint64_t before = kernels_changes();

    (void)state;
    start(&generous);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, names[i]), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(get(names[i]).launches, 2500);
    }
    assert_int_equal(problems, 0);
    assert_int_equal(get("shared").launches, 10000);
    assert_true(kernels_changes() >= before + 20000);
}

static double clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* This test is followed only by tests that count no launches, because pauses do not end. */
static void launches_in_pauses_are_estimated(void **state)
{
    struct kernel k;
    uint64_t all;
    double begin_s, all_s;

    (void)state;
    start(&generous);
    for (int i = 0; i < 1000; i++)
        (void)launch("paused");
    kernels_timed(launch("paused").kernel, 0, 1000000);
    k = get("paused");
    assert_int_equal(kernel_all_launches(&k), 1001);
    begin_s = clock_s();
    kernels_pause();
    sleep_ns(90000000);
    k = get("paused");
    assert_int_equal(kernel_all_launches(&k), 1001); /* launches before the pause are exact */
    kernels_resume();
    for (int i = 0; i < 100; i++)
        (void)launch("paused");
    (void)launch("new");
    sleep_ns(10000000);
    k = get("paused");
    all = kernel_all_launches(&k);
    all_s = clock_s() - begin_s;
    /* The pause took at least 90 ms, and the time in which launches were counted at least 10 ms. */
    assert_in_range(all, 1001 + (uint64_t)(100 * all_s / (all_s - 0.09)),
                    1001 + (uint64_t)(100 * all_s / 0.01) + 1);
    assert_true(kernel_all_ns(&k) > 900e3 * 1001);
    k = get("new");
    assert_int_equal(k.launches, 1);
}

/* Must be the last test. */
static void a_full_table_takes_no_more_kernels(void **state)
{
    static char names[KERNELS_ROOM][16];
    struct launch l;
    struct kernel k;
    uint32_t taken = 0, before = 0;

    (void)state;
    while (kernels_get(before, &k))
        before++;
    for (uint32_t i = 0; i < KERNELS_ROOM; i++) {
        (void)snprintf(names[i], sizeof names[i], "filler %u", i);
        taken += launch(names[i]).kernel != NULL;
    }
    assert_int_equal(before + taken, KERNELS_ROOM / 2);
    l = launch("one more");
    assert_null(l.kernel);
    assert_int_equal(l.step, KERNEL_LAUNCH);
    assert_int_equal(l.shape, KERNEL_SHAPES);
    assert_non_null(launch(names[0]).kernel);
    assert_false(kernels_get(KERNELS_ROOM / 2, &k));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_launches_are_timed_three_times_then_recorded),
        cmocka_unit_test(long_launches_are_timed_once),
        cmocka_unit_test(first_launches_are_recorded_if_they_can_be),
        cmocka_unit_test(skipped_launches_are_not_recorded),
        cmocka_unit_test(refused_kernels_are_only_timed),
        cmocka_unit_test(each_kernel_is_recorded_at_most_this_often),
        cmocka_unit_test(kernels_in_graphs_are_never_timed_alone),
        cmocka_unit_test(the_sample_follows_the_room),
        cmocka_unit_test(huge_grids_have_times),
        cmocka_unit_test(times_are_medians),
        cmocka_unit_test(shapes_without_room_take_the_time_per_block),
        cmocka_unit_test(kernels_that_were_not_timed_have_no_time),
        cmocka_unit_test(graphs_share_their_time_among_kernels_without_one),
        cmocka_unit_test(graphs_are_timed_at_powers_of_two),
        cmocka_unit_test(handles_are_forgotten_when_a_module_is_unloaded),
        cmocka_unit_test(threads_share_the_table),
        cmocka_unit_test(kernels_with_little_time_are_not_recorded),
        cmocka_unit_test(recordings_end_with_their_time),
        cmocka_unit_test(launches_in_pauses_are_estimated),
        cmocka_unit_test(a_full_table_takes_no_more_kernels),
    };
    const char *const text = getenv("TEST_SEED");

    seed = text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)time(NULL);
    printf("# TEST_SEED=%u\n", seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
