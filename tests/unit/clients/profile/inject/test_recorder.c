/* test_recorder.c: recordings over a table of Sanitizer functions that a test controls, with the
 * gate, the timer and the table of kernels. */
#include "clients/profile/inject/recorder.h"

#include "base/clock.h"
#include "clients/profile/inject/gate.h"
#include "clients/profile/inject/timer.h"
#include "tests/unit/clients/profile/inject/fake_api.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, LAUNCHES = 300, PAGES = 3, LATE_BLOCKS = 77 };

static const unsigned char image[1];
static _Atomic unsigned results, problems;
static _Atomic int launching; /* threads between the two callbacks of a launch */

/* Checks a recorded launch, whose number of blocks is in grid[0]. */
static void on_recorded(struct recorded *take)
{
    const bool good = take->counts.used == take->grid[0] && take->words[0] == take->grid[0] &&
                      take->pages[PAGES - 1] == take->grid[0] && take->pages[PAGES] == 0 &&
                      take->instructions[0].warps == take->grid[0] &&
                      (take->function_pc == 0x1000 || take->function_pc == 0);
    atomic_fetch_add(&problems, !good);
    recorded_free(take);
    atomic_fetch_add(&results, 1);
}

static void on_patch(void)
{
    atomic_fetch_add(&problems, atomic_load(&launching) != 0);
}

static int start(void **state)
{
    struct err err;

    (void)state;
    kernels_start(&(struct kernel_limits){.launches = 3, .tool_ns = 1000 * NSEC_PER_SEC});
    return timer_start(&fake_api, &err) == STATUS_OK &&
                   recorder_start(&fake_api, image, on_recorded, &err) == STATUS_OK
               ? 0
               : -1;
}

/* ---- a program ---- */

/* What the GPU does in a launch: the patch writes through the data of the launch. */
static void run_on_gpu(const struct san_launch_data *l)
{
    const struct Sanitizer_Launch_st *const given = l->launch;
    struct profile_launch *data;

    if (!fake_is_patched(l->module) || !given->data) {
        atomic_fetch_add(&problems, fake_is_patched(l->module) && !given->has_data);
        return;
    }
    data = (void *)(uintptr_t)given->data;
    data->used = l->grid[0];
    data->words[0] = l->grid[0];
    for (int i = 0; i < PAGES; i++)
        data->pages[i] = l->grid[0];
    data->instructions[0].warps = l->grid[0];
    data->is_late = l->grid[0] == LATE_BLOCKS;
}

struct target {
    int context, module, stream;
    const char *kernel;
};

static struct san_launch_data describe(const struct target *t, uint32_t blocks, san_launch launch)
{
    return (struct san_launch_data){.context = fake_context(t->context),
                                    .stream = fake_stream(t->stream),
                                    .user_stream = fake_stream(t->stream),
                                    .module = fake_module(t->module),
                                    .function = (san_function)(void *)fake_module(t->module),
                                    .name = t->kernel,
                                    .grid = {blocks, 1, 1},
                                    .block = {64, 1, 1},
                                    .launch = launch};
}

/* Does what the callbacks of a launch do before the launch. Returns whether it is recorded. */
static bool begin(const struct san_launch_data *l)
{
    uint32_t shape = KERNEL_SHAPES;
    enum kernel_step step;
    const bool is_ready = recorder_is_ready(l->module);
    struct kernel *const k =
        kernels_launch(l->name, l->name, 0, l->grid, l->block, false, is_ready, &shape, &step);
    const bool is_recorded = step == KERNEL_RECORD && is_ready && recorder_begin(l, k, shape);
    if (!is_recorded) {
        (void)recorder_skip(l);
        if (step == KERNEL_RECORD)
            recorder_request(l, k);
        if (step == KERNEL_TIME)
            kernels_timed(k, shape, 1000000);
    }
    gate_saw_stream(l->context, l->stream, l->user_stream);
    return is_recorded;
}

static void launch(const struct target *t, uint32_t blocks)
{
    struct Sanitizer_Launch_st given = {0};
    const struct san_launch_data l = describe(t, blocks, &given);

    gate_enter();
    atomic_fetch_add(&launching, 1);
    const bool is_recorded = begin(&l);
    run_on_gpu(&l);
    if (is_recorded)
        recorder_launched(l.context, l.stream);
    atomic_fetch_sub(&launching, 1);
    recorder_settle();
    (void)gate_leave();
}

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

static void load(const struct target *t)
{
    recorder_module_loaded(fake_context(t->context), fake_module(t->module));
}

