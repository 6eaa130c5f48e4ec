/* fingerprint_check.h: the invariants of a fingerprint. The functions are pure and may be called on
 * any thread. */
#ifndef REACH_FINGERPRINT_FINGERPRINT_CHECK_H
#define REACH_FINGERPRINT_FINGERPRINT_CHECK_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* Checks the invariants of a fingerprint, in every build: counts and numbers in their ranges,
 * strings terminated, groups numbered by lowest SM and complete, no number both absent and
 * non-zero, lists in order. Called after analysis, after load and in tests. Returns STATUS_CORRUPT,
 * with the field in the message, if one is broken. */
enum status fingerprint_check(const struct fingerprint *fp, struct err *err);

#endif
