/* work.h: a job of the timed engine. It is a loop of memory instructions with branches and with
 * other instructions between them. The addresses and branches of a thread depend only on the
 * thread, the iteration and the operation, so compaction may move threads to other warps. The
 * functions are pure. */
#ifndef REACH_CLIENTS_LAB_PAPERS_ENGINE_WORK_H
#define REACH_CLIENTS_LAB_PAPERS_ENGINE_WORK_H

#include "clients/lab/papers/engine/coalescer.h"

#include <stdbool.h>

/* One memory instruction and the instructions before it. The operations of a region are adjacent.
 * The taken side is first. */
struct lab_op {
    uint8_t gap;    /* instructions before it that do not access memory */
    uint8_t region; /* number of the branch, from 1; 0 means all threads of the warp */
    uint8_t side;   /* side of the branch: 0 taken, 1 not taken */
};

struct lab_work {
    const char *name;
    const struct lab_op *ops;
    uint32_t op_count;
    uint32_t iterations;  /* iterations of the loop per thread */
    uint32_t block_warps; /* warps per block */
    const void *context;  /* borrowed argument of the functions below */
    /* Writes the byte addresses of the lanes in `lanes`. They are from 2^20 to 2^37. */
    void (*addresses)(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                      uint32_t iteration, uint32_t op, uint64_t out[LAB_LANES]);
    /* Returns the lanes that take the branch. The pointer is NULL if the job has no branch. */
    uint32_t (*taken)(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                      uint32_t iteration, uint32_t region);
    /* Returns whether a warp of the thread's block diverges at this branch. Compaction skips other
     * branches. If the pointer is NULL, each branch is divergent. */
    bool (*diverges)(const void *context, uint32_t thread, uint32_t iteration);
};

#endif
