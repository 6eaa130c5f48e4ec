/* cuda_probe.h: runs a probe_spec on the device: makes tables and arguments, launches, and copies
 * the values back. It is internal to the cuda source. */
#pragma once

#include "gpu/cuda/cuda_arena.h"
#include "gpu/cuda/cuda_launch.h"
#include "gpu/cuda/cuda_memory.h"

enum {
    CUDA_LINES = 64, /* candidates for the line that the pages of a latency probe share */
    CUDA_LINE_STEP_BYTES =
        4224, /* distance between two candidates: 33 lines, so that they lie in many slices */
    CUDA_LINE_LAPS = 32 /* timed loads of each candidate */
};

/* Loads the device code and finds the SM ids. Returns STATUS_NOT_SUPPORTED if the build has no code
 * for this chip or no code at all. Releases everything on failure. */
enum status cuda_probe_open(const struct cuda_api *api, cu_device device, nsec_t deadline_ns,
                            struct cuda_probe *out, struct err *err);
void cuda_probe_close(struct cuda_probe *probe);

/* Chooses the line that all pages of a latency probe share. Lines differ by their distance to an
 * SM. Lines in the farther half of the L2 are slower and also jitter by ten cycles, the cost of a
 * miss of a small level. `cycles` is [CUDA_LINE_LAPS][CUDA_LINES], in the order of the loads.
 * Returns the line whose 90th percentile is lowest; the first line wins ties. The function is
 * pure. */
uint32_t cuda_probe_choose_line(const uint32_t *cycles);

/* Runs a checked spec over the arena, or over `memory`, which has the range that the spec needs.
 * Fills sm_ids and values. It does not run WORKING_SET_READ. */
enum status cuda_probe_run(struct cuda_probe *probe, struct cuda_arena *arena,
                           const struct cuda_memory *memory, const struct probe_spec *spec,
                           struct probe_result *out, struct err *err);

/* Allocates the answer, zeroed; the caller frees it. Returns STATUS_INVALID_ARGUMENT if no launch
 * could fill the answer. */
enum status cuda_probe_values(const struct cuda_probe *probe, const struct probe_spec *spec,
                              uint32_t **out, struct err *err);

/* Runs a WORKING_SET_READ, like cuda_probe_run (cuda_working_set_read.c). It reads the start of the
 * arena's memory, which has no copies there. */
enum status cuda_working_set_read(const struct cuda_probe *probe, const struct cuda_arena *arena,
                                  const struct probe_spec *spec, struct probe_result *out,
                                  struct err *err);

/* Writes the SM ids of a result. */
void cuda_probe_name_sms(const struct cuda_probe *probe, struct probe_result *out);
