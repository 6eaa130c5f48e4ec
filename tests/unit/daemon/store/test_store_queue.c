/* test_store_queue.c: results are served even if the disk fails. Data that cannot be written is
 * kept in memory, served from there, and stored in order when writing works again. The health of
 * the store has an error until all data is stored. */
#include "store/store_queue.h"

#include "fingerprint/fingerprint_json.h"
#include "tests/unit/support/store_cases.h"
#include "tests/unit/support/store_fault.h"
#include "tests/unit/support/store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    EXIT_SKIPPED = 77,
    LARGE = 30000,
    SMALL = 40,
    CHECKS = 5,
    TURNS = 20,
    RUNS_OF_A_THREAD = 30
};

static struct store_health health_of(struct store *store)
{
    struct store_health health;

    store_health(store, &health);
    return health;
}

static enum status maintain(struct store *store)
{
    bool renewed = false;

    return store_maintain(store, &renewed, NULL);
}

static void break_writes(int error_number)
{
    store_fault = (struct store_fault){.armed = true,
                                       .persistent = true,
                                       .kinds = FAULT_WRITES,
                                       .error_number = error_number,
                                       .fail_at = 1};
}

static void repair_writes(void)
{
    store_fault = (struct store_fault){.skip_syncs = true};
}

static struct store_run *begin(struct store *store)
{
    const struct gpu_identity gpu = fixture_gpu(FIXTURE_UUID);
    const struct gpu_limits limits = fixture_limits();
    struct store_run *run = NULL;

    assert_int_equal(store_run_begin(store, &gpu, &limits, DEPTH_FULL, 1700000000, &run, NULL),
                     STATUS_OK);
    return run;
}

static void observe(struct store *store, struct store_run *run, uint32_t number, uint32_t values)
{
    struct observation o = fixture_observation(number, values);

    assert_int_equal(store_run_observe(store, run, &o, NULL), STATUS_OK);
    observation_free(&o);
}

static void finish(struct store *store, struct store_run *take, uint32_t number)
{
    struct fingerprint fp;

    fixture_fingerprint(FIXTURE_UUID, number, &fp);
    assert_int_equal(store_run_finish(store, take, &fp, &fp, NULL), STATUS_OK);
}

static void whole_run(struct store *store, uint32_t number, uint32_t observations)
{
    struct store_run *const run = begin(store);

    for (uint32_t i = 0; i < observations; i++)
        observe(store, run, 10 * number + i, SMALL);
    finish(store, run, number);
}

/* Returns the number of the current fingerprint, or 0 if there is none. */
static uint32_t current(struct store *store)
{
    struct fingerprint fp;

    return store_current_fingerprint(store, FIXTURE_UUID, &fp, NULL) == STATUS_OK ? fp.duration_ms
                                                                                  : 0;
}

static void assert_found(struct store *store, uint32_t number)
{
    struct fingerprint fp;
    char id[FINGERPRINT_ID_BYTES];

    fixture_fingerprint(FIXTURE_UUID, number, &fp);
    assert_int_equal(fingerprint_id(&fp, id, NULL), STATUS_OK);
    assert_int_equal(store_fingerprint(store, FIXTURE_UUID, id, &fp, NULL), STATUS_OK);
    assert_int_equal(fp.duration_ms, number);
}

/* Checks that the file contains the observations with these numbers, newest first. */
static void assert_observations(struct store *store, const uint32_t *numbers, uint32_t count)
{
    struct store_observation_row rows[64];
    uint32_t found = 0;

    assert_int_equal(store_list_observations(store, FIXTURE_UUID, 0, 0, rows, 64, &found, NULL),
                     STATUS_OK);
    assert_int_equal(found, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(rows[i].started_at, 1700000000 + numbers[i]);
}

/* While writing fails, for any reason, all data is served from memory. Later the file contains all
 * data, in order. */
static void test_kept_and_stored_in_order(void **state)
{
    static const int errors[] = {ENOSPC, EDQUOT, EROFS, EIO};
    static const uint32_t numbers[] = {41, 40, 31, 30, 21, 20, 10};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        char path[512];
        struct store *store;
        struct store_run *run;
        bool lacks = true;

        (void)snprintf(path, sizeof(path), "%s/it%zu", (const char *)*state, i);
        store = fixture_open(path);
        whole_run(store, 1, 1);
        run = begin(store);
        observe(store, run, 20, SMALL); /* the data is stored in the file */
        break_writes(errors[i]);
        observe(store, run, 21, SMALL);
        assert_int_equal(current(store), 1);
        finish(store, run, 2);
        whole_run(store, 3, 2);
        assert_int_equal(current(store), 3);
        assert_found(store, 1);
        assert_found(store, 2);
        assert_found(store, 3);
        assert_int_equal(store_lacks_fingerprint(store, FIXTURE_UUID, &lacks, NULL), STATUS_OK);
        assert_false(lacks);
        assert_int_equal(health_of(store).unwritten.fingerprints, 2);
        assert_int_equal(health_of(store).unwritten.observations, 3);
        for (int n = 0; n < CHECKS; n++) {
            assert_int_not_equal(maintain(store), STATUS_OK);
            assert_int_not_equal(health_of(store).last_error.status, STATUS_OK);
        }
        repair_writes();
        assert_int_equal(maintain(store), STATUS_OK);
        assert_int_equal(health_of(store).last_error.status, STATUS_OK);
        assert_int_equal(health_of(store).unwritten.fingerprints, 0);
        assert_int_equal(health_of(store).unwritten.observations, 0);
        assert_int_equal(health_of(store).dropped.observations, 0);
        whole_run(store, 4, 2);
        store_close(store);
        store = fixture_open(path);
        assert_int_equal(current(store), 4);
        assert_found(store, 2);
        assert_found(store, 3);
        assert_observations(store, numbers, 7);
        store_close(store);
    }
}

