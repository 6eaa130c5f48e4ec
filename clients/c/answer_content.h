/* answer_content.h: the body of an answer and its fields, shared by answers that the daemon
 * confirmed by their tag. The content does not change after answer_new, and any thread may read
 * it. */
#pragma once

#include "clients/c/error.h"

#include "api/decode/planner_call.h"

#include <jansson.h>
#include <stdatomic.h>

enum answer_kind {
    ANSWER_RAW = 0, /* another kind: its fields are not decoded */
    ANSWER_GPUS,
    ANSWER_GPU,
    ANSWER_FINGERPRINT,
    ANSWER_SCOPE,
    ANSWER_PLACEMENT,
    ANSWER_PLAN,
    ANSWER_SPLIT,
    ANSWER_EXPLANATION
};

struct answer_block; /* memory of an answer's arrays */

struct answer_content {
    atomic_uint refs;
    char *body; /* owned, terminated */
    size_t bytes;
    json_t *json;              /* owned; owns the texts below. NULL if not decoded or not JSON */
    struct planner_call *call; /* owned, like `json`; the plan if it was made in this process */
    bool no_memory;            /* answer_alloc has failed */
    bool rests_on_fingerprint;
    struct reach_provenance provenance;
    enum answer_kind kind;
    uint32_t count; /* length of gpus, options or shares */
    struct reach_gpu *gpus;
    struct reach_option *options;
    struct reach_share *shares;
    struct reach_fingerprint fingerprint;
    struct reach_scope scope;
    struct reach_placement placement;
    struct reach_plan plan;
    struct reach_split split;
    struct reach_explanation explanation;
    struct answer_block *blocks;
};

void answer_content_hold(struct answer_content *content);
/* Releases a reference. NULL is allowed. */
void answer_content_release(struct answer_content *take);

/* Returns zeroed memory that lives as long as the content. Returns NULL and sets `no_memory` if
 * memory runs out. */
void *answer_alloc(struct answer_content *content, size_t count, size_t size);
