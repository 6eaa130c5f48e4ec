/* gen_jobs.h: writes traces of the example jobs (clients/examples) without a GPU, with the jobs'
 * own hash. A trace contains the random accesses. Sequential reads of the input are left out. The
 * same arguments give the same bytes.
 *
 *   random    each warp reads one random line at a time
 *   sampling  each lane reads 4 bytes at a hashed position
 *   gather    a warp reads rows of 128, 256 or 512 bytes, of several bags at a time
 *   grouping  each lane inserts its value into a bucket, then counts it there
 */
#pragma once

#include "clients/lab/trace/rlt.h"

struct gen_job {
    const char *name;
    uint64_t bytes;     /* size of the allocation, 1 MiB or more */
    uint64_t count;     /* lines, samples, rows or values, 1 or more */
    uint32_t row_bytes; /* row size of gather: 128, 256 or 512 */
    uint32_t threads;   /* block size, a multiple of 32 up to 1024; 0 means 1024 */
    uint32_t seed;
};

/* Returns STATUS_INVALID_ARGUMENT if a member of `job` is out of range. */
enum status gen_job(const struct gen_job *job, struct rlt_writer *out, struct err *err);
