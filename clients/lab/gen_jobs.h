/* gen_jobs.h: traces of the example jobs (clients/examples), with their own hash, made without a
 * GPU. What is traced is the accesses that are at random; the inputs that a job reads in order are
 * left out. The same arguments always give the same bytes.
 *
 *   random    warps read a line each at random
 *   sampling  lanes read 4 bytes each, at positions that are hashes
 *   gather    rows of 128, 256 or 512 bytes, of as many bags side by side as a warp has room for
 *   grouping  the bucket of each lane's value: inserted, then counted
 */
#ifndef REACH_CLIENTS_LAB_GEN_JOBS_H
#define REACH_CLIENTS_LAB_GEN_JOBS_H

#include "clients/lab/rlt.h"

struct gen_job {
    const char *name;
    uint64_t bytes;     /* of the allocation, 1 MiB or more */
    uint64_t count;     /* lines, samples, rows or values, 1 or more */
    uint32_t row_bytes; /* of gather: 128, 256 or 512 */
    uint32_t threads;   /* of a block, 32 to 1024 in whole warps; 0: 1024 */
    uint32_t seed;
};

/* STATUS_INVALID_ARGUMENT names what is wrong. */
enum status gen_job(const struct gen_job *job, struct rlt_writer *out, struct err *err);

#endif
