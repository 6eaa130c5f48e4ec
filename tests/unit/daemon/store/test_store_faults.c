/* test_store_faults.c: every system call that writes fails at its n-th use, for n = 1, 2, .. until
 * a run passes without a fault. The process is also killed at arbitrary moments. Invariants after
 * any failure:
 * - Data that a call acknowledged as stored exists after the next start, unchanged.
 * - A failed call has changed nothing for this process. The next start finds the old state or the
 * complete new state (an fsync that failed may have worked: store_open.c).
 * - No fingerprint is without its run, and integrity_check reports ok.
 * - Without the fault, the same file takes the next run.
 */
#include "base/assert.h"
#include "base/rng.h"
#include "fingerprint/fingerprint_json.h"
#include "tests/unit/support/store_fault.h"
#include "tests/unit/support/store_fixture.h"
#include "tests/share.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    KILLS = 30,
    KILLS_LONG = 1000,
    KILLS_OF_ONE_FILE = 10,
    STEPS = 2,          /* number of runs that each life stores while calls fail */
    SANITIZED_STEP = 3, /* with a sanitizer, only every third call fails */
    ALL_CALLS_LIMIT = 3000
};

static int install(void **state)
{
    (void)state;
    store_fault_install();
    store_fault.skip_syncs = true; /* syncs are counted and can fail, but do not write, because the
                                      power is never lost */
    return 0;
}

static void assert_integrity(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "ok");
    sqlite3_finalize(stmt);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT count(*) FROM fingerprint f JOIN run r ON r.id = f.run "
                           "WHERE r.state <> 'done'",
                           -1, &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(stmt, 0),
                     0); /* a run and its fingerprint both exist, or neither exists */
    sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Returns the number of the current fingerprint, or 0 if there is none. Checks that the fingerprint
 * equals the written one. */
static uint32_t current_number(struct store *store)
{
    struct fingerprint fp;
    struct fingerprint original;
    char id[FINGERPRINT_ID_BYTES];
    char original_id[FINGERPRINT_ID_BYTES];
    struct err err = {0};
    const enum status s = store_current_fingerprint(store, FIXTURE_UUID, &fp, &err);

    if (s == STATUS_NOT_FOUND)
        return 0;
    if (s != STATUS_OK)
        fail_msg("%s", err.text);
    fixture_fingerprint(FIXTURE_UUID, fp.duration_ms, &original);
    assert_int_equal(fingerprint_id(&fp, id, NULL), STATUS_OK);
    assert_int_equal(fingerprint_id(&original, original_id, NULL), STATUS_OK);
    assert_string_equal(id, original_id);
    return fp.duration_ms;
}

static uint32_t count_observations(struct store *store)
{
    struct store_observation_row rows[64];
    uint32_t count = 0;

    assert_int_equal(store_list_observations(store, FIXTURE_UUID, 0, 0, rows, 64, &count, NULL),
                     STATUS_OK);
    return count;
}

/* Data that the store has acknowledged, and data that the test has tried to store. */
struct promise {
    uint32_t number;       /* number of the last fingerprint that was acknowledged */
    uint32_t tried;        /* number of the last fingerprint that was tried */
    uint32_t observations; /* acknowledged */
    uint32_t tried_observations;
};

/* Stores one run and records every acknowledgement. */
static enum status promised_run(struct store *store, uint32_t number, struct promise *p)
{
    const struct gpu_identity gpu = fixture_gpu(FIXTURE_UUID);
    const struct gpu_limits limits = fixture_limits();
    struct observation o;
    struct fingerprint fp;
    struct err err = {0};
    int64_t run = 0;
    enum status s;

    s = store_begin_run(store, &gpu, &limits, DEPTH_FULL, 1700000000, &run, &err);
    if (s != STATUS_OK)
        return s;
    o = fixture_observation(number, 2000);
    p->tried_observations++;
    s = store_add_observation(store, run, &o, NULL, &err);
    observation_free(&o);
    if (s != STATUS_OK)
        return s;
    p->observations++;
    fixture_fingerprint(FIXTURE_UUID, number, &fp);
    p->tried = number;
    s = store_finish_run(store, run, &fp, &fp, &err);
    if (s == STATUS_OK)
        p->number = number;
    else
        assert_true(strlen(err.text) > 10);
    return s;
}

/* A failed call has changed nothing for this process. */
static void assert_kept_now(struct store *store, const struct promise *p)
{
    assert_int_equal(current_number(store), p->number);
    assert_int_equal(count_observations(store), p->observations);
}

/* After a start, no acknowledged data is missing, and no data exists that was never tried. */
static void assert_kept_later(struct store *store, const struct promise *p)
{
    const uint32_t number = current_number(store);
    const uint32_t observations = count_observations(store);

    assert_true(number == p->number || number == p->tried);
    assert_in_range(observations, p->observations, p->tried_observations);
}

/* Opens, stores and closes under faults, then checks the file. Returns whether any call failed. If
 * no call failed, n exceeds the number of calls. */
static bool one_faulty_life(const char *directory)
{
    char *const path = strdup(fixture_path(directory, "state.db"));
    struct promise p = {0};
    struct store *store = NULL;
    struct err err = {0};

    assert_non_null(path);
    store_fault.calls = store_fault.failures = 0;
    store_fault.armed = true;
    if (store_open(path, &store, &err) == STATUS_OK) {
        for (uint32_t i = 1; i <= STEPS; i++)
            (void)promised_run(store, i, &p);
        store_fault.armed = false; /* reading must work when no fault is set */
        assert_kept_now(store, &p);
        store_fault.armed = true;
        store_close(store);
    } else {
        assert_true(strlen(err.text) > 10);
    }
    store_fault.armed = false;

    if (store_open(path, &store, &err) != STATUS_OK)
        fail_msg("call %llu (%s): %s", (unsigned long long)store_fault.fail_at, store_fault.last,
                 err.text);
    assert_kept_later(store, &p);
    assert_int_equal(promised_run(store, STEPS + 1, &p), STATUS_OK);
    assert_int_equal(current_number(store), STEPS + 1);
    store_close(store);
    assert_integrity(path);
    free(path);
    return store_fault.failures > 0;
}

