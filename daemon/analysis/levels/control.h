/* control.h: a walk that asks about no level, but whether others take entries away. Pure.
 *
 * Some small footprints are walked for milliseconds. Alone on a GPU each of their pages costs the
 * same in every lap, whether it hits or misses. Work of others that takes the entries, all or those
 * of one level, shows as a run of loads that take longer than they do otherwise. It is made where
 * other processes are on the GPU, at the beginning of a measurement and at its end: a time slice
 * leaves a gap that the kernel sees (kernels/abi.h), a flush by the driver or a process that runs
 * at the same time leaves none.
 *
 * Limits: who takes so few entries that small footprints stay, or less often than every some ten
 * thousand loads, is not seen. For the latter results are confirmed (sharing/confirm.h).
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

/* The same of one point of any CHASE whose pages fit; 0 also if it is too short to tell. */
uint32_t control_runs(const struct observation *o, uint32_t point);

/* Each rise of the controls, from one footprint to larger ones, must come from a level of its own
 * that overflows there. Rises of neighboring footprints count as one, unless all loads of the
 * footprint between them lie apart from those of both. False if a rise has no level:
 * the sweep missed one. `levels` is in ascending order of pages. True if there is no control. */
bool control_is_explained(const struct observation_set *set, const struct level_estimate *levels,
                          uint32_t count);

/* The controls in the set: clean ones. */
uint32_t control_count(const struct observation_set *set);

#endif
