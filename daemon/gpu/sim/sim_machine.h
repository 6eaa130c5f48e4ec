/* sim_machine.h: runs probes on a simulated GPU, access by access. It models the MMU of the GPU and
 * the noise of its clock. The simulated source and the stand-in driver of the tests share it. */
#pragma once

#include "gpu/probe.h"
#include "gpu/sim/sim_desc.h"

struct sim_machine;

/* Makes a machine; copies `desc`. Returns NULL if there is no memory. */
struct sim_machine *sim_machine_new(const struct sim_desc *desc);
void sim_machine_free(struct sim_machine *take);

/* Run one load. The first returns the cycles of the load, noise included. The second only changes
 * the state of the machine. */
uint32_t sim_machine_timed_load(struct sim_machine *m, uint32_t sm, uint64_t va);
void sim_machine_load(struct sim_machine *m, uint32_t sm, uint64_t va);

/* Returns the SM clock relative to the description: 1, except after `reclock`. */
double sim_machine_clock_factor(const struct sim_machine *m);
/* Returns the SM cycles of a load relative to the description, which also depend on `coupled`. */
double sim_machine_load_factor(const struct sim_machine *m);

/* The window that an SM reads: whole lines from `va` on. */
struct sim_window {
    uint64_t va;
    uint64_t bytes;
};

/* The kind of access of a READ, like in a probe_spec. */
struct sim_access {
    enum access access;
    uint32_t bytes;
    uint32_t in_flight; /* accesses in flight of one SM; 0 means no limit */
    /* The frames in the scattered_bytes from scattered_va on are not one run of physical memory
     * each. scattered_bytes is 0 if there are no such frames. */
    uint64_t scattered_va;
    uint64_t scattered_bytes;
};

/* Runs READ at one point: the SM at position i reads in windows[window_of[i]] (at most
 * PROBE_MAX_WINDOWS), or not at all if that is PROBE_SM_IDLE. Writes `repeats` rows of elapsed
 * nanoseconds and the accesses of each SM. */
void sim_machine_read(struct sim_machine *m, struct sim_access access,
                      const struct sim_window *windows, const uint16_t *window_of,
                      uint32_t duration_us, uint32_t repeats, uint32_t *rows);

/* Runs a checked spec over a range that starts at virtual address `va`; writes
 * probe_value_count(spec, sm_count) values. Returns STATUS_INVALID_ARGUMENT if an SM id of the spec
 * does not exist. */
enum status sim_machine_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                            uint32_t *values, struct err *err);
/* Returns probe_conditions.interruptions of the last sim_machine_run. */
uint32_t sim_machine_interruptions(const struct sim_machine *m);
