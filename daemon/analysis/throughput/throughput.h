/* throughput.h: finds the throughput of random 128-byte reads, from READ observations. The
 * functions are pure.
 *
 * A READ observation with one window is naive. With several windows it is "by group" if every group
 * of the window level lies in one window. Otherwise it is "by SM", the control (Walker 2024,
 * figures 1 and 6). The plateau is the naive throughput at the largest region that every group
 * reaches. Several times the L2 must lie behind the range, or hits in L2 would inflate the plateau.
 * A READ observation with idle SMs measures groups (group_reads.h).
 */
#pragma once

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Returns whether the memory behind the range is too large for its data to stay in L2. It must be
 * at least four times as large, so that at most a quarter of the reads hit there. Returns true if
 * the L2 is not known. */
bool throughput_is_from_memory(const struct observation_set *set);

/* Returns whether memory, rather than the cache, determines the speed of a region of this
 * length. */
bool throughput_region_counts(const struct observation_set *set, uint64_t bytes);

/* Returns whether all SMs of this READ observation read. In reads of single groups the other SMs
 * are idle (group_reads.h). */
bool throughput_all_sms_read(const struct observation *o);

/* Returns whether each group has all its SMs in one of several windows. */
bool throughput_is_by_group(const struct probe_spec *spec, const struct sm_partition *partition);

/* Returns the GB/s at one point, as the median of the repeats. `*out` is the agreement of the
 * repeats. */
double throughput_median_gbps(const struct observation *o, uint32_t point,
                              enum evidence_method method, struct evidence *out);

/* A point is read twice. If the two results are more than 1 % apart, a later probe reads it five
 * times. The last observation of a point counts. */
enum { THROUGHPUT_REPEATS = 2, THROUGHPUT_MORE_REPEATS = 5 };

/* Returns the spread of the repeats of one point, as a share of the highest repeat. */
double throughput_spread(const struct observation *o, uint32_t point);
/* Returns whether this point was read only twice, with results that are more than 1 % apart. */
bool throughput_disagrees(const struct observation *o, uint32_t point);

/* Fills in the curve of out->throughput and the groups' random_read_gbps. Needs the partition and
 * windows.reach_bytes. */
void throughput_derive(const struct observation_set *set, struct fingerprint *out);

/* ---- random accesses of other kinds than the curve's ----
 *
 * The cost of one random access depends on the bytes that it moves (memory). It also depends on its
 * translation (a walk, whatever the access moves). A prediction for a job needs both costs for its
 * own kind of access. So each kind is measured once within the reach of a group, at a few regions
 * beyond, and with windows by group at the largest. (Karnagel 2017, section 5, compares reads and
 * atomics; Walker 2024, section 2.4, compares windows.) The kinds are named here, so that the
 * campaign and the analysis agree. */

struct rate_kind {
    enum access access;
    uint32_t transaction_bytes;
};

enum { RATE_KINDS = 4 };
/* The kinds are ordered by access, then by bytes. The kind of the curve is not among them. */
extern const struct rate_kind rate_kinds[RATE_KINDS];

/* Fills in out->throughput.rates, which must be empty. Needs the partition and windows.reach_bytes.
 * The rates stay empty without observations of other kinds. */
void rates_derive(const struct observation_set *set, struct fingerprint *out);
