/* reply.c: bodies, tags and headers.
 *
 * Each GET that succeeds carries a strong ETag and Cache-Control: no-cache, so that a client may
 * keep the answer and ask cheaply whether it still holds (RFC 9110, sections 8.8.3 and 13.1.2).
 * A fingerprint's tag is its id; other tags are a hash of the body. A document keeps the finished
 * libmicrohttpd responses, 200 and 304, which count their own references. Such an answer is the
 * same for all, so it has a request id only where the client has sent one; all others have one.
 */
#include "api/handlers/reply.h"

#include "api/handlers/problem.h"
#include "base/hash.h"
#include "base/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_MEMORY_BYTES = 512 };

struct document {
    uint32_t holders;
    char etag[REPLY_ETAG_BYTES];
    const char *content_type;
    const char *text; /* the response's, which is in `full` */
    size_t bytes;
    struct MHD_Response *full;
    struct MHD_Response *not_modified; /* made when it is first wanted */
};

static const char PROBLEM_TYPE[] = "application/problem+json";
static const char JSON_TYPE[] = "application/json";
static const char REQUEST_ID_FIELD[] = "X-Request-Id";

/* A response over a text that nobody frees. libmicrohttpd asks for a pointer that may be written
 * through, and does not write. */
static struct MHD_Response *response_over(const char *text, size_t bytes)
{
    return MHD_create_response_from_buffer(bytes, (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
}

/* 503 for a request that there is no memory to answer. Made before that, and kept to the end. */
static struct MHD_Response *no_memory;

/* A tag is made for every answer that is worked out. It is not stored, and two answers that share
 * one by chance differ in 2^64. */
static void tag_of_bytes(const char *body, size_t bytes, char *etag)
{
    static const char digits[] = "0123456789abcdef";
    const uint64_t h = hash_quick(body, bytes);

    for (int i = 0; i < 16; i++)
        etag[1 + i] = digits[h >> (60 - 4 * i) & 15];
    etag[0] = etag[17] = '"';
    etag[18] = '\0';
}

void reply_json(struct reply *reply, const struct request *request, unsigned http_status,
                json_t *take)
{
    size_t bytes = 0;
    char *text = json_out_render(take, &bytes);

    json_decref(take);
    if (!text) {
        problem_reply(reply, request, STATUS_NO_MEMORY, "no memory to write the answer");
        return;
    }
    reply_text(reply, JSON_TYPE, text, bytes);
    reply->http_status = http_status;
}

void reply_text(struct reply *reply, const char *content_type, char *take, size_t bytes)
{
    reply_clear(reply);
    reply->http_status = MHD_HTTP_OK;
    reply->content_type = content_type;
    reply->body = take;
    reply->body_bytes = bytes;
    tag_of_bytes(take, bytes, reply->etag);
}

void reply_document(struct reply *reply, struct document *document)
{
    document_hold(document);
    reply_clear(reply);
    reply->http_status = MHD_HTTP_OK;
    reply->document = document;
}

void reply_empty(struct reply *reply, unsigned http_status)
{
    reply_clear(reply);
    reply->http_status = http_status;
    reply->is_empty = true;
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
            return true; /* strchr finds the end of the text as well */
        at += strcspn(at, ",");
    }
    return false;
}

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_cache_headers(struct MHD_Response *response, const char *etag)
{
    return add_header(response, MHD_HTTP_HEADER_ETAG, etag) &&
           add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
}

/* No body, the tag alone. */
static struct MHD_Response *make_not_modified(const char *etag)
{
    struct MHD_Response *response = response_over("", 0);

    if (response && !add_cache_headers(response, etag)) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}

static bool add_reply_headers(struct MHD_Response *response, const struct reply *reply)
{
    char seconds[16];
    bool ok =
        reply->is_empty || add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);

    if (reply->http_status == MHD_HTTP_OK && reply->etag[0])
        ok = ok && add_cache_headers(response, reply->etag);
    else
        ok = ok && add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (reply->location[0])
        ok = ok && add_header(response, MHD_HTTP_HEADER_LOCATION, reply->location);
    if (reply->allow)
        ok = ok && add_header(response, MHD_HTTP_HEADER_ALLOW, reply->allow);
    if (reply->asks_token)
        ok =
            ok && add_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"reachd\"");
    if (reply->varies_by_accept)
        ok = ok && add_header(response, MHD_HTTP_HEADER_VARY, "Accept");
    if (reply->close)
        ok = ok && add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (reply->retry_after_seconds > 0) {
        snprintf(seconds, sizeof(seconds), "%" PRIu32, reply->retry_after_seconds);
        ok = ok && add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    return ok;
}

/* A response of its own, for a client that wants its request id back. */
static struct MHD_Response *copy_of(const struct document *d, const char *trace)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        d->bytes, (void *)(uintptr_t)d->text, MHD_RESPMEM_MUST_COPY);

    if (response && add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, d->content_type) &&
        add_cache_headers(response, d->etag) && add_header(response, REQUEST_ID_FIELD, trace))
        return response;
    if (response)
        MHD_destroy_response(response);
    return NULL;
}

static enum MHD_Result send_and_free(struct MHD_Connection *connection, unsigned http_status,
                                     struct MHD_Response *take)
{
    enum MHD_Result result = take ? MHD_queue_response(connection, http_status, take) : MHD_NO;

    if (take)
        MHD_destroy_response(take);
    return result;
}

