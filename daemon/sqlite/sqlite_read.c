/* sqlite_read.c: see sqlite_read.h. */
#include "sqlite/sqlite_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PRIMARY_CODE = 0xff };

static const char log_hint[] = "Run this as a user that may write the directory of the file, or "
                               "copy the file and its -wal to another directory.";

/* Checks that the file exists and may be read. SQLite reports only "unable to open" in all of these
 * cases. */
static enum status examine(const struct sqlite_use *use, const char *path, struct stat *out,
                           struct err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int error = fd < 0 ? errno : 0;
    enum status s = STATUS_OK;

    if (error == ENOENT || error == ENOTDIR)
        s = err_set_hint(err, STATUS_NOT_FOUND, "Check the name.", "the %s %.200s does not exist",
                         use->name, path);
    else if (error == EACCES || error == EPERM)
        s = err_set_hint(
            err, STATUS_NOT_PERMITTED,
            "Give this user read access, or run this command as the owner of the file.",
            "cannot read the %s %.200s: %s", use->name, path, strerror(error));
    else if (error)
        s = err_set(err, sqlite_errno_status(error), "cannot read the %s %.200s: %s", use->name,
                    path, strerror(error));
    else if (fstat(fd, out) != 0 || !S_ISREG(out->st_mode))
        s = err_set(err, STATUS_INVALID_ARGUMENT, "%.200s is not a regular file", path);
    if (fd >= 0)
        close(fd);
    return s;
}

/* Returns the size of the file `path` plus `suffix`, or -1 if there is no such file. */
static off_t size_beside(const char *path, const char *suffix)
{
    char *name = NULL;
    struct stat st;
    off_t size = -1;

    if (asprintf(&name, "%s%s", path, suffix) < 0)
        return -1;
    if (stat(name, &st) == 0)
        size = st.st_size;
    free(name);
    return size;
}

/* Returns whether the database has a log. An empty log without an index was left by a process that
 * only read. */
static bool has_log(const char *path)
{
    const off_t log = size_beside(path, "-wal");

    return log > 0 || (log == 0 && size_beside(path, "-shm") >= 0) ||
           size_beside(path, "-journal") > 0;
}

/* Returns "file:PATH?SETTING=1", or NULL if memory runs out. */
static char *uri_with(const char *path, const char *setting)
{
    char *const uri = malloc(strlen("file:?=1") + 3 * strlen(path) + strlen(setting) + 1);
    char *at = uri;

    if (!uri)
        return NULL;
    at += sprintf(at, "file:");
    for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
        if (*c == '?' || *c == '#' || *c == '%')
            at += sprintf(at, "%%%02X", *c);
        else
            *at++ = (char)*c;
    }
    (void)sprintf(at, "?%s=1", setting);
    return uri;
}

/* Opens a connection. `setting` is one of SQLite's URI parameters, or NULL for none. */
static int open_with(const char *path, const char *setting, int flags, sqlite3 **out)
{
    char *const uri = setting ? uri_with(path, setting) : NULL;
    int rc = SQLITE_NOMEM;

    *out = NULL;
    if (!setting)
        rc = sqlite3_open_v2(path, out, flags | SQLITE_OPEN_READONLY, NULL);
    else if (uri)
        rc = sqlite3_open_v2(uri, out, flags | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    free(uri);
    if (*out)
        (void)sqlite3_extended_result_codes(*out, 1);
    /* The first statement reads the log and the header. */
    return rc == SQLITE_OK
               ? sqlite3_exec(*out, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL)
               : rc;
}

/* With "immutable", no other file is read or created. With "readonly_shm", the index of the log is
 * built in memory, because it cannot be written on a full disk. */
static int open_file(const char *path, bool locked, int flags, sqlite3 **out)
{
    int rc = open_with(path, locked ? NULL : "immutable", flags, out);

    if (locked && (rc & PRIMARY_CODE) == SQLITE_IOERR) {
        (void)sqlite3_close(*out);
        rc = open_with(path, "readonly_shm", flags, out);
    }
    return rc;
}

enum status sqlite_read_open(const struct sqlite_use *use, const char *path, int flags,
                             struct sqlite_read *out, struct err *err)
{
    enum status s;
    int rc;

    *out = (struct sqlite_read){.db = NULL};
    s = examine(use, path, &out->before, err);
    if (s != STATUS_OK)
        return s;
    out->locked = has_log(path);
    rc = open_file(path, out->locked, flags, &out->db);
    if (rc == SQLITE_OK)
        return STATUS_OK;
    if (out->locked &&
        ((rc & PRIMARY_CODE) == SQLITE_CANTOPEN || (rc & PRIMARY_CODE) == SQLITE_READONLY))
        s = err_set_hint(err, STATUS_NOT_PERMITTED, log_hint,
                         "the %s %.200s has a write-ahead log (-wal), and this user may not write "
                         "to its directory",
                         use->name, path);
    else
        s = sqlite_fail(use, out->db, rc, path, "opening", err);
    (void)sqlite3_close(out->db);
    out->db = NULL;
    return s;
}

enum status sqlite_read_check(const struct sqlite_use *use, const struct sqlite_read *r,
                              const char *path, struct err *err)
{
    struct stat now;

    if (r->locked ||
        (stat(path, &now) == 0 && now.st_ino == r->before.st_ino &&
         now.st_size == r->before.st_size && now.st_mtim.tv_sec == r->before.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == r->before.st_mtim.tv_nsec))
        return STATUS_OK;
    return err_set_hint(err, STATUS_CONFLICT, "Run the command again, and discard this output.",
                        "the %s %.200s was written while it was read", use->name, path);
}