/* If a run fails while the disk fails, the file later contains the run as failed. */
static void test_a_failed_run_is_kept(void **state)
{
    struct store *const store = fixture_open(fixture_path(*state, "it"));
    struct observation_set set;
    struct store_run *run;
    struct err why = {0};

    break_writes(ENOSPC);
    run = begin(store);
    observe(store, run, 1, SMALL);
    err_set(&why, STATUS_DISTURBED, "the votes disagree");
    assert_int_equal(store_run_fail(store, run, &why, NULL), STATUS_OK);
    assert_int_equal(health_of(store).unwritten.fingerprints, 0);
    repair_writes();
    assert_int_equal(maintain(store), STATUS_OK);
    assert_int_equal(store_load_run(store, 1, &set, NULL), STATUS_OK);
    assert_int_equal(set.count, 1);
    observation_set_free(&set);
    store_close(store);
    fixture_tamper(fixture_path(*state, "it"),
                   "CREATE TEMP TABLE t (n CHECK (n = 1)); INSERT INTO t SELECT count(*) FROM run "
                   "WHERE state = 'failed' AND failure_text = 'the votes disagree'");
}

/* The error stays until maintenance has written all data, because one small successful write proves
 * nothing. */
static void test_a_small_write_is_no_recovery(void **state)
{
    struct store *const store = fixture_open(fixture_path(*state, "it"));
    int64_t run = 0;

    break_writes(ENOSPC);
    whole_run(store, 1, 1);
    repair_writes();
    assert_int_equal(fixture_store_run(store, FIXTURE_UUID, 2, 1, &run, NULL), STATUS_OK);
    assert_int_equal(health_of(store).last_error.status, STATUS_FULL);
    assert_int_equal(health_of(store).unwritten.fingerprints, 1);
    assert_int_equal(maintain(store), STATUS_OK);
    assert_int_equal(health_of(store).last_error.status, STATUS_OK);
    store_close(store);
}

/* Beyond the limit, all observations of the oldest run are dropped first, then old fingerprints. */
static void test_limit(void **state)
{
    static const uint32_t numbers[] = {32, 31, 30};
    struct store *const store = fixture_open(fixture_path(*state, "it"));

    break_writes(ENOSPC);
    whole_run(store, 1, 3);
    whole_run(store, 2, 3);
    store_queue_set_limit(store, (size_t)3 * 2 * sizeof(struct fingerprint) + 65536);
    whole_run(store, 3, 3);
    assert_int_equal(health_of(store).dropped.observations, 0);
    whole_run(store, 4, 0);
    assert_int_equal(health_of(store).dropped.fingerprints, 1);
    assert_int_equal(health_of(store).dropped.observations, 9);
    assert_int_equal(health_of(store).unwritten.fingerprints, 3);
    assert_int_equal(current(store), 4);
    repair_writes();
    assert_int_equal(maintain(store), STATUS_OK);
    assert_found(store, 2);
    assert_found(store, 4);
    assert_observations(store, numbers, 0);
    store_close(store);
}

