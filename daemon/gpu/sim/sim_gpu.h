/* sim_gpu.h: the simulated source: GPUs that are described by a text and answer the same probes as
 * real ones. All its results carry the origin "simulated". See gpu/gpu.h for the contract,
 * sim_desc.h for the text, sim_profiles.h for the GPUs that have a name. Its parts: sim_machine
 * (the probes), sim_read (throughput), sim_mmu (translation). */
#ifndef REACH_GPU_SIM_SIM_GPU_H
#define REACH_GPU_SIM_SIM_GPU_H

#include "gpu/gpu.h"
#include "gpu/sim/sim_desc.h"

/* The identity of the simulated GPU `desc`, the `twin`th (0, 1, ..) of its kind on the node: its
 * UUID is a hash of the two, so it stays the same as long as the description does. */
void sim_gpu_identity(const struct sim_desc *desc, uint32_t twin, struct gpu_identity *out);

#endif
