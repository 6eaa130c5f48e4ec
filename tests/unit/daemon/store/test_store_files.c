/* test_store_files.c: owners of the file, and errors because of a full disk, missing permission or
 * damage. Files of other programs stay unchanged, and served data equals written data. */
#include "base/rng.h"
#include "fingerprint/fingerprint_json.h"
#include "tests/unit/support/store_cases.h"
#include "store/store_file.h"
#include "tests/unit/support/store_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    DAMAGED_COPIES = 150,
    DAMAGED_COPIES_LONG = 5000,
    NOBODY = 65534,
    EXIT_SKIPPED = 77 /* exit status of a child that could not set up its environment */
};

/* Other programs may read while the daemon has the file open. A second daemon may not open it. */
static void test_one_daemon(void **state)
{
    const char *const path = fixture_path(*state, "state.db");
    struct store *const store = fixture_open(path);
    struct store *second = NULL;
    struct err err = {0};
    int exit_code = 0;
    pid_t child;

    assert_int_equal(store_open(path, &second, &err), STATUS_CONFLICT);
    assert_non_null(strstr(err.text, "another reachd"));
    assert_null(second);
    child = fork();
    if (child == 0)
        _exit(store_open(path, &second, NULL) == STATUS_CONFLICT ? 0 : 1);
    assert_int_equal(waitpid(child, &exit_code, 0), child);
    assert_int_equal(exit_code, 0);
    fixture_run(store, FIXTURE_UUID, 1, 1); /* the refused opens removed nothing */
    store_close(store);
    store_close(fixture_open(path));
}

static uint32_t count_files(const char *directory)
{
    char command[600];
    uint32_t count = 0;
    FILE *f;

    (void)snprintf(command, sizeof(command), "ls -A '%s' | wc -l", directory);
    f = popen(command,
              "r"); /* NOLINT(cert-env33-c): the command has only a path that this test chose */
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &count), 1); /* NOLINT(cert-err34-c) */
    pclose(f);
    return count;
}

/* Checks that opening fails with this status and a sentence. The file and every other file in the
 * directory must stay unchanged. */
static void expect_refusal(const char *directory, const char *name, enum status expected)
{
    char path[512];
    struct store *store = NULL;
    struct err err = {0};
    size_t before_size = 0;
    size_t after_size = 0;
    char *before;
    char *after;
    const uint32_t files = count_files(directory);

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    before = fixture_read(path, &before_size);
    assert_int_equal(store_open(path, &store, &err), expected);
    assert_null(store);
    assert_int_equal(err.status, expected);
    assert_true(strlen(err.text) > 10);
    after = fixture_read(path, &after_size);
    assert_int_equal(before_size, after_size);
    assert_memory_equal(before, after, before_size);
    assert_int_equal(count_files(directory), files);
    free(before);
    free(after);
}

/* Returns the file in this directory whose name begins with this text. The case fails if there is
 * none. */
static char *find_file(const char *directory, const char *beginning)
{
    DIR *const d = opendir(directory);
    const struct dirent *e;
    char *found = NULL;

    assert_non_null(d);
    while (!found && (e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, beginning, strlen(beginning)) == 0)
            found = strdup(e->d_name);
    }
    closedir(d);
    assert_non_null(found);
    return found;
}

/* Checks that opening succeeds with an empty database. The old file must be unchanged beside the
 * database, under a name that marks it as set aside. */
static void expect_aside(const char *directory, const char *name)
{
    char path[512];
    char beginning[64];
    struct store_health health;
    struct fingerprint fp;
    struct store *store;
    size_t before_size = 0;
    size_t after_size = 0;
    char *before;
    char *after;
    char *aside;

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    (void)snprintf(beginning, sizeof(beginning), "%s.corrupt-", name);
    before = fixture_read(path, &before_size);
    store = fixture_open(path);
    assert_int_equal(store_current_fingerprint(store, FIXTURE_UUID, &fp, NULL), STATUS_NOT_FOUND);
    store_health(store, &health);
    assert_int_equal(health.quarantined, 1);
    assert_int_equal(health.last_error.status, STATUS_OK);
    fixture_run(store, FIXTURE_UUID, 1, 1);
    store_close(store);
    aside = find_file(directory, beginning);
    after = fixture_read(fixture_path(directory, aside), &after_size);
    assert_int_equal(before_size, after_size);
    assert_memory_equal(before, after, before_size);
    assert_int_equal(remove(fixture_path(directory, aside)), 0);
    assert_int_equal(remove(path), 0);
    free(before);
    free(after);
    free(aside);
}

