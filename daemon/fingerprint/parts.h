/* parts.h: the parts of a fingerprint that merge.c merges: how much of a part is known, and copying
 * it. See enum fingerprint_part. */
#ifndef REACH_FINGERPRINT_PARTS_H
#define REACH_FINGERPRINT_PARTS_H

#include "fingerprint/fingerprint.h"

/* Numbers and findings of the part that are known. */
uint32_t part_known(const struct fingerprint *fp, enum fingerprint_part part);

/* Copies the part from `from` to `to`. A level that `to` lacks must have been added before. */
void part_copy(const struct fingerprint *from, enum fingerprint_part part, struct fingerprint *to);

#endif
