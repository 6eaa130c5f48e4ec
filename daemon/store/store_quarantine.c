/* store_quarantine.c: moves an unusable file completely to another name.
 *
 *     reachd.db       ->  reachd.db.corrupt-20261121T113000Z
 *     reachd.db-wal   ->  reachd.db.corrupt-20261121T113000Z-wal      likewise -journal and -shm
 *
 * The database is moved first. An interrupted move then leaves a log without a database. That log
 * is never mistaken for the log of the next database, because it is moved before the next database
 * is made. In the opposite order an older state of the database would reappear.
 */
#include "store/store_file.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAME_BYTES = 4096 + 64, STAMP_BYTES = 32, MAX_NAMES = 1000 };

/* The last file holds no data that the others lack. */
static const char *const companions[] = {"-wal", "-journal", "-shm"};
enum { COMPANIONS = 3, COMPANIONS_WITH_DATA = 2 };

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

/* Renames without overwriting an existing file. Returns 0 or an error number. */
static int move(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    /* The file system does not have that flag. The lock is held, so no other process makes the name
     * meanwhile. */
    if (exists(to))
        return EEXIST;
    return rename(from, to) == 0 ? 0 : errno;
}

/* Makes the new names survive a power cut, if the file system can guarantee that. */
static void sync_directory(const char *path)
{
    char *const copy = strdup(path);
    const int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(copy);
}

/* Finds a free name for the file and all its companions. Returns false if there is none. */
static bool free_name(const char *path, char *out, size_t out_size)
{
    const time_t now = (time_t)clock_wall_seconds();
    char companion[NAME_BYTES];
    char stamp[STAMP_BYTES] = "";
    struct tm utc;

    if (gmtime_r(&now, &utc))
        (void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
    for (int i = 0; i < MAX_NAMES; i++) {
        const int n = i == 0 ? snprintf(out, out_size, "%s.corrupt-%s", path, stamp)
                             : snprintf(out, out_size, "%s.corrupt-%s.%d", path, stamp, i);
        bool taken = n < 0 || (size_t)n >= out_size || exists(out);

        for (size_t c = 0; c < COMPANIONS && !taken; c++) {
            (void)snprintf(companion, sizeof(companion), "%s%s", out, companions[c]);
            taken = exists(companion);
        }
        if (!taken)
            return true;
    }
    return false;
}

static enum status move_companions(const char *path, const char *to, struct err *err)
{
    char from_name[NAME_BYTES];
    char to_name[NAME_BYTES];

    for (size_t c = 0; c < COMPANIONS; c++) {
        const int n = snprintf(from_name, sizeof(from_name), "%s%s", path, companions[c]);
        const int m = snprintf(to_name, sizeof(to_name), "%s%s", to, companions[c]);
        int error;

        if (n >= NAME_BYTES || m >= NAME_BYTES || !exists(from_name))
            continue;
        error = move(from_name, to_name);
        if (error != 0)
            return store_file_fail(err, error, "quarantine", from_name);
    }
    sync_directory(path);
    return STATUS_OK;
}

enum status store_file_quarantine(const char *path, char *out_name, size_t out_size,
                                  struct err *err)
{
    char name[NAME_BYTES];
    int error;

    if (!free_name(path, name, NAME_BYTES - STAMP_BYTES))
        return err_set(err, STATUS_IO, "there is no free name to quarantine %s", path);
    error = move(path, name);
    if (error != 0)
        return store_file_fail(err, error, "quarantine", path);
    if (out_name)
        (void)snprintf(out_name, out_size, "%s", name);
    return move_companions(path, name, err);
}

enum status store_file_move(const char *from, const char *to, struct err *err)
{
    const int error = move(from, to);

    if (error == EEXIST)
        return err_set(err, STATUS_CONFLICT, "%s already exists", to);
    if (error != 0)
        return store_file_fail(err, error, "create", to);
    sync_directory(to);
    return STATUS_OK;
}

enum status store_file_quarantine_orphans(const char *path, struct err *err)
{
    char name[NAME_BYTES];
    bool any = false;

    if (exists(path))
        return STATUS_OK;
    for (size_t c = 0; c < COMPANIONS_WITH_DATA; c++) {
        (void)snprintf(name, sizeof(name), "%s%s", path, companions[c]);
        any = any || exists(name);
    }
    if (!any)
        return STATUS_OK;
    if (!free_name(path, name, NAME_BYTES - STAMP_BYTES))
        return err_set(err, STATUS_IO, "there is no free name for the companion files of %s", path);
    log_warning("state file: %s is missing, but its companion files exist: moved to %s*", path,
                name);
    return move_companions(path, name, err);
}