static void unload(const struct target *t)
{
    recorder_module_unloaded(fake_module(t->module));
    fake.is_patched[t->module] = false;
}

static void destroy(const struct target *t)
{
    recorder_context_destroyed(fake_context(t->context));
    fake_destroy_context(fake_context(t->context));
    fake.is_patched[t->module] = false;
}

static void check(void)
{
    assert_int_equal(problems, 0);
    assert_int_equal(fake.misuses, 0);
}

/* ---- tests ---- */

static void first_launches_and_new_shapes_are_recorded(void **state)
{
    static const struct target t = {.kernel = "first"};
    const unsigned before = atomic_load(&results);

    (void)state;
    load(&t);
    assert_true(fake_is_patched(fake_module(0)));
    assert_true(recorder_is_ready(fake_module(0)));
    assert_false(recorder_is_ready(fake_module(1)));
    launch(&t, 10);
    assert_int_equal(results, before + 1); /* the thread has waited for it */
    launch(&t, 10);
    assert_false(fake_is_patched(fake_module(0)));
    while (atomic_load(&results) < before + 2) /* another shape: timed, requested, recorded */
        launch(&t, 20);
    assert_int_equal(get("first").recorded, 2);
    while (fake_is_patched(fake_module(0)))
        launch(&t, 10);
    assert_true(recorder_has_context(fake_context(0)));
    destroy(&t);
    assert_false(recorder_has_context(fake_context(0)));
    check();
}

static void launches_without_a_module_are_left_alone(void **state)
{
    static const struct target t = {.context = 11, .module = 15, .kernel = "with_module"};
    const unsigned before = atomic_load(&results);
    struct Sanitizer_Launch_st given = {0};
    struct san_launch_data l = describe(&t, 10, &given);

    (void)state;
    load(&t);
    assert_true(recorder_is_ready(l.module));
    l.module = NULL;
    assert_false(recorder_is_ready(l.module));
    assert_false(recorder_skip(&l));
    assert_false(given.has_data);
    launch(&t, 10); /* the other launches are recorded */
    assert_int_equal(results, before + 1);
    destroy(&t);
    check();
}

/* One block in 2^32 or more would be in the sample, and one in 0 is none. */
static void grids_of_any_size_are_recorded(void **state)
{
    static const struct target t = {.context = 10, .module = 14, .kernel = "huge"};
    static const uint32_t grids[][3] = {
        {1u << 30, 1u << 14, 1}, {INT32_MAX, UINT16_MAX, UINT16_MAX}, {1u << 30, 1u << 15, 1 << 9}};

    (void)state;
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
        const unsigned before = atomic_load(&results);
        while (atomic_load(&results) == before) {
            struct Sanitizer_Launch_st given = {0};
            struct san_launch_data l = describe(&t, 1, &given);
            memcpy(l.grid, grids[i], sizeof l.grid);
            gate_enter();
            const bool is_recorded = begin(&l);
            run_on_gpu(&l);
            if (is_recorded)
                recorder_launched(l.context, l.stream);
            recorder_settle();
            (void)gate_leave();
        }
    }
    destroy(&t);
    check();
}

/* Launches of other kernels of the module come between a request and the recorded launch. */
static void a_module_stays_patched_until_its_kernel_is_recorded(void **state)
{
    static const struct target t = {.context = 9, .module = 13, .kernel = "wanted"};
    static const struct target other = {.context = 9, .module = 13, .kernel = "between"};
    const unsigned before = atomic_load(&results);
    unsigned between = 0;

    (void)state;
    load(&t);
    launch(&t, 10);
    launch(&other, 10);
    assert_int_equal(results, before + 2);
    while (get("wanted").recorded < 2) { /* another shape: timed, requested, recorded */
        launch(&t, 20);
        launch(&other, 10);
        between += fake_is_patched(fake_module(13));
    }
    assert_int_equal(results, before + 3);
    assert_int_equal(between, 1);
    assert_false(fake_is_patched(fake_module(13)));
    while (!fake_is_patched(fake_module(13))) /* requested, and not launched any more */
        launch(&t, 30);
    while (fake_is_patched(fake_module(13))) {
        launch(&other, 10);
        (void)usleep(50000);
    }
    assert_int_equal(results, before + 3);
    assert_int_equal(get("wanted").recorded, 3);
    destroy(&t);
    check();
}

static void a_launch_that_takes_too_long_is_recorded_once(void **state)
{
    static const struct target t = {.context = 9, .module = 13, .kernel = "slow"};
    const unsigned before = atomic_load(&results);

    (void)state;
    load(&t);
    launch(&t, LATE_BLOCKS);
    for (int i = 0; i < 12; i++)
        launch(&t, 5);
    assert_int_equal(results, before + 1);
    assert_null(get("slow").refused);
    assert_false(fake_is_patched(fake_module(13)));
    destroy(&t);
    check();
}

