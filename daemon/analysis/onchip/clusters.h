/* clusters.h: thread block clusters: how many SMs each size can use, which SMs can be together,
 * what a load from another SM's shared memory costs. From PEER observations. Pure.
 *
 * SMs that were seen in one cluster are in one GPC. Whether all SMs of a GPC were seen together
 * follows from how many clusters of each size fit: the sum of floor(SMs of a GPC / size). Sets that
 * give another sum for some size were not yet united, and neither are they certain if uniting two
 * of them gave the same sums.
 */
#ifndef REACH_ANALYSIS_ONCHIP_CLUSTERS_H
#define REACH_ANALYSIS_ONCHIP_CLUSTERS_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Writes the probes that are missing, at most `max`; returns their number. None if the GPU has no
 * clusters. */
uint32_t clusters_missing(const struct observation_set *set, struct probe_spec *out, uint32_t max);

/* Fills in out->clusters. `largest` is not-supported on a GPU without clusters; it is unknown, not
 * measured, if the source does not report it. The reasons of absent sizes: clusters that did not
 * run at the same time (disagreement). The reasons of absent GPCs: sets that do not explain the
 * counts (irregular), or that are not the only ones that do (no-contrast). */
void clusters_derive(const struct observation_set *set, struct fingerprint *out);

#endif
