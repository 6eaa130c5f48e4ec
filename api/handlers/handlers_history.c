/* handlers_history.c: answers requests for data that only the database contains: the history of
 * fingerprints, and raw observations as JSON or as a table. */
#include "api/handlers/handlers.h"

#include "api/decode/decode.h"
#include "api/encode/encode.h"

static const char LIST[] =
    "List the observations: GET /v1/gpus/{gpu}/observations, or reachctl observations.";

void handlers_read_failed(const struct request *request, struct err *err, const char *list,
                          struct reply *reply)
{
    if (!err->hint && err->status == STATUS_NOT_FOUND)
        err->hint = list;
    if (!err->hint && err->status == STATUS_CORRUPT)
        err->hint =
            "Read another observation, and check the log of reachd: the disk may be failing.";
    reply_err(reply, request, err);
}

/* Replies with a page of the history or of the observations. */
static void reply_page(const struct handlers_context *c, const struct request *request,
                       bool history, struct reply *reply)
{
    const struct api_backend *backend = c->backend;
    const char *uuid = c->gpu->identity.uuid;
    struct json_writer t;
    enum status status;
    uint64_t run = 0;
    int64_t cursor;
    uint32_t limit;
    struct err err;

    if (!decode_count(request, "run", INT64_MAX, &run, &err) ||
        !decode_page(request, &limit, &cursor, &err)) {
        reply_err(reply, request, &err);
        return;
    }
    if (!c->may_read) {
        reply->is_deferred = true;
        return;
    }
    json_writer_begin(&t, 0);
    if (history)
        status = backend->history(backend->self, uuid, cursor, limit, &t, &err);
    else
        status = backend->observations(backend->self, uuid, (int64_t)run, cursor, limit, &t, &err);
    if (status == STATUS_OK) {
        reply_json(reply, HTTP_OK, &t);
        return;
    }
    json_writer_discard(&t);
    handlers_read_failed(request, &err,
                         history ? "List the fingerprints: GET /v1/gpus/{gpu}/history." : LIST,
                         reply);
}

void handlers_history(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    reply_page(c, request, true, reply);
}

void handlers_observations(struct handlers_context *c, const struct request *request,
                           struct reply *reply)
{
    reply_page(c, request, false, reply);
}

static void reply_csv(const struct request *request, const json_t *observation, struct reply *reply)
{
    static const struct problem no_table = {.status = STATUS_INTERNAL};
    size_t bytes = 0;
    char *text = encode_csv(observation, &bytes);

    if (text)
        reply_once(
            reply, HTTP_OK,
            document_new_typed("text/csv; charset=utf-8; header=present", text, bytes, NULL));
    else
        reply_refusal(reply, request, &no_table,
                      "this observation cannot be written as a table: ask for application/json");
}

void handlers_observation(struct handlers_context *c, const struct request *request,
                          struct reply *reply)
{
    static const struct problem not_acceptable = {
        .http_status = HTTP_NOT_ACCEPTABLE,
        .status = STATUS_INVALID_ARGUMENT,
        .slug = "not-acceptable",
        .title = "There is no such representation.",
        .next_step = "Send Accept: application/json or Accept: text/csv."};
    int csv = accept_weight(request->accept, "text/csv");
    int plain = accept_weight(request->accept, "application/json");
    json_t *observation = NULL;
    struct json_writer t;
    struct err err;
    int64_t id;

    if (csv <= 0 && plain <= 0) {
        reply_refusal(reply, request, &not_acceptable,
                      "an observation comes as application/json or text/csv");
        return;
    }
    if (!decode_number(request->id, &id)) {
        err_set_hint(&err, STATUS_NOT_FOUND, LIST,
                     "the number of an observation must be at least 1");
        reply_err(reply, request, &err);
        return;
    }
    if (!c->may_read) {
        reply->is_deferred = true;
        return;
    }
    if (c->backend->observation(c->backend->self, c->gpu->identity.uuid, id, &observation, &err) !=
        STATUS_OK) {
        handlers_read_failed(request, &err, LIST, reply);
        return;
    }
    if (csv > plain) {
        reply_csv(request, observation, reply);
    } else {
        json_writer_begin(&t, 0);
        json_writer_value(&t, NULL, observation);
        reply_json(reply, HTTP_OK, &t);
    }
    json_decref(observation);
    reply->vary = "Accept";
}