static void a_module_may_be_unloaded_while_it_is_patched(void **state)
{
    static const struct target t = {.context = 1, .module = 1, .kernel = "unloaded"};

    (void)state;
    load(&t);
    assert_false(recorder_pause()); /* a module is patched */
    unload(&t);
    assert_true(recorder_pause());
    recorder_resume();
    launch(&t, 5); /* another module at the same address is not patched */
    launch(&t, 5);
    destroy(&t);
    check();
}

static void pauses_wait_for_unpatched_modules(void **state)
{
    static const struct target t = {.context = 2, .module = 2, .kernel = "paused"};
    static const struct target other = {.context = 2, .module = 2, .kernel = "resumed"};
    const unsigned before = atomic_load(&results);

    (void)state;
    load(&t);
    assert_false(recorder_pause());
    while (fake_is_patched(fake_module(2))) /* the next launch calls remove the patch */
        launch(&t, 5);
    while (!recorder_pause())
        launch(&t, 5);
    load(&t);
    for (int i = 0; i < 20; i++)
        launch(&t, (uint32_t)i + 50);
    assert_false(fake_is_patched(fake_module(2)));
    recorder_resume();
    while (atomic_load(&results) < before + 2)
        launch(&other, 5);
    destroy(&t);
    check();
}

static void a_context_may_be_destroyed_while_a_launch_is_recorded(void **state)
{
    static const struct target t = {.context = 3, .module = 3, .kernel = "destroyed"};
    struct Sanitizer_Launch_st given = {0};
    const struct san_launch_data l = describe(&t, 5, &given);
    const unsigned before = atomic_load(&results);

    (void)state;
    load(&t);
    fake_stop();
    assert_true(begin(&l));
    run_on_gpu(&l);
    recorder_launched(l.context, l.stream);
    destroy(&t);
    recorder_settle();
    fake_go();
    assert_int_equal(results, before);
    assert_null(get("destroyed").refused);
    assert_true(recorder_pause()); /* no module is patched, and nothing is recorded */
    recorder_resume();
    load(&t); /* another context at the same address */
    launch(&t, 5);
    assert_int_equal(results, before + 1);
    destroy(&t);
    check();
}

static void a_launch_without_an_end_is_given_up(void **state)
{
    static const struct target t = {.context = 4, .module = 4, .kernel = "failed"};
    static const struct target other = {.context = 4, .module = 4, .kernel = "not failed"};
    struct Sanitizer_Launch_st given = {0};
    const struct san_launch_data l = describe(&t, 5, &given);
    const unsigned before = atomic_load(&results);

    (void)state;
    load(&t);
    assert_true(begin(&l));
    assert_false(recorder_is_ready(fake_module(4)));
    recorder_cancel();
    assert_non_null(get("failed").refused);
    launch(&other, 5);
    assert_int_equal(results, before + 1);
    destroy(&t);
    check();
}

/* Each function fails in each of its uses; the program runs, and later launches are recorded. */
static void each_call_may_fail(void **state)
{
    static const char *const functions[] = {"add_patches",    "patch_instructions", "patch_module",
                                            "unpatch_module", "set_launch_data",    "alloc",
                                            "memset",         "to_device",          "to_host",
                                            "get_stream",     "function_pc",        "alloc_host"};
    static char names[sizeof functions / sizeof functions[0]][2][40];
    struct target t = {.context = 5, .module = 5};

    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        for (unsigned count = 1; count <= 2; count++) {
            char *const name = names[i][count - 1];
            (void)snprintf(name, sizeof names[i][0], "%s fails %u", functions[i], count);
            t.kernel = name;
            fake_fail(functions[i], count == 1 ? 1 : 100);
            load(&t);
            for (int n = 0; n < 12; n++)
                launch(&t, 5);
            fake_fail(functions[i], 0);
            /* A launch of patched code without data is the only fault that cannot be avoided. */
            if (strcmp(functions[i], "set_launch_data") == 0)
                atomic_store(&problems, 0);
            destroy(&t);
            t.kernel = "after a failure";
            load(&t);
            for (uint32_t n = 0; n < 20; n++)
                launch(&t, 5);
            if (get("after a failure").recorded == 0)
                fail_msg("nothing is recorded after %s", name);
            if (get(name).recorded == 0 && !get(name).refused)
                fail_msg("%s: neither recorded nor refused", name);
            destroy(&t);
            check();
        }
    }
}

