/* test_store_faults.c: every system call that writes is made to fail at its n-th use, for n = 1, 2,
 * .. until a whole run passes without a fault; and the process is killed at arbitrary moments.
 *
 * What must hold, whatever fails:
 *   acknowledged means durable   what a call said it stored is there after the next start,
 * unchanged failed means the old state   to this process at once; after the next start the old
 * state, or the new one whole (an fsync that failed may have worked: store.c) never half no
 * fingerprint without its run, integrity_check says ok never stuck                  once the fault
 * is gone, the same file takes the next run
 *
 * SQLite's own calls go through a table of its VFS that can be patched in the process. fsync and
 * fdatasync are not in it; they are replaced by linking: a program's own symbol comes first.
 */
#include "base/assert.h"
#include "base/rng.h"
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    KILLS = 20,
    STEPS = 2, /* runs stored under fault */
    ALL_CALLS_LIMIT = 3000
};

/* Which call fails, and how. Calls of all kinds are counted together. */
static struct {
    bool armed;
    bool persistent; /* from the n-th on, all fail */
    bool torn;       /* a failing write leaves half of its bytes */
    int error_number;
    uint64_t fail_at;
    uint64_t calls;
    uint64_t failures;
    uint64_t syncs; /* reached, failed or not */
} fault;

static bool fails_now(void)
{
    if (!fault.armed)
        return false;
    fault.calls++;
    if (fault.calls != fault.fail_at && !(fault.persistent && fault.calls > fault.fail_at))
        return false;
    fault.failures++;
    return true;
}

static ssize_t faulty_pwrite(int fd, const void *data, size_t size, off_t offset)
{
    if (!fails_now())
        return pwrite(fd, data, size, offset);
    if (fault.torn && size > 1)
        (void)!pwrite(fd, data, size / 2, offset);
    errno = fault.error_number;
    return -1;
}

static ssize_t faulty_write(int fd, const void *data, size_t size)
{
    if (!fails_now())
        return write(fd, data, size);
    errno = fault.error_number;
    return -1;
}

static int faulty_ftruncate(int fd, off_t size)
{
    if (!fails_now())
        return ftruncate(fd, size);
    errno = fault.error_number;
    return -1;
}

static int faulty_open(const char *path, int flags, int mode)
{
    if (!(flags & O_CREAT) || !fails_now())
        return open(path, flags, mode);
    errno = fault.error_number;
    return -1;
}

static int faulty_unlink(const char *path)
{
    if (!fails_now())
        return unlink(path);
    errno = fault.error_number;
    return -1;
}

/* These two stand in for the C library's, in the whole program. */
int fsync(int fd)
{
    fault.syncs++;
    if (!fails_now())
        return (int)syscall(SYS_fsync, fd);
    errno = fault.error_number;
    return -1;
}

int fdatasync(int fd)
{
    fault.syncs++;
    if (!fails_now())
        return (int)syscall(SYS_fdatasync, fd);
    errno = fault.error_number;
    return -1;
}

static void patch(sqlite3_vfs *vfs, const char *name, sqlite3_syscall_ptr call)
{
    REACH_ASSERT(vfs->xSetSystemCall(vfs, name, call) == SQLITE_OK);
}

static int install(void **state)
{
    sqlite3_vfs *vfs;

    (void)state;
    REACH_ASSERT(sqlite3_initialize() == SQLITE_OK);
    vfs = sqlite3_vfs_find(NULL);
    patch(vfs, "pwrite", (sqlite3_syscall_ptr)faulty_pwrite);
    patch(vfs, "pwrite64", (sqlite3_syscall_ptr)faulty_pwrite);
    patch(vfs, "write", (sqlite3_syscall_ptr)faulty_write);
    patch(vfs, "ftruncate", (sqlite3_syscall_ptr)faulty_ftruncate);
    patch(vfs, "open", (sqlite3_syscall_ptr)faulty_open);
    patch(vfs, "unlink", (sqlite3_syscall_ptr)faulty_unlink);
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
    assert_int_equal(sqlite3_column_int(stmt, 0), 0); /* both or neither */
    sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Number of the current fingerprint, 0 where there is none; it must be what was written. */
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
    fingerprint_id(&fp, id);
    fingerprint_id(&original, original_id);
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

/* What the store has said it holds. */
struct promise {
    uint32_t number;       /* of the last fingerprint that was acknowledged */
    uint32_t tried;        /* of the last one that was tried */
    uint32_t observations; /* acknowledged */
    uint32_t tried_observations;
};

/* One run, with every acknowledgement noted. */
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
    s = store_finish_run(store, run, &fp, &err);
    if (s == STATUS_OK)
        p->number = number;
    else
        assert_true(strlen(err.text) > 10);
    return s;
}