static void test_foreign_files(void **state)
{
    char path[512];
    char *noise = malloc(100000);
    struct rng r = {.state = 3};

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    fixture_write(path, "notes of a person\n", 18);
    expect_aside(*state, "it");
    fixture_write(path, "SQLite format 3", 16); /* the file has only a header */
    expect_aside(*state, "it");
    for (uint32_t i = 0; i < 100000; i++)
        noise[i] = (char)rng_next(&r);
    fixture_write(path, noise, 100000);
    expect_aside(*state, "it");
    free(noise);

    fixture_tamper(path, "CREATE TABLE mine (x); INSERT INTO mine VALUES (1);");
    expect_aside(*state, "it");
    fixture_tamper(path, "CREATE TABLE mine (x); PRAGMA application_id = 1234;");
    expect_aside(*state, "it");
    fixture_tamper(path, "PRAGMA journal_mode = WAL; CREATE TABLE mine (x);");
    expect_aside(*state, "it");
}

/* Two files are set aside in the same second, and both are kept. */
static void test_aside_overwrites_nothing(void **state)
{
    const char *const path = fixture_path(*state, "it");
    char name[4096];
    char again[4096];

    fixture_write(path, "one", 3);
    assert_int_equal(store_file_quarantine(path, name, sizeof(name), NULL), STATUS_OK);
    fixture_write(path, "two", 3);
    fixture_write(fixture_path(*state, "it-wal"), "log", 3);
    assert_int_equal(store_file_quarantine(fixture_path(*state, "it"), again, sizeof(again), NULL),
                     STATUS_OK);
    assert_string_not_equal(name, again);
    assert_int_equal(access(name, F_OK), 0);
    assert_int_equal(access(again, F_OK), 0);
    assert_int_equal(count_files(*state), 3);
    (void)strncat(again, "-wal", sizeof(again) - strlen(again) - 1);
    assert_int_equal(access(again, F_OK), 0);
}

/* If a move is interrupted, the log without its database is not used for the next database. */
static void test_log_without_database(void **state)
{
    char path[512];
    struct store *store;
    struct fingerprint fp;
    size_t size = 0;
    char *log;
    char *aside;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    store = fixture_open(path);
    fixture_run(store, FIXTURE_UUID, 7, 1);
    log = fixture_read(fixture_path(*state, "it-wal"), &size);
    assert_true(size > 0);
    store_close(store);
    assert_int_equal(remove(path), 0);
    fixture_write(fixture_path(*state, "it-wal"), log, size);
    store = fixture_open(path);
    assert_int_equal(store_current_fingerprint(store, FIXTURE_UUID, &fp, NULL), STATUS_NOT_FOUND);
    store_close(store);
    aside = find_file(*state, "it.corrupt-");
    assert_non_null(strstr(aside, "-wal"));
    free(aside);
    free(log);
}

static void test_other_schemas(void **state)
{
    static const char *const schemas[] = {"PRAGMA user_version = 1000;", "PRAGMA user_version = 6;",
                                          "PRAGMA user_version = 4;", "PRAGMA user_version = 1;"};
    char path[512];
    struct store *store;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    store = fixture_open(path);
    fixture_run(store, FIXTURE_UUID, 1, 1);
    store_close(store);
    for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        fixture_tamper(path, schemas[i]);
        expect_refusal(*state, "it", STATUS_NOT_SUPPORTED);
    }
}

