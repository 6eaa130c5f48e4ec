/* banks.h: finds the banks of shared memory, the cost of a conflict and the throughput from SHARED
 * observations. The functions are pure.
 *
 * One warp loads with its lanes at 33 distances. The number and the length of the banks must
 * explain how the cycles of the warp rise and fall. The banks determine the number of passes of
 * each distance, and the cycles must be a straight line over the passes. Loads of 8 and 16 bytes
 * then check the model, and many loads in flight give the bytes per cycle.
 */
#pragma once

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Returns the number of passes of a load of `width_bytes` by each of 32 lanes, `stride_bytes` from
 * lane to lane. Lanes that together need more than the capacity of all banks are served in parts. A
 * part takes one pass for each word that it needs from its busiest bank. */
uint32_t banks_passes(uint32_t banks, uint32_t bank_bytes, uint32_t width_bytes,
                      uint64_t stride_bytes);

/* Writes the missing probes, at most `max`, and returns their number. There are none if the source
 * of the observations does not support them. */
uint32_t banks_missing(const struct observation_set *set, struct probe_spec *out, uint32_t max);

/* Fills in out->shared from the observations. The banks are not observable (no-contrast) if the
 * cycles do not depend on the distance. They are unknown (irregular) if no model explains the
 * cycles, or if two models explain them equally well. The speed is unknown (too-little-data) if it
 * still grows with the most loads in flight. */
void banks_derive(const struct observation_set *set, struct fingerprint *out);
