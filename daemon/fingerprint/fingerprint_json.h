/* fingerprint_json.h: a fingerprint as a JSON document, and its id. Any thread. */
#ifndef REACH_FINGERPRINT_FINGERPRINT_JSON_H
#define REACH_FINGERPRINT_FINGERPRINT_JSON_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>

/* JSON as documented in schema/json/fingerprint.schema.json; new reference, NULL without memory. */
json_t *fingerprint_to_json(const struct fingerprint *fp);

/* Only the rows of members.c that are marked FOR_PLANNER, without numbers that were not measured
 * and without the id. Lists are in columns (base/json_columns.h). fingerprint_from_json reads it,
 * and the planner then answers as from the whole. */
json_t *fingerprint_planner_to_json(const struct fingerprint *fp);

/* The member of that document called `name` ("l2", "caches") by itself. A list is empty and a
 * number is null if it was not measured. New reference, NULL without memory. */
json_t *fingerprint_member_to_json(const struct fingerprint *fp, const char *name);

/* The id of this value: a hash of everything in it. `out` needs FINGERPRINT_ID_BYTES.
 * STATUS_NO_MEMORY: `out` is "". */
enum status fingerprint_id(const struct fingerprint *fp, char *out, struct err *err);

/* The text that the id is the hash of, from malloc, and the id (FINGERPRINT_ID_BYTES) of a document
 * without its id; NULL without memory. */
char *fingerprint_json_text(const json_t *body, char *out_id);

#endif
