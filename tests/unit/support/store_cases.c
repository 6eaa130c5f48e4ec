/* store_cases.c: see store_cases.h. */
#include "tests/unit/support/store_cases.h"

#include "tests/unit/support/store_fixture.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

int fixture_set_up(void **state)
{
    *state = fixture_directory();
    return 0;
}

int fixture_tear_down(void **state)
{
    fixture_remove(*state);
    return 0;
}

struct store *fixture_open(const char *path)
{
    struct store *store = NULL;
    struct err err = {0};

    if (store_open(path, &store, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return store;
}

int64_t fixture_run(struct store *store, const char *uuid, uint32_t number, uint32_t count)
{
    struct err err = {0};
    int64_t run = 0;

    if (fixture_store_run(store, uuid, number, count, &run, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return run;
}

void fixture_tamper(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *words = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &words) != SQLITE_OK)
        fail_msg("%s: %s", sql, words);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}
