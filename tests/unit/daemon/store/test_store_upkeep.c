/* test_store_upkeep.c: tests damage, faults and growth of the store while the daemon runs, and
 * copies that are made at the same time. */
#include "tests/unit/support/store_cases.h"
#include "tests/unit/support/store_fault.h"
#include "tests/unit/support/store_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define OTHER_UUID "SIM-00000000-0000-0000-0000-000000000002"

enum { PAGE_BYTES = 4096, EXIT_SKIPPED = 77 };

static struct store_health health_of(struct store *store)
{
    struct store_health health;

    store_health(store, &health);
    return health;
}

/* Runs one round of maintenance, which must return this status. */
static bool keep(struct store *store, enum status expected)
{
    struct err err = {0};
    bool renewed = false;
    const enum status s = store_maintain(store, &renewed, &err);

    if (s != expected)
        fail_msg("%s: %s", status_info(s)->slug, err.text);
    return renewed;
}

static bool lacks(struct store *store, const char *uuid)
{
    bool out = false;

    assert_int_equal(store_lacks_fingerprint(store, uuid, &out, NULL), STATUS_OK);
    return out;
}

static uint32_t current(struct store *store, const char *uuid)
{
    struct fingerprint fp;

    return store_current_fingerprint(store, uuid, &fp, NULL) == STATUS_OK ? fp.duration_ms : 0;
}

static int64_t number(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    int64_t n;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    n = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return n;
}

/* Every change to every kind of row is found, dropped and counted. No other row is dropped. */
static void test_damaged_rows_are_dropped(void **state)
{
    static const struct {
        const char *sql;
        uint32_t fingerprint; /* number of the current fingerprint after the change */
        bool lacks;
        int64_t observations;
    } cases[] = {
        {"UPDATE fingerprint SET document = replace(document, '0', '1') WHERE run = 3", 3, true, 6},
        {"UPDATE fingerprint SET uuid = 'SIM-other' WHERE run = 3", 3, true, 6},
        {"UPDATE fingerprint SET taken_at = taken_at + 1 WHERE run = 2", 3, false, 6},
        {"UPDATE fingerprint SET document_hash = 0 WHERE run = 3", 3, true, 6},
        {"UPDATE knowledge SET document = replace(document, '0', '1') WHERE run = 3", 2, true, 6},
        /* If both newer documents are damaged, the fingerprint of the oldest run is current. */
        {"UPDATE knowledge SET document = replace(document, '0', '1')", 1, true, 6},
        {"DELETE FROM knowledge WHERE run = 1;"
         "UPDATE knowledge SET document = replace(document, '0', '1')",
         3, true, 6},
        {"UPDATE fingerprint SET document = replace(document, '0', '1') WHERE run = 1", 3, false,
         6},
        {"UPDATE knowledge SET number = number + 7 WHERE run = 3", 2, true, 6},
        {"UPDATE knowledge SET taken_at = taken_at + 1 WHERE run = 2", 3, false, 6},
        {"UPDATE observation SET document = replace(document, '640', '641') WHERE id = 6", 3, false,
         5},
        {"UPDATE observation SET verdict = 'disturbed' WHERE id = 1", 3, false, 5},
        {"UPDATE observation SET id = 77 WHERE id = 1", 3, false, 5},
        {"UPDATE observation SET run = 2 WHERE id = 1", 3, false, 5},
        {"UPDATE observation SET checksum = checksum + 1", 3, false, 0},
        {"UPDATE run SET document = replace(document, '9.0', '9.1') WHERE id = 3", 2, true, 4},
        {"UPDATE run SET uuid = 'SIM-other' WHERE id = 3", 2, true, 4},
        {"UPDATE run SET failure_text = 'x' WHERE id = 2", 3, false, 4},
        {"UPDATE run SET state = 'failed' WHERE id = 3", 2, true, 4},
        {"PRAGMA ignore_check_constraints = 1; UPDATE run SET state = 'dome' WHERE id = 3", 2, true,
         4},
    };
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct store *store = fixture_open(path);
        int64_t bad;

        for (uint32_t n = 1; n <= 3; n++)
            fixture_run(store, FIXTURE_UUID, n, 2);
        store_close(store);
        fixture_tamper(path, cases[i].sql);
        print_message("%s\n", cases[i].sql);
        store = fixture_open(path);
        assert_false(keep(store, STATUS_OK));
        bad = (int64_t)health_of(store).damaged_rows;
        assert_true(bad > 0);
        assert_int_equal(current(store, FIXTURE_UUID), cases[i].fingerprint);
        assert_int_equal(lacks(store, FIXTURE_UUID), cases[i].lacks);
        assert_false(keep(store, STATUS_OK));
        assert_int_equal(health_of(store).damaged_rows, bad);
        fixture_run(store, FIXTURE_UUID, 9, 1); /* a new measurement replaces the missing data */
        assert_false(lacks(store, FIXTURE_UUID));
        store_close(store);
        assert_int_equal(number(path, "SELECT count(*) FROM observation"),
                         cases[i].observations + 1);
        assert_int_equal(number(path, "SELECT count(*) FROM damage"), bad);
        assert_int_equal(remove(path), 0);
    }
}

