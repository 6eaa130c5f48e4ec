/* sqlite_error.h: makes the status and the message of a failed SQLite call. The message contains
 * the action, the file and the reason. The next step is the hint of the status, or a static
 * hint. */
#pragma once

#include "base/status.h"

#include <sqlite3.h>

/* The names that a layer uses in messages about SQLite. */
struct sqlite_use {
    const char *name;          /* "state file" */
    enum status bad_statement; /* status of a statement that does not fit the tables */
};

/* Fills `*err` for the result `rc` of a call on `db`, which is NULL if memory ran out. If `path` is
 * NULL, the path of the connection is used. `what` is a statement, whose first word is used, or a
 * word such as "opening". Call the function before another call changes the connection's error. */
enum status sqlite_fail(const struct sqlite_use *use, sqlite3 *db, int rc, const char *path,
                        const char *what, struct err *err);

/* Returns the status of a failed system call: no space, read-only, or I/O error. */
enum status sqlite_errno_status(int error_number);
