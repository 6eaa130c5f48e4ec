/* handlers_gpu.c: answers requests for GPUs, their states and fingerprints. Other handlers share
 * some of its functions. */
#include "api/handlers/handlers.h"

#include "api/encode/encode.h"
#include "fingerprint/fingerprint_json.h"

#include <string.h>

/* On a node without GPUs the hint describes how to get GPUs. */
static void no_gpus(const struct snapshot *s, const struct request *request, struct reply *reply)
{
    const struct err *why = &s->source_error;
    struct err err;

    if (why->status != STATUS_OK)
        err_set_hint(&err, STATUS_NOT_FOUND, err_next_step(why),
                     "there is no GPU on this node: %.200s", why->text);
    else
        err_set_hint(&err, STATUS_NOT_FOUND, "Check that nvidia-smi lists a GPU.",
                     "there is no GPU on this node: none was found");
    reply_err(reply, request, &err);
}

bool handlers_find_gpu(struct handlers_context *c, const struct request *request,
                       struct reply *reply)
{
    struct err err;

    c->gpu = snapshot_resolve(c->snapshot, request->gpu, &err);
    if (!c->gpu && c->snapshot->discovering)
        reply_err(reply, request, &c->snapshot->source_error);
    else if (!c->gpu && err.status != STATUS_OK)
        reply_err(reply, request, &err);
    else if (!c->gpu)
        no_gpus(c->snapshot, request, reply);
    return c->gpu != NULL;
}

void handlers_need_daemon(const struct request *request, struct reply *reply)
{
    static const struct problem missing = {
        .status = STATUS_NOT_SUPPORTED,
        .next_step =
            "Connect to the daemon: unix:/run/reachd/reachd.sock, or the URL of the daemon."};

    reply_refusal(reply, request, &missing, "only a running daemon can answer this");
}

bool handlers_check_measured(const struct handlers_context *c, const struct request *request,
                             unsigned http_status, struct reply *reply)
{
    const struct snapshot_gpu *gpu = c->gpu;
    const bool failed = gpu->last_error.status != STATUS_OK;
    struct problem p = {.http_status = http_status,
                        .status = STATUS_NOT_FOUND,
                        .slug = "no-fingerprint",
                        .title = "This GPU has no fingerprint yet.",
                        .next_step = "Measure it: POST /v1/gpus/{gpu}/measurements, or reachctl "
                                     "measure."};

    if (gpu->has_fingerprint)
        return true;
    if (gpu->state == GPU_STATE_QUEUED || gpu->state == GPU_STATE_MEASURING)
        p.next_step = "Wait for the measurement: GET /v1/gpus/{gpu} shows its state.";
    if (identity_is_divided(&gpu->identity)) {
        p.title =
            gpu->identity.mig ? "This GPU is divided by MIG." : "This GPU is divided by MLOPart.";
        p.next_step = "Request one of the instances of the GPU that GET /v1/gpus lists.";
    }
    reply_refusal(reply, request, &p, "GPU %s has no fingerprint; its state is %s%s%.250s",
                  gpu->identity.uuid, gpu_state_name(gpu->state), failed ? ": " : "",
                  failed ? gpu->last_error.text : "");
    return false;
}

/* Returns the index of the GPU in the snapshot, which is also its index in the API. */
static uint32_t index_of(const struct handlers_context *c)
{
    return (uint32_t)(c->gpu - c->snapshot->gpus);
}

void handlers_reply_cached(struct handlers_context *c, uint32_t slot, handlers_render_fn *render,
                           struct reply *reply)
{
    const uint32_t at = slot + (c->gpu ? index_of(c) : 0);
    struct document *cached = cache_get(c->cache, at);
    struct document *document = cached ? document_hold(cached) : render(c);

    if (!cached && document)
        cache_put(c->cache, at, document);
    reply_document(reply, document);
}

/* ---- the routes ---- */

/* Deletes rows, so the function waits for the disk. */
void handlers_forget(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct json_writer t;
    struct err err;

    if (!c->may_read) {
        reply->is_deferred = true;
    } else if (c->backend->forget(c->backend->self, c->gpu->identity.uuid, &err) != STATUS_OK) {
        reply_err(reply, request, &err);
    } else {
        json_writer_begin(&t, 0);
        encode_gpu(&t, c->gpu, index_of(c)); /* the answer contains the state before the deletion */
        reply_json(reply, HTTP_OK, &t);
    }
}

struct document *handlers_gpus(const struct handlers_context *c)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    encode_gpus(&t, c->snapshot, NULL);
    return document_new(&t, NULL);
}

/* Serves a survey of many nodes, which sends one request to each node. */
struct document *handlers_all_fingerprints(const struct handlers_context *c)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    encode_gpus(&t, c->snapshot, c->daemon_version);
    return document_new(&t, NULL);
}

struct document *handlers_gpu(const struct handlers_context *c)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    encode_gpu(&t, c->gpu, index_of(c));
    return document_new(&t, NULL);
}

/* The document has its stored id. If another release wrote it, that id differs from the hash of the
 * fields that this release writes. */
static struct document *document_of(const struct fingerprint *fp, const char *id)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    fingerprint_write(&t, NULL, fp, id);
    return document_new(&t, id);
}

static struct document *render_fingerprint(const struct handlers_context *c)
{
    return document_of(&c->gpu->fingerprint, c->gpu->fingerprint_id);
}

static void reply_older(struct handlers_context *c, const struct request *request, const char *id,
                        struct reply *reply)
{
    struct fingerprint fp;
    struct err err;

    if (c->backend->fingerprint_at(c->backend->self, c->gpu->identity.uuid, id, &fp, &err) ==
        STATUS_OK)
        reply_once(reply, HTTP_OK, document_of(&fp, id));
    else
        handlers_read_failed(request, &err, "List the fingerprints: GET /v1/gpus/{gpu}/history.",
                             reply);
}

void handlers_fingerprint(struct handlers_context *c, const struct request *request,
                          struct reply *reply)
{
    const char *id = request_param(request, "at");
    const bool older = id && !(c->gpu->has_fingerprint && strcmp(id, c->gpu->fingerprint_id) == 0);

    if (older && !c->backend)
        handlers_need_daemon(request, reply);
    else if (older && !c->may_read)
        reply->is_deferred = true;
    else if (older)
        reply_older(c, request, id, reply);
    else if (handlers_check_measured(c, request, HTTP_NOT_FOUND, reply))
        handlers_reply_cached(c, CACHE_FINGERPRINT, render_fingerprint, reply);
}