/* Only the log contains the newer schema. */
static void test_newer_schema_in_log(void **state)
{
    char path[512];
    struct store *store;
    int exit_code = 0;
    pid_t child;

    (void)snprintf(path, sizeof(path), "%s/it", (const char *)*state);
    store = fixture_open(path);
    store_close(store);
    child = fork();
    if (child == 0) {
        sqlite3 *db = NULL;
        const bool ok = sqlite3_open(path, &db) == SQLITE_OK &&
                        sqlite3_exec(db, "PRAGMA user_version = 1000", NULL, NULL, NULL) == 0;
        _exit(ok ? 0 : 1); /* the database is not closed, so the log stays */
    }
    assert_int_equal(waitpid(child, &exit_code, 0), child);
    assert_int_equal(exit_code, 0);
    assert_int_equal(access(fixture_path(*state, "it-wal"), F_OK), 0);
    expect_refusal(*state, "it", STATUS_NOT_SUPPORTED);
}

static void test_no_place(void **state)
{
    struct store *store = NULL;
    struct err err = {0};

    assert_int_equal(store_open(fixture_path(*state, "not/there.db"), &store, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "directory"));
    assert_int_equal(mkdir(fixture_path(*state, "folder"), 0700), 0);
    assert_int_equal(store_open(fixture_path(*state, "folder"), &store, &err),
                     STATUS_INVALID_ARGUMENT);
    assert_int_equal(access(fixture_path(*state, "folder-lock"), F_OK), -1);
    assert_int_equal(mkfifo(fixture_path(*state, "pipe"), 0600), 0);
    assert_int_equal(store_open(fixture_path(*state, "pipe"), &store, &err),
                     STATUS_INVALID_ARGUMENT);
    assert_int_equal(store_open("", &store, &err), STATUS_INVALID_ARGUMENT);
    assert_int_equal(store_open("file:x?mode=memory", &store, &err), STATUS_INVALID_ARGUMENT);
    assert_null(store);
}

/* An empty file holds no data that could be lost. */
static void test_empty_file(void **state)
{
    const char *const path = fixture_path(*state, "state.db");

    fixture_write(path, "", 0);
    store_close(fixture_open(path));
}

/* Runs `body` in a child. The child runs as an unprivileged user if this is requested and the test
 * runs as root. The asserts of cmocka do not work in the child. */
static int in_child(int (*body)(const char *directory), bool as_nobody, const char *directory)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        if (as_nobody && geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
            _exit(EXIT_SKIPPED);
        _exit(body(directory));
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int open_read_only_file(const char *directory)
{
    struct store *store = NULL;
    struct err err = {0};

    if (store_open(fixture_path(directory, "state.db"), &store, &err) != STATUS_READ_ONLY)
        return 1;
    return strstr(err.text, "cannot write") ? 0 : 2;
}

static int open_in_forbidden_directory(const char *directory)
{
    struct store *store = NULL;
    struct err err = {0};

    return store_open(fixture_path(directory, "new.db"), &store, &err) == STATUS_IO ? 0 : 1;
}

static void test_no_permission(void **state)
{
    const char *const path = fixture_path(*state, "state.db");
    struct store *const store = fixture_open(path);
    size_t size = 0;
    size_t size_after = 0;
    char *before;
    char *after;
    int code;

    fixture_run(store, FIXTURE_UUID, 1, 1);
    store_close(store);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(*state, 0777), 0);
    assert_int_equal(remove(fixture_path(*state, "state.db-lock")), 0);
    before = fixture_read(fixture_path(*state, "state.db"), &size);
    code = in_child(open_read_only_file, true, *state);
    after = fixture_read(fixture_path(*state, "state.db"), &size_after);
    assert_true(code == 0 || code == EXIT_SKIPPED);
    assert_int_equal(size, size_after);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
    assert_int_equal(access(fixture_path(*state, "state.db-lock"), F_OK), -1);

    assert_int_equal(chmod(*state, 0555), 0);
    code = in_child(open_in_forbidden_directory, true, *state);
    assert_true(code == 0 || code == EXIT_SKIPPED);
    assert_int_equal(chmod(*state, 0700), 0);
}

