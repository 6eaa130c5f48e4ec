/* evidence_json.h: writes and reads evidence in JSON. An object contains its evidence by number:
 *
 *     "evidence": {"reach_bytes": {"method": "refine", "repeats": 15, "margin": 0.9}}
 *
 * The evidence of the elements of a list is in columns beside the list. There is a column for each
 * number of which an element has evidence. Columns halve the document, because most elements have
 * the same method and the same repeats.
 *
 *     "group_evidence": {"random_read_gbps": {"method": "random-reads", "repeats": 3,
 *                                             "margin": [0.999, 0.998, null]}}
 *
 * A value that all elements have in common is written once. Otherwise there is an array with one
 * value for each element, in the order of the list. An element without evidence has null in
 * `margin`, so a single margin applies to every element. `method` and `repeats` are arrays only if
 * their values differ, and have null for the same elements as `margin`.
 */
#pragma once

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "fingerprint/member.h"

/* Writes or reads the field `name` with the evidence of `count` objects from `first` on: "evidence"
 * of one object, or the columns beside a list. Evidence that is missing in the document stays
 * unchanged. A number with a column must not have evidence yet, because a document with evidence in
 * both places is corrupt. */
void evidence_write(struct json_writer *t, const char *name, const struct object *o,
                    const void *first, uint32_t count);
void evidence_read(struct json_reader *in, const char *name, const struct object *o, void *first,
                   uint32_t count);
