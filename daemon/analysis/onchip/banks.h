/* banks.h: shared memory: its banks, what a conflict costs, how much it moves. From SHARED
 * observations. Pure.
 *
 * One warp loads with its lanes at 33 distances. Some number of banks of some length explains how
 * its cycles go up and down: for each of them it is known how many passes a distance takes, and the
 * cycles must be a straight line over these. Loads of 8 and 16 bytes then check the model, and many
 * loads in flight say how many bytes a cycle there are.
 */
#ifndef REACH_ANALYSIS_ONCHIP_BANKS_H
#define REACH_ANALYSIS_ONCHIP_BANKS_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Passes that a load of `width_bytes` by each of 32 lanes takes, `stride_bytes` from lane to lane:
 * lanes that together ask for more than all banks give at once go in parts, and a part takes as
 * many passes as the most words that it wants of one bank. */
uint32_t banks_passes(uint32_t banks, uint32_t bank_bytes, uint32_t width_bytes,
                      uint64_t stride_bytes);

/* Writes the probes that are missing, at most `max`; returns their number. None if the source does
 * not answer them. */
uint32_t banks_missing(const struct observation_set *set, struct probe_spec *out, uint32_t max);

/* Fills in out->shared as far as the observations go. What is absent says why: cycles that do not
 * depend on the distance (not observable, no-contrast); cycles that no banks explain, or that two
 * explain alike (irregular); speed that still grows with the most loads in flight
 * (too-little-data). */
void banks_derive(const struct observation_set *set, struct fingerprint *out);

#endif
