/* merge.h: merges a new measurement of a GPU with what earlier ones found, so that a measurement
 * never reduces what is known. Pure.
 *
 * The fingerprint is merged part by part (enum fingerprint_part). A part is taken from the newer
 * measurement if that determined at least its numbers, and otherwise kept from the earlier one
 * with the date and depth it was measured at. Parts are never mixed: the points of one curve are of
 * one measurement. A less precise saturation of the same reach counts as less.
 *
 * If the newer measurement contradicts the levels or the group map, nothing is kept: the chip,
 * its mode or its driver has changed.
 */
#ifndef REACH_FINGERPRINT_MERGE_H
#define REACH_FINGERPRINT_MERGE_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

enum { MERGE_REASON_BYTES = 160 };

/* Do the two describe different hardware? Compared is what both know: SMs, memory and mode of the
 * GPU; entry, reach and sharing of each level; which SMs make a group; and whether a level is
 * missing from one that the other would have seen. Two reaches differ if they are more than 1/64
 * and one entry apart. `reason` (MERGE_REASON_BYTES) gets one sentence if so, else "". */
bool fingerprint_contradicts(const struct fingerprint *earlier, const struct fingerprint *newer,
                             char *reason);

/* Adds to `newer` the parts that `earlier` knows more of, and records them in newer->kept. The two
 * must not contradict each other. On failure `newer` is unchanged: STATUS_NO_MEMORY;
 * STATUS_CONFLICT if the parts of the two do not fit together, which is a contradiction too. */
enum status fingerprint_merge(const struct fingerprint *earlier, struct fingerprint *newer,
                              struct err *err);

/* Notes in `newer` that it contradicts `earlier`, of which it keeps nothing. STATUS_NO_MEMORY. */
enum status fingerprint_drop(const struct fingerprint *earlier, const char *reason,
                             struct fingerprint *newer, struct err *err);

/* Does it answer the basic question: the reach of at least one level, or that no level ends within
 * the range that was walked? `reason` (MERGE_REASON_BYTES) says what is missing, else "". */
bool fingerprint_is_conclusive(const struct fingerprint *fp, char *reason);

#endif
