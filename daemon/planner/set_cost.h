/* set_cost.h: how fast are random reads of a set that caches may keep? From the measured sets of a
 * fingerprint. Pure; no allocation; any thread.
 *
 * Caches that keep C of W bytes answer C / W of random reads, so between two measured lengths the
 * time of a read is a line in 1 / W, as for translation (access_cost.h).
 */
#ifndef REACH_PLANNER_SET_COST_H
#define REACH_PLANNER_SET_COST_H

#include "fingerprint/fingerprint.h"

enum set_spread { SET_SAME = 0, SET_OWN, SET_NEAR }; /* as in struct working_set */

/* ns of the whole GPU that one read of `transaction_bytes` takes; reads between two measured sizes
 * by a line in bytes, longer ones by the byte. Unknown: not measured (also reads that are shorter
 * than any measured, and sets of near granules shorter than any); beyond-memory for a set longer
 * than any. A set shorter than any is as fast as the shortest. */
struct maybe_f64 set_cost_ns(const struct fingerprint *fp, enum set_spread spread,
                             uint32_t transaction_bytes, uint64_t bytes);

/* The same of a set longer than any, on the line through the two longest: the longer the set, the
 * less of it caches keep. Of a shorter one as set_cost_ns. */
struct maybe_f64 set_cost_beyond_ns(const struct fingerprint *fp, enum set_spread spread,
                                    uint32_t transaction_bytes, uint64_t bytes);

/* The longest set that was measured in this way, and the shortest; 0: none. */
uint64_t set_cost_longest(const struct fingerprint *fp, enum set_spread spread);
uint64_t set_cost_shortest(const struct fingerprint *fp, enum set_spread spread);

/* The longest set with at least `share` of the throughput of the fastest one that is not shorter
 * than `from_bytes`: where a plateau that begins there ends. Unknown if such sets were not
 * measured. */
struct maybe_u64 set_cost_plateau_bytes(const struct fingerprint *fp, enum set_spread spread,
                                        uint32_t transaction_bytes, uint64_t from_bytes,
                                        double share);

#endif
