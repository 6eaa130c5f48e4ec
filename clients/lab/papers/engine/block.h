/* block.h: launches blocks of warps and runs their loop and its branches. Only the engine includes
 * this header. */
#ifndef REACH_CLIENTS_LAB_PAPERS_ENGINE_BLOCK_H
#define REACH_CLIENTS_LAB_PAPERS_ENGINE_BLOCK_H

#include "clients/lab/papers/engine/core_state.h"

/* Launches the next block of the job, if one is left, in the place of `block`. */
void lab_block_launch(struct lab_core *c, uint32_t block);

/* Moves the warp behind the operation that it has completed. */
void lab_block_end_operation(struct lab_core *c, uint32_t warp);

#endif
