/* test_store_memory.c: every allocation of the store, of SQLite and of jansson below it fails at
 * its n-th use, once or permanently. The invariants are those in test_store_faults.c, for a failing
 * disk. No acknowledged data is lost or incomplete, no file is treated as damaged, and the next
 * process continues. alloc_fail.h lists these allocations. */
#include "base/rng.h"
#include "tests/unit/support/alloc_fail.h"
#include "tests/unit/support/store_cases.h"
#include "tests/unit/support/store_fault.h"
#include "tests/unit/support/store_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 100000, QUICK_STEP = 61 };

static int install(void **state)
{
    (void)state;
    alloc_fail_install();
    store_fault_install();
    store_fault.skip_syncs = true;
    return 0;
}

static uint32_t current(struct store *store)
{
    static struct fingerprint fp;

    return store_current_fingerprint(store, FIXTURE_UUID, &fp, NULL) == STATUS_OK ? fp.duration_ms
                                                                                  : 0;
}

/* Stores one run. The caller makes the observation, because allocations must not fail while it is
 * made. */
static enum status one_run(struct store *store, uint32_t number, const struct observation *o,
                           struct err *err)
{
    static struct fingerprint fp;
    const struct gpu_identity gpu = fixture_gpu(FIXTURE_UUID);
    const struct gpu_limits limits = fixture_limits();
    int64_t run = 0;
    enum status s = store_begin_run(store, &gpu, &limits, DEPTH_FULL, 1700000000, &run, err);

    if (s == STATUS_OK)
        s = store_add_observation(store, run, o, NULL, err);
    if (s != STATUS_OK)
        return s;
    fixture_fingerprint(FIXTURE_UUID, number, &fp);
    return store_finish_run(store, run, &fp, &fp, err);
}

static void assert_nothing_aside(const char *directory)
{
    DIR *const d = opendir(directory);
    const struct dirent *e;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL)
        assert_null(strstr(e->d_name, ".corrupt-"));
    closedir(d);
}

/* Uses a file that already has a run: opens, checks all rows, writes, reads, copies, closes.
 * Returns whether any allocation failed. */
static bool one_short_life(const char *directory, const char *path, const char *copy, uint64_t n)
{
    struct observation o = fixture_observation(1, 200);
    struct observation_set set;
    struct store *store = fixture_open(path);
    struct store_health health;
    struct err err = {0};
    uint32_t acknowledged = 1;
    bool renewed = false;

    assert_int_equal(one_run(store, 1, &o, &err), STATUS_OK);
    store_close(store);
    alloc_fail_begin(n);
    if (store_open(path, &store, &err) == STATUS_OK) {
        (void)store_maintain(store, &renewed, &err);
        if (one_run(store, 2, &o, &err) == STATUS_OK)
            acknowledged = 2;
        if (store_load_run(store, 1, &set, &err) == STATUS_OK)
            observation_set_free(&set);
        (void)store_backup(path, copy, NULL, &err);
        alloc_fail.armed = false;
        if (current(store) != acknowledged)
            fail_msg("allocation %llu: %u is acknowledged, %u is there", (unsigned long long)n,
                     acknowledged, current(store));
        store_health(store, &health);
        assert_int_equal(health.damaged_rows, 0);
        alloc_fail.armed = true;
        store_close(store);
    } else {
        assert_true(err.status != STATUS_OK && err.text[0] != '\0');
    }
    alloc_fail.armed = false;
    assert_false(renewed);
    assert_nothing_aside(directory);
    store = fixture_open(path);
    assert_true(current(store) >= acknowledged);
    assert_int_equal(one_run(store, 3, &o, &err), STATUS_OK);
    assert_int_equal(store_maintain(store, &renewed, &err), STATUS_OK);
    store_health(store, &health);
    assert_int_equal(health.damaged_rows, 0);
    store_close(store);
    observation_free(&o);
    return alloc_fail.failures > 0;
}

/* Long tests fail every allocation, and short tests fail some. A new step in the test changes the
 * selection. */
static void every_allocation(bool persistent, uint64_t first)
{
    const uint64_t step = getenv("REACH_LONG") ? 1 : QUICK_STEP;
    uint64_t lives = 0;
    bool failed = true;

    alloc_fail.persistent = persistent;
    for (uint64_t n = first; failed && n < MOST; n += step, lives++) {
        char *const directory = fixture_directory();
        char path[512];
        char copy[512];

        (void)snprintf(path, sizeof(path), "%s/it", directory);
        (void)snprintf(copy, sizeof(copy), "%s/copy", directory);
        failed = one_short_life(directory, path, copy, n);
        fixture_remove(directory);
    }
    assert_false(failed); /* the last life has fewer allocations than n */
    assert_true(lives > 10);
    print_message("%llu lives, one allocation in %llu\n", (unsigned long long)lives,
                  (unsigned long long)step);
}

static void test_once(void **state)
{
    (void)state;
    every_allocation(false, 1);
}

/* While a document is written, every allocation fails in turn, also in the quick test. If an
 * allocation fails, json_dumps of jansson can silently omit the name of a field. */
static void test_documents(void **state)
{
    struct observation o = fixture_observation(1, 200);
    struct store *const store = fixture_open(":memory:");
    uint32_t number = 0;

    (void)state;
    alloc_fail.persistent = false;
    for (uint64_t n = 1; n < MOST; n++) {
        struct err err = {0};
        enum status s;

        alloc_fail_begin(n);
        s = one_run(store, number + 1, &o, &err);
        alloc_fail.armed = false;
        number += s == STATUS_OK;
        if (current(store) != number)
            fail_msg("allocation %llu: %u is acknowledged, %u is there", (unsigned long long)n,
                     number, current(store));
        if (alloc_fail.failures == 0)
            break;
    }
    assert_true(number > 0);
    store_close(store);
    observation_free(&o);
}

static void test_for_good(void **state)
{
    (void)state;
    every_allocation(true, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_for_good),
    };

    return cmocka_run_group_tests(tests, install, NULL);
}
