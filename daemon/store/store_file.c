/* store_file.c: takes the lock, and checks the first hundred bytes.
 *
 * An SQLite database begins with 16 bytes "SQLite format 3\0"; bytes 60..63 are user_version and
 * 68..71 application_id, big-endian. A database of reachd has both numbers from its first commit,
 * which is made with a rollback journal before the switch to WAL. So a file that lacks them is not
 * from reachd, with one exception. A power cut inside that first commit may leave a torn file and a
 * journal that undoes the commit. Only in this case SQLite may open a file without a header.
 */
#include "store/store_file.h"

#include "sqlite/sqlite_error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 100,
    VERSION_OFFSET = 60,
    APPLICATION_OFFSET = 68,
    MAGIC_BYTES = 16,
    JOURNAL_MAGIC_BYTES = 8,
    LOCK_MODE = 0600,
    LOCK_ATTEMPTS = 10 /* an attempt fails if another process has just removed its lock file */
};

/* The hint for a file of another kind, which need not be damaged. */
static const char other_file[] =
    "Check the name of the file: this file is not a database of reachd.";

static const char magic[MAGIC_BYTES] = "SQLite format 3";
static const unsigned char journal_magic[JOURNAL_MAGIC_BYTES] = {0xd9, 0xd5, 0x05, 0xf9,
                                                                 0x20, 0xa1, 0x63, 0xd7};

enum status store_file_fail(struct err *err, int error_number, const char *what, const char *path)
{
    return err_set(err, sqlite_errno_status(error_number), "cannot %s %s: %s", what, path,
                   strerror(error_number));
}

/* Tries once to lock. `*out_fd` stays -1, with STATUS_OK, if the file was removed meanwhile. */
static enum status lock_once(const char *lock_path, int *out_fd, bool *out_made, struct err *err)
{
    struct stat by_fd;
    struct stat by_path;
    int fd;

    fd = open(lock_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, LOCK_MODE);
    *out_made = fd >= 0;
    if (fd < 0 && errno == EEXIST) {
        fd = open(lock_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT)
            return STATUS_OK;
    }
    if (fd < 0 && errno == ENOENT)
        return err_set(err, STATUS_IO, "the directory of %s does not exist", lock_path);
    if (fd < 0)
        return store_file_fail(err, errno, "create the lock file", lock_path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int why = errno;
        close(fd);
        if (why == EWOULDBLOCK)
            return err_set(err, STATUS_CONFLICT,
                           "another reachd uses this state file (lock file %s)", lock_path);
        return store_file_fail(err, why, "lock", lock_path);
    }
    /* The previous holder may have removed the file. In that case this lock excludes no process. */
    if (fstat(fd, &by_fd) != 0 || stat(lock_path, &by_path) != 0 || by_fd.st_ino != by_path.st_ino)
        close(fd);
    else
        *out_fd = fd;
    return STATUS_OK;
}

static char *with_suffix(const char *path, const char *suffix)
{
    char *out = NULL;

    return asprintf(&out, "%s%s", path, suffix) < 0 ? NULL : out;
}

enum status store_file_lock(const char *path, int *out_fd, bool *out_made, struct err *err)
{
    char *const lock_path = with_suffix(path, "-lock");
    enum status s = STATUS_OK;

    *out_fd = -1;
    if (!lock_path)
        return err_no_memory(err, "a file name");
    for (int i = 0; s == STATUS_OK && *out_fd < 0 && i < LOCK_ATTEMPTS; i++)
        s = lock_once(lock_path, out_fd, out_made, err);
    if (s == STATUS_OK && *out_fd < 0)
        s = err_set(err, STATUS_CONFLICT, "cannot lock %s: the file is removed repeatedly",
                    lock_path);
    free(lock_path);
    return s;
}

void store_file_unlock(const char *path, int fd, bool remove_file)
{
    char *const lock_path = remove_file ? with_suffix(path, "-lock") : NULL;

    if (lock_path)
        (void)unlink(lock_path); /* still locked, so no other process relies on the file */
    free(lock_path);
    if (fd >= 0)
        close(fd);
}

/* Reads up to `size` bytes from the start. Returns the number read, or -1. */
static ssize_t read_start(const char *path, void *out, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n;

    if (fd < 0)
        return -1;
    n = pread(fd, out, size, 0);
    close(fd);
    return n;
}

static bool has_hot_journal(const char *path)
{
    unsigned char start[JOURNAL_MAGIC_BYTES];
    char *const journal = with_suffix(path, "-journal");
    const bool hot = journal && read_start(journal, start, sizeof(start)) == sizeof(start) &&
                     memcmp(start, journal_magic, sizeof(start)) == 0;

    free(journal);
    return hot;
}

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static enum status inspect_header(const char *path, const unsigned char *header, struct err *err)
{
    const uint32_t application = big_endian(header + APPLICATION_OFFSET);
    const uint32_t version = big_endian(header + VERSION_OFFSET);

    if (application != STORE_FILE_APPLICATION_ID)
        return err_set_hint(err, STATUS_CORRUPT, other_file,
                            "%s is the database of another application (id 0x%08" PRIx32 ")", path,
                            application);
    if (version != STORE_FILE_SCHEMA)
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "%s was written by another release of reachd (schema %" PRIu32
                       "; this release uses schema %d); the file was not changed",
                       path, version, STORE_FILE_SCHEMA);
    return STATUS_OK;
}

enum status store_file_inspect(const char *path, struct err *err)
{
    unsigned char header[HEADER_BYTES];
    struct stat st;
    ssize_t n;

    if (stat(path, &st) != 0)
        return errno == ENOENT ? STATUS_OK : store_file_fail(err, errno, "read", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, STATUS_INVALID_ARGUMENT, "%s is not a regular file", path);
    n = read_start(path, header, sizeof(header));
    if (n < 0)
        return store_file_fail(err, errno, "read", path);
    if (n == 0)
        return STATUS_OK;
    if (n == HEADER_BYTES && memcmp(header, magic, MAGIC_BYTES) == 0)
        return inspect_header(path, header, err);
    if (has_hot_journal(path))
        return STATUS_OK;
    return err_set_hint(err, STATUS_CORRUPT, other_file, "%s is not a database", path);
}

enum status store_file_writable(const char *path, struct err *err)
{
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 || errno == ENOENT)
        return STATUS_OK;
    return err_set(
        err, errno == EACCES || errno == EPERM ? STATUS_READ_ONLY : sqlite_errno_status(errno),
        "cannot write %s: %s", path, strerror(errno));
}
