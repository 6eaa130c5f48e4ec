/* sqlite_read.h: opens a database to read it. Nothing is created or written: not the file, and
 * nothing beside it.
 *
 * A file with a log beside it (-wal) is in use, or was when its writer was killed; then it is read
 * together with its log. A file without one is all there is; it is read without locks, which also
 * works on a read-only file system. A writer that begins meanwhile is noticed at the end
 * (sqlite_read_check).
 */
#ifndef REACH_SQLITE_SQLITE_READ_H
#define REACH_SQLITE_SQLITE_READ_H

#include "sqlite/sqlite_error.h"

#include <stdbool.h>
#include <sys/stat.h>

struct sqlite_read {
    sqlite3 *db;        /* owned by the caller: sqlite3_close; NULL on failure */
    bool locked;        /* SQLite sees to it that what is read is one state */
    struct stat before; /* of the file, when it was opened */
};

/* Opens `path`, with SQLITE_OPEN_* `flags` besides. STATUS_NOT_FOUND: there is no such file.
 * STATUS_INVALID_ARGUMENT: it is not a file. STATUS_NOT_PERMITTED: it cannot be read, or its log
 * cannot be used without writing beside it. STATUS_CORRUPT: it is not a database. */
enum status sqlite_read_open(const struct sqlite_use *use, const char *path, int flags,
                             struct sqlite_read *out, struct err *err);

/* STATUS_CONFLICT: another process has written the file since. */
enum status sqlite_read_check(const struct sqlite_use *use, const struct sqlite_read *r,
                              const char *path, struct err *err);

#endif
