/* identity_json.h: a GPU's identity in JSON, for observations, fingerprints and answers. A member
 * that the driver does not report is null. A number then also has a reason. */
#pragma once

#include "types/identity.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/status.h"

#include <jansson.h>

void identity_json_write(struct json_writer *t, const char *name, const struct gpu_identity *id);
/* Writes only the members, into an open object. */
void identity_json_write_members(struct json_writer *t, const struct gpu_identity *id);

/* Reads the object of `in`, which has just begun, and ends it. On failure `*out` is unspecified. */
enum status identity_json_read(struct json_reader *in, struct gpu_identity *out);
