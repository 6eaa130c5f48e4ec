/* block.h: launches blocks of warps and moves them from record to record. Only the engine includes
 * this header. */
#ifndef REACH_CLIENTS_LAB_PAPERS_ENGINE_BLOCK_H
#define REACH_CLIENTS_LAB_PAPERS_ENGINE_BLOCK_H

#include "clients/lab/papers/engine/core_state.h"

/* Launches the next block of the job, if one is left, in the place of `block`. */
void lab_block_launch(struct lab_core *c, uint32_t block);

/* Moves the warp behind the access that it has completed. */
void lab_block_end_access(struct lab_core *c, uint32_t warp);

#endif
