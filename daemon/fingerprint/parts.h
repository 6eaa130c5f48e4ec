/* parts.h: the parts of a fingerprint. A merge (merge.h) takes all numbers of a part from one
 * measurement. The functions are pure. */
#pragma once

#include "fingerprint/part.h"

enum { PART_NAME_BYTES = 40 };

/* Writes the place of the part in the JSON document: "tlb.levels[0].size", "throughput.curve".
 * Returns `out`, which needs PART_NAME_BYTES. */
const char *fingerprint_part_name(enum fingerprint_part part, char *out);

struct fingerprint;

/* Returns the number of known numbers and findings in a part. */
uint32_t part_known(const struct fingerprint *fp, enum fingerprint_part part);

/* Copies the part from `from` to `to`. `to` must already have the level or the element of the
 * part. */
void part_copy(const struct fingerprint *from, enum fingerprint_part part, struct fingerprint *to);