/* If some observations of a run were dropped, later observations of the run are not stored. */
static void test_dropped_observations_are_whole_runs(void **state)
{
    static const uint32_t numbers[] = {50};
    struct store *const store = fixture_open(fixture_path(*state, "it"));
    struct store_run *run;

    break_writes(ENOSPC);
    store_queue_set_limit(store, 100000);
    run = begin(store);
    observe(store, run, 1, SMALL);
    observe(store, run, 2, LARGE); /* more observations than the limit */
    observe(store, run, 3, SMALL);
    assert_int_equal(health_of(store).dropped.observations, 3);
    store_queue_set_limit(store, STORE_QUEUE_LIMIT_BYTES);
    finish(store, run, 1);
    whole_run(store, 5, 1);
    repair_writes();
    assert_int_equal(maintain(store), STATUS_OK);
    assert_found(store, 1);
    assert_observations(store, numbers, 1);
    store_close(store);
}

/* The file no longer contains the run, so the run is added to the file again. */
static void test_a_run_begins_again(void **state)
{
    static const uint32_t numbers[] = {2};
    char path[512];
    struct store *store;
    struct store_run *run;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    store = fixture_open(path);
    run = begin(store);
    observe(store, run, 1, SMALL);
    fixture_tamper(path, "PRAGMA foreign_keys = ON; DELETE FROM run");
    observe(store, run, 2, SMALL);
    finish(store, run, 1);
    assert_int_equal(current(store), 1);
    assert_observations(store, numbers, 1);
    assert_int_equal(health_of(store).last_error.status, STATUS_OK);
    store_close(store);
}

/* Returns whether another process detects that this process has the database open. SQLite locks a
 * range of bytes for this purpose. */
static bool is_seen_as_open(const char *path)
{
    enum { SHARED_FIRST = 0x40000002, SHARED_SIZE = 510 };
    const pid_t child = fork();
    int status = 0;

    if (child == 0) {
        struct flock lock = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SHARED_FIRST, .l_len = SHARED_SIZE};
        const int fd = open(path, O_RDWR | O_CLOEXEC);

        _exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* Without the lock, the next process that reads the file removes the log in use, and later data
 * is lost. */
static void test_the_file_stays_locked(void **state)
{
    char path[512];
    struct store *store;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    store = fixture_open(path);
    whole_run(store, 1, 1);
    assert_true(is_seen_as_open(path));
    break_writes(EIO);
    whole_run(store, 2, 1);
    repair_writes();
    assert_int_equal(maintain(store), STATUS_OK);
    whole_run(store, 3, 1);
    assert_true(is_seen_as_open(path));
    store_close(store);
}

/* If the directory is absent at the start, results are kept in memory until the directory
 * exists. */
static void test_starts_without_a_directory(void **state)
{
    char path[512];
    struct store *store = NULL;

    (void)snprintf(path, sizeof(path), "%s/later/it", (const char *)*state);
    assert_int_equal(store_open_degraded(path, &store, NULL), STATUS_OK);
    whole_run(store, 1, 2);
    assert_int_equal(current(store), 1);
    assert_int_equal(maintain(store), STATUS_IO);
    assert_int_equal(mkdir(fixture_path(*state, "later"), 0700), 0);
    assert_int_equal(maintain(store), STATUS_OK);
    store_close(store);
    store = fixture_open(path);
    assert_int_equal(current(store), 1);
    store_close(store);
    (void)remove(path);
    (void)remove(fixture_path(*state, "later/it-lock"));
    (void)remove(fixture_path(*state, "later"));
}

/* Closing the store makes one more attempt to write. */
static void test_close_stores_what_waits(void **state)
{
    char path[512];
    struct store *store;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    store = fixture_open(path);
    break_writes(EIO);
    whole_run(store, 1, 2);
    repair_writes();
    store_close(store);
    store = fixture_open(path);
    assert_int_equal(current(store), 1);
    break_writes(EIO);
    whole_run(store, 2, 2);
    store_close(store); /* these runs cannot be stored and are lost */
    repair_writes();
    store = fixture_open(path);
    assert_int_equal(current(store), 1);
    store_close(store);
}

struct writer {
    struct store *store;
    const char *uuid;
    uint32_t runs;
};

static void *store_runs(void *self)
{
    const struct writer *const w = self;
    const struct gpu_identity gpu = fixture_gpu(w->uuid);
    const struct gpu_limits limits = fixture_limits();

    for (uint32_t n = 1; n <= w->runs; n++) {
        struct store_run *run = NULL;
        struct fingerprint fp;

        fixture_fingerprint(w->uuid, n, &fp);
        assert_int_equal(store_run_begin(w->store, &gpu, &limits, DEPTH_FULL, n, &run, NULL),
                         STATUS_OK);
        observe(w->store, run, n, SMALL);
        assert_int_equal(store_run_finish(w->store, run, &fp, &fp, NULL), STATUS_OK);
    }
    return NULL;
}

/* Allows files of any size, or of at most one byte. */
static void allow_writes(bool allowed)
{
    static struct rlimit before;
    struct rlimit now;

    if (before.rlim_max == 0)
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    now = before;
    if (!allowed)
        now.rlim_cur = 1;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
}

static void assert_all_in_order(struct store *store, const struct writer *w)
{
    struct store_fingerprint_row rows[RUNS_OF_A_THREAD + 1];
    uint32_t count = 0;

    assert_int_equal(
        store_list_fingerprints(store, w->uuid, 0, rows, RUNS_OF_A_THREAD + 1, &count, NULL),
        STATUS_OK);
    assert_int_equal(count, RUNS_OF_A_THREAD);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(rows[i].duration_ms, RUNS_OF_A_THREAD - i);
}

/* Two threads measure while writing fails and works in turn, and maintenance writes the waiting
 * data. */
static void test_threads(void **state)
{
    struct store *const store = fixture_open(fixture_path(*state, "it"));
    const struct timespec moment = {.tv_nsec = 2 * 1000 * 1000};
    struct writer writers[2] = {
        {store, FIXTURE_UUID, RUNS_OF_A_THREAD},
        {store, "SIM-00000000-0000-0000-0000-000000000002", RUNS_OF_A_THREAD}};
    pthread_t threads[2];

    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, store_runs, &writers[i]), 0);
    for (int i = 0; i < TURNS; i++) {
        allow_writes(i % 2 == 1);
        (void)maintain(store);
        nanosleep(&moment, NULL);
    }
    allow_writes(true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(maintain(store), STATUS_OK);
    assert_int_equal(health_of(store).last_error.status, STATUS_OK);
    assert_int_equal(health_of(store).unwritten.fingerprints, 0);
    for (int i = 0; i < 2; i++)
        assert_all_in_order(store, &writers[i]);
    store_close(store);
}

