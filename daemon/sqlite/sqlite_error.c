/* sqlite_error.c: see sqlite_error.h. For a full disk SQLite reports "disk I/O error", and for a
 * missing permission "unable to open database file". The error number of the system call is more
 * precise. */
#include "sqlite/sqlite_error.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/statvfs.h>

enum { PRIMARY_CODE = 0xff };

enum status sqlite_errno_status(int error_number)
{
    switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return STATUS_FULL;
    case EROFS:
        return STATUS_READ_ONLY;
    case ENOMEM:
        return STATUS_NO_MEMORY;
    default:
        return STATUS_IO;
    }
}

static enum status status_of(const struct sqlite_use *use, int rc, int error_number)
{
    if (rc == SQLITE_IOERR_NOMEM)
        return STATUS_NO_MEMORY;
    switch (rc & PRIMARY_CODE) {
    case SQLITE_FULL:
        return STATUS_FULL;
    case SQLITE_READONLY:
        return STATUS_READ_ONLY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return STATUS_CORRUPT;
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return use->bad_statement;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return STATUS_CONFLICT;
    case SQLITE_NOMEM:
        return STATUS_NO_MEMORY;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        return sqlite_errno_status(error_number);
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return STATUS_IO;
    case SQLITE_TOOBIG:
        return STATUS_INVALID_ARGUMENT;
    default:
        return STATUS_INTERNAL;
    }
}

/* Returns the hint for a result, or NULL if the hint of the status is right. */
static const char *hint_of(int rc)
{
    switch (rc & PRIMARY_CODE) {
    case SQLITE_NOTADB:
        return "Check the name of the file: the file is another one, or damaged.";
    case SQLITE_FULL:
        return "Make room on the file system of this file, and try again.";
    case SQLITE_READONLY:
        return "Give this user write access to the file and its directory, or name another file.";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "Try again when the process that writes this file has ended.";
    default:
        return NULL;
    }
}

static bool has_errno(int rc)
{
    return (rc & PRIMARY_CODE) == SQLITE_CANTOPEN || (rc & PRIMARY_CODE) == SQLITE_IOERR;
}

/* Returns the error number of the system call, or 0 if there is none. SQLite may have cleared the
 * number after a failed write, and does not store it for a log. In that case a file system without
 * free blocks counts as full. */
static int errno_of(sqlite3 *db, int rc, const char *path)
{
    int number = sqlite3_system_errno(db);
    struct statvfs fs;

    if (number == 0)
        (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
    if (number == 0 && rc != SQLITE_IOERR_READ && rc != SQLITE_IOERR_SHORT_READ &&
        statvfs(path, &fs) == 0 && fs.f_bavail == 0)
        number = ENOSPC;
    return number;
}

enum status sqlite_fail(const struct sqlite_use *use, sqlite3 *db, int rc, const char *path,
                        const char *what, struct err *err)
{
    const char *const own = db ? sqlite3_db_filename(db, "main") : NULL;
    const char *const file = path ? path : own && *own ? own : "in memory";
    const int error_number = db && has_errno(rc) ? errno_of(db, rc, file) : 0;
    const char *const why = error_number              ? strerror(error_number)
                            : db && rc != SQLITE_FULL ? sqlite3_errmsg(db)
                                                      : sqlite3_errstr(rc);
    const enum status s = status_of(use, rc, error_number);
    const int word = (int)strcspn(what, " "); /* first word of a statement: SELECT, INSERT */

    return err_set_hint(err, s, hint_of(rc), "the %s %.200s: %.*s failed: %s (SQLite code %d)",
                        use->name, file, word, what, why, rc);
}
