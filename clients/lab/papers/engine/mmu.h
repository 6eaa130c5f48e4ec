/* mmu.h: the TLB and the page walkers of a core. Only the engine includes this header. */
#pragma once

#include "clients/lab/papers/engine/core_state.h"

/* Looks up the pages of the warp's instruction. Returns a mask of the pages that miss. */
uint32_t lab_mmu_lookup(struct lab_core *c, uint32_t warp, uint64_t now);

/* Returns whether the warp's instruction can only wait for the walks of another warp. Such an
 * instruction does not use shared state, so it may run ahead of other cores. */
bool lab_mmu_must_wait(struct lab_core *c, uint32_t warp);

/* Starts walks for the pages that the warp missed. */
void lab_mmu_start_walks(struct lab_core *c, uint32_t warp, uint64_t now);

/* Continues a walk after the last load of a walker has returned. */
void lab_mmu_advance_walk(struct lab_core *c, uint32_t walker, uint64_t now);
