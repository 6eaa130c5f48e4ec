/* reply.c: makes the bodies of answers and problem documents (RFC 9457), and compares ETags. Each
 * GET that succeeds carries a strong ETag. A client may keep the answer and revalidate it cheaply
 * with that tag (RFC 9110, sections 8.8.3 and 13.1.2). The tag of a fingerprint is its id; other
 * tags are a hash of the body.
 */
#include "api/handlers/reply.h"

#include "api/encode/encode.h"
#include "base/json_writer.h"

#include <stdio.h>
#include <string.h>

void reply_once(struct reply *reply, unsigned http_status, struct document *take)
{
    reply_clear(reply);
    reply->http_status = take ? http_status : HTTP_SERVICE_UNAVAILABLE;
    reply->document = take;
}

void reply_document(struct reply *reply, struct document *take)
{
    reply_once(reply, HTTP_OK, take);
    reply->is_shared = take != NULL;
}

void reply_json(struct reply *reply, unsigned http_status, struct json_writer *t)
{
    reply_once(reply, http_status, document_new(t, NULL));
}

void reply_empty(struct reply *reply, unsigned http_status)
{
    reply_clear(reply);
    reply->http_status = http_status;
    reply->is_empty = true;
}

void reply_clear(struct reply *take)
{
    document_free(take->document);
    *take = (struct reply){.http_status = 0};
}

bool reply_tag_matches(const char *if_none_match, const char *etag)
{
    size_t length = strlen(etag);
    const char *at = if_none_match;

    while (at && *at) {
        at += strspn(at, " \t,");
        if (*at == '*')
            return true;
        if (strncmp(at, "W/", 2) == 0)
            at += 2; /* a GET compares weakly: RFC 9110, section 13.1.2 */
        if (length > 0 && strncmp(at, etag, length) == 0 && strchr(" \t,", at[length]))
            return true; /* strchr also finds the end of the text */
        at += strcspn(at, ",");
    }
    return false;
}

/* ---- problems ---- */

enum { RETRY_AFTER_SECONDS = 5, TYPE_BYTES = 64 };

static const char PROBLEM_TYPE[] = "application/problem+json";
static const char TYPE_PREFIX[] = "urn:reachd:problem:";

static void write_errors(struct json_writer *t, const struct problem *p)
{
    json_writer_open(t, "errors", '[');
    json_writer_open(t, NULL, '{');
    if (p->parameter)
        json_writer_text(t, "parameter", p->parameter);
    if (p->has_pointer)
        json_writer_text(t, "pointer", p->pointer);
    json_writer_text(t, "detail", p->detail);
    json_writer_close(t, '}');
    json_writer_close(t, ']');
}

static void write_problem(struct json_writer *t, const struct problem *p,
                          const struct request *request, unsigned http_status)
{
    const struct status_info *info = status_info(p->status);
    const char *slug = p->slug ? p->slug : info->slug;
    char type[TYPE_BYTES];

    snprintf(type, sizeof(type), "%s%s", TYPE_PREFIX, slug);
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "type", type);
    json_writer_text(t, "slug", slug);
    json_writer_text(t, "title", p->title ? p->title : info->message);
    json_writer_u64(t, "status", http_status);
    json_writer_text(t, "detail", p->detail);
    if (request->instance[0])
        json_writer_text(t, "instance", request->instance);
    if (request->trace[0])
        json_writer_text(t, "request_id", request->trace);
    json_writer_text(t, "next_step", p->next_step ? p->next_step : info->next_step);
    if (p->parameter || p->has_pointer)
        write_errors(t, p);
    if (p->gpus)
        encode_states(t, "gpus", p->gpus, p->now);
    json_writer_close(t, '}');
}

void reply_problem(struct reply *reply, const struct request *request,
                   const struct problem *problem)
{
    unsigned http_status =
        problem->http_status ? problem->http_status : status_info(problem->status)->http_status;
    struct json_writer t;
    size_t bytes = 0;
    char *text;

    json_writer_begin(&t, 0);
    write_problem(&t, problem, request, http_status);
    text = json_writer_end(&t, &bytes);
    reply_once(reply, http_status, document_new_typed(PROBLEM_TYPE, text, bytes, ""));
    if (http_status == HTTP_SERVICE_UNAVAILABLE)
        reply->retry_after_seconds = RETRY_AFTER_SECONDS;
}

void reply_refusal(struct reply *reply, const struct request *request, const struct problem *kind,
                   const char *format, ...)
{
    struct problem p = *kind;
    va_list args;

    va_start(args, format);
    vsnprintf(p.detail, sizeof(p.detail), format, args);
    va_end(args);
    reply_problem(reply, request, &p);
}

void reply_err_as(struct reply *reply, const struct request *request, const struct err *err,
                  unsigned http_status)
{
    struct problem p = {.http_status = http_status,
                        .status = err->status,
                        .parameter = err->field,
                        .next_step = err->hint};

    memcpy(p.detail, err->text, sizeof(p.detail));
    reply_problem(reply, request, &p);
}

void reply_err(struct reply *reply, const struct request *request, const struct err *err)
{
    reply_err_as(reply, request, err, status_info(err->status)->http_status);
}
