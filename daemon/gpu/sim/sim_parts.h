/* sim_parts.h: what sim_machine.c and sim_read.c know of a machine. Private to them. */
#ifndef REACH_GPU_SIM_SIM_PARTS_H
#define REACH_GPU_SIM_SIM_PARTS_H

#include "base/rng.h"
#include "gpu/sim/sim_machine.h"
#include "gpu/sim/sim_mmu.h"

struct sim_machine {
    struct sim_desc desc;
    struct sim_mmu *mmu;
    struct rng rng;                     /* of noise */
    uint32_t far_cycles[REACH_MAX_SMS]; /* by position: how much further away this SM sits */
};

/* A draw from the normal distribution with deviation 1. */
double sim_gauss(struct rng *rng);

/* READ: all points, all repeats. */
void sim_read_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                  uint32_t *values);

#endif
