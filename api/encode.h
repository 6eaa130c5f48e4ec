/* encode.h: from values to the JSON of answers. Pure; new references, NULL without memory. */
#ifndef REACH_API_ENCODE_H
#define REACH_API_ENCODE_H

#include "placement/placement.h"
#include "snapshot/snapshot.h"

#include <jansson.h>

/* {"gpus": [..]}, each as encode_gpu. */
json_t *encode_gpus(const struct snapshot *s);
json_t *encode_gpu(const struct snapshot_gpu *gpu, uint32_t index);
json_t *encode_node(const struct snapshot *s, const char *hostname, const char *daemon_version);
/* The list of GPUs that /readyz shows. */
json_t *encode_ready(const struct snapshot *s);

json_t *encode_scope(const struct snapshot_gpu *gpu, const struct scope_request *request,
                     const struct scope_answer *answer);
json_t *encode_placement(const struct snapshot_gpu *gpu, const struct placement_request *request,
                         const struct placement_answer *answer);

/* {"slug", "text", "next_step"}; null for STATUS_OK. */
json_t *encode_err(const struct err *err);

#endif
