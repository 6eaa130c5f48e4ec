/* fingerprint_check.h: checks the invariants of a fingerprint. The function is pure and may be
 * called on any thread. */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* Returns STATUS_CORRUPT, with the field in the message, if an invariant does not hold. Counts and
 * numbers must be in their ranges, strings terminated, groups complete and numbered by lowest SM,
 * and lists in order. An absent number must be 0. */
enum status fingerprint_check(const struct fingerprint *fp, struct err *err);
