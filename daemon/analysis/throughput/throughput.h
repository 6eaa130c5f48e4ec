/* throughput.h: throughput of random 128-byte reads, from READ observations. Pure.
 *
 * A READ observation with one window is naive. With several it is "by group" where every group of
 * the window level lies in one window, and "by SM", the control, where one does not (Walker 2024,
 * figures 1 and 6). The plateau is the naive throughput at the largest region that every group
 * reaches; several times the L2 must lie behind the range, or hits in L2 would inflate it. Where
 * some SMs are idle, it is about groups: group_reads.h.
 */
#ifndef REACH_ANALYSIS_THROUGHPUT_THROUGHPUT_H
#define REACH_ANALYSIS_THROUGHPUT_THROUGHPUT_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Is the memory behind the range large enough for its data not to stay in L2? At least four times
 * as large, so that at most a quarter of the reads hit there. True if the L2 is not known. */
bool throughput_is_from_memory(const struct observation_set *set);

/* Is a region of this length determined by memory rather than by the cache? */
bool throughput_region_counts(const struct observation_set *set, uint64_t bytes);

/* Do all SMs of this READ observation read? Those of single groups do not (group_reads.h). */
bool throughput_all_sms_read(const struct observation *o);

/* Has each group all its SMs in one of several windows? */
bool throughput_is_by_group(const struct probe_spec *spec, const struct sm_partition *partition);

/* GB/s at one point, the median of the repeats, and how well they agree. */
double throughput_median_gbps(const struct observation *o, uint32_t point,
                              enum evidence_method method, struct evidence *out);

/* A point is read twice, and if the two are more than 1 % apart, in a later probe, five times. The
 * last observation of a point counts. */
enum { THROUGHPUT_REPEATS = 2, THROUGHPUT_MORE_REPEATS = 5 };

/* How far the repeats of one point lie apart, as a share of the highest. */
double throughput_spread(const struct observation *o, uint32_t point);
/* Was this point read only twice, with results that are more than 1 % apart? */
bool throughput_disagrees(const struct observation *o, uint32_t point);

/* Fills in the curve of out->throughput and the groups' random_read_gbps. The partition and
 * windows.reach_bytes must be there. */
void throughput_derive(const struct observation_set *set, struct fingerprint *out);

/* ---- random accesses of other kinds than the curve's ----
 *
 * What one random access costs depends on what it moves (memory) and on whether it has to be
 * translated (a walk, whatever it moves). A prediction for a job needs both for its own kind: so
 * each kind is measured once within the reach of a group, at a few regions beyond, and with windows
 * by group at the largest (Karnagel 2017, section 5, compares reads and atomics; Walker 2024, 2.4,
 * windows). The kinds are named here, so that the campaign and the analysis agree. */

struct rate_kind {
    enum access access;
    uint32_t transaction_bytes;
};

enum { RATE_KINDS = 4 };
/* By access, then by bytes; without the curve's. */
extern const struct rate_kind rate_kinds[RATE_KINDS];

/* Fills in out->throughput.rates, which must be empty. The partition and windows.reach_bytes must
 * be there. Without observations of other kinds, as from older releases, it stays empty. */
void rates_derive(const struct observation_set *set, struct fingerprint *out);

#endif
