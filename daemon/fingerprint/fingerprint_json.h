/* fingerprint_json.h: writes a fingerprint as a JSON document, and computes its id. The functions
 * may be called on any thread. */
#pragma once

#include "base/json_writer.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>

/* Writes the document that schema/json/fingerprint.schema.json describes. If `id` is NULL, the id
 * is computed. */
void fingerprint_write(struct json_writer *t, const char *name, const struct fingerprint *fp,
                       const char *id);

/* Writes only the rows of members.c that are marked FOR_PLANNER, as members of an open object.
 * Numbers that were not measured and the id are left out, and lists are in columns. The reader
 * (fingerprint_read.h) accepts this form, and the planner gives the same answers as for the whole
 * document. */
void fingerprint_write_for_planner(struct json_writer *t, const struct fingerprint *fp);

/* Writes only the member `name` of the document ("l2", "caches"). If it was not measured, a list is
 * empty and a number is null. */
void fingerprint_write_member(struct json_writer *t, const struct fingerprint *fp,
                              const char *name);

/* Computes the id of a fingerprint, which is a hash of its whole document. `out` needs
 * FINGERPRINT_ID_BYTES. If memory runs out, returns STATUS_NO_MEMORY and sets `out` to "". */
enum status fingerprint_id(const struct fingerprint *fp, char *out, struct err *err);

/* Returns whether the text has the form of an id. */
bool fingerprint_is_id(const char *text);

/* Computes the id (FINGERPRINT_ID_BYTES) of a document without its id. Returns the hashed text,
 * allocated by malloc, or NULL if memory runs out. */
char *fingerprint_json_text(const json_t *body, char *out_id);
