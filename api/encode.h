/* encode.h: from values to the JSON of answers. Pure; new references, NULL without memory. */
#ifndef REACH_API_ENCODE_H
#define REACH_API_ENCODE_H

#include "base/json_out.h"
#include "placement/placement.h"
#include "snapshot/snapshot.h"

#include <jansson.h>

/* {"gpus": [..]}, each as encode_gpu. */
json_t *encode_gpus(const struct snapshot *s);
json_t *encode_gpu(const struct snapshot_gpu *gpu, uint32_t index);
/* {"daemon_version", "gpus": [..], "source_error"}: the GPUs as in encode_gpus, each with its
 * "fingerprint" (null: none) instead of links. */
json_t *encode_fingerprints(const struct snapshot *s, const char *daemon_version);
json_t *encode_node(const struct snapshot *s, const char *hostname, const char *daemon_version);
/* The list of GPUs that /readyz shows; `now` (wall clock, seconds) adds how old what they serve is,
 * 0 does not. */
json_t *encode_states(const struct snapshot *s, int64_t now);

/* Texts from malloc, the caller's (encode_answer.c). */
char *encode_scope(const struct snapshot_gpu *gpu, const struct scope_request *request,
                   const struct scope_answer *answer, size_t *out_bytes);
char *encode_placement(const struct snapshot_gpu *gpu, const struct placement_request *request,
                       const struct placement_answer *answer, size_t *out_bytes);

/* What every answer that rests on a fingerprint begins with: which one, and whether it is known to
 * be of before a change. */
void encode_begin(struct json_out *o, const struct snapshot_gpu *gpu, const char *fingerprint_id);
json_t *encode_windows(const struct placement_window *windows, uint32_t count);
/* By SM id; null where it is negative. */
json_t *encode_by_sm(const int16_t *by_sm, uint32_t slots);

/* {"slug", "text", "next_step"}; null for STATUS_OK. */
json_t *encode_err(const struct err *err);

#endif
