/* parts.h: the parts of a fingerprint: what a measurement determines as a whole or not at all, and
 * what merge.h therefore takes from one measurement as a whole. Pure.
 */
#ifndef REACH_FINGERPRINT_PARTS_H
#define REACH_FINGERPRINT_PARTS_H

#include "fingerprint/part.h"

enum { PART_NAME_BYTES = 40 };

/* "tlb.levels[0].size", "throughput.curve": the place of the part in the JSON document. `out` needs
 * PART_NAME_BYTES; returns it. */
const char *fingerprint_part_name(enum fingerprint_part part, char *out);

struct fingerprint;

/* Numbers and findings of a part that are known. */
uint32_t part_known(const struct fingerprint *fp, enum fingerprint_part part);

/* Copies the part from `from` to `to`. A level that `to` lacks must have been added before. */
void part_copy(const struct fingerprint *from, enum fingerprint_part part, struct fingerprint *to);

#endif
