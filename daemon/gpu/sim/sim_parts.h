/* sim_parts.h: the state of a machine. Private to the parts that run probes. */
#ifndef REACH_GPU_SIM_SIM_PARTS_H
#define REACH_GPU_SIM_SIM_PARTS_H

#include "base/rng.h"
#include "gpu/sim/sim_machine.h"
#include "gpu/sim/sim_mmu.h"

#include <stdbool.h>

enum { SIM_PENDING_LOADS = 1024, SIM_LANES = 32 };

struct sim_machine {
    struct sim_desc desc;
    struct sim_mmu *mmu;
    struct rng rng;                     /* of noise */
    uint32_t far_cycles[REACH_MAX_SMS]; /* by position: the distance of this SM, on top of a load */
    struct rng others;                  /* of other processes */
    uint32_t loads_to_turn;             /* until the neighbor's next turn */
    uint32_t side_by_side;              /* loads that take the time of one; 0: 1 */
    uint32_t sides;                     /* of these, made so far */
    uint32_t loads_to_reclock;          /* until the clock changes */
    bool reclocked;
    uint64_t turns;         /* that the neighbor has had */
    uint64_t away;          /* of these, so long that a kernel notices (kernels/abi.h) */
    uint32_t interruptions; /* of the last probe: stretches that were done again, or in vain */
    /* Loads whose result is not asked for: counted together, before any whose result is. */
    uint32_t pending_count;
    struct sim_load pending[SIM_PENDING_LOADS];
};

/* One load of an SM, and what others do meanwhile. Returns how many levels missed; `*away_cycles`
 * (may be NULL) is how long the neighbor had the GPU during it. */
uint32_t sim_machine_access(struct sim_machine *m, uint32_t sm, uint64_t va, uint32_t *away_cycles);

/* Loads in this order; out_missed[i] is how many levels loads[i] missed. */
void sim_machine_count(struct sim_machine *m, const struct sim_load *loads, uint32_t count,
                       uint8_t *out_missed);

/* From now on this number of loads takes the time of one: loads of several SMs, and of the lanes of
 * a warp. */
void sim_machine_overlap(struct sim_machine *m, uint32_t loads);

/* A draw from the normal distribution with deviation 1. */
double sim_gauss(struct rng *rng);

/* SIDES: all repeats. */
void sim_sides_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                   uint32_t *values);

/* WORKING_SET_READ: all points, all repeats. */
void sim_working_set_read_run(struct sim_machine *m, const struct probe_spec *spec,
                              uint32_t *values);
/* CACHE: all points. False: no memory. */
bool sim_cache_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                   uint32_t *values);

/* Noise, other processes and the clock, on top of these cycles. */
uint32_t sim_machine_noisy(struct sim_machine *m, double cycles, uint32_t away_cycles);
/* These cycles with noise and outliers. */
double sim_machine_scatter(struct sim_machine *m, double cycles);
/* What one line of the L2 takes more for one SM, fixed by the seed: its slice. */
uint32_t sim_slice_cycles(const struct sim_machine *m, uint64_t va);
/* What the side takes more on which the line is. */
uint32_t sim_side_cycles(const struct sim_machine *m, uint32_t sm, uint64_t va);

/* SHARED and PEER: all repeats. The description must have them. */
void sim_shared_run(struct sim_machine *m, const struct probe_spec *spec, uint32_t *values);
void sim_peer_run(struct sim_machine *m, const struct probe_spec *spec, uint32_t *values);

/* CONCURRENCY: all points, all repeats. */
void sim_concurrency_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                         uint32_t *values);

/* READ: all points, all repeats. */
void sim_read_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                  uint32_t *values);

#endif
