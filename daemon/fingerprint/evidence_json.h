/* evidence_json.h: evidence in JSON. The evidence of an object is in it, by number:
 *
 *     "evidence": {"reach_bytes": {"method": "refine", "repeats": 15, "margin": 0.9}}
 *
 * The evidence of the elements of a list is beside the list. There is one column for each number
 * that any element has evidence of. Within the elements, evidence would be half of the document,
 * with nearly all of its words repeated.
 *
 *     "group_evidence": {"random_read_gbps": {"method": "random-reads", "repeats": 3,
 *                                             "margin": [0.999, 0.998, null]}}
 *
 * A value that all elements have in common is written once; otherwise there is an array with one
 * entry per element, in the order of the list. An element without evidence has null in `margin`, so
 * a single margin counts for every element. `method` and `repeats` are arrays only if those that
 * have evidence differ, and then null for the same elements.
 */
#ifndef REACH_FINGERPRINT_EVIDENCE_JSON_H
#define REACH_FINGERPRINT_EVIDENCE_JSON_H

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "fingerprint/member.h"

/* Writes or reads the field `name` with the evidence of `count` objects from `first` on: "evidence"
 * of one object, or the columns beside a list. Missing evidence stays unchanged. A number that has
 * a column must have no evidence yet: a document with evidence also within the elements is
 * corrupt. */
void evidence_write(struct json_writer *t, const char *name, const struct object *o,
                    const void *first, uint32_t count);
void evidence_read(struct json_reader *in, const char *name, const struct object *o, void *first,
                   uint32_t count);

#endif
