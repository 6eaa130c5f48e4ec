/* sqlite_read.h: opens a database to read it. No file is created or written, neither the database
 * nor a file beside it.
 *
 * A file with a log beside it (-wal) is in use, or was in use when its writer was killed. It is
 * read together with its log. A file without a log is complete. It is read without locks, which
 * also works on a read-only file system. A writer that begins meanwhile is detected at the end
 * (sqlite_read_check).
 */
#pragma once

#include "sqlite/sqlite_error.h"

#include <stdbool.h>
#include <sys/stat.h>

struct sqlite_read {
    sqlite3 *db;        /* owned by the caller, who closes it with sqlite3_close; NULL on failure */
    bool locked;        /* SQLite ensures that all reads see one state */
    struct stat before; /* state of the file when it was opened */
};

/* Opens `path`, with additional SQLITE_OPEN_* `flags`. Returns STATUS_NOT_FOUND if there is no such
 * file, STATUS_INVALID_ARGUMENT if it is not a file, and STATUS_CORRUPT if it is not a database.
 * Returns STATUS_NOT_PERMITTED if the file cannot be read, or its log cannot be used without
 * writing beside it. */
enum status sqlite_read_open(const struct sqlite_use *use, const char *path, int flags,
                             struct sqlite_read *out, struct err *err);

/* Returns STATUS_CONFLICT if another process has written the file since it was opened. */
enum status sqlite_read_check(const struct sqlite_use *use, const struct sqlite_read *r,
                              const char *path, struct err *err);
