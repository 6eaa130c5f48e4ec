/* control.h: a walk that shows whether other processes take entries away. Pure.
 *
 * Some small footprints are walked for milliseconds. Alone on a GPU each of their pages costs the
 * same in every lap, whether it hits or misses. If other work takes entries away, of all levels or
 * of one, a run of loads takes longer than usual. The control runs if other processes are on the
 * GPU, at the beginning of a measurement and at its end. It is needed because only a time slice
 * leaves a gap that the kernel sees (kernels/abi.h); a flush by the driver or a process that runs
 * at the same time leaves none.
 *
 * Limits: the control does not see a process that takes few entries, so that small footprints stay,
 * or that takes them less often than every ten thousand loads. Because of the latter, results are
 * confirmed (sharing/confirm.h).
 */
#ifndef REACH_ANALYSIS_LEVELS_CONTROL_H
#define REACH_ANALYSIS_LEVELS_CONTROL_H

#include "analysis/levels/level_estimate.h"
#include "observe/observe.h"

/* The control on SM `sm`, at the stride of the sweeps; false if the range is too small. */
bool control_test(const struct gpu_limits *limits, uint16_t sm, struct probe_spec *out);
bool control_is(const struct probe_spec *spec);

/* How often the entries of one of its footprints were taken away; 0 if it was alone. */
uint32_t control_flushes(const struct observation *o);

/* The same of one point of any CHASE whose pages fit. 0 also if the point is too short for a
 * result. */
uint32_t control_runs(const struct observation *o, uint32_t point);

/* Does a level of its own explain each rise of the controls from one footprint to larger ones?
 * Rises of neighboring footprints count as one, unless all loads of the footprint between them lie
 * apart from the loads of both. False if a rise has no level, which the sweep has then missed.
 * `levels` is in ascending order of pages. True if there is no control. */
bool control_is_explained(const struct observation_set *set, const struct level_estimate *levels,
                          uint32_t count);

/* The controls in the set: clean ones. */
uint32_t control_count(const struct observation_set *set);

#endif
