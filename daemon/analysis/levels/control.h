/* control.h: a walk that shows whether other processes take entries away. The functions are pure.
 *
 * Some small footprints are walked for milliseconds. Alone on a GPU each of their pages costs the
 * same in every lap, whether it hits or misses. If other work takes entries of any level away, a
 * run of loads takes longer than usual. The control runs if other processes are on the GPU, at the
 * beginning of a measurement and at its end. It is needed because only a time slice leaves a gap
 * that the kernel detects (kernels/abi.h). A flush by the driver, or a process that runs at the
 * same time, leaves no gap.
 *
 * The control misses a process that takes too few entries to affect small footprints. It also
 * misses a process that takes entries less often than every ten thousand loads. Therefore results
 * are confirmed (sharing/confirm.h).
 */
#pragma once

#include "analysis/levels/level_estimate.h"
#include "observe/observe.h"

/* Makes the probe of the control on SM `sm`, at the stride of the sweeps. Returns false if the
 * range is too small. */
bool control_test(const struct gpu_limits *limits, uint16_t sm, struct probe_spec *out);
bool control_is(const struct probe_spec *spec);

/* Returns the number of times that a footprint of the control lost its entries. It is 0 if no other
 * work took entries away. */
uint32_t control_flushes(const struct observation *o);

/* Returns the number of times that one point of any CHASE lost its entries, if its pages fit. It is
 * also 0 if the point is too short for a result. */
uint32_t control_runs(const struct observation *o, uint32_t point);

/* Returns whether each rise of the controls from one footprint to larger ones has its own level.
 * Rises of neighboring footprints count as one, unless all loads of the footprint between them lie
 * apart from the loads of both. Returns false if a rise has no level, because the sweep has then
 * missed a level. `levels` is in ascending order of pages. Returns true if there is no control. */
bool control_is_explained(const struct observation_set *set, const struct level_estimate *levels,
                          uint32_t count);

/* Returns the number of clean controls in the set. */
uint32_t control_count(const struct observation_set *set);
