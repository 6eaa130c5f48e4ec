/* sim_mmu.h: the translation hardware of a GPU as a model: a few levels of set-associative TLBs,
 * each level with instances shared by some of the SMs. Access by access: no time, no noise, no I/O.
 *
 * Every access searches the levels of its SM, nearest first, until one hits; the levels that
 * missed then hold the translation. The state stays between calls, as on hardware.
 */
#ifndef REACH_GPU_SIM_SIM_MMU_H
#define REACH_GPU_SIM_SIM_MMU_H

#include "gpu/sim/sim_desc.h"
#include "gpu/sim/sim_tlb.h"

struct sim_mmu;

/* A cold MMU; copies `desc`. NULL: no memory. */
struct sim_mmu *sim_mmu_new(const struct sim_desc *desc);
void sim_mmu_free(struct sim_mmu *take);

/* One load by the SM at position `sm` (not its id) from virtual address `va`, which must lie in the
 * described range. Returns how many levels missed: 0 is a hit in the first, level_count a walk. */
uint32_t sim_mmu_access(struct sim_mmu *mmu, uint32_t sm, uint64_t va);

/* The counting engine: the loads in this order, as by sim_mmu_access; out_missed[i] is what it
 * returns for loads[i]. Several times as fast as one by one. */
void sim_mmu_count(struct sim_mmu *mmu, const struct sim_load *loads, size_t count,
                   uint8_t *out_missed);

/* Cycles of a load whose first `missed` levels missed, without noise. */
uint32_t sim_mmu_cycles(const struct sim_mmu *mmu, uint32_t missed);

/* Forgets every translation. */
void sim_mmu_flush(struct sim_mmu *mmu);
/* Another process on the first `sms` SMs: each touches `pages` pages beyond the range, the same
 * ones, in level `level` (1, ..), or in all levels if that is 0. `where` chooses the first. */
void sim_mmu_evict(struct sim_mmu *mmu, uint32_t sms, uint32_t pages, uint32_t level,
                   uint64_t where);

#endif
