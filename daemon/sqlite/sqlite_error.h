/* sqlite_error.h: the status and the sentence of a failed call of SQLite: what failed, of which
 * file, and why. The next step is the hint of the status, or a static hint. */
#ifndef REACH_SQLITE_SQLITE_ERROR_H
#define REACH_SQLITE_SQLITE_ERROR_H

#include "base/status.h"

#include <sqlite3.h>

/* What a layer uses SQLite for. */
struct sqlite_use {
    const char *name;          /* "state file" */
    enum status bad_statement; /* of a statement that does not fit the tables */
};

/* Fills `*err` for the result `rc` of a call for `db` (NULL without memory). `path` may be NULL:
 * the path of the connection. `what` is a statement, whose first word is named, or a word such as
 * "opening". Call it before another call changes the connection's error. */
enum status sqlite_fail(const struct sqlite_use *use, sqlite3 *db, int rc, const char *path,
                        const char *what, struct err *err);

/* The status of a failed system call: no room, read-only, or I/O error. */
enum status sqlite_errno_status(int error_number);

#endif
