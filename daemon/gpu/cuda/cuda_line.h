/* cuda_line.h: which line of the line handle all pages of a latency probe share. Lines differ by
 * their distance to an SM: those of the farther half of the L2 are not only slower, they also
 * jitter by ten cycles, as much as a small level's miss costs. So some lines are timed once and the
 * one with the steadiest low latency is taken. Pure. */
#ifndef REACH_GPU_CUDA_CUDA_LINE_H
#define REACH_GPU_CUDA_CUDA_LINE_H

#include <stdint.h>

enum {
    CUDA_LINES = 64, /* that are tried */
    CUDA_LINE_STEP_BYTES =
        4224,           /* from one to the next: 33 lines, so that they lie in many slices */
    CUDA_LINE_LAPS = 32 /* timed loads of each */
};

/* `cycles`: [CUDA_LINE_LAPS][CUDA_LINES], in the order in which they were loaded. Returns the line
 * whose 90th percentile is lowest; the first of equals. */
uint32_t cuda_line_choose(const uint32_t *cycles);

#endif
