/* handlers_fingerprint.c: the fingerprint, its history, and the jobs that make new ones. */
#include "api/handlers/handlers.h"

#include "api/decode/decode.h"
#include "api/decode/problem.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_LIMIT = 100, MAX_LIMIT = 1000 };

static const char LIST[] = "List them: GET /v1/gpus/{gpu}/fingerprints.";

/* The id is the snapshot's: a document that a newer release wrote gives itself one that the fields
 * which are known here do not hash to. */
static json_t *with_id(const struct snapshot_gpu *gpu)
{
    json_t *json = fingerprint_to_json(&gpu->fingerprint);

    if (json && json_object_set_new(json, "id", json_string(gpu->fingerprint_id)) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static void current(struct handlers_context *c, const struct request *request,
                    const struct snapshot_gpu *gpu, struct reply *reply)
{
    uint32_t slot = CACHE_FINGERPRINT + handlers_index_of(c, gpu);
    struct document *kept = cache_get(c->cache, slot);

    if (kept)
        reply_document(reply, kept);
    else
        handlers_reply_kept(c, request, slot, document_new(with_id(gpu), gpu->fingerprint_id),
                            reply);
}

static void older(struct handlers_context *c, const struct request *request,
                  const struct snapshot_gpu *gpu, const char *id, struct reply *reply)
{
    struct fingerprint fp;
    struct err err;

    if (c->backend->fingerprint_at(c->backend->self, gpu->identity.uuid, id, &fp, &err) !=
        STATUS_OK) {
        handlers_read_failed(request, &err, LIST, reply);
        return;
    }
    reply_json(reply, HTTP_OK, fingerprint_to_json(&fp));
    if (reply->http_status == HTTP_OK)
        snprintf(reply->etag, sizeof(reply->etag), "\"%.32s\"", id);
}

void handlers_fingerprint(struct handlers_context *c, const struct request *request,
                          struct reply *reply)
{
    const struct snapshot_gpu *gpu = handlers_find_gpu(c, request, reply);
    const char *id = request_param(request, "at");

    if (!gpu)
        return;
    if (id && !(gpu->has_fingerprint && strcmp(id, gpu->fingerprint_id) == 0)) {
        if (!c->backend)
            handlers_needs_daemon(request, reply);
        else if (!handlers_must_wait(c, handlers_fingerprint, reply))
            older(c, request, gpu, id, reply);
    } else if (gpu->has_fingerprint)
        current(c, request, gpu, reply);
    else
        handlers_no_fingerprint(request, gpu, HTTP_NOT_FOUND, reply);
}

void handlers_fingerprints(struct handlers_context *c, const struct request *request,
                           struct reply *reply)
{
    const struct snapshot_gpu *gpu = handlers_find_gpu(c, request, reply);
    uint64_t limit = DEFAULT_LIMIT;
    uint64_t cursor = 0;
    struct problem problem;
    json_t *page = NULL;
    struct err err;

    if (!gpu)
        return;
    if (!decode_count(request, "limit", 1, MAX_LIMIT, &limit, &problem) ||
        !decode_count(request, "cursor", 1, INT64_MAX, &cursor, &problem)) {
        reply_problem(reply, request, &problem);
        return;
    }
    if (handlers_must_wait(c, handlers_fingerprints, reply))
        return;
    if (c->backend->history(c->backend->self, gpu->identity.uuid, (int64_t)cursor, (uint32_t)limit,
                            &page, &err) != STATUS_OK)
        handlers_read_failed(request, &err, LIST, reply);
    else
        reply_json(reply, HTTP_OK, page);
}

void handlers_measure(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    const struct snapshot_gpu *gpu = handlers_find_gpu(c, request, reply);
    enum depth depth = DEPTH_FULL;
    struct problem problem;
    json_t *job = NULL;
    struct err err;
    char location[REPLY_LOCATION_BYTES];

    if (!gpu)
        return;
    if (!decode_depth_body(request, &depth, &problem)) {
        reply_problem(reply, request, &problem);
        return;
    }
    if (c->backend->submit(c->backend->self, gpu->identity.uuid, depth, &job, &err) != STATUS_OK) {
        if (err.status == STATUS_FULL)
            err.hint = "Wait until one of them has ended, and try again.";
        reply_err(reply, request, &err);
        return;
    }
    snprintf(location, sizeof(location), "/v1/jobs/%.40s",
             json_string_value(json_object_get(job, "id")));
    reply_json(reply, HTTP_ACCEPTED, job);
    if (reply->http_status == HTTP_ACCEPTED)
        memcpy(reply->location, location, sizeof(location));
}

/* What went wrong with a job that the path names. */
static void job_problem(const struct request *request, const struct err *err, struct reply *reply)
{
    struct problem p = {.status = err->status, .next_step = err->hint};

    if (err->status == STATUS_CONFLICT)
        p.next_step = "Nothing is left to cancel: GET /v1/jobs/{id} says how it ended.";
    if (err->status == STATUS_NOT_FOUND)
        p.next_step = "Only the last jobs since the start of the daemon are remembered: look at "
                      "GET /v1/gpus/{gpu}/fingerprints for what they made.";
    snprintf(p.detail, sizeof(p.detail), "%s", err->text);
    reply_problem(reply, request, &p);
}

void handlers_job(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    json_t *job = NULL;
    struct err err;

    if (c->backend->job(c->backend->self, request->id, &job, &err) != STATUS_OK)
        job_problem(request, &err, reply);
    else
        reply_json(reply, HTTP_OK, job);
}

/* 200: it has ended; 202: it will, GET tells when. */
void handlers_cancel(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    json_t *job = NULL;
    const char *state;
    struct err err;

    if (c->backend->cancel(c->backend->self, request->id, &job, &err) != STATUS_OK) {
        job_problem(request, &err, reply);
        return;
    }
    state = json_string_value(json_object_get(job, "state"));
    reply_json(reply, state && strcmp(state, "running") == 0 ? HTTP_ACCEPTED : HTTP_OK, job);
    reply->etag[0] = '\0';
}