static void a_launch_that_no_mark_follows_is_not_read(void **state)
{
    static const struct target t = {.context = 6, .module = 6, .kernel = "without a mark"};
    static const struct target other = {.context = 6, .module = 6, .kernel = "in its context"};
    static int marks[1000];
    const unsigned before = atomic_load(&results);
    int count = 0;

    (void)state;
    load(&t);
    while ((marks[count] = timer_mark(fake_context(7), fake_stream(0))) >= 0)
        count++;
    assert_true(count > 0);
    launch(&t, 5);
    while (count > 0)
        timer_free_mark(marks[--count]);
    assert_int_equal(results, before);
    assert_string_equal(get("without a mark").refused, "the recorded launch did not end");
    for (int i = 0; i < 12; i++) /* the launch may still write to the buffers */
        launch(&other, 5);
    assert_int_equal(results, before);
    assert_string_equal(get("in its context").refused, "an earlier recorded launch did not end");
    destroy(&t);
    check();
}

static void *launch_often(void *number)
{
    static const char *const names[] = {"thread a", "thread b", "thread c", "shared"};
    const int thread = (int)(uintptr_t)number;
    for (int i = 0; i < LAUNCHES; i++) {
        const struct target t = {.context = 8,
                                 .module = 8 + i % 3,
                                 .stream = thread * 10 + i % 5,
                                 .kernel = names[i % 2 ? 3 : thread % 3]};
        launch(&t, (uint32_t)(1 + i % 4));
        if (i % 20 == 0)
            gate_destroys_stream(fake_stream(thread * 10 + i % 5));
        if (i % 30 == 0 && recorder_pause())
            recorder_resume();
    }
    return NULL;
}

static void threads_share_the_recorder(void **state)
{
    const struct target t[] = {
        {.context = 8, .module = 8}, {.context = 8, .module = 9}, {.context = 8, .module = 10}};
    const unsigned before = atomic_load(&results);
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < 3; i++)
        load(&t[i]);
    fake.on_patch = on_patch;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    fake.on_patch = NULL;
    assert_true(results > before);
    check();
}

/* Must follow tests that patch modules in use, because there is no way back. */
static void graphs_end_patching(void **state)
{
    static const struct target t = {.context = 8, .module = 11, .kernel = "before a graph"};
    static const struct target after = {.context = 8, .module = 11, .kernel = "after a graph"};

    (void)state;
    load(&t);
    assert_true(fake_is_patched(fake_module(11)));
    /* On a slow machine, an attempt of the last test may have failed, and a pause follows it. */
    while (!gate_close(fake_context(8)))
        (void)usleep(10000);
    gate_open();
    recorder_graph_begins();
    assert_false(fake_is_patched(fake_module(11)));
    do
        launch(&after, 5);
    while (!get("after a graph").refused);
    check();
}

/* Must be the last test. */
static void nothing_is_recorded_at_the_end(void **state)
{
    static const struct target t = {.context = 8, .module = 12, .kernel = "at the end"};
    struct Sanitizer_Launch_st given = {0};
    const struct san_launch_data l = describe(&t, 5, &given);
    const unsigned before = atomic_load(&results);

    (void)state;
    load(&t);
    fake_stop();
    assert_true(begin(&l));
    recorder_launched(l.context, l.stream);
    recorder_end(); /* gives up the launch, which does not end */
    timer_end();
    destroy(&t);
    recorder_settle();
    assert_int_equal(results, before);
    load(&t);
    assert_false(fake_is_patched(fake_module(12)));
    launch(&t, 7);
    assert_int_equal(results, before);
    check();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_launches_and_new_shapes_are_recorded),
        cmocka_unit_test(launches_without_a_module_are_left_alone),
        cmocka_unit_test(grids_of_any_size_are_recorded),
        cmocka_unit_test(a_module_stays_patched_until_its_kernel_is_recorded),
        cmocka_unit_test(a_launch_that_takes_too_long_is_recorded_once),
        cmocka_unit_test(a_module_may_be_unloaded_while_it_is_patched),
        cmocka_unit_test(pauses_wait_for_unpatched_modules),
        cmocka_unit_test(a_context_may_be_destroyed_while_a_launch_is_recorded),
        cmocka_unit_test(a_launch_without_an_end_is_given_up),
        cmocka_unit_test(each_call_may_fail),
        cmocka_unit_test(a_launch_that_no_mark_follows_is_not_read),
        cmocka_unit_test(threads_share_the_recorder),
        cmocka_unit_test(graphs_end_patching),
        cmocka_unit_test(nothing_is_recorded_at_the_end),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
