"""lib_disk.py: a disk that fails on request of a test. A library that is loaded before the C library replaces the
system calls with which a daemon writes to one folder."""
import errno
import mmap
import os
import struct
import subprocess

import common

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

/* Error numbers, 0 if the call succeeds. */
struct fault {
    int32_t write_error, sync_error, open_error, torn, delay_us, unused;
    int64_t failed; /* calls */
};

static volatile struct fault *fault(void)
{
    static volatile struct fault *at;

    if (!at)
        at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
                  open(getenv("REACH_TEST_FAULT"), O_RDWR | O_CLOEXEC), 0);
    return at;
}

static int is_under(const char *path)
{
    const char *folder = getenv("REACH_TEST_DISK");

    return strncmp(path, folder, strlen(folder)) == 0;
}

static int is_on_disk(int fd)
{
    char name[64], path[4096];
    ssize_t n;
    int before = errno;

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    n = readlink(name, path, sizeof path - 1);
    errno = before;
    path[n > 0 ? n : 0] = 0;
    return is_under(path);
}

/* Returns the error number of this call. */
static int fails(int error)
{
    if (fault()->delay_us)
        usleep(fault()->delay_us);
    if (error) {
        __atomic_fetch_add(&fault()->failed, 1, __ATOMIC_SEQ_CST);
        errno = error;
    }
    return error;
}

#define REAL(result, name, ...) ((result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

#define DEFINE_PWRITE(name)                                                                        \
    ssize_t name(int fd, const void *data, size_t size, off_t at)                                  \
    {                                                                                              \
        int error = is_on_disk(fd) ? fault()->write_error : 0;                                     \
        if (error && fault()->torn && size > 1)                                                    \
            (void)!REAL(ssize_t, #name, int, const void *, size_t, off_t)(fd, data, size / 2, at); \
        return error && fails(error)                                                               \
                   ? -1                                                                            \
                   : REAL(ssize_t, #name, int, const void *, size_t, off_t)(fd, data, size, at);   \
    }
DEFINE_PWRITE(pwrite)
DEFINE_PWRITE(pwrite64)

ssize_t write(int fd, const void *data, size_t size)
{
    int error = is_on_disk(fd) ? fault()->write_error : 0;

    return error && fails(error) ? -1 : REAL(ssize_t, "write", int, const void *, size_t)(fd, data, size);
}

#define DEFINE_TRUNCATE(name)                                                                      \
    int name(int fd, off_t size)                                                                   \
    {                                                                                              \
        int error = is_on_disk(fd) ? fault()->write_error : 0;                                     \
        return error && fails(error) ? -1 : REAL(int, #name, int, off_t)(fd, size);                \
    }
DEFINE_TRUNCATE(ftruncate)
DEFINE_TRUNCATE(ftruncate64)

#define DEFINE_SYNC(name)                                                                          \
    int name(int fd)                                                                               \
    {                                                                                              \
        return is_on_disk(fd) && fails(fault()->sync_error) ? -1 : REAL(int, #name, int)(fd);      \
    }
DEFINE_SYNC(fsync)
DEFINE_SYNC(fdatasync)

#define DEFINE_OPEN(name)                                                                          \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;                     \
        va_end(arguments);                                                                         \
        int error = (flags & O_ACCMODE) != O_RDONLY && is_under(path) ? fault()->open_error : 0;   \
        return error && fails(error) ? -1 : REAL(int, #name, const char *, int, ...)(path, flags, mode); \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)
"""

# For each fault: the error of writes, of fsync and of opening for writing (0: none), and whether half of a failing
# write is done.
FAULTS = {
    "full": (errno.ENOSPC, 0, 0, 0),
    "full, writes are torn": (errno.ENOSPC, 0, 0, 1),
    "quota": (errno.EDQUOT, 0, 0, 0),
    "fsync fails": (0, errno.EIO, 0, 0),
    "fsync has no room": (0, errno.ENOSPC, 0, 0),
    "writing fails": (errno.EIO, 0, 0, 1),
    "read-only": (errno.EROFS, errno.EROFS, errno.EROFS, 0),
}


class Disk:
    """A folder for a state file; start() starts a daemon on it."""

    def __init__(self, name):
        if not common.COMPILER or common.SANITIZED:
            raise common.Skip("no compiler, or a sanitizer that must be loaded first")
        self.folder = os.path.join(common.folder, name)
        os.mkdir(self.folder)
        self.state = os.path.join(self.folder, "reachd.db")
        self.shim, source = (os.path.join(common.folder, name + end) for end in (".so", ".c"))
        with open(source, "w", encoding="ascii") as file:
            file.write(SHIM)
        subprocess.run([common.COMPILER, "-shared", "-fPIC", "-o", self.shim, source], check=True)
        self.fault_path = os.path.join(common.folder, name + ".fault")
        with open(self.fault_path, "wb") as file:
            file.write(bytes(4096))
        with open(self.fault_path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 4096)

    def start(self, *options):
        return common.Daemon(*options, state=self.state, environment={
            "LD_PRELOAD": self.shim, "REACH_TEST_FAULT": self.fault_path, "REACH_TEST_DISK": self.folder + "/"})

    def break_it(self, kind):
        self.map[:16] = struct.pack("=4i", *FAULTS[kind])

    def slow_down(self, microseconds):
        self.map[16:20] = struct.pack("=i", microseconds)

    def repair(self):
        self.map[:20] = bytes(20)

    def failed(self):
        """Returns the number of calls that have failed so far."""
        return struct.unpack("=q", self.map[24:32])[0]
