/* parallel.h: the numbers of loads in flight and of SMs that keep memory busy. From CONCURRENCY
 * observations. The functions are pure.
 *
 *   surface  all SMs read random lines, with few to many warps and loads of each in flight
 *   SMs      the most of both, by an eighth of the SMs, two eighths and so on, spread over the
 *            groups; then by halves between the most that are too few and the fewest that are
 *            enough
 *
 * Each SM, or each two or so on a large GPU, reads within a window that its own TLB reaches: over
 * longer ones the translations of its group would be the limit, not memory (docs/shared-memory.md).
 */
#ifndef REACH_ANALYSIS_THROUGHPUT_PARALLEL_H
#define REACH_ANALYSIS_THROUGHPUT_PARALLEL_H

#include "analysis/sharing/window_level.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Makes the next probe. Returns false if none is missing, or if the GPU could not run it. */
bool parallel_missing(const struct observation_set *set, const struct structure *s,
                      struct probe_spec *out);

/* Fills in out->parallelism. The reasons of absent numbers: the fewest loads in flight, or SMs,
 * that were probed are enough (not observable, no-contrast); the most loads in flight are still
 * faster than the next fewer (too-little-data). */
void parallel_derive(const struct observation_set *set, const struct structure *s,
                     struct fingerprint *out);

#endif
