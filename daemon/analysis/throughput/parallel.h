/* parallel.h: finds the numbers of loads in flight and of SMs that keep memory busy, from
 * CONCURRENCY observations. The functions are pure.
 *
 *   surface  all SMs read random lines, with few to many warps and loads of each in flight
 *   SMs      an eighth of the SMs, two eighths and so on, spread over the groups, read with the
 *            most of both. Then numbers of SMs half way between the most that are too few and the
 *            fewest that are enough are tried
 *
 * Each SM reads within a window that its own TLB reaches; on a large GPU about two SMs share a
 * window. Over longer windows the translations of a group would be the limit, not memory
 * (docs/shared-memory.md).
 */
#pragma once

#include "analysis/sharing/window_level.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Makes the next probe. Returns false if none is missing, or if the GPU could not run it. */
bool parallel_missing(const struct observation_set *set, const struct structure *s,
                      struct probe_spec *out);

/* Fills in out->parallelism. A number is not observable (no-contrast) if the fewest probed loads in
 * flight, or SMs, are enough. A number is unknown (too-little-data) if the most loads in flight are
 * still faster than the next fewer. */
void parallel_derive(const struct observation_set *set, const struct structure *s,
                     struct fingerprint *out);