/* If a reader finds a damaged row, maintenance checks the file, even long after the start. */
static void test_a_reader_calls_upkeep(void **state)
{
    const char *const path = fixture_path(*state, "it");
    struct store *const store = fixture_open(path);
    struct store_observation_row rows[4];
    uint32_t count = 0;

    fixture_run(store, FIXTURE_UUID, 1, 2);
    assert_false(keep(store, STATUS_OK));
    fixture_tamper(fixture_path(*state, "it"),
                   "UPDATE observation SET started_at = 5 WHERE id = 1");
    assert_false(keep(store, STATUS_OK)); /* the damage is not detected yet */
    assert_int_equal(health_of(store).damaged_rows, 0);
    assert_int_equal(store_list_observations(store, FIXTURE_UUID, 0, 0, rows, 4, &count, NULL),
                     STATUS_OK);
    assert_int_equal(count, 1);
    store_wait(
        store,
        STORE_NO_TIMEOUT); /* this call must return immediately; otherwise the test never ends */
    assert_false(keep(store, STATUS_OK));
    assert_int_equal(health_of(store).damaged_rows, 1);
    store_close(store);
}

/* If pages contain random bytes, the file is moved aside while the daemon runs, and the numbers of
 * runs continue. */
static void test_damaged_pages(void **state)
{
    char path[512];
    char junk[PAGE_BYTES];
    struct store *store;
    int64_t last;
    int64_t next;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    store = fixture_open(path);
    for (uint32_t n = 1; n <= 3; n++)
        last = fixture_run(store, FIXTURE_UUID, n, 20);
    store_close(store);
    memset(junk, 0xa5, sizeof(junk));
    f = fopen(path, "r+b");
    assert_non_null(f);
    for (long page = 16; page < 24; page++) {
        assert_int_equal(fseek(f, page * PAGE_BYTES, SEEK_SET), 0);
        assert_int_equal(fwrite(junk, 1, sizeof(junk), f), sizeof(junk));
    }
    fclose(f);
    store = fixture_open(path); /* the header of the file is still valid */
    last = fixture_run(store, OTHER_UUID, 4, 1);
    assert_true(keep(store, STATUS_OK));
    assert_int_equal(health_of(store).quarantined, 1);
    assert_int_equal(health_of(store).last_error.status, STATUS_OK);
    assert_int_equal(current(store, FIXTURE_UUID), 0);
    assert_true(lacks(store, FIXTURE_UUID));
    next = fixture_run(store, FIXTURE_UUID, 5, 1);
    assert_true(next > last);
    assert_int_equal(current(store, FIXTURE_UUID), 5);
    store_close(store);
    store = fixture_open(path);
    assert_int_equal(current(store, FIXTURE_UUID), 5);
    assert_false(keep(store, STATUS_OK));
    store_close(store);
}

/* The disk refuses all writes. Reads still work, and the health of the store has the reason. Then
 * the disk accepts writes again. */
