/* store_fault.h: a disk that fails on request.
 *
 * SQLite's system calls go through a table of its VFS that can be patched in the process; all of
 * them that can fail are. fsync, fdatasync, flock and renameat2 are not in it: store_fault.c
 * defines functions of those names, and a program's own symbol comes before the C library's.
 */
#ifndef REACH_TESTS_UNIT_STORE_FAULT_H
#define REACH_TESTS_UNIT_STORE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

/* Which calls there are, as bits. */
enum store_fault_kind {
    FAULT_WRITES = 1, /* pwrite, write, ftruncate, fallocate, unlink, open to create, fsync */
    FAULT_READS = 2,  /* pread, read, fstat, stat, open of what is there, mmap */
    FAULT_LOCKS = 4,  /* fcntl, flock, renameat2 */
    FAULT_ALL = 7
};

/* Calls of all chosen kinds are counted together, from 1. */
struct store_fault {
    bool armed;
    bool persistent; /* from the n-th on, all fail */
    bool torn;       /* a failing write leaves half of its bytes */
    bool skip_syncs; /* fsync does nothing, and says it did */
    int error_number;
    unsigned kinds;
    uint64_t fail_at;
    uint64_t calls;
    uint64_t failures;
    _Atomic uint64_t syncs; /* reached, failed or not */
    const char *last;       /* the name of the call that failed last */
};
extern struct store_fault store_fault;

/* Patches SQLite's calls; once is enough. */
void store_fault_install(void);

#endif
