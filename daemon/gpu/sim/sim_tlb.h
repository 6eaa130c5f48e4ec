/* sim_tlb.h: a model of one level of a TLB: all its instances, each shared by some of the SMs. It
 * has the sets, the ways, the replacement and the sectors of a sim_level. There is no time, no
 * noise and no I/O.
 *
 * A load hits if its translation is there. Afterwards the level holds the translation in either
 * case. The state stays between calls, like on hardware. Nothing is allocated after start. One
 * thread at a time uses a level.
 */
#pragma once

#include "gpu/sim/sim_desc.h"

#include <stdbool.h>

struct sim_tlb;

/* A load from virtual address `va` by the SM at position `sm` (not its id). */
struct sim_load {
    uint64_t va;
    uint32_t sm;
};

/* Makes a cold level. Copies `desc`. `seed` starts the random choice of victims. Returns NULL if
 * there is no memory. */
struct sim_tlb *sim_tlb_new(const struct sim_level *desc, uint64_t seed);
void sim_tlb_free(struct sim_tlb *take);

/* Returns true for a hit. `va` is at most 2^32 - 2 sectors of the level. */
bool sim_tlb_touch(struct sim_tlb *t, uint32_t sm, uint64_t va);

/* Returns the set of a translation, which is the same in each instance. */
uint32_t sim_tlb_set(const struct sim_tlb *t, uint64_t va);

/* Touches loads[which[0]], loads[which[1]], .. in this order, like sim_tlb_touch. Leaves the loads
 * that missed in `which`, in order, and returns their number. */
uint32_t sim_tlb_pass(struct sim_tlb *t, const struct sim_load *loads, uint32_t *which,
                      uint32_t count);

/* Removes every translation. */
void sim_tlb_flush(struct sim_tlb *t);
