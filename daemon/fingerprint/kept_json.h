/* kept_json.h: the JSON form of what a fingerprint keeps of earlier measurements (merge.h):
 *
 *     "measurement_id": "fp..",
 *     "kept": [{"id": "fp..", "depth": "full", "taken_at": "..", "parts": ["throughput.curve",
 * ..]}], "dropped": {"id": "fp..", "depth": "full", "taken_at": "..", "reason": ".."}
 *
 * The first two are left out if nothing is kept, the last if nothing was dropped.
 */
#ifndef REACH_FINGERPRINT_KEPT_JSON_H
#define REACH_FINGERPRINT_KEPT_JSON_H

#include "base/json_reader.h"
#include "base/json_builder.h"
#include "fingerprint/fingerprint.h"

void kept_write(struct json_builder *o, const struct fingerprint *fp);
/* Parts that this release does not know are skipped. */
void kept_read(struct json_reader *in, struct fingerprint *out);

#endif
