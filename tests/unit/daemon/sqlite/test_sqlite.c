/* test_sqlite.c: the status of a failed call of SQLite, and opening a database to read it. No
 * file is created or written. */
#include "tests/unit/support/store_cases.h"
#include "tests/unit/support/store_fixture.h"

#include "sqlite/sqlite_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct sqlite_use use = {.name = "file", .bad_statement = STATUS_CORRUPT};

enum { PATH_BYTES = 512 };

static sqlite3 *open_to_write(const char *path, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_extended_result_codes(db, 1), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    return db;
}

/* Checks that the error text contains the path and `why`, and that the next step contains
 * `hint`. */
static void assert_said(const struct err *err, const char *path, const char *why, const char *hint)
{
    if (!strstr(err->text, path) || !strstr(err->text, why) || !strstr(err_next_step(err), hint))
        fail_msg("%s: %s (%s)", path, err->text, err_next_step(err));
}

static enum status run(sqlite3 *db, const char *sql, struct err *err)
{
    const int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? STATUS_OK : sqlite_fail(&use, db, rc, NULL, sql, err);
}

/* A limit on the size of files simulates a full disk; SQLite reports an I/O error. */
static void test_no_room(void **state)
{
    static const char fill[] = "INSERT INTO t VALUES (zeroblob(1000000))";
    const char *const path = fixture_path(*state, "full.db");
    sqlite3 *const db = open_to_write(path, "CREATE TABLE t (x)");
    struct rlimit before, low;
    struct err err = {0};

    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = (struct rlimit){.rlim_cur = 65536, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_int_equal(run(db, fill, &err), STATUS_FULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_said(&err, path, "INSERT failed: File too large", "Free space");
    assert_int_equal(run(db, "PRAGMA max_page_count = 2", &err), STATUS_OK);
    assert_int_equal(run(db, fill, &err), STATUS_FULL);
    assert_said(&err, path, "INSERT failed: database or disk is full", "Make room");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_refusals(void **state)
{
    char path[PATH_BYTES];
    sqlite3 *reader = NULL, *writer;
    struct err err = {0};

    (void)snprintf(path, sizeof(path), "%s", fixture_path(*state, "it.db"));
    writer = open_to_write(path, "CREATE TABLE t (x)");
    assert_int_equal(sqlite3_open_v2(path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(run(reader, "INSERT INTO t VALUES (1)", &err), STATUS_READ_ONLY);
    assert_said(&err, path, "INSERT failed: attempt to write a readonly database", "write access");
    assert_int_equal(run(writer, "BEGIN EXCLUSIVE", &err), STATUS_OK);
    assert_int_equal(run(reader, "SELECT * FROM t", &err), STATUS_CONFLICT);
    assert_said(&err, path, "SELECT failed: database is locked", "has ended");
    assert_int_equal(run(writer, "ROLLBACK; SELECT nothing", &err), STATUS_CORRUPT);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    assert_int_equal(sqlite3_close(writer), SQLITE_OK);

    (void)snprintf(path, sizeof(path), "%s/none/it.db", (const char *)*state);
    const int rc = sqlite3_open(path, &reader);
    assert_int_equal(sqlite_fail(&use, reader, rc, path, "opening", &err), STATUS_IO);
    assert_said(&err, path, "opening failed: No such file or directory", "exists");
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
}

static bool is_there(const char *path, const char *suffix)
{
    char name[PATH_BYTES + 8];

    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    return access(name, F_OK) == 0;
}

static enum status open_to_read(const char *path, struct err *err)
{
    struct sqlite_read r;
    const enum status s = sqlite_read_open(&use, path, 0, &r, err);

    assert_true((s == STATUS_OK) == (r.db != NULL));
    assert_int_equal(sqlite3_close(r.db), SQLITE_OK);
    return s;
}

static void test_nothing_is_created(void **state)
{
    char path[PATH_BYTES];
    struct err err = {0};

    (void)snprintf(path, sizeof(path), "%s", fixture_path(*state, "it.db"));
    assert_int_equal(open_to_read(path, &err), STATUS_NOT_FOUND);
    assert_said(&err, path, "does not exist", "name");
    assert_false(is_there(path, ""));
    assert_int_equal(open_to_read(*state, &err), STATUS_INVALID_ARGUMENT);
    fixture_write(path, "This is no database, but a text of many words ...............", 60);
    assert_int_equal(open_to_read(path, &err), STATUS_CORRUPT);
    assert_said(&err, path, "not a database", "name");
    assert_int_equal(remove(path), 0);

    assert_int_equal(
        sqlite3_close(open_to_write(path, "PRAGMA journal_mode = WAL; CREATE TABLE t (x)")),
        SQLITE_OK);
    assert_false(is_there(path, "-wal"));
    assert_int_equal(open_to_read(path, &err), STATUS_OK);
    assert_false(is_there(path, "-wal"));
    assert_false(is_there(path, "-shm"));
}

/* Committed data of a concurrent writer is read. A writer that begins later is detected. */
static void test_writers(void **state)
{
    char path[PATH_BYTES];
    struct sqlite_read r;
    struct err err = {0};
    sqlite3 *writer;

    (void)snprintf(path, sizeof(path), "%s", fixture_path(*state, "it.db"));
    writer = open_to_write(path, "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    assert_int_equal(sqlite_read_open(&use, path, 0, &r, &err), STATUS_OK);
    assert_true(r.locked);
    assert_int_equal(run(r.db, "SELECT * FROM t", &err), STATUS_OK);
    assert_int_equal(run(writer, "INSERT INTO t VALUES (1)", &err), STATUS_OK);
    assert_int_equal(sqlite_read_check(&use, &r, path, &err), STATUS_OK);
    assert_int_equal(sqlite3_close(r.db), SQLITE_OK);
    assert_int_equal(sqlite3_close(writer), SQLITE_OK);

    assert_int_equal(sqlite_read_open(&use, path, 0, &r, &err), STATUS_OK);
    assert_false(r.locked);
    assert_int_equal(sqlite_read_check(&use, &r, path, &err), STATUS_OK);
    assert_int_equal(sqlite3_close(open_to_write(path, "CREATE TABLE u (x)")), SQLITE_OK);
    assert_int_equal(sqlite_read_check(&use, &r, path, &err), STATUS_CONFLICT);
    assert_said(&err, path, "was written while it was read", "again");
    assert_int_equal(sqlite3_close(r.db), SQLITE_OK);
}

#define WITH_DIRECTORY(test)                                                                       \
    cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_no_room),
        WITH_DIRECTORY(test_refusals),
        WITH_DIRECTORY(test_nothing_is_created),
        WITH_DIRECTORY(test_writers),
    };

    return cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
}
