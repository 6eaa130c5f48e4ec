/* sim_parts.h: the state of a machine. It is private to the files that run probes. */
#pragma once

#include "base/rng.h"
#include "gpu/sim/sim_machine.h"
#include "gpu/sim/sim_mmu.h"

#include <stdbool.h>

enum { SIM_PENDING_LOADS = 1024, SIM_LANES = 32 };

struct sim_machine {
    struct sim_desc desc;
    struct sim_mmu *mmu;
    struct rng rng;                     /* random numbers of the noise */
    uint32_t far_cycles[REACH_MAX_SMS]; /* by position: extra cycles of a load for the distance of
                                           this SM */
    struct rng others;                  /* random numbers of other processes */
    uint32_t loads_to_turn;             /* loads until the neighbor's next turn */
    uint32_t side_by_side;              /* loads that take the time of one load; 0 means 1 */
    uint32_t sides;                     /* number of these loads made so far */
    uint32_t loads_to_reclock;          /* loads until the clock changes */
    double clock;                       /* SM clock relative to the description */
    uint32_t reference;     /* cycles of the first reference of the probe; 0 before it */
    uint64_t turns;         /* turns that the neighbor has had */
    uint64_t away;          /* turns longer than REACH_AWAY_CYCLES (kernels/abi.h) */
    uint32_t interruptions; /* stretches of the last probe that were interrupted */
    /* Loads whose result is not needed. They are counted together, before all loads whose
     * result is needed. */
    uint32_t pending_count;
    struct sim_load pending[SIM_PENDING_LOADS];
};

/* Runs one load of an SM and the effects of other processes meanwhile. Returns the number of levels
 * that missed. `*away_cycles` (may be NULL) is the time for which the neighbor had the GPU during
 * the load. */
uint32_t sim_machine_access(struct sim_machine *m, uint32_t sm, uint64_t va, uint32_t *away_cycles);

/* Runs loads in this order; out_missed[i] is the number of levels that loads[i] missed. */
void sim_machine_count(struct sim_machine *m, const struct sim_load *loads, uint32_t count,
                       uint8_t *out_missed);

/* Makes later loads overlap: this number of loads takes the time of one load. Loads of several SMs
 * overlap, and loads of the lanes of a warp. */
void sim_machine_overlap(struct sim_machine *m, uint32_t loads);

/* Returns a number below `bound` that is fixed by `seed` and `what`. */
uint32_t sim_fixed(uint64_t seed, uint64_t what, uint32_t bound);
/* Returns a draw from the normal distribution with deviation 1. */
double sim_gauss(struct rng *rng);

/* SIDES: runs all repeats. */
void sim_sides_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                   uint32_t *values);

/* WORKING_SET_READ: runs all points and repeats. */
void sim_working_set_read_run(struct sim_machine *m, const struct probe_spec *spec,
                              uint32_t *values);
/* CACHE: runs all points. Returns false if there is no memory. */
bool sim_cache_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                   uint32_t *values);

/* Returns these cycles with noise, other processes and the clock. */
uint32_t sim_machine_noisy(struct sim_machine *m, double cycles, uint32_t away_cycles);
/* Returns these cycles with noise and outliers. */
double sim_machine_scatter(struct sim_machine *m, double cycles);
/* Returns the extra cycles of a line of the L2 for one SM, fixed by the seed: its slice. */
uint32_t sim_slice_cycles(const struct sim_machine *m, uint64_t va);
/* Returns the extra cycles for the side of the line. */
uint32_t sim_side_cycles(const struct sim_machine *m, uint32_t sm, uint64_t va);

/* SHARED and PEER: run all repeats. The description must have shared memory or clusters. */
void sim_shared_run(struct sim_machine *m, const struct probe_spec *spec, uint32_t *values);
void sim_peer_run(struct sim_machine *m, const struct probe_spec *spec, uint32_t *values);

/* CONCURRENCY: runs all points and repeats. */
void sim_concurrency_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                         uint32_t *values);

/* READ: runs all points and repeats. */
void sim_read_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                  uint32_t *values);
