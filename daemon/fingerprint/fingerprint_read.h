/* fingerprint_read.h: reads a fingerprint from a JSON document. The functions may be called on any
 * thread. */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>

/* Reads and checks a document of fingerprint_write. Unknown fields are ignored (a newer daemon may
 * add some); missing ones stay unknown. Returns STATUS_CORRUPT, with the field in the message, if a
 * field is invalid. */
enum status fingerprint_from_json(const json_t *json, struct fingerprint *out, struct err *err);
