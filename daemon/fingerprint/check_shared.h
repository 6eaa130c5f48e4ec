/* check_shared.h: what holds for shared memory, clusters and parallelism in every fingerprint,
 * beyond what fingerprint_check.c checks of each member. Private to that file. */
#ifndef REACH_FINGERPRINT_CHECK_SHARED_H
#define REACH_FINGERPRINT_CHECK_SHARED_H

#include "fingerprint/fingerprint.h"

/* Counts must have been checked. STATUS_CORRUPT names the field. */
enum status check_shared(const struct fingerprint *fp, struct err *err);

#endif
