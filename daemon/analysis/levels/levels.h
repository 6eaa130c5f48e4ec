/* levels.h: finds TLB levels in footprint walks. The functions are pure.
 *
 * Three kinds of CHASE observations are used. The campaign that schedules them and the analysis
 * that reads them share these definitions:
 *
 *   sweep   LEVELS_SWEEP_POINTS points or more at one large stride. Each step of the median latency
 *           from one plateau to the next is a level that overflows (Karnagel 2017, section 3.1).
 *   entry   two points {reference, test}; the test is well beyond saturation. The smallest stride
 *           at which all of its loads miss is one entry long; at half of it, half of them miss
 *           (Karnagel's X/2, X, 2X rule, figure 2, as a search).
 *   refine  onset and saturation to the page (refine_plan.h).
 *
 * Every entry and refine observation has its own reference point, a footprint that fits the level.
 * Thresholds are relative to it, because two probes may be backed by different lines of memory, at
 * other distances from the SM.
 */
#pragma once

#include "analysis/levels/level_estimate.h"

enum { LEVELS_SWEEP_SAMPLES = 256 }; /* timed loads per point */

/* Finds all levels that the observations show, nearest first. Writes at most LEVELS_MAX. */
uint32_t levels_estimate(const struct observation_set *set, struct level_estimate *out);

/* Returns the miss penalty, from the first pages that miss, or from the entry test if those pages
 * are too few. It is unknown if noise hides it, or if two levels overflow together. */
struct maybe_f64 levels_penalty(const struct level_estimate *level);
/* Returns the evidence of the penalty, if it is known. */
struct evidence levels_penalty_evidence(const struct level_estimate *level);

/* Returns the stride of the sweeps: the smallest power of two with which at most 8192 pages span
 * the range. It is no less than the granule. */
uint64_t levels_sweep_stride(const struct gpu_limits *limits);

/* Makes the entry test of a bracket (level_estimate.wanted) on SM `sm`. Returns false if it has too
 * few pages or is out of range. */
bool levels_entry_test(const struct level_bracket *bracket, const struct gpu_limits *limits,
                       uint16_t sm, struct probe_spec *out);

/* Returns whether kind, stride and points are equal. */
bool levels_same_walk(const struct probe_spec *a, const struct probe_spec *b);
/* Returns the number of sweeps like `spec` that other sweeps confirm. Two sweeps with common
 * footprints must agree about each of them, by the median of one and the spread of the other. A
 * sweep that continues another one is walked over other lines of memory, at other distances; the
 * smallest common footprint corrects for that. A sweep without common footprints confirms itself.
 * Beside other processes, the steps of a sweep must also explain all its rises (sweep.h).
 * `*asked` is the number of sweeps like `spec`. Levels are read from confirmed sweeps only. */
uint32_t levels_count_sweeps(const struct observation_set *set, const struct probe_spec *spec,
                             uint32_t *asked);

/* Returns the first CHASE observation with this stride and these points, or NULL. */
const struct observation *levels_find_chase(const struct observation_set *set,
                                            const struct probe_spec *spec);
