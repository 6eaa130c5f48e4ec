/* handlers_observation.c: the raw numbers, as JSON or as a table. */
#include "api/handlers/handlers.h"

#include "api/decode/accept.h"
#include "api/decode/decode.h"
#include "api/encode/encode_csv.h"
#include "api/decode/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_LIMIT = 100, MAX_LIMIT = 1000 };

static const char LIST[] = "List them: GET /v1/gpus/{gpu}/observations, or reachctl observations.";
static const char CSV_TYPE[] = "text/csv; charset=utf-8; header=present";

void handlers_observations(struct handlers_context *c, const struct request *request,
                           struct reply *reply)
{
    const struct snapshot_gpu *gpu = handlers_find_gpu(c, request, reply);
    uint64_t run = 0;
    uint64_t limit = DEFAULT_LIMIT;
    uint64_t cursor = 0;
    struct problem problem;
    json_t *page = NULL;
    struct err err;

    if (!gpu)
        return;
    if (!decode_count(request, "run", 1, INT64_MAX, &run, &problem) ||
        !decode_count(request, "limit", 1, MAX_LIMIT, &limit, &problem) ||
        !decode_count(request, "cursor", 1, INT64_MAX, &cursor, &problem)) {
        reply_problem(reply, request, &problem);
        return;
    }
    if (handlers_must_wait(c, handlers_observations, reply))
        return;
    if (c->backend->observations(c->backend->self, gpu->identity.uuid, (int64_t)run,
                                 (int64_t)cursor, (uint32_t)limit, &page, &err) != STATUS_OK)
        handlers_read_failed(request, &err, LIST, reply);
    else
        reply_json(reply, HTTP_OK, page);
}

static void reply_csv(const struct request *request, json_t *take, struct reply *reply)
{
    size_t bytes = 0;
    char *text = encode_csv(take, &bytes);

    json_decref(take);
    if (text)
        reply_text(reply, CSV_TYPE, text, bytes);
    else
        reply_failure(reply, request, STATUS_INTERNAL,
                      "this observation cannot be written as a table: ask for application/json");
}

static void not_acceptable(const struct request *request, struct reply *reply)
{
    struct problem p = {.http_status = HTTP_NOT_ACCEPTABLE,
                        .status = STATUS_INVALID_ARGUMENT,
                        .slug = "not-acceptable",
                        .title = "There is no such representation.",
                        .next_step = "Send Accept: application/json or Accept: text/csv.",
                        .detail = "an observation comes as application/json or text/csv"};

    reply_problem(reply, request, &p);
}

void handlers_observation(struct handlers_context *c, const struct request *request,
                          struct reply *reply)
{
    const struct snapshot_gpu *gpu = handlers_find_gpu(c, request, reply);
    int csv = accept_weight(request->accept, "text/csv");
    int plain = accept_weight(request->accept, "application/json");
    json_t *observation = NULL;
    struct err err;
    int64_t id;

    if (!gpu)
        return;
    if (csv <= 0 && plain <= 0) {
        not_acceptable(request, reply);
        return;
    }
    if (!decode_number(request->id, &id)) {
        err_set_hint(&err, STATUS_NOT_FOUND, LIST, "observations have numbers from 1 up");
        reply_err(reply, request, &err);
        return;
    }
    if (handlers_must_wait(c, handlers_observation, reply))
        return;
    if (c->backend->observation(c->backend->self, gpu->identity.uuid, id, &observation, &err) !=
        STATUS_OK) {
        handlers_read_failed(request, &err, LIST, reply);
        return;
    }
    if (csv > plain)
        reply_csv(request, observation, reply);
    else
        reply_json(reply, HTTP_OK, observation);
    reply->varies_by_accept = true;
}
