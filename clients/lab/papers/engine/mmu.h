/* mmu.h: the TLB and the page walkers of a core. Private to the engine. */
#ifndef REACH_CLIENTS_LAB_PAPERS_ENGINE_MMU_H
#define REACH_CLIENTS_LAB_PAPERS_ENGINE_MMU_H

#include "clients/lab/papers/engine/core_state.h"

/* Looks up the pages of the warp's instruction. Returns those that miss, one bit each. */
uint32_t lab_mmu_lookup(struct lab_core *c, uint32_t warp, uint64_t now);

/* Marks that the warp will look up its pages again, or removes the mark. */
void lab_mmu_set_waiting(struct lab_core *c, uint32_t warp, bool waits);

/* True if the warp's instruction would only have to wait for the walks of another warp. It then
 * touches nothing that cores share, so no other core needs to run before it. */
bool lab_mmu_must_wait(struct lab_core *c, uint32_t warp);

/* Starts walks for the pages that the warp missed. */
void lab_mmu_start_walks(struct lab_core *c, uint32_t warp, uint64_t now);

/* Continues a walk after the last load of a walker has returned. */
void lab_mmu_advance_walk(struct lab_core *c, uint32_t walker, uint64_t now);

#endif
