/* identity_json.h: a GPU's identity in JSON, as in observations, fingerprints and answers. If the
 * driver does not report a member, it is null: a text alone, a number with its reason. */
#ifndef REACH_TYPES_IDENTITY_JSON_H
#define REACH_TYPES_IDENTITY_JSON_H

#include "types/identity.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/status.h"

#include <jansson.h>

void identity_json_write(struct json_writer *t, const char *name, const struct gpu_identity *id);
/* Only the members, into an open object. */
void identity_json_write_members(struct json_writer *t, const struct gpu_identity *id);

/* Reads what an `in` that is just begun stands on, and ends it. On failure `*out` is unspecified.
 */
enum status identity_json_read(struct json_reader *in, struct gpu_identity *out);

#endif
