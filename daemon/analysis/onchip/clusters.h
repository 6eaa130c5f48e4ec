/* clusters.h: describes thread block clusters, from PEER observations. The results are the number
 * of SMs that each size can use, and the SMs that can be together. A third result is the cost of a
 * load from the shared memory of another SM. The functions are pure.
 *
 * SMs that ran in one cluster are in one GPC. The number of clusters of each size that fit is the
 * sum of floor(SMs of a GPC / size). So this number shows whether all SMs of a GPC have run
 * together. Sets that give another sum for some size are not complete. If the union of two sets
 * gave the same sums, the sets are not certain.
 */
#pragma once

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Writes the missing probes, at most `max`, and returns their number. There are none if the GPU has
 * no clusters. */
uint32_t clusters_missing(const struct observation_set *set, struct probe_spec *out, uint32_t max);

/* Fills in out->clusters. `largest` is not-supported on a GPU without clusters, and not measured if
 * the source does not report it. Sizes are absent if clusters did not run at the same time
 * (disagreement). GPCs are absent if no sets explain the counts (irregular), or if several sets do
 * (no-contrast). */
void clusters_derive(const struct observation_set *set, struct fingerprint *out);
