/* parts.h: the parts of a fingerprint. A measurement determines a part as a whole or not at all, so
 * merge.h takes it from one measurement as a whole. The functions are pure. */
#ifndef REACH_FINGERPRINT_PARTS_H
#define REACH_FINGERPRINT_PARTS_H

#include "fingerprint/part.h"

enum { PART_NAME_BYTES = 40 };

/* The place of the part in the JSON document: "tlb.levels[0].size", "throughput.curve". `out` needs
 * PART_NAME_BYTES and is returned. */
const char *fingerprint_part_name(enum fingerprint_part part, char *out);

struct fingerprint;

/* The number of known numbers and findings in a part. */
uint32_t part_known(const struct fingerprint *fp, enum fingerprint_part part);

/* Copies the part from `from` to `to`. A level that `to` lacks must have been added before. */
void part_copy(const struct fingerprint *from, enum fingerprint_part part, struct fingerprint *to);

#endif
