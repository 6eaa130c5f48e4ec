/* core.h: a core of the timed engine launches blocks of warps and issues their instructions. Only
 * the engine includes this header. */
#pragma once

#include "clients/lab/papers/engine/core_state.h"

/* Launches the next block of the job, if one is left, in the place of `block`. */
void lab_core_launch(struct lab_core *c, uint32_t block);

/* Runs the core until its next step that other cores can observe is later than `limit`. */
void lab_core_run(struct lab_core *c, uint64_t limit);
