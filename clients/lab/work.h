/* work.h: a job as the timed engine runs it: a loop of memory instructions with others between
 * them, and branches that threads take or do not. What a thread does is a function of the thread,
 * the iteration and the operation alone, so that threads may be packed into any warp. Pure. */
#ifndef REACH_CLIENTS_LAB_WORK_H
#define REACH_CLIENTS_LAB_WORK_H

#include "clients/lab/front.h"

/* One memory instruction and the others before it. Operations of one region stand together, those
 * of the taken side first. */
struct lab_op {
    uint8_t gap;    /* instructions without memory before it */
    uint8_t region; /* 0: all threads of the warp; otherwise a branch, numbered from 1 */
    uint8_t side;   /* of the branch: 0 taken, 1 not taken */
};

struct lab_work {
    const char *name;
    const struct lab_op *ops;
    uint32_t op_count;
    uint32_t gap_times;   /* as many times each gap; 0: once */
    uint32_t iterations;  /* of the loop, by each thread */
    uint32_t block_warps; /* warps of a block */
    const void *context;  /* borrowed, for the functions below */
    /* Addresses in bytes of the lanes in `lanes`, 2^20 to 2^37, whose threads are given. */
    void (*addresses)(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                      uint32_t iteration, uint32_t op, uint64_t out[LAB_LANES]);
    /* Those of the lanes that take the branch. NULL: there is none. */
    uint32_t (*taken)(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                      uint32_t iteration, uint32_t region);
    /* The same for lanes that took the branch before it, if nobody else takes it. NULL: others may.
     */
    uint32_t (*taken_too)(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                          uint32_t iteration, uint32_t region);
};

#endif
