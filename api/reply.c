/* reply.c: bodies, tags and headers.
 *
 * Each GET that succeeds carries a strong ETag and Cache-Control: no-cache, so that a client may
 * keep the answer and ask cheaply whether it still holds (RFC 9110, sections 8.8.3 and 13.1.2).
 * A fingerprint's tag is its id; other tags are a hash of the body. A document keeps the finished
 * libmicrohttpd responses, 200 and 304, which count their own references.
 */
#include "api/reply.h"

#include "api/problem.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct document {
    char etag[REPLY_ETAG_BYTES];
    struct MHD_Response *full;
    struct MHD_Response *not_modified;
};

static const char JSON_TYPE[] = "application/json";

/* A response over a text that nobody frees. libmicrohttpd asks for a pointer that may be written
 * through, and does not write. */
static struct MHD_Response *response_over(const char *text, size_t bytes)
{
    return MHD_create_response_from_buffer(bytes, (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
}

static void tag_of_bytes(const char *body, size_t bytes, char *etag)
{
    snprintf(etag, REPLY_ETAG_BYTES, "\"%016" PRIx64 "\"", hash_bytes(HASH_START, body, bytes));
}

/* One line feed behind the text: a terminal shows the prompt on a line of its own. */
static char *render(const json_t *json, size_t *out_bytes)
{
    size_t bytes = json ? json_dumpb(json, NULL, 0, JSON_COMPACT) : 0;
    char *text = bytes ? malloc(bytes + 2) : NULL;

    if (!text)
        return NULL;
    if (json_dumpb(json, text, bytes, JSON_COMPACT) != bytes) {
        free(text);
        return NULL;
    }
    text[bytes] = '\n';
    text[bytes + 1] = '\0';
    *out_bytes = bytes + 1;
    return text;
}

void reply_json(struct reply *reply, const struct request *request, unsigned http_status,
                json_t *take)
{
    size_t bytes = 0;
    char *text = render(take, &bytes);

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

void reply_document(struct reply *reply, const struct document *document)
{
    reply_clear(reply);
    reply->http_status = MHD_HTTP_OK;
    reply->document = document;
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
    bool ok = add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);

    if (reply->http_status == MHD_HTTP_OK)
        ok = ok && add_cache_headers(response, reply->etag);
    else
        ok = ok && add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (reply->location[0])
        ok = ok && add_header(response, MHD_HTTP_HEADER_LOCATION, reply->location);
    if (reply->allow)
        ok = ok && add_header(response, MHD_HTTP_HEADER_ALLOW, reply->allow);
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

static enum MHD_Result send_document(struct MHD_Connection *connection,
                                     const struct request *request, const struct document *d)
{
    if (reply_tag_matches(request->if_none_match, d->etag))
        return MHD_queue_response(connection, MHD_HTTP_NOT_MODIFIED, d->not_modified);
    return MHD_queue_response(connection, MHD_HTTP_OK, d->full);
}

enum MHD_Result reply_send(struct MHD_Connection *connection, const struct request *request,
                           struct reply *take)
{
    struct MHD_Response *response = NULL;
    enum MHD_Result result = MHD_NO;
    unsigned http_status = take->http_status;

    if (take->document) {
        result = send_document(connection, request, take->document);
        goto out;
    }
    if (http_status == MHD_HTTP_OK && reply_tag_matches(request->if_none_match, take->etag)) {
        http_status = MHD_HTTP_NOT_MODIFIED;
        response = make_not_modified(take->etag);
    } else if (take->body) {
        response =
            MHD_create_response_from_buffer(take->body_bytes, take->body, MHD_RESPMEM_MUST_FREE);
        if (response)
            take->body = NULL; /* the response has it now */
        if (response && !add_reply_headers(response, take))
            goto out;
    }
    if (response)
        result = MHD_queue_response(connection, http_status, response);
out:
    if (response)
        MHD_destroy_response(response);
    reply_clear(take);
    return result; /* MHD_NO closes the connection */
}

void reply_clear(struct reply *take)
{
    free(take->body);
    *take = (struct reply){.http_status = 0};
}

/* ---- documents ---- */

static struct document *finish_document(struct document *d, const char *content_type)
{
    if (d->full && add_header(d->full, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) &&
        add_cache_headers(d->full, d->etag)) {
        d->not_modified = make_not_modified(d->etag);
        if (d->not_modified)
            return d;
    }
    document_free(d);
    return NULL;
}

struct document *document_new(json_t *take, const char *tag)
{
    struct document *d = calloc(1, sizeof(*d));
    size_t bytes = 0;
    char *text = render(take, &bytes);

    json_decref(take);
    if (!d || !text) {
        free(d);
        free(text);
        return NULL;
    }
    if (tag)
        snprintf(d->etag, sizeof(d->etag), "\"%s\"", tag);
    else
        tag_of_bytes(text, bytes, d->etag);
    d->full = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
    if (!d->full)
        free(text);
    return finish_document(d, JSON_TYPE);
}

struct document *document_new_static(const char *content_type, const char *text, size_t bytes)
{
    struct document *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    tag_of_bytes(text, bytes, d->etag);
    d->full = response_over(text, bytes);
    return finish_document(d, content_type);
}

void document_free(struct document *take)
{
    if (!take)
        return;
    if (take->not_modified)
        MHD_destroy_response(take->not_modified);
    if (take->full)
        MHD_destroy_response(take->full);
    free(take);
}