/* Writes to a file until the disk is full. */
static bool fill(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char piece[4096];

    memset(piece, 'x', sizeof(piece));
    while (fd >= 0 && write(fd, piece, sizeof(piece)) > 0)
        ;
    if (fd >= 0)
        close(fd);
    return fd >= 0 && errno == ENOSPC;
}

/* This function runs in a child with a small disk of its own. The log on that disk has room for
 * small writes. */
static int on_a_full_disk(const char *directory)
{
    char filling[512];
    struct store *store;

    (void)snprintf(filling, sizeof(filling), "%s/filling", directory);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", directory, "tmpfs", 0, "size=4m") != 0)
        return EXIT_SKIPPED;
    store = fixture_open(fixture_path(directory, "it"));
    whole_run(store, 1, 3);
    fixture_tamper(fixture_path(directory, "it"), "PRAGMA wal_checkpoint(RESTART)");
    assert_true(fill(filling));
    for (uint32_t n = 2; health_of(store).last_error.status == STATUS_OK; n++) {
        struct store_run *const run = begin(store);

        observe(store, run, 10 * n, LARGE);
        finish(store, run, n);
        assert_int_equal(current(store), n);
    }
    assert_int_equal(health_of(store).last_error.status, STATUS_FULL);
    for (int n = 0; n < CHECKS; n++) {
        whole_run(store, 100, 1);
        assert_int_equal(maintain(store), STATUS_FULL);
        assert_int_equal(health_of(store).last_error.status, STATUS_FULL);
    }
    assert_int_equal(remove(filling), 0);
    assert_int_equal(maintain(store), STATUS_OK);
    assert_int_equal(health_of(store).last_error.status, STATUS_OK);
    assert_int_equal(health_of(store).unwritten.fingerprints, 0);
    store_close(store);
    store = fixture_open(fixture_path(directory, "it"));
    assert_int_equal(current(store), 100);
    store_close(store);
    return 0;
}

static void test_full_disk(void **state)
{
    const pid_t child = fork();
    int status = 0;

    if (child == 0)
        _exit(on_a_full_disk(*state));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == EXIT_SKIPPED)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int set_up(void **state)
{
    repair_writes();
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
        WITH_DIRECTORY(test_kept_and_stored_in_order),
        WITH_DIRECTORY(test_a_failed_run_is_kept),
        WITH_DIRECTORY(test_a_small_write_is_no_recovery),
        WITH_DIRECTORY(test_limit),
        WITH_DIRECTORY(test_dropped_observations_are_whole_runs),
        WITH_DIRECTORY(test_a_run_begins_again),
        WITH_DIRECTORY(test_the_file_stays_locked),
        WITH_DIRECTORY(test_starts_without_a_directory),
        WITH_DIRECTORY(test_close_stores_what_waits),
        WITH_DIRECTORY(test_threads),
        WITH_DIRECTORY(test_full_disk),
    };

    return cmocka_run_group_tests(tests, install, NULL);
}
