/* working_sets.h: how fast are random reads of a set, by its length and by how it is spread over
 * the SMs? From WORKING_SET_READ observations. Pure.
 *
 * Throughput bends where a cache is full: first where the L1 of each SM is, then where the L2 is,
 * which keeps less of what SMs of both of its sides read. Lengths are doublings, closer to one
 * another around the first such bend and around the length of the L2 that the driver reports.
 */
#ifndef REACH_ANALYSIS_CACHES_WORKING_SETS_H
#define REACH_ANALYSIS_CACHES_WORKING_SETS_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* The probes that are missing, at most `most` of them, to `out`; their number. None if the driver
 * reports no L2. Reads of near granules need the sides: none without. */
uint32_t working_sets_missing(const struct observation_set *set, struct probe_spec *out,
                              uint32_t most);

/* Fills in out->working_sets. Without observations it stays empty. */
void working_sets_derive(const struct observation_set *set, struct fingerprint *out);

#endif