static void test_recovers(void **state)
{
    static const int errors[] = {ENOSPC, EROFS, EIO};
    struct store *const store = fixture_open(fixture_path(*state, "it"));
    struct err err = {0};
    bool renewed = false;
    int64_t run = 0;

    fixture_run(store, FIXTURE_UUID, 1, 1);
    assert_false(keep(store, STATUS_OK));
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t failed = health_of(store).failed_writes;

        store_fault = (struct store_fault){.armed = true,
                                           .persistent = true,
                                           .kinds = FAULT_WRITES,
                                           .error_number = errors[i],
                                           .fail_at = 1};
        assert_int_not_equal(fixture_store_run(store, FIXTURE_UUID, 7, 1, &run, &err), STATUS_OK);
        assert_int_equal(health_of(store).last_error.status, err.status);
        assert_true(health_of(store).last_error_since > 0);
        assert_int_equal(health_of(store).failed_writes, failed + 1);
        assert_int_equal(current(store, FIXTURE_UUID), 1 + i);
        assert_int_not_equal(store_maintain(store, &renewed, &err), STATUS_OK);
        assert_int_equal(health_of(store).last_error.status, err.status);
        store_wait(store, STORE_NO_TIMEOUT); /* the change wakes the waiting thread exactly once */
        store_wait(store, 1);
        assert_int_equal(current(store, FIXTURE_UUID), 1 + i);
        store_fault.armed = false;
        assert_false(keep(store, STATUS_OK));
        assert_int_equal(health_of(store).last_error.status, STATUS_OK);
        fixture_run(store, FIXTURE_UUID, 2 + i, 1);
        assert_int_equal(current(store, FIXTURE_UUID), 2 + i);
    }
    store_close(store);
}

/* If the directory is absent at the start, the store is empty and reports an error. When the
 * directory exists, the store works. */
static void test_starts_without_a_directory(void **state)
{
    char path[512];
    struct store *store = NULL;
    struct err err = {0};
    int64_t run = 0;

    (void)snprintf(path, sizeof(path), "%s/later/it", (const char *)*state);
    assert_int_equal(store_open_degraded(path, &store, &err), STATUS_OK);
    assert_int_equal(health_of(store).last_error.status, STATUS_IO);
    assert_int_equal(current(store, FIXTURE_UUID), 0);
    assert_int_equal(fixture_store_run(store, FIXTURE_UUID, 1, 1, &run, &err), STATUS_IO);
    keep(store, STATUS_IO);
    assert_int_equal(mkdir(fixture_path(*state, "later"), 0700), 0);
    assert_false(keep(store, STATUS_OK));
    assert_int_equal(health_of(store).last_error.status, STATUS_OK);
    fixture_run(store, FIXTURE_UUID, 2, 1);
    store_close(store);
    store = fixture_open(path);
    assert_int_equal(current(store, FIXTURE_UUID), 2);
    store_close(store);
    (void)remove(path);
    (void)remove(fixture_path(*state, "later/it-lock"));
    (void)remove(fixture_path(*state, "later"));
}

/* Begins a run at the first moment when the store accepts it, and ends the run. */
static void *begin_and_finish(void *self)
{
    int64_t run = 0;
    enum status s;

    do
        s = fixture_store_run(self, FIXTURE_UUID, 1, 1, &run, NULL);
    while (s == STATUS_IO);
    return (void *)(uintptr_t)s;
}

/* A run that begins at the moment when the file becomes writable is not treated as interrupted. */
static void test_recovery_ends_no_new_run(void **state)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/later/it", (const char *)*state);
    for (int i = 0; i < 20; i++) {
        struct store *store = NULL;
        pthread_t thread;
        void *result = NULL;

        assert_int_equal(store_open_degraded(path, &store, NULL), STATUS_OK);
        assert_int_equal(pthread_create(&thread, NULL, begin_and_finish, store), 0);
        assert_int_equal(mkdir(fixture_path(*state, "later"), 0700), 0);
        keep(store, STATUS_OK);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_int_equal((uintptr_t)result, STATUS_OK);
        store_close(store);
        assert_int_equal(remove(path), 0);
        assert_int_equal(remove(fixture_path(*state, "later/it-lock")), 0);
        assert_int_equal(remove(fixture_path(*state, "later")), 0);
    }
}

/* A file in use, a file of a newer release and an empty path are still refused. */
static void test_refuses_at_the_start(void **state)
{
    char path[512];
    struct store *store = NULL;
    struct store *second = NULL;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    store = fixture_open(path);
    assert_int_equal(store_open_degraded(path, &second, NULL), STATUS_CONFLICT);
    store_close(store);
    fixture_tamper(path, "PRAGMA user_version = 1000");
    assert_int_equal(store_open_degraded(path, &second, NULL), STATUS_NOT_SUPPORTED);
    assert_int_equal(store_open_degraded("", &second, NULL), STATUS_INVALID_ARGUMENT);
    assert_null(second);
}

