/* identity_json.h: a GPU's identity in JSON, as it stands in observations, fingerprints and
 * answers. What the driver does not tell is null: a text alone, a number with its reason. */
#ifndef REACH_TYPES_IDENTITY_JSON_H
#define REACH_TYPES_IDENTITY_JSON_H

#include "types/identity.h"
#include "base/json_reader.h"
#include "base/status.h"

#include <jansson.h>

/* New reference; NULL without memory. */
json_t *identity_json_new(const struct gpu_identity *id);

/* Reads what an `in` that is just begun stands on, and ends it. On failure `*out` is unspecified.
 */
enum status identity_json_read(struct json_reader *in, struct gpu_identity *out);

#endif
