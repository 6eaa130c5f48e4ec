/* sim_machine.h: a simulated GPU at work: an MMU, the noise of its clock, and the four probes run
 * on it access by access. The simulated source and the stand-in driver of the tests share it. */
#ifndef REACH_GPU_SIM_SIM_MACHINE_H
#define REACH_GPU_SIM_SIM_MACHINE_H

#include "gpu/probe.h"
#include "gpu/sim/sim_desc.h"

struct sim_machine;

/* NULL without memory. `desc` is copied. */
struct sim_machine *sim_machine_new(const struct sim_desc *desc);
void sim_machine_free(struct sim_machine *take);

/* Position of the SM with this id, or -1. */
int32_t sim_machine_position(const struct sim_machine *m, uint32_t sm_id);

/* One load: its cycles, noise included, or only its effect. */
uint32_t sim_machine_timed_load(struct sim_machine *m, uint32_t sm, uint64_t va);
void sim_machine_load(struct sim_machine *m, uint32_t sm, uint64_t va);

/* The SM clock as a part of what the description says: 1, but for `reclock`. */
double sim_machine_clock_factor(const struct sim_machine *m);

/* Where an SM reads: whole lines from `va` on. */
struct sim_window {
    uint64_t va;
    uint64_t bytes;
};

/* What one access of READ does: as in a probe_spec. */
struct sim_access {
    enum access access;
    uint32_t bytes;
};

/* READ at one point: the SM at position i reads in windows[window_of[i]] (at most
 * PROBE_MAX_WINDOWS), or not at all where that is PROBE_SM_IDLE. Writes `repeats` rows of elapsed
 * nanoseconds and the accesses of each SM. */
void sim_machine_read(struct sim_machine *m, struct sim_access access,
                      const struct sim_window *windows, const uint16_t *window_of,
                      uint32_t duration_us, uint32_t repeats, uint32_t *rows);

/* Runs a checked spec over a range that starts at virtual address `va`; writes
 * probe_value_count(spec, sm_count) values. STATUS_INVALID_ARGUMENT where an SM id of the spec does
 * not exist, STATUS_NO_MEMORY. */
enum status sim_machine_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                            uint32_t *values, struct err *err);

#endif
