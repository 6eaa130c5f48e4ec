/* rates.h: throughput of random accesses of other kinds than the curve's, from READ observations.
 * Pure.
 *
 * What one random access costs depends on what it moves (memory) and on whether it has to be
 * translated (a walk, whatever it moves). A prediction for a job needs both for its own kind: so
 * each kind is measured once inside the reach of a group, at a few regions beyond, and with windows
 * by group at the largest (Karnagel 2017, section 5, compares reads and atomics; Walker 2024, 2.4,
 * windows).
 *
 * The kinds are named here, so that the plan that asks and the analysis that concludes cannot drift
 * apart.
 */
#ifndef REACH_ANALYSIS_THROUGHPUT_RATES_H
#define REACH_ANALYSIS_THROUGHPUT_RATES_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

struct rate_kind {
    enum access access;
    uint32_t transaction_bytes;
};

enum { RATE_KINDS = 4 };
/* By access, then by bytes; without the curve's. */
extern const struct rate_kind rate_kinds[RATE_KINDS];

/* Fills out->throughput.rates. The partition and windows.reach_bytes must have been filled in
 * before. Observations without other kinds, as those of older releases, leave it empty. */
void rates_derive(const struct observation_set *set, struct fingerprint *out);

#endif
