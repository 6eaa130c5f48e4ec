/* handlers_measurement.c: starts, reports and ends measurements. */
#include "api/handlers/handlers.h"

#include "api/decode/decode.h"

#include <stdio.h>

void handlers_measure(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    enum depth depth = DEPTH_FULL;
    struct problem problem;
    struct api_measurement measurement;
    struct json_writer t;
    struct err err;

    if (!decode_depth_body(request, &depth, &problem)) {
        reply_problem(reply, request, &problem);
        return;
    }
    json_writer_begin(&t, 0);
    if (c->backend->submit(c->backend->self, c->gpu->identity.uuid, depth, &t, &measurement,
                           &err) != STATUS_OK) {
        json_writer_discard(&t);
        if (err.status == STATUS_FULL)
            err.hint = "Wait until a measurement has ended, and try again.";
        reply_err(reply, request, &err);
        return;
    }
    reply_json(reply, HTTP_ACCEPTED, &t);
    if (reply->http_status == HTTP_ACCEPTED)
        snprintf(reply->location, sizeof(reply->location), "/v1/measurements/%s", measurement.id);
}

/* Replies that the measurement in the path could not be read or ended. */
static void measurement_failed(const struct request *request, struct err *err, struct reply *reply)
{
    if (err->status == STATUS_CONFLICT)
        err->hint = "The measurement has ended: GET /v1/measurements/{id} returns its result.";
    if (err->status == STATUS_NOT_FOUND)
        err->hint = "Only the last measurements since the start of the daemon are listed: GET "
                    "/v1/gpus/{gpu}/history has the fingerprints that they made.";
    reply_err(reply, request, err);
}

void handlers_measurement(struct handlers_context *c, const struct request *request,
                          struct reply *reply)
{
    struct json_writer t;
    struct err err;

    json_writer_begin(&t, 0);
    if (c->backend->measurement(c->backend->self, request->id, &t, &err) == STATUS_OK) {
        reply_json(reply, HTTP_OK, &t);
    } else {
        json_writer_discard(&t);
        measurement_failed(request, &err, reply);
    }
}

/* Replies with 200 if the measurement has ended, and with 202 if it will end. */
void handlers_cancel(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct api_measurement measurement;
    struct json_writer t;
    struct err err;

    json_writer_begin(&t, 0);
    if (c->backend->cancel(c->backend->self, request->id, &t, &measurement, &err) == STATUS_OK) {
        reply_once(reply, measurement.is_running ? HTTP_ACCEPTED : HTTP_OK, document_new(&t, ""));
    } else {
        json_writer_discard(&t);
        measurement_failed(request, &err, reply);
    }
}