/* This function runs in a child with a file system of its own, which is read-only at the start and
 * writable later. If `killed` is set, the previous daemon left a log that was not merged. */
static int serve_read_only(const char *directory, bool killed)
{
    const char *const path = fixture_path(directory, "it");
    struct store *store = NULL;
    struct err err = {0};
    bool renewed = false;
    int64_t run = 0;

    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", directory, "tmpfs", 0, "size=4m") != 0)
        return EXIT_SKIPPED;
    const pid_t child = fork();
    if (child == 0) {
        if (store_open(path, &store, NULL) != STATUS_OK ||
            fixture_store_run(store, FIXTURE_UUID, 1, 1, &run, NULL) != STATUS_OK)
            _exit(1);
        if (!killed)
            store_close(store);
        _exit(0);
    }
    if (waitpid(child, NULL, 0) != child ||
        mount("none", directory, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return EXIT_SKIPPED;
    if (store_open_degraded(path, &store, NULL) != STATUS_OK)
        return 1;
    if (health_of(store).last_error.status != STATUS_READ_ONLY)
        return 2;
    if (current(store, FIXTURE_UUID) != 1)
        return 3;
    if (fixture_store_run(store, FIXTURE_UUID, 2, 1, &run, NULL) != STATUS_READ_ONLY)
        return 4;
    if (store_maintain(store, &renewed, NULL) != STATUS_READ_ONLY)
        return 5;
    if (mount("none", directory, "tmpfs", MS_REMOUNT, NULL) != 0)
        return EXIT_SKIPPED;
    if (store_maintain(store, &renewed, &err) != STATUS_OK ||
        health_of(store).last_error.status != STATUS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 6;
    }
    if (current(store, FIXTURE_UUID) != 1 ||
        fixture_store_run(store, FIXTURE_UUID, 2, 1, &run, NULL) != STATUS_OK ||
        current(store, FIXTURE_UUID) != 2)
        return 7;
    store_close(store);
    return 0;
}

static void expect_child(int (*body)(const char *, bool), const char *directory, bool flag)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0)
        _exit(body(directory, flag));
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == EXIT_SKIPPED)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_read_only_at_the_start(void **state)
{
    expect_child(serve_read_only, *state, false);
}

static void test_read_only_after_a_kill(void **state)
{
    expect_child(serve_read_only, *state, true);
}

/* A run that a killed daemon has not ended does not stay in the state "running". */
static void test_cut_runs_end(void **state)
{
    const char *const path = fixture_path(*state, "it");
    struct store *store = fixture_open(path);
    const struct gpu_identity gpu = fixture_gpu(FIXTURE_UUID);
    const struct gpu_limits limits = fixture_limits();
    struct observation_set set;
    int64_t run = 0;

    assert_int_equal(store_begin_run(store, &gpu, &limits, DEPTH_FULL, 1, &run, NULL), STATUS_OK);
    store_close(store);
    store = fixture_open(fixture_path(*state, "it"));
    assert_int_equal(store_load_run(store, run, &set, NULL),
                     STATUS_OK); /* the checksum of the run is valid */
    observation_set_free(&set);
    store_close(store);
    assert_int_equal(number(fixture_path(*state, "it"),
                            "SELECT count(*) FROM run WHERE state = 'failed' AND "
                            "failure = 'cancelled' AND ended_at IS NOT NULL"),
                     1);
}

/* While the store is opened, every call from the n-th on fails, for each n. Later the disk works
 * again. */
