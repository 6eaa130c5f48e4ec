/* test_store_maintenance.c: the thread that maintains the store: the measurements that it requests,
 * and the detection of a stuck thread. The pipeline is a stand-in that counts the requests. */
#include "service/store_maintenance.h"

#include "base/status.h"
#include "tests/unit/support/store_cases.h"
#include "tests/unit/support/store_fixture.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { LOOKS = 200 };

static atomic_int regained;
static atomic_bool requeue_waits;
static sem_t is_waiting, go_on;

/* Replaces start.c. */
void pipeline_requeue(struct pipeline *p)
{
    (void)p;
    atomic_fetch_add(&regained, 1);
    if (atomic_load(&requeue_waits)) {
        sem_post(&is_waiting);
        sem_wait(&go_on);
    }
}

static void a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
}

static struct store_maintenance *start(struct store *store)
{
    struct store_maintenance *k = NULL;
    struct err err = {0};

    assert_int_equal(store_maintenance_start(store, NULL, &k, &err), STATUS_OK);
    return k;
}

/* Waits until the thread has completed at least one round: the thread has reported progress, was
 * woken, and has reported progress again. */
static void until_it_moves(struct store_maintenance *k)
{
    for (int moved = 0; moved < 2; moved += store_maintenance_is_alive(k))
        a_moment();
}

static void store_a_run(const char *path)
{
    struct store *store = NULL;
    struct err err = {0};
    int64_t run;

    assert_int_equal(store_open(path, &store, &err), STATUS_OK);
    assert_int_equal(fixture_store_run(store, FIXTURE_UUID, 1, 2, &run, &err), STATUS_OK);
    store_close(store);
}

/* Opens the store and checks its rows, before the maintenance starts. */
static struct store *looked_at(const char *path, uint64_t damaged_rows, uint64_t quarantined)
{
    struct store *store = NULL;
    struct store_health health;
    struct err err = {0};
    bool renewed = false;

    assert_int_equal(store_open(path, &store, &err), STATUS_OK);
    assert_int_equal(store_maintain(store, &renewed, &err), STATUS_OK);
    store_health(store, &health);
    assert_int_equal(health.damaged_rows, damaged_rows);
    assert_int_equal(health.quarantined, quarantined);
    return store;
}

static void keep_and_close(struct store *store, int regains)
{
    struct store_maintenance *k = start(store);

    until_it_moves(k);
    assert_int_equal(atomic_load(&regained), regains);
    store_maintenance_stop(k);
    store_close(store);
}

static void test_nothing_lost(void **state)
{
    const char *path = fixture_path(*state, "it");

    store_a_run(path);
    keep_and_close(looked_at(path, 0, 0), 0);
}

static void test_rows_lost_before_it_began(void **state)
{
    char path[512];

    snprintf(path, sizeof path, "%s", fixture_path(*state, "it"));
    store_a_run(path);
    fixture_tamper(path, "UPDATE fingerprint SET document = 'x'");
    keep_and_close(looked_at(path, 1, 0), 1);
}

static void test_file_lost_before_it_began(void **state)
{
    char path[512];

    snprintf(path, sizeof path, "%s", fixture_path(*state, "it"));
    fixture_write(path, "this is no database", 19);
    keep_and_close(looked_at(path, 0, 1), 1);
}

/* A sleeping thread counts as alive. A stuck thread is detected. When it continues, it counts as
 * alive again. */
static void test_standing_still_is_seen(void **state)
{
    char path[512];

    snprintf(path, sizeof path, "%s", fixture_path(*state, "it"));
    fixture_write(path, "this is no database", 19);
    atomic_store(&requeue_waits, true);
    struct store *store = looked_at(path, 0, 1);
    struct store_maintenance *k = start(store);

    assert_int_equal(sem_wait(&is_waiting), 0);
    (void)store_maintenance_is_alive(k); /* discards earlier reports of progress */
    for (int i = 0; i < LOOKS; i++) {
        assert_false(store_maintenance_is_alive(k));
        a_moment();
    }
    atomic_store(&requeue_waits, false);
    sem_post(&go_on);
    until_it_moves(k);
    store_maintenance_stop(k);
    store_close(store);
}

static int set_up(void **state)
{
    atomic_store(&regained, 0);
    atomic_store(&requeue_waits, false);
    sem_init(&is_waiting, 0, 0);
    sem_init(&go_on, 0, 0);
    return fixture_set_up(state);
}

#define WITH_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_nothing_lost),
        WITH_DIRECTORY(test_rows_lost_before_it_began),
        WITH_DIRECTORY(test_file_lost_before_it_began),
        WITH_DIRECTORY(test_standing_still_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
