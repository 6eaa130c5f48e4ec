/* set_cost.h: the cost of random reads of a set that caches may keep, from the measured sets of a
 * fingerprint. The functions are pure, allocate nothing, and may be called on any thread.
 *
 * Caches that keep C of W bytes answer C / W of random reads. So between two measured lengths the
 * time of a read is linear in 1 / W, like the time of translation (access_cost.h).
 */
#ifndef REACH_PLANNER_SET_COST_H
#define REACH_PLANNER_SET_COST_H

#include "fingerprint/fingerprint.h"

enum set_spread { SET_SAME = 0, SET_OWN, SET_NEAR }; /* same as in struct working_set */

/* Nanoseconds of the whole GPU for one read of `transaction_bytes`. The time is linear in bytes
 * between two measured sizes, and proportional to bytes above them. It is unknown (not-measured)
 * for reads shorter than any measured and for sets of near granules shorter than any measured. It
 * is unknown (beyond-memory) for a set longer than any measured. A shorter set is as fast as the
 * shortest one. */
struct maybe_f64 set_cost_ns(const struct fingerprint *fp, enum set_spread spread,
                             uint32_t transaction_bytes, uint64_t bytes);

/* Like set_cost_ns, also for sets longer than any measured. These are on the line through the two
 * longest sets, because caches keep a smaller part of a longer set. */
struct maybe_f64 set_cost_beyond_ns(const struct fingerprint *fp, enum set_spread spread,
                                    uint32_t transaction_bytes, uint64_t bytes);

/* The longest set that was measured in this way, and the shortest; 0 if there is none. */
uint64_t set_cost_longest(const struct fingerprint *fp, enum set_spread spread);
uint64_t set_cost_shortest(const struct fingerprint *fp, enum set_spread spread);

#endif