static void test_cut_runs_end_when_the_disk_works_again(void **state)
{
    const struct gpu_identity gpu = fixture_gpu(FIXTURE_UUID);
    const struct gpu_limits limits = fixture_limits();
    uint64_t failures = 1;
    uint32_t seen = 0;

    for (uint64_t n = 1; failures > 0; n++) {
        const char *const path = fixture_path(*state, "it");
        struct store *store = fixture_open(path);
        int64_t run = 0;

        assert_int_equal(store_begin_run(store, &gpu, &limits, DEPTH_FULL, 1, &run, NULL),
                         STATUS_OK);
        store_close(store);
        store_fault = (struct store_fault){.armed = true,
                                           .persistent = true,
                                           .skip_syncs = true,
                                           .error_number = EIO,
                                           .kinds = FAULT_WRITES,
                                           .fail_at = n};
        const enum status s = store_open_degraded(path, &store, NULL);
        failures = store_fault.failures;
        store_fault = (struct store_fault){.skip_syncs = true};
        assert_int_equal(s, STATUS_OK);
        seen += health_of(store).last_error.status != STATUS_OK;
        keep(store, STATUS_OK);
        assert_int_equal(health_of(store).last_error.status, STATUS_OK);
        assert_int_equal(store_begin_run(store, &gpu, &limits, DEPTH_FULL, 1, &run, NULL),
                         STATUS_OK);
        store_close(store);
        assert_int_equal(number(path, "SELECT count(*) FROM run WHERE state = 'running'"), 1);
    }
    assert_true(seen > 1);
}

static void test_limits(void **state)
{
    char path[512];
    struct store_limits limits = {
        .runs = 5, .observed = 2, .bytes = (uint64_t)1 << 30, .damage = 3};
    const struct err why = {.status = STATUS_GPU_BUSY, .text = "busy"};
    const struct gpu_identity gpu = fixture_gpu(OTHER_UUID);
    const struct gpu_limits gpu_limits = fixture_limits();
    struct store *store;
    int64_t run;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    store = fixture_open(path);
    store_set_limits(store, &limits);
    fixture_run(store, OTHER_UUID, 50, 3);
    for (uint32_t n = 1; n <= 9; n++) {
        fixture_run(store, FIXTURE_UUID, n, 3);
        assert_int_equal(store_begin_run(store, &gpu, &gpu_limits, DEPTH_FULL, 1, &run, NULL),
                         STATUS_OK);
        assert_int_equal(store_fail_run(store, run, &why, NULL), STATUS_OK);
        assert_false(keep(store, STATUS_OK));
    }
    /* The current fingerprint of the other GPU is from its oldest run, which is kept as a whole. */
    assert_int_equal(current(store, OTHER_UUID), 50);
    assert_int_equal(number(path, "SELECT count(*) FROM observation WHERE run = 1"), 3);
    assert_int_equal(
        number(path, "SELECT count(*) FROM fingerprint WHERE uuid = '" FIXTURE_UUID "'"), 5);
    assert_int_equal(number(path, "SELECT count(*) FROM run WHERE uuid = '" OTHER_UUID "'"), 6);
    assert_int_equal(number(path, "SELECT count(DISTINCT run) FROM observation"), 3);
    assert_int_equal(current(store, FIXTURE_UUID), 9);

    limits.bytes = 1; /* the limit is too low for any history, so only current data stays */
    store_set_limits(store, &limits);
    fixture_run(store, FIXTURE_UUID, 10, 3);
    assert_false(keep(store, STATUS_OK));
    assert_int_equal(number(path, "SELECT count(DISTINCT run) FROM observation"), 2);
    assert_int_equal(current(store, FIXTURE_UUID), 10);
    store_close(store);
}

struct writing {
    struct store *store;
    atomic_bool stop;
    uint32_t last;
};

static void *write_on(void *argument)
{
    struct writing *const w = argument;
    int64_t run = 0;

    for (uint32_t n = 1; !atomic_load(&w->stop); n++) {
        if (fixture_store_run(w->store, FIXTURE_UUID, n, 2, &run, NULL) != STATUS_OK)
            break;
        w->last = n;
    }
    return NULL;
}

/* Copies are made during writes. Each copy can be opened, is complete, and is no older than the
 * previous copy. */