struct way {
    const char *name;
    int error_number;
    bool persistent;
    bool torn;
    unsigned kinds;
    bool quick; /* the case also runs without REACH_LONG */
};

static void every_call(const struct way *way)
{
    uint64_t n = 1;
    bool failed = true;

    store_fault.error_number = way->error_number;
    store_fault.persistent = way->persistent;
    store_fault.torn = way->torn;
    store_fault.kinds = way->kinds;
    for (; failed && n < ALL_CALLS_LIMIT; n += test_share(1, SANITIZED_STEP)) {
        char *const directory = fixture_directory();
        store_fault.fail_at = n;
        failed = one_faulty_life(directory);
        fixture_remove(directory);
    }
    assert_true(n > 20 && n < ALL_CALLS_LIMIT);
    assert_true(store_fault.syncs >
                0); /* otherwise the linker has not used the functions of store_fault.c */
    print_message("%s: failed at each step of %llu calls\n", way->name,
                  (unsigned long long)(n - 2));
}

static void test_every_call(void **state)
{
    static const struct way ways[] = {
        {"EIO once", EIO, false, false, FAULT_ALL, true},
        {"EIO for good", EIO, true, false, FAULT_WRITES | FAULT_READS, false},
        {"EIO for good, writes alone", EIO, true, false, FAULT_WRITES, false},
        {"torn write", EIO, false, true, FAULT_WRITES, true},
        {"ENOSPC once", ENOSPC, false, true, FAULT_WRITES, false},
        {"ENOSPC for good", ENOSPC, true, true, FAULT_WRITES, true},
        {"EROFS for good", EROFS, true, false, FAULT_WRITES, false},
        {"EACCES once", EACCES, false, false, FAULT_ALL, false},
        {"ENOMEM once", ENOMEM, false, false, FAULT_ALL, false},
        {"locks that fail once", EIO, false, false, FAULT_LOCKS, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (ways[i].quick || getenv("REACH_LONG"))
            every_call(&ways[i]);
    }
}

/* Writes each acknowledged number to the pipe, until it is killed. */
static void store_until_killed(const char *path, uint32_t first, int pipe_fd)
{
    struct store *store = NULL;
    struct promise p = {0};

    if (store_open(path, &store, NULL) != STATUS_OK)
        _exit(1);
    for (uint32_t number = first;; number++) {
        if (promised_run(store, number, &p) != STATUS_OK)
            _exit(2);
        if (write(pipe_fd, &number, sizeof(number)) != sizeof(number))
            _exit(3);
    }
}

/* Lets a child store for a while, kills the child, and returns the last acknowledged number. If
 * `writing` is set, the time begins with the first acknowledgement, so that every machine has at
 * least one. */
static uint32_t killed_life(const char *path, uint32_t first, bool writing, struct rng *r)
{
    const struct timespec pause = {.tv_nsec = (long)(3000000 + rng_below(r, 30000000))};
    uint32_t number = first - 1;
    uint32_t said;
    int ends[2];
    int status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        close(ends[0]);
        store_until_killed(path, first, ends[1]);
    }
    close(ends[1]);
    if (writing && read(ends[0], &said, sizeof(said)) == sizeof(said))
        number = said;
    (void)nanosleep(&pause, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    while (read(ends[0], &said, sizeof(said)) == sizeof(said))
        number = said;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    return number;
}

/* Kills the writers of one file, one after the other. Returns the number of runs in the file. */
static uint32_t kill_again_and_again(int kills, struct rng *r)
{
    char *const directory = fixture_directory();
    char *const path = strdup(fixture_path(directory, "state.db"));
    uint32_t number = 0;

    for (int i = 0; i < kills; i++) {
        const uint32_t acknowledged = killed_life(path, number + 1, i % 2 == 0, r);
        struct store_health health;
        struct store *store = NULL;
        struct err err = {0};
        bool renewed = false;

        if (store_open(path, &store, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        number = current_number(store);
        /* The file has at most one run more than acknowledged, because the kill may happen between
         * the commit and the acknowledgement. */
        assert_in_range(number, acknowledged, acknowledged + 1);
        if (store_maintain(store, &renewed, &err) != STATUS_OK) /* the check reads every row */
            fail_msg("%s", err.text);
        store_health(store, &health);
        assert_false(renewed);
        assert_int_equal(health.damaged_rows + health.quarantined, 0);
        store_close(store);
        assert_integrity(path);
    }
    free(path);
    fixture_remove(directory);
    return number;
}

static void test_kill(void **state)
{
    struct rng r = {.state = 20261122};
    const int kills = getenv("REACH_LONG") ? KILLS_LONG : (int)test_share(KILLS, KILLS_OF_ONE_FILE);
    uint32_t runs = 0;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)r.state);
    for (int i = 0; i < kills; i += KILLS_OF_ONE_FILE)
        runs += kill_again_and_again(KILLS_OF_ONE_FILE, &r);
    print_message("%d kills, %u runs acknowledged, none lost\n", kills, runs);
    assert_true(runs > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call),
        cmocka_unit_test(test_kill),
    };

    return cmocka_run_group_tests(tests, install, NULL);
}
