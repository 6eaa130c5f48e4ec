/* reply_problem.c: statuses into HTTP statuses, errors into problem documents (reply.h). */
#include "api/handlers/reply.h"

#include "base/json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_AFTER_SECONDS = 5, TYPE_BYTES = 64 };

static const char PROBLEM_TYPE[] = "application/problem+json";
static const char TYPE_PREFIX[] = "urn:reachd:problem:";

static unsigned http_status_of(enum status status)
{
    switch (status) {
    case STATUS_INVALID_ARGUMENT:
        return HTTP_BAD_REQUEST;
    case STATUS_NOT_FOUND:
        return HTTP_NOT_FOUND;
    case STATUS_NOT_APPLICABLE: /* the fingerprint knows too little for this question */
    case STATUS_CONFLICT:
    case STATUS_GPU_BUSY:
    case STATUS_GPU_LOST:
    case STATUS_GPU_HUNG:
        return HTTP_CONFLICT;
    case STATUS_NOT_SUPPORTED:
        return HTTP_NOT_IMPLEMENTED;
    case STATUS_FULL:
    case STATUS_NO_MEMORY:
    case STATUS_NO_DRIVER:
    case STATUS_NOT_READY:
        return HTTP_SERVICE_UNAVAILABLE;
    case STATUS_READ_ONLY:
        return HTTP_INSUFFICIENT_STORAGE;
    default:
        return HTTP_INTERNAL_SERVER_ERROR;
    }
}

static json_t *errors_to_json(const struct problem *p)
{
    struct json_out o;
    json_t *array = json_array();

    json_out_begin(&o);
    if (p->parameter)
        json_out_text(&o, "parameter", p->parameter);
    if (p->has_pointer)
        json_out_text(&o, "pointer", p->pointer);
    json_out_text(&o, "detail", p->detail);
    json_out_append(&array, json_out_end(&o));
    return array;
}

static json_t *problem_to_json(const struct problem *p, const struct request *request,
                               unsigned http_status)
{
    const struct status_info *info = status_info(p->status);
    const char *slug = p->slug ? p->slug : info->slug;
    char type[TYPE_BYTES];
    struct json_out o;

    snprintf(type, sizeof(type), "%s%s", TYPE_PREFIX, slug);
    json_out_begin(&o);
    json_out_text(&o, "type", type);
    json_out_text(&o, "slug", slug);
    json_out_text(&o, "title", p->title ? p->title : info->sentence);
    json_out_u64(&o, "status", http_status);
    json_out_text(&o, "detail", p->detail);
    if (request->instance[0])
        json_out_text(&o, "instance", request->instance);
    if (request->trace[0])
        json_out_text(&o, "request_id", request->trace);
    json_out_text(&o, "next_step", p->next_step ? p->next_step : info->next_step);
    if (p->parameter || p->has_pointer)
        json_out_value(&o, "errors", errors_to_json(p));
    if (p->gpus)
        json_out_value(&o, "gpus", json_incref(p->gpus));
    return json_out_end(&o);
}

void reply_problem(struct reply *reply, const struct request *request,
                   const struct problem *problem)
{
    unsigned http_status =
        problem->http_status ? problem->http_status : http_status_of(problem->status);
    json_t *json = problem_to_json(problem, request, http_status);
    size_t bytes = 0;
    char *text = json_out_render(json, &bytes);

    json_decref(json);
    reply_clear(reply); /* without memory the reply has no body, and reply_send says so */
    reply->http_status = http_status;
    reply->content_type = PROBLEM_TYPE;
    reply->body = text;
    reply->body_bytes = bytes;
    if (http_status == HTTP_SERVICE_UNAVAILABLE)
        reply->retry_after_seconds = RETRY_AFTER_SECONDS;
}

void reply_failure(struct reply *reply, const struct request *request, enum status status,
                   const char *format, ...)
{
    struct problem p = {.status = status};
    va_list args;

    va_start(args, format);
    vsnprintf(p.detail, sizeof(p.detail), format, args);
    va_end(args);
    reply_problem(reply, request, &p);
}

void reply_err(struct reply *reply, const struct request *request, const struct err *err)
{
    struct problem p = {.status = err->status, .parameter = err->field, .next_step = err->hint};

    memcpy(p.detail, err->text, sizeof(p.detail));
    reply_problem(reply, request, &p);
}
