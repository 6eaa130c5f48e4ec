/* working_sets.h: finds the throughput of random reads of a set, by its length and its spread over
 * the SMs, from WORKING_SET_READ observations. The functions are pure.
 *
 * Throughput bends at a length that fills a cache: first the L1 of each SM, then the L2. The L2
 * keeps less data that SMs of both of its sides read. Each length is twice the previous one. There
 * are more lengths around the size of an L1, and around the size of the L2 that the driver reports.
 */
#pragma once

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Writes the missing probes to `out`, at most `most` of them, and returns their number. There are
 * none if the driver reports no L2. Reads of near granules need the sides. */
uint32_t working_sets_missing(const struct observation_set *set, struct probe_spec *out,
                              uint32_t most);

/* Fills in out->working_sets, which stays empty without observations. */
void working_sets_derive(const struct observation_set *set, struct fingerprint *out);
