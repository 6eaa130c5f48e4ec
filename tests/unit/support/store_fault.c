/* store_fault.c: see store_fault.h. */
#include "tests/unit/support/store_fault.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct store_fault store_fault;

/* Returns whether this call must fail. If it must fail, the function sets errno. */
static bool fails_now(enum store_fault_kind kind, const char *name)
{
    struct store_fault *const f = &store_fault;

    if (!f->armed || !(f->kinds & kind))
        return false;
    f->calls++;
    if (f->calls != f->fail_at && !(f->persistent && f->calls > f->fail_at))
        return false;
    f->failures++;
    f->last = name;
    errno = f->error_number;
    return true;
}

static ssize_t faulty_pwrite(int fd, const void *data, size_t size, off_t offset)
{
    if (!fails_now(FAULT_WRITES, "pwrite"))
        return pwrite(fd, data, size, offset);
    if (store_fault.torn && size > 1)
        (void)!pwrite(fd, data, size / 2, offset);
    errno = store_fault.error_number;
    return -1;
}

static ssize_t faulty_write(int fd, const void *data, size_t size)
{
    return fails_now(FAULT_WRITES, "write") ? -1 : write(fd, data, size);
}

static int faulty_ftruncate(int fd, off_t size)
{
    return fails_now(FAULT_WRITES, "ftruncate") ? -1 : ftruncate(fd, size);
}

static int faulty_fallocate(int fd, off_t offset, off_t size)
{
    return fails_now(FAULT_WRITES, "fallocate") ? store_fault.error_number
                                                : posix_fallocate(fd, offset, size);
}

static int faulty_open(const char *path, int flags, int mode)
{
    return fails_now(flags & O_CREAT ? FAULT_WRITES : FAULT_READS, "open")
               ? -1
               : open(path, flags, mode);
}

static int faulty_unlink(const char *path)
{
    return fails_now(FAULT_WRITES, "unlink") ? -1 : unlink(path);
}

static ssize_t faulty_pread(int fd, void *data, size_t size, off_t offset)
{
    return fails_now(FAULT_READS, "pread") ? -1 : pread(fd, data, size, offset);
}

static ssize_t faulty_read(int fd, void *data, size_t size)
{
    return fails_now(FAULT_READS, "read") ? -1 : read(fd, data, size);
}

static int faulty_stat(const char *path, struct stat *st)
{
    return fails_now(FAULT_READS, "stat") ? -1 : stat(path, st);
}

static int faulty_fstat(int fd, struct stat *st)
{
    return fails_now(FAULT_READS, "fstat") ? -1 : fstat(fd, st);
}

static void *faulty_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return fails_now(FAULT_READS, "mmap") ? MAP_FAILED
                                          : mmap(at, size, protection, flags, fd, offset);
}

static int faulty_fcntl(int fd, int command, ...)
{
    va_list arguments;
    void *argument;

    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    /* A call that releases a lock never fails. */
    if (command == F_SETLK && ((const struct flock *)argument)->l_type != F_UNLCK &&
        fails_now(FAULT_LOCKS, "fcntl"))
        return -1;
    return fcntl(fd, command, argument);
}

/* These functions replace the functions of the C library in the whole program. */
int fsync(int fd)
{
    store_fault.syncs++;
    if (fails_now(FAULT_WRITES, "fsync"))
        return -1;
    return store_fault.skip_syncs ? 0 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    store_fault.syncs++;
    if (fails_now(FAULT_WRITES, "fdatasync"))
        return -1;
    return store_fault.skip_syncs ? 0 : (int)syscall(SYS_fdatasync, fd);
}

int flock(int fd, int operation)
{
    return fails_now(FAULT_LOCKS, "flock") ? -1 : (int)syscall(SYS_flock, fd, operation);
}

int renameat2(int old_fd, const char *from, int new_fd, const char *to, unsigned flags)
{
    return fails_now(FAULT_LOCKS, "renameat2")
               ? -1
               : (int)syscall(SYS_renameat2, old_fd, from, new_fd, to, flags);
}

void store_fault_install(void)
{
    static const struct {
        const char *name;
        sqlite3_syscall_ptr call;
    } calls[] = {
        {"pwrite", (sqlite3_syscall_ptr)faulty_pwrite},
        {"pwrite64", (sqlite3_syscall_ptr)faulty_pwrite},
        {"write", (sqlite3_syscall_ptr)faulty_write},
        {"ftruncate", (sqlite3_syscall_ptr)faulty_ftruncate},
        {"fallocate", (sqlite3_syscall_ptr)faulty_fallocate},
        {"open", (sqlite3_syscall_ptr)faulty_open},
        {"unlink", (sqlite3_syscall_ptr)faulty_unlink},
        {"pread", (sqlite3_syscall_ptr)faulty_pread},
        {"pread64", (sqlite3_syscall_ptr)faulty_pread},
        {"read", (sqlite3_syscall_ptr)faulty_read},
        {"stat", (sqlite3_syscall_ptr)faulty_stat},
        {"fstat", (sqlite3_syscall_ptr)faulty_fstat},
        {"mmap", (sqlite3_syscall_ptr)faulty_mmap},
        {"fcntl", (sqlite3_syscall_ptr)faulty_fcntl},
    };
    sqlite3_vfs *vfs;

    REACH_ASSERT(sqlite3_initialize() == SQLITE_OK);
    vfs = sqlite3_vfs_find(NULL);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        REACH_ASSERT(vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call) == SQLITE_OK);
}
