/* evidence_columns.h: the evidence of all elements of a list, once beside the list. Inside the
 * elements it would be half of a fingerprint's document, and nearly all of that repeated words.
 *
 *     "group_evidence": {"random_read_gbps": {"method": "random-reads", "repeats": 3,
 *                                             "margin": [0.999, 0.998, null]}}
 *
 * There is a field for each number that any element has evidence of. What its elements have in
 * common is one value, else there is a list with one entry for each element, in the list's order.
 * An element without evidence has null in `margin`, so that a single margin is that of every
 * element. `method` and `repeats` are lists only where those that have evidence differ, and then
 * null for the same elements.
 */
#ifndef REACH_FINGERPRINT_EVIDENCE_COLUMNS_H
#define REACH_FINGERPRINT_EVIDENCE_COLUMNS_H

#include "base/json_reader.h"
#include "base/json_builder.h"
#include "fingerprint/evidence.h"

#include <stddef.h>

/* Which list, and how its evidence lies in memory. */
struct evidence_columns {
    const char *field;        /* in JSON, beside the list */
    const char *const *names; /* of the numbers, in the order of each element's evidence */
    uint32_t number_count;
    size_t stride_bytes; /* from the evidence of one element to that of the next */
};
extern const struct evidence_columns evidence_columns_groups; /* of struct sm_group */
extern const struct evidence_columns evidence_columns_curve;  /* of struct curve_point */
extern const struct evidence_columns evidence_columns_points; /* of struct rate_point */

/* `first` is the evidence of the first of `count` elements. */
void evidence_columns_write(struct json_builder *o, const struct evidence_columns *c,
                            const struct evidence *first, uint32_t count);
/* Fills in what the columns say; where there are none, all stays as it is. A number that has a
 * column must have no evidence yet: a document that says it inside the elements too is corrupt. */
void evidence_columns_read(struct json_reader *in, const struct evidence_columns *c,
                           struct evidence *first, uint32_t count);

#endif