static void test_backup(void **state)
{
    char path[512];
    char to[512];
    struct writing w = {0};
    uint32_t before = 0;
    uint64_t rows = 0;
    pthread_t thread;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    w.store = fixture_open(path);
    fixture_run(w.store, FIXTURE_UUID, 1, 2);
    assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
    for (int i = 0; i < 5; i++) {
        struct store *copy;
        struct err err = {0};
        uint32_t now;

        (void)snprintf(to, sizeof(to), "%s/copy%d", (const char *)*state, i);
        if (store_backup(path, to, &rows, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        assert_true(rows > 0);
        assert_int_equal(store_backup(path, to, NULL, NULL), STATUS_CONFLICT);
        copy = fixture_open(to);
        now = current(copy, FIXTURE_UUID);
        assert_true(now >= before && now > 0);
        before = now;
        assert_false(keep(copy, STATUS_OK));
        assert_int_equal(health_of(copy).damaged_rows, 0);
        store_close(copy);
    }
    atomic_store(&w.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    store_close(w.store);
    assert_int_equal(store_backup(fixture_path(*state, "nothing"), to, NULL, NULL),
                     STATUS_CONFLICT);
    (void)snprintf(to, sizeof(to), "%s/another", (const char *)*state);
    assert_int_equal(store_backup(fixture_path(*state, "nothing"), to, NULL, NULL),
                     STATUS_NOT_FOUND);
    assert_int_equal(store_backup(path, to, NULL, NULL), STATUS_OK); /* no daemon uses the file */
}

static void test_backup_of_damage(void **state)
{
    char path[512];
    char to[512];
    struct store *store;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    (void)snprintf(to, sizeof(to), "%s/copy", (const char *)*state);
    store = fixture_open(path);
    fixture_run(store, FIXTURE_UUID, 1, 2);
    store_close(store);
    fixture_tamper(path, "UPDATE observation SET document = 'x' WHERE id = 1");
    assert_int_equal(store_backup(path, to, NULL, NULL), STATUS_CORRUPT);
    assert_int_equal(access(to, F_OK), -1);
    fixture_write(path, "something else", 14);
    assert_int_equal(store_backup(path, to, NULL, NULL), STATUS_CORRUPT);
}

static void *keep_on(void *argument)
{
    struct writing *const w = argument;
    bool renewed = false;

    while (!atomic_load(&w->stop)) {
        (void)store_maintain(w->store, &renewed, NULL);
        store_wait(w->store, STORE_NO_TIMEOUT);
    }
    return NULL;
}

/* Maintenance runs beside writers and readers, and is stopped while it waits. */
static void test_upkeep_beside_others(void **state)
{
    struct writing w = {.store = fixture_open(fixture_path(*state, "it"))};
    const struct store_limits limits = {.runs = 3, .observed = 1, .bytes = 1 << 20, .damage = 3};
    pthread_t threads[2];

    store_set_limits(w.store, &limits);
    assert_int_equal(pthread_create(&threads[0], NULL, keep_on, &w), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, write_on, &w), 0);
    for (int i = 0; i < 200 || current(w.store, FIXTURE_UUID) < 20; i++)
        (void)current(w.store, FIXTURE_UUID);
    atomic_store(&w.stop, true);
    store_wake(w.store);
    assert_int_equal(pthread_join(threads[1], NULL), 0);
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    assert_int_equal(current(w.store, FIXTURE_UUID), w.last);
    assert_int_equal(health_of(w.store).damaged_rows, 0);
    store_close(w.store);
}

static int set_up(void **state)
{
    store_fault = (struct store_fault){.skip_syncs = true};
    return fixture_set_up(state);
}

static int install(void **state)
{
    (void)state;
    store_fault_install();
    return 0;
}

#define WITH_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_damaged_rows_are_dropped),
        WITH_DIRECTORY(test_a_reader_calls_upkeep),
        WITH_DIRECTORY(test_damaged_pages),
        WITH_DIRECTORY(test_recovers),
        WITH_DIRECTORY(test_starts_without_a_directory),
        WITH_DIRECTORY(test_recovery_ends_no_new_run),
        WITH_DIRECTORY(test_refuses_at_the_start),
        WITH_DIRECTORY(test_read_only_at_the_start),
        WITH_DIRECTORY(test_read_only_after_a_kill),
        WITH_DIRECTORY(test_cut_runs_end),
        WITH_DIRECTORY(test_cut_runs_end_when_the_disk_works_again),
        WITH_DIRECTORY(test_limits),
        WITH_DIRECTORY(test_backup),
        WITH_DIRECTORY(test_backup_of_damage),
        WITH_DIRECTORY(test_upkeep_beside_others),
    };

    return cmocka_run_group_tests(tests, install, NULL);
}
