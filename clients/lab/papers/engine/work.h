/* work.h: a job of the timed engine: a loop of memory instructions with other instructions between
 * them, and branches. The addresses and branches of a thread depend only on the thread, the
 * iteration and the operation, so compaction may move threads to other warps. Pure. */
#ifndef REACH_CLIENTS_LAB_PAPERS_ENGINE_WORK_H
#define REACH_CLIENTS_LAB_PAPERS_ENGINE_WORK_H

#include "clients/lab/papers/engine/coalescer.h"

/* One memory instruction, and the instructions before it. The operations of a region are adjacent,
 * those of the taken side first. */
struct lab_op {
    uint8_t gap;    /* instructions without memory before it */
    uint8_t region; /* a branch, numbered from 1; 0: all threads of the warp */
    uint8_t side;   /* of the branch: 0 taken, 1 not taken */
};

struct lab_work {
    const char *name;
    const struct lab_op *ops;
    uint32_t op_count;
    uint32_t gap_times;   /* a factor of every gap; 0 means 1 */
    uint32_t iterations;  /* of the loop, by each thread */
    uint32_t block_warps; /* warps of a block */
    const void *context;  /* borrowed, for the functions below */
    /* Writes the addresses in bytes, 2^20 to 2^37, of the lanes in `lanes`. */
    void (*addresses)(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                      uint32_t iteration, uint32_t op, uint64_t out[LAB_LANES]);
    /* Returns the lanes that take the branch. NULL if the job has no branch. */
    uint32_t (*taken)(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                      uint32_t iteration, uint32_t region);
    /* The same for the lanes that took the previous branch, if no other lane takes this one. NULL
     * if others may. */
    uint32_t (*taken_too)(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                          uint32_t iteration, uint32_t region);
};

#endif
