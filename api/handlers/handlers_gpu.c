/* handlers_gpu.c: the GPUs and the state of each, and what the other handlers share. */
#include "api/handlers/handlers.h"

#include "api/encode/encode.h"
#include "api/decode/problem.h"

#include <stdio.h>

/* On a node without GPUs what to do is what would bring some. */
static void no_such_gpu(const struct snapshot *s, const struct request *request,
                        struct reply *reply)
{
    const struct err *why = &s->source_error;
    struct err err;

    if (s->gpu_count > 0)
        err_set_hint(
            &err, STATUS_NOT_FOUND, "List the GPUs: GET /v1/gpus, or reachctl gpus.",
            "there is no GPU \"%.80s\": name one by its UUID, or by its index from 0 to %u",
            request->gpu, s->gpu_count - 1);
    else if (why->status != STATUS_OK)
        err_set_hint(&err, STATUS_NOT_FOUND, err_next_step(why),
                     "there is no GPU on this node: %.200s", why->text);
    else
        err_set_hint(&err, STATUS_NOT_FOUND, "Check that nvidia-smi lists a GPU.",
                     "there is no GPU on this node: none was found");
    reply_err(reply, request, &err);
}

const struct snapshot_gpu *handlers_find_gpu(struct handlers_context *c,
                                             const struct request *request, struct reply *reply)
{
    const struct snapshot_gpu *gpu = snapshot_find(c->snapshot, request->gpu);

    if (gpu)
        return gpu;
    if (c->snapshot->discovering)
        reply_err(reply, request, &c->snapshot->source_error);
    else
        no_such_gpu(c->snapshot, request, reply);
    return NULL;
}

uint32_t handlers_index_of(const struct handlers_context *c, const struct snapshot_gpu *gpu)
{
    return (uint32_t)(gpu - c->snapshot->gpus);
}

void handlers_needs_daemon(const struct request *request, struct reply *reply)
{
    struct problem p = {.status = STATUS_NOT_SUPPORTED,
                        .next_step = "Ask the daemon: unix:/run/reachd/reachd.sock, or its URL.",
                        .detail = "a running daemon alone can answer this, and none was asked"};

    reply_problem(reply, request, &p);
}

void handlers_read_failed(const struct request *request, struct err *err, const char *list,
                          struct reply *reply)
{
    if (!err->hint && err->status == STATUS_NOT_FOUND)
        err->hint = list;
    if (!err->hint && err->status == STATUS_CORRUPT)
        err->hint = "Ask for another one, and look at the log of reachd: the disk may be failing.";
    reply_err(reply, request, err);
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
    reply_problem(reply, request, &p);
}

void handlers_reply_kept(struct handlers_context *c, const struct request *request, uint32_t slot,
                         struct document *take, struct reply *reply)
{
    if (!take) {
        reply_failure(reply, request, STATUS_NO_MEMORY, "no memory to write the answer");
        return;
    }
    reply_document(reply, take);
    cache_keep(c->cache, slot, take);
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