/* Fills the store until there is no room. Then the store must still serve the accepted data. */
static int write_without_room(const char *directory)
{
    struct store *store = NULL;
    struct fingerprint fp;
    struct err err = {0};
    int64_t run = 0;
    uint32_t good = 0;

    if (store_open(fixture_path(directory, "state.db"), &store, &err) != STATUS_OK)
        return 1;
    while (good < 1000 &&
           fixture_store_run(store, FIXTURE_UUID, good + 1, 2, &run, &err) == STATUS_OK)
        good++;
    if (good == 0 || good == 1000 || err.status != STATUS_FULL)
        return 2;
    if (store_current_fingerprint(store, FIXTURE_UUID, &fp, &err) != STATUS_OK ||
        fp.duration_ms != good)
        return 3;
    store_close(store);
    if (store_open(fixture_path(directory, "state.db"), &store, &err) != STATUS_OK)
        return 4;
    if (store_current_fingerprint(store, FIXTURE_UUID, &fp, &err) != STATUS_OK ||
        fp.duration_ms != good)
        return 5;
    store_close(store);
    return 0;
}

/* Number of bytes that the child's replacement for SQLite's write call may still write. */
static size_t room;

static ssize_t pwrite_with_room(int fd, const void *data, size_t size, off_t offset)
{
    if (size > room) {
        errno = ENOSPC;
        return -1;
    }
    room -= size;
    return pwrite(fd, data, size, offset);
}

static bool limit_room(size_t bytes)
{
    sqlite3_vfs *vfs;

    if (sqlite3_initialize() != SQLITE_OK)
        return false;
    vfs = sqlite3_vfs_find(NULL);
    room = bytes;
    return vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)pwrite_with_room) == SQLITE_OK &&
           vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)pwrite_with_room) == SQLITE_OK;
}

static int write_with_little_room(const char *directory)
{
    return limit_room(400000) ? write_without_room(directory) : EXIT_SKIPPED;
}

static int open_without_room(const char *directory)
{
    struct store *store = NULL;
    struct err err = {0};

    if (!limit_room(6000))
        return EXIT_SKIPPED;
    return store_open(fixture_path(directory, "state.db"), &store, &err) == STATUS_FULL ? 0 : 1;
}

/* Writes to a small file system that only the child has, if mounting is allowed. */
static int write_on_small_disk(const char *directory)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", directory, "tmpfs", 0, "size=400k") != 0)
        return EXIT_SKIPPED;
    return write_without_room(directory);
}

