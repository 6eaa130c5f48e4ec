/* handlers_measurement.c: starts, shows and ends measurements. */
#include "api/handlers/handlers.h"

#include "api/decode/decode.h"

#include <stdio.h>
#include <string.h>

void handlers_measure(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    enum depth depth = DEPTH_FULL;
    struct problem problem;
    json_t *measurement = NULL;
    struct err err;
    char location[REPLY_LOCATION_BYTES];

    if (!decode_depth_body(request, &depth, &problem)) {
        reply_problem(reply, request, &problem);
        return;
    }
    if (c->backend->submit(c->backend->self, c->gpu->identity.uuid, depth, &measurement, &err) !=
        STATUS_OK) {
        if (err.status == STATUS_FULL)
            err.hint = "Wait until one of them has ended, and try again.";
        reply_err(reply, request, &err);
        return;
    }
    snprintf(location, sizeof(location), "/v1/measurements/%.40s",
             json_string_value(json_object_get(measurement, "id")));
    reply_json(reply, HTTP_ACCEPTED, measurement);
    if (reply->http_status == HTTP_ACCEPTED)
        memcpy(reply->location, location, sizeof(location));
}

/* A measurement that the path names could not be read or ended. */
static void measurement_failed(const struct request *request, struct err *err, struct reply *reply)
{
    if (err->status == STATUS_CONFLICT)
        err->hint = "Nothing is left to cancel: GET /v1/measurements/{id} shows how it ended.";
    if (err->status == STATUS_NOT_FOUND)
        err->hint = "Only the last measurements since the start of the daemon are listed: GET "
                    "/v1/gpus/{gpu}/history has the fingerprints that they made.";
    reply_err(reply, request, err);
}

void handlers_measurement(struct handlers_context *c, const struct request *request,
                          struct reply *reply)
{
    json_t *measurement = NULL;
    struct err err;

    if (c->backend->measurement(c->backend->self, request->id, &measurement, &err) != STATUS_OK)
        measurement_failed(request, &err, reply);
    else
        reply_json(reply, HTTP_OK, measurement);
}

/* 200: it has ended; 202: it will. */
void handlers_cancel(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    json_t *measurement = NULL;
    unsigned http_status;
    const char *state;
    struct err err;

    if (c->backend->cancel(c->backend->self, request->id, &measurement, &err) != STATUS_OK) {
        measurement_failed(request, &err, reply);
        return;
    }
    state = json_string_value(json_object_get(measurement, "state"));
    http_status = state && strcmp(state, "running") == 0 ? HTTP_ACCEPTED : HTTP_OK;
    reply_once(reply, http_status, document_new(measurement, ""));
}
