/* sim_mmu.h: a model of the translation hardware of a GPU: a few levels of set-associative TLBs.
 * Each level has instances shared by some of the SMs. The model works access by access, without
 * time, noise or I/O.
 *
 * Every access searches the levels of its SM, nearest first, until one hits; the levels that missed
 * then hold the translation. The state stays between calls, like on hardware.
 */
#pragma once

#include "gpu/sim/sim_desc.h"
#include "gpu/sim/sim_tlb.h"

struct sim_mmu;

/* Makes a cold MMU; copies `desc`. Returns NULL if there is no memory. */
struct sim_mmu *sim_mmu_new(const struct sim_desc *desc);
void sim_mmu_free(struct sim_mmu *take);

/* Runs one load by the SM at position `sm` (not its id) from virtual address `va`, which must lie
 * in the described range. Returns the number of levels that missed: 0 is a hit in the first level,
 * and level_count is a walk. */
uint32_t sim_mmu_access(struct sim_mmu *mmu, uint32_t sm, uint64_t va);

/* Counts the loads in this order with the result of sim_mmu_access: out_missed[i] is its return
 * value for loads[i]. It is several times faster than a call for each load. */
void sim_mmu_count(struct sim_mmu *mmu, const struct sim_load *loads, size_t count,
                   uint8_t *out_missed);

/* Returns the cycles of a load whose first `missed` levels missed, without noise. */
uint32_t sim_mmu_cycles(const struct sim_mmu *mmu, uint32_t missed);

/* Removes every translation. */
void sim_mmu_flush(struct sim_mmu *mmu);
/* Simulates another process on the first `sms` SMs. Each SM touches the same `pages` pages beyond
 * the range, in level `level` (1, ..), or in all levels if that is 0. `where` chooses the first
 * page. */
void sim_mmu_evict(struct sim_mmu *mmu, uint32_t sms, uint32_t pages, uint32_t level,
                   uint64_t where);
