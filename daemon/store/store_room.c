/* store_room.c: checks whether new pages can be written beside the state file.
 *
 * A small transaction fits into pages that the log has already, so it succeeds on a full disk. This
 * check writes a file of a few pages, makes it durable and removes it. Its name is removed first,
 * so a crash leaves no file.
 */
#include "store/store_file.h"
#include "store/store_state.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { ROOM_BYTES = 256 << 10, ROOM_PIECE_BYTES = 32 << 10, SHORT_BYTES = 1 << 20 };

/* Writes and syncs the file. Returns 0 or an error number. */
static int write_room(int fd)
{
    char piece[ROOM_PIECE_BYTES];

    memset(piece, 'r', sizeof(piece)); /* zeros may need no space */
    for (int written = 0; written < ROOM_BYTES;) {
        const ssize_t n = write(fd, piece, sizeof(piece));

        if (n < 0 && errno != EINTR)
            return errno;
        written += n > 0 ? (int)n : 0;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

enum status store_room_check(const char *path, struct err *err)
{
    char *name = NULL;
    int fd = -1;
    int error = 0;
    enum status s = STATUS_OK;

    if (asprintf(&name, "%s-room", path) < 0)
        return err_no_memory(err, "a file name");
    fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)unlink(name);
        error = write_room(fd);
    } else if (errno != EACCES && errno != EPERM) { /* the file may be writable nevertheless */
        error = errno;
    }
    if (error != 0)
        s = store_file_fail(err, error, "write new pages beside", path);
    if (fd >= 0)
        close(fd);
    free(name);
    return s;
}

bool store_room_is_short(const char *path)
{
    char *const copy = strdup(path);
    struct statvfs fs;
    bool is_short;

    is_short = copy && statvfs(dirname(copy), &fs) == 0 &&
               ((fs.f_flag & ST_RDONLY) || fs.f_bavail * fs.f_frsize < SHORT_BYTES);
    free(copy);
    return is_short;
}
