/* set_cost.h: computes the cost of random reads of a set that caches may keep, from the measured
 * sets of a fingerprint. The functions are pure, allocate nothing, and may be called on any thread.
 *
 * Caches that keep C bytes of a set of W bytes answer C / W of its random reads. So the time of a
 * read is linear in 1 / W between two measured lengths, like the time of translation
 * (access_cost.h).
 */
#pragma once

#include "fingerprint/fingerprint.h"

enum set_spread {
    SET_SAME = 0,
    SET_OWN,
    SET_NEAR
}; /* same_gbps, own_gbps and near_gbps of struct working_set */

/* Returns the nanoseconds of the whole GPU for one read of `transaction_bytes`. The time is linear
 * in the size of the read between two measured sizes, and proportional to the size above the
 * largest one. The time is unknown (not-measured) for reads that are shorter than any measured
 * read. The time is unknown (beyond-memory) for a set that is longer than any measured set. A set
 * that is shorter than any measured set is as fast as the shortest one, but with SET_NEAR its time
 * is unknown. */
struct maybe_f64 set_cost_ns(const struct fingerprint *fp, enum set_spread spread,
                             uint32_t transaction_bytes, uint64_t bytes);

/* Works like set_cost_ns, but also for sets that are longer than any measured set. Their times are
 * on the line through the two longest sets, because caches keep a smaller part of a longer set. */
struct maybe_f64 set_cost_beyond_ns(const struct fingerprint *fp, enum set_spread spread,
                                    uint32_t transaction_bytes, uint64_t bytes);

/* Returns the length of the longest measured set that the L2 keeps while all SMs read it: its reads
 * of a line are at least 95 % as fast as those of a quarter of the L2. Unknown (not-measured)
 * without such a set. */
struct maybe_u64 set_cost_l2_keeps(const struct fingerprint *fp);

/* Return the length of the longest and of the shortest measured set of this spread, or 0 if no set
 * was measured. */
uint64_t set_cost_longest(const struct fingerprint *fp, enum set_spread spread);
uint64_t set_cost_shortest(const struct fingerprint *fp, enum set_spread spread);
