/* handlers_gpu.c: the GPUs and the state of each, and what the other handlers share. */
#include "api/handlers.h"

#include "api/encode.h"
#include "api/problem.h"

#include <stdio.h>

const struct snapshot_gpu *handlers_find_gpu(struct handlers_context *c,
                                             const struct request *request, struct reply *reply)
{
    const struct snapshot_gpu *gpu = snapshot_find(c->snapshot, request->gpu);

    if (gpu)
        return gpu;
    if (c->snapshot->discovering)
        problem_from_err(reply, request, &c->snapshot->source_error);
    else if (c->snapshot->gpu_count == 0)
        problem_reply(reply, request, STATUS_NOT_FOUND, "there is no GPU on this node: %.200s",
                      c->snapshot->source_error.status == STATUS_OK
                          ? "none was found"
                          : c->snapshot->source_error.text);
    else
        problem_reply(reply, request, STATUS_NOT_FOUND,
                      "there is no GPU \"%.80s\": name one by its UUID, or by its index from 0 to "
                      "%u",
                      request->gpu, c->snapshot->gpu_count - 1);
    return NULL;
}

uint32_t handlers_index_of(const struct handlers_context *c, const struct snapshot_gpu *gpu)
{
    return (uint32_t)(gpu - c->snapshot->gpus);
}

void handlers_no_fingerprint(const struct request *request, const struct snapshot_gpu *gpu,
                             unsigned http_status, struct reply *reply)
{
    struct problem p = {.http_status = http_status,
                        .status = STATUS_NOT_FOUND,
                        .slug = "no-fingerprint",
                        .title = "This GPU has no fingerprint yet."};

    if (gpu->state == GPU_STATE_QUEUED || gpu->state == GPU_STATE_MEASURING)
        p.next_step = "Wait for the measurement: GET /v1/gpus/{gpu} shows its state.";
    else
        p.next_step = "Measure it: POST /v1/gpus/{gpu}/fingerprint, or reachctl fingerprint.";
    if (gpu->last_error.status == STATUS_OK)
        snprintf(p.detail, sizeof(p.detail), "GPU %s has no fingerprint; its state is %s",
                 gpu->identity.uuid, gpu_state_name(gpu->state));
    else
        snprintf(p.detail, sizeof(p.detail), "GPU %s has no fingerprint; its state is %s: %.250s",
                 gpu->identity.uuid, gpu_state_name(gpu->state), gpu->last_error.text);
    problem_write(reply, request, &p);
}

void handlers_reply_kept(struct handlers_context *c, const struct request *request, uint32_t slot,
                         struct document *take, struct reply *reply)
{
    if (!take) {
        problem_reply(reply, request, STATUS_NO_MEMORY, "no memory to write the answer");
        return;
    }
    cache_keep(c->cache, slot, take);
    reply_document(reply, take);
}

void handlers_gpus(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct document *kept = cache_get(c->cache, CACHE_GPUS);

    if (kept)
        reply_document(reply, kept);
    else
        handlers_reply_kept(c, request, CACHE_GPUS, document_new(encode_gpus(c->snapshot), NULL),
                            reply);
}

/* What a survey of many nodes asks: one request a node. */
void handlers_all_fingerprints(struct handlers_context *c, const struct request *request,
                               struct reply *reply)
{
    struct document *kept = cache_get(c->cache, CACHE_FINGERPRINTS);

    if (kept)
        reply_document(reply, kept);
    else
        handlers_reply_kept(c, request, CACHE_FINGERPRINTS,
                            document_new(encode_fingerprints(c->snapshot, c->daemon_version), NULL),
                            reply);
}

void handlers_gpu(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    const struct snapshot_gpu *gpu = handlers_find_gpu(c, request, reply);
    struct document *kept;
    uint32_t index;

    if (!gpu)
        return;
    index = handlers_index_of(c, gpu);
    kept = cache_get(c->cache, CACHE_GPU + index);
    if (kept)
        reply_document(reply, kept);
    else
        handlers_reply_kept(c, request, CACHE_GPU + index,
                            document_new(encode_gpu(gpu, index), NULL), reply);
}
