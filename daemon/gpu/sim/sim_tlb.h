/* sim_tlb.h: one level of a TLB as a model: all its instances, each shared by some of the SMs, with
 * the sets, the ways, the replacement and the sectors of a sim_level. No time, no noise, no I/O.
 *
 * A load whose translation is there hits; afterwards the level holds it either way. The state
 * stays between calls, as on hardware. Nothing is allocated after start. One thread at a time.
 */
#ifndef REACH_GPU_SIM_SIM_TLB_H
#define REACH_GPU_SIM_SIM_TLB_H

#include "gpu/sim/sim_desc.h"

#include <stdbool.h>

struct sim_tlb;

/* A load from virtual address `va` by the SM at position `sm` (not its id). */
struct sim_load {
    uint64_t va;
    uint32_t sm;
};

/* A cold MMU. Copies `desc`. `seed` draws random victims. NULL if there is no memory. */
struct sim_tlb *sim_tlb_new(const struct sim_level *desc, uint64_t seed);
void sim_tlb_free(struct sim_tlb *take);

/* True if it hits. `va` is at most 2^32 - 2 sectors of the level. */
bool sim_tlb_touch(struct sim_tlb *t, uint32_t sm, uint64_t va);

/* The set that a translation goes to, which is the same in each instance. */
uint32_t sim_tlb_set(const struct sim_tlb *t, uint64_t va);

/* Touches loads[which[0]], loads[which[1]], .. in this order, as sim_tlb_touch does. Leaves in
 * `which` those that missed, in order; returns how many. */
uint32_t sim_tlb_pass(struct sim_tlb *t, const struct sim_load *loads, uint32_t *which,
                      uint32_t count);

/* Forgets every translation. */
void sim_tlb_flush(struct sim_tlb *t);

#endif