static enum MHD_Result send_document(struct MHD_Connection *connection,
                                     const struct request *request, struct document *d,
                                     unsigned *out_status)
{
    if (reply_tag_matches(request->if_none_match, d->etag)) {
        *out_status = MHD_HTTP_NOT_MODIFIED;
        if (request->trace_given) {
            struct MHD_Response *own = make_not_modified(d->etag);
            if (own)
                add_header(own, REQUEST_ID_FIELD, request->trace);
            return send_and_free(connection, MHD_HTTP_NOT_MODIFIED, own);
        }
        if (!d->not_modified)
            d->not_modified = make_not_modified(d->etag);
        return d->not_modified
                   ? MHD_queue_response(connection, MHD_HTTP_NOT_MODIFIED, d->not_modified)
                   : MHD_NO;
    }
    *out_status = MHD_HTTP_OK;
    if (request->trace_given)
        return send_and_free(connection, MHD_HTTP_OK, copy_of(d, request->trace));
    return MHD_queue_response(connection, MHD_HTTP_OK, d->full);
}

/* The response of a reply that brings its own body; NULL without memory. */
static struct MHD_Response *make_response(const struct request *request, struct reply *reply)
{
    struct MHD_Response *response = NULL;
    bool ok = true;

    if (reply->http_status == MHD_HTTP_OK && reply->etag[0] &&
        reply_tag_matches(request->if_none_match, reply->etag)) {
        reply->http_status = MHD_HTTP_NOT_MODIFIED;
        response = make_not_modified(reply->etag);
    } else if (reply->is_empty) {
        response = response_over("", 0);
        ok = response && add_reply_headers(response, reply);
    } else if (reply->body) {
        response =
            MHD_create_response_from_buffer(reply->body_bytes, reply->body, MHD_RESPMEM_MUST_FREE);
        if (response)
            reply->body = NULL; /* the response has it now */
        ok = response && add_reply_headers(response, reply);
    }
    if (response && ok && request->trace[0])
        ok = add_header(response, REQUEST_ID_FIELD, request->trace);
    if (response && !ok) {
        MHD_destroy_response(response);
        response = NULL;
    }
    return response;
}

bool reply_prepare(void)
{
    static char text[NO_MEMORY_BYTES];
    const struct status_info *info = status_info(STATUS_NO_MEMORY);

    if (no_memory)
        return true;
    int bytes = snprintf(text, sizeof(text),
                         "{\"type\":\"urn:reachd:problem:%s\",\"slug\":\"%s\",\"title\":\"%s\","
                         "\"status\":503,\"detail\":\"no memory to answer this request\","
                         "\"next_step\":\"%s\"}",
                         info->slug, info->slug, info->sentence, info->next_step);
    struct MHD_Response *response = response_over(text, (size_t)bytes);

    if (response && add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, PROBLEM_TYPE) &&
        add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
        add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "5")) {
        no_memory = response;
        return true;
    }
    if (response)
        MHD_destroy_response(response);
    return false;
}

enum MHD_Result reply_send(struct MHD_Connection *connection, const struct request *request,
                           struct reply *take, unsigned *out_status)
{
    enum MHD_Result result;

    if (take->document) {
        result = send_document(connection, request, take->document, out_status);
    } else {
        struct MHD_Response *response = make_response(request, take);
        *out_status = take->http_status;
        result = send_and_free(connection, take->http_status, response);
    }
    if (result != MHD_YES && no_memory) {
        *out_status = MHD_HTTP_SERVICE_UNAVAILABLE;
        result = MHD_queue_response(connection, MHD_HTTP_SERVICE_UNAVAILABLE, no_memory);
    }
    if (result != MHD_YES)
        *out_status = 0;
    reply_clear(take);
    return result; /* MHD_NO closes the connection */
}

void reply_clear(struct reply *take)
{
    free(take->body);
    document_free(take->document);
    *take = (struct reply){.http_status = 0};
}

/* ---- documents ---- */

static struct document *finish_document(struct document *d, const char *content_type)
{
    d->holders = 1;
    d->content_type = content_type;
    if (d->full && add_header(d->full, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) &&
        add_cache_headers(d->full, d->etag))
        return d;
    document_free(d);
    return NULL;
}

struct document *document_new_typed(const char *content_type, char *take, size_t bytes,
                                    const char *tag)
{
    struct document *d = take ? calloc(1, sizeof(*d)) : NULL;

    if (!d) {
        free(take);
        return NULL;
    }
    d->text = take;
    d->bytes = bytes;
    if (tag)
        snprintf(d->etag, sizeof(d->etag), "\"%s\"", tag);
    else
        tag_of_bytes(take, bytes, d->etag);
    d->full = MHD_create_response_from_buffer(bytes, take, MHD_RESPMEM_MUST_FREE);
    if (!d->full)
        free(take);
    return finish_document(d, content_type);
}

struct document *document_new_text(char *take, size_t bytes, const char *tag)
{
    return document_new_typed(JSON_TYPE, take, bytes, tag);
}

struct document *document_new(json_t *take, const char *tag)
{
    size_t bytes = 0;
    char *text = json_out_render(take, &bytes);

    json_decref(take);
    return document_new_text(text, bytes, tag);
}

struct document *document_new_static(const char *content_type, const char *text, size_t bytes)
{
    struct document *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->text = text;
    d->bytes = bytes;
    tag_of_bytes(text, bytes, d->etag);
    d->full = response_over(text, bytes);
    return finish_document(d, content_type);
}

void document_hold(struct document *document)
{
    document->holders++;
}

void document_free(struct document *take)
{
    if (!take || --take->holders > 0)
        return;
    if (take->not_modified)
        MHD_destroy_response(take->not_modified);
    if (take->full)
        MHD_destroy_response(take->full);
    free(take);
}
