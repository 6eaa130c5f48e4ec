/* merge.h: merges a new measurement of a GPU with the results of earlier measurements, so that no
 * results are lost. The functions are pure.
 *
 * The fingerprint is merged part by part (enum fingerprint_part). A part is taken from the newer
 * measurement if that measurement found no fewer numbers. Otherwise the part is kept from the
 * earlier measurement, with its date and depth. All numbers of a part come from one measurement. A
 * less precise saturation of the same reach counts as a lost number.
 *
 * If the newer measurement contradicts the levels or the group map, no part is kept, because the
 * chip, its mode or its driver has changed.
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

enum { MERGE_REASON_BYTES = 160 };

/* Returns whether two fingerprints describe different hardware. Only numbers that both have are
 * compared: SMs, memory and mode of the GPU, entries, reaches and sharing of levels, and SMs of
 * groups. A level that one measurement lacks, although it walked far enough, is a difference too.
 * Two reaches differ if they are more than one entry and more than 1/64 apart. `reason`
 * (MERGE_REASON_BYTES) gets a sentence, or "" if there is no contradiction. */
bool fingerprint_contradicts(const struct fingerprint *earlier, const struct fingerprint *newer,
                             char *reason);

/* Adds to `newer` the parts of which `earlier` has more numbers, and records them in newer->kept.
 * The two fingerprints must not contradict each other. Returns STATUS_NO_MEMORY if memory runs out,
 * and STATUS_CONFLICT if the parts do not fit together. On failure `newer` is unchanged. */
enum status fingerprint_merge(const struct fingerprint *earlier, struct fingerprint *newer,
                              struct err *err);

/* Records in `newer` that it contradicts `earlier` and keeps no part of it. Returns
 * STATUS_NO_MEMORY if memory runs out. */
enum status fingerprint_drop(const struct fingerprint *earlier, const char *reason,
                             struct fingerprint *newer, struct err *err);

/* Returns whether the fingerprint has the basic result: the reach of a level, or the fact that no
 * level ends within the walked range. `reason` (MERGE_REASON_BYTES) gets a description of the
 * missing result, or "". */
bool fingerprint_is_conclusive(const struct fingerprint *fp, char *reason);
