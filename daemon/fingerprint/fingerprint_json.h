/* fingerprint_json.h: a fingerprint as a JSON document, and its id. Any thread. */
#ifndef REACH_FINGERPRINT_FINGERPRINT_JSON_H
#define REACH_FINGERPRINT_FINGERPRINT_JSON_H

#include "base/json_writer.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>

/* Writes the document that schema/json/fingerprint.schema.json describes. `id` NULL: it is
 * computed. */
void fingerprint_write(struct json_writer *t, const char *name, const struct fingerprint *fp,
                       const char *id);

/* Writes the members of an open object: only the rows of members.c that are marked FOR_PLANNER,
 * without numbers that were not measured and without the id. Lists are in columns. The reader
 * (fingerprint_read.h) accepts them, and the planner then answers as from the whole. */
void fingerprint_write_for_planner(struct json_writer *t, const struct fingerprint *fp);

/* Writes the member of that document called `name` ("l2", "caches") by itself. A list is empty and
 * a number is null if it was not measured. */
void fingerprint_write_member(struct json_writer *t, const struct fingerprint *fp,
                              const char *name);

/* The id of this value: a hash of everything in it. `out` needs FINGERPRINT_ID_BYTES.
 * STATUS_NO_MEMORY: `out` is "". */
enum status fingerprint_id(const struct fingerprint *fp, char *out, struct err *err);

/* The text that the id is the hash of, from malloc, and the id (FINGERPRINT_ID_BYTES) of a document
 * without its id; NULL without memory. */
char *fingerprint_json_text(const json_t *body, char *out_id);

#endif