/* A file system that is mounted read-only, with a state file on it. */
static int open_on_read_only_disk(const char *directory)
{
    struct store *store = NULL;
    int64_t run = 0;

    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", directory, "tmpfs", 0, "size=4m") != 0)
        return EXIT_SKIPPED;
    if (store_open(fixture_path(directory, "state.db"), &store, NULL) != STATUS_OK ||
        fixture_store_run(store, FIXTURE_UUID, 1, 1, &run, NULL) != STATUS_OK)
        return 1;
    store_close(store);
    if (mount("none", directory, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return EXIT_SKIPPED;
    return store_open(fixture_path(directory, "state.db"), &store, NULL) == STATUS_READ_ONLY ? 0
                                                                                             : 2;
}

static void expect_child(int (*body)(const char *directory), const char *directory)
{
    const int code = in_child(body, false, directory);

    if (code == EXIT_SKIPPED)
        skip();
    assert_int_equal(code, 0);
}

static void test_full_disk(void **state)
{
    struct store *store;
    struct fingerprint fp;
    struct err err = {0};

    expect_child(write_with_little_room, *state);
    store = fixture_open(fixture_path(*state, "state.db")); /* the disk has room again */
    assert_int_equal(store_current_fingerprint(store, FIXTURE_UUID, &fp, &err), STATUS_OK);
    fixture_run(store, FIXTURE_UUID, fp.duration_ms + 1, 1);
    store_close(store);
}

/* There is too little room even for an empty database. */
static void test_full_from_the_start(void **state)
{
    expect_child(open_without_room, *state);
    store_close(fixture_open(fixture_path(*state, "state.db")));
}

static void test_small_disk(void **state)
{
    expect_child(write_on_small_disk, *state);
}

static void test_read_only_disk(void **state)
{
    expect_child(open_on_read_only_disk, *state);
}

/* A damaged file must be refused, or its served data must equal the written data. */
static void read_damaged(const char *path, bool keep)
{
    struct store *store = NULL;
    bool renewed = false;
    struct store_observation_row rows[16];
    struct observation_set set;
    struct fingerprint fp;
    struct err err = {0};
    uint32_t count = 0;

    if (store_open(path, &store, &err) != STATUS_OK) {
        assert_true(strlen(err.text) > 10);
        return;
    }
    if (keep && store_maintain(store, &renewed, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    if (store_current_fingerprint(store, FIXTURE_UUID, &fp, &err) == STATUS_OK) {
        struct fingerprint original;
        char id[FINGERPRINT_ID_BYTES];
        char original_id[FINGERPRINT_ID_BYTES];
        fixture_fingerprint(FIXTURE_UUID, fp.duration_ms, &original);
        assert_int_equal(fingerprint_id(&fp, id, NULL), STATUS_OK);
        assert_int_equal(fingerprint_id(&original, original_id, NULL), STATUS_OK);
        assert_string_equal(id, original_id);
    }
    if (store_list_observations(store, FIXTURE_UUID, 0, 0, rows, 16, &count, &err) == STATUS_OK) {
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(rows[i].value_count, 40);
    }
    for (int64_t run = 1; run <= 3; run++) {
        if (store_load_run(store, run, &set, &err) != STATUS_OK)
            continue;
        for (size_t i = 0; i < set.count; i++)
            assert_int_equal(observation_chase(&set.items[i], 0)[39],
                             600 + set.items[i].spec.points[0] - 1 + 39);
        observation_set_free(&set);
    }
    store_close(store);
}

static void test_damaged_files(void **state)
{
    const int copies = getenv("REACH_LONG") ? DAMAGED_COPIES_LONG : DAMAGED_COPIES;
    struct rng r = {.state = 20261121};
    char *const path = strdup(fixture_path(*state, "state.db"));
    struct store *const store = fixture_open(path);
    size_t size = 0;
    char *good;
    char *bad;

    print_message("seed %llu\n", (unsigned long long)r.state);
    for (uint32_t i = 1; i <= 3; i++)
        fixture_run(store, FIXTURE_UUID, i, 4);
    store_close(store);
    good = fixture_read(path, &size);
    bad = malloc(size);
    assert_non_null(bad);
    for (int i = 0; i < copies; i++) {
        size_t length = size;
        memcpy(bad, good, size);
        if (i % 5 == 0)
            length = (size_t)rng_below(&r, size); /* cut short */
        for (int flips = i % 5 == 0 ? 0 : 16; flips > 0; flips--)
            bad[rng_below(&r, size)] ^= (char)(1 << rng_below(&r, 8));
        (void)remove(fixture_path(*state, "state.db-wal"));
        (void)remove(fixture_path(*state, "state.db-shm"));
        (void)remove(fixture_path(*state, "state.db-journal"));
        fixture_write(path, bad, length);
        read_damaged(path, i % 2 == 0);
    }
    free(good);
    free(bad);
    free(path);
}

#define WITH_DIRECTORY(test)                                                                       \
    cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_one_daemon),
        WITH_DIRECTORY(test_foreign_files),
        WITH_DIRECTORY(test_aside_overwrites_nothing),
        WITH_DIRECTORY(test_log_without_database),
        WITH_DIRECTORY(test_other_schemas),
        WITH_DIRECTORY(test_newer_schema_in_log),
        WITH_DIRECTORY(test_no_place),
        WITH_DIRECTORY(test_empty_file),
        WITH_DIRECTORY(test_no_permission),
        WITH_DIRECTORY(test_full_disk),
        WITH_DIRECTORY(test_full_from_the_start),
        WITH_DIRECTORY(test_small_disk),
        WITH_DIRECTORY(test_read_only_disk),
        WITH_DIRECTORY(test_damaged_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
