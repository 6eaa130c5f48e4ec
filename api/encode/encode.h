/* encode.h: from values to the JSON of answers. Pure; new references, NULL without memory. */
#ifndef REACH_API_ENCODE_H
#define REACH_API_ENCODE_H

#include "base/json_out.h"
#include "base/json_text.h"
#include "placement/placement.h"
#include "snapshot/snapshot.h"

#include <jansson.h>

/* {"discovery", "gpus": [..], "source_error"}, each GPU as encode_gpu. */
json_t *encode_gpus(const struct snapshot *s);
json_t *encode_gpu(const struct snapshot_gpu *gpu, uint32_t index);
/* {"daemon_version", "discovery", "gpus": [..], "source_error"}: the GPUs as in encode_gpus, each
 * with its "fingerprint" (null: none) instead of links. */
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
 * be of before a change. `room`: a guess at the length of all. */
void encode_begin(struct json_text *t, const struct snapshot_gpu *gpu, const char *fingerprint_id,
                  size_t room);
/* "windows": [..]. */
void encode_windows(struct json_text *t, const struct placement_window *windows, uint32_t count);
enum { ENCODE_WINDOW_ROOM = 128, ENCODE_SM_ROOM = 5 }; /* guesses at what one of each takes */

/* {"slug", "text", "next_step"}; null for STATUS_OK. */
json_t *encode_err(const struct err *err);

#endif