/* In this process a failure has changed nothing. */
static void assert_kept_now(struct store *store, const struct promise *p)
{
    assert_int_equal(current_number(store), p->number);
    assert_int_equal(count_observations(store), p->observations);
}

/* After a start: nothing that was acknowledged is missing, nothing is there that was never tried.
 */
static void assert_kept_later(struct store *store, const struct promise *p)
{
    const uint32_t number = current_number(store);
    const uint32_t observations = count_observations(store);

    assert_true(number == p->number || number == p->tried);
    assert_in_range(observations, p->observations, p->tried_observations);
}

/* Opens, stores, closes, all under fault; then looks at what is left. Returns whether any call
 * failed: when none did, n is beyond the end. */
static bool one_faulty_life(const char *directory)
{
    char *const path = strdup(fixture_path(directory, "state.db"));
    struct promise p = {0};
    struct store *store = NULL;
    struct err err = {0};

    assert_non_null(path);
    fault.calls = fault.failures = 0;
    fault.armed = true;
    if (store_open(path, &store, &err) == STATUS_OK) {
        for (uint32_t i = 1; i <= STEPS; i++)
            (void)promised_run(store, i, &p);
        fault.armed = false; /* reading must work without a fault */
        assert_kept_now(store, &p);
        fault.armed = true;
        store_close(store);
    } else {
        assert_true(strlen(err.text) > 10);
    }
    fault.armed = false;

    if (store_open(path, &store, &err) != STATUS_OK)
        fail_msg("call %llu: %s", (unsigned long long)fault.fail_at, err.text);
    assert_kept_later(store, &p);
    assert_int_equal(promised_run(store, STEPS + 1, &p), STATUS_OK);
    assert_int_equal(current_number(store), STEPS + 1);
    store_close(store);
    assert_integrity(path);
    free(path);
    return fault.failures > 0;
}

static void every_call(int error_number, bool persistent, bool torn)
{
    uint64_t n = 1;
    bool failed = true;

    fault.error_number = error_number;
    fault.persistent = persistent;
    fault.torn = torn;
    for (; failed && n < ALL_CALLS_LIMIT; n++) {
        char *const directory = fixture_directory();
        fault.fail_at = n;
        failed = one_faulty_life(directory);
        fixture_remove(directory);
    }
    assert_true(n > 20 && n < ALL_CALLS_LIMIT);
    assert_true(fault.syncs > 0); /* or the linker has not put ours first */
    print_message("%llu calls failed in turn\n", (unsigned long long)(n - 2));
}

static void test_io_error_once(void **state)
{
    (void)state;
    every_call(EIO, false, false);
}

static void test_io_error_for_good(void **state)
{
    (void)state;
    every_call(EIO, true, false);
}

static void test_torn_write(void **state)
{
    (void)state;
    every_call(EIO, false, true);
}

static void test_no_space_once(void **state)
{
    (void)state;
    every_call(ENOSPC, false, true);
}

static void test_no_space_for_good(void **state)
{
    (void)state;
    every_call(ENOSPC, true, true);
}

/* Says on the pipe what has been acknowledged, until it is killed. */
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

/* Lets a child store for a while, kills it, and returns the last number it acknowledged. */
static uint32_t killed_life(const char *path, uint32_t first, struct rng *r)
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
    (void)nanosleep(&pause, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    while (read(ends[0], &said, sizeof(said)) == sizeof(said))
        number = said;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    return number;
}

static void test_kill(void **state)
{
    struct rng r = {.state = 20261122};
    char *const directory = fixture_directory();
    char *const path = strdup(fixture_path(directory, "state.db"));
    uint32_t number = 0;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)r.state);
    for (int i = 0; i < KILLS; i++) {
        const uint32_t acknowledged = killed_life(path, number + 1, &r);
        struct store *store = NULL;
        struct err err = {0};

        if (store_open(path, &store, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        number = current_number(store);
        /* At most one more than was said: the kill may fall between the commit and the word. */
        assert_in_range(number, acknowledged, acknowledged + 1);
        store_close(store);
        assert_integrity(path);
    }
    print_message("%u runs acknowledged, none lost\n", number);
    assert_true(number > 0);
    free(path);
    fixture_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_io_error_once),     cmocka_unit_test(test_io_error_for_good),
        cmocka_unit_test(test_torn_write),        cmocka_unit_test(test_no_space_once),
        cmocka_unit_test(test_no_space_for_good), cmocka_unit_test(test_kill),
    };

    return cmocka_run_group_tests(tests, install, NULL);
}
