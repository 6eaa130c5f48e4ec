/* fingerprint_check.h: the invariants of a fingerprint. Pure; any thread. */
#ifndef REACH_FINGERPRINT_FINGERPRINT_CHECK_H
#define REACH_FINGERPRINT_FINGERPRINT_CHECK_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* Invariants that hold for every fingerprint, in every build: counts and numbers in their ranges,
 * strings terminated, groups numbered by lowest SM and complete, no number both absent and
 * non-zero, lists in order. Called after analysis, after load and in tests. STATUS_CORRUPT names
 * the field. */
enum status fingerprint_check(const struct fingerprint *fp, struct err *err);

#endif
