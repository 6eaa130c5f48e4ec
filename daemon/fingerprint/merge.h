/* merge.h: merges a new measurement of a GPU with the results of earlier ones, so that a
 * measurement never loses results. The functions are pure.
 *
 * The fingerprint is merged part by part (enum fingerprint_part). A part is taken from the newer
 * measurement if that determined at least the same numbers. Otherwise it is kept from the earlier
 * one, with its date and depth. Parts are never mixed: the points of one curve come from one
 * measurement. A less precise saturation of the same reach counts as a lost number.
 *
 * If the newer measurement contradicts the levels or the group map, nothing is kept: the chip,
 * its mode or its driver has changed.
 */
#ifndef REACH_FINGERPRINT_MERGE_H
#define REACH_FINGERPRINT_MERGE_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

enum { MERGE_REASON_BYTES = 160 };

/* Returns whether the two describe different hardware. Only numbers that both have are compared:
 * SMs, memory and mode of the GPU; entry, reach and sharing of each level; and the SMs of each
 * group. A level that one measurement lacks although it walked far enough is a difference too. Two
 * reaches differ if they are more than 1/64 and one entry apart. `reason` (MERGE_REASON_BYTES) gets
 * one sentence if they differ, else "". */
bool fingerprint_contradicts(const struct fingerprint *earlier, const struct fingerprint *newer,
                             char *reason);

/* Adds to `newer` the parts of which `earlier` has more numbers, and records them in newer->kept.
 * The two must not contradict each other. Returns STATUS_NO_MEMORY if memory runs out, and
 * STATUS_CONFLICT if the parts of the two do not fit together, which is a contradiction too. On
 * failure `newer` is unchanged. */
enum status fingerprint_merge(const struct fingerprint *earlier, struct fingerprint *newer,
                              struct err *err);

/* Records in `newer` that it contradicts `earlier`, none of whose parts it keeps. Returns
 * STATUS_NO_MEMORY if memory runs out. */
enum status fingerprint_drop(const struct fingerprint *earlier, const char *reason,
                             struct fingerprint *newer, struct err *err);

/* Returns whether the fingerprint has the basic result: the reach of at least one level, or the
 * fact that no level ends within the walked range. `reason` (MERGE_REASON_BYTES) gets a description
 * of the missing result, else "". */
bool fingerprint_is_conclusive(const struct fingerprint *fp, char *reason);

#endif
