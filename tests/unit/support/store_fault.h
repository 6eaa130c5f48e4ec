/* store_fault.h: a disk that fails on request.
 *
 * The system calls of SQLite go through a table of its VFS that can be patched in the process. All
 * calls that can fail are patched. fsync, fdatasync, flock and renameat2 are not in the table.
 * store_fault.c defines functions of those names, and a program's own symbol precedes the symbol of
 * the C library.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Kinds of system calls; each kind is a bit. */
enum store_fault_kind {
    FAULT_WRITES = 1, /* pwrite, write, ftruncate, fallocate, unlink, open to create, fsync */
    FAULT_READS = 2,  /* pread, read, fstat, stat, open of an existing file, mmap */
    FAULT_LOCKS = 4,  /* fcntl, flock, renameat2 */
    FAULT_ALL = 7
};

/* Settings and counts of the faults. Calls of all chosen kinds are counted together, from 1. */
struct store_fault {
    bool armed;
    bool persistent; /* whether all calls from the n-th on fail */
    bool torn;       /* whether a failing write first writes half of its bytes */
    bool skip_syncs; /* whether fsync does nothing and returns success */
    int error_number;
    unsigned kinds;
    uint64_t fail_at;
    uint64_t calls;
    uint64_t failures;
    _Atomic uint64_t syncs; /* number of syncs, failed or not */
    const char *last;       /* name of the call that failed last */
};
extern struct store_fault store_fault;

/* Patches the calls of SQLite; one call is enough. */
void store_fault_install(void);
