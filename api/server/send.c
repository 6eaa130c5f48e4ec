/* send.c: headers and bodies, as libmicrohttpd takes them.
 *
 * A document keeps the finished responses, 200 and 304, which count their own references. Such an
 * answer is the same for all, so it has a request id only where the client has sent one; all others
 * have one. Cache-Control: no-cache lets a client keep an answer and ask whether it still holds.
 */
#include "api/server/send.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_MEMORY_BYTES = 512 };

/* The responses that all answers from one document share. */
struct shared {
    struct MHD_Response *full;
    struct MHD_Response *not_modified; /* made when it is first wanted */
    bool has_headers;                  /* there was memory for those of `full` */
};

static const char PROBLEM_TYPE[] = "application/problem+json";
static const char REQUEST_ID_FIELD[] = "X-Request-Id";

/* A response over a text that nobody frees. libmicrohttpd asks for a pointer that may be written
 * through, and does not write. */
static struct MHD_Response *response_over(const char *text, size_t bytes)
{
    return MHD_create_response_from_buffer(bytes, (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
}

/* 503 for a request that there is no memory to answer. Made before that, and kept to the end. */
static struct MHD_Response *no_memory;

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

static bool add_document_headers(struct MHD_Response *response, const struct document *d)
{
    return add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, d->content_type) &&
           add_cache_headers(response, d->etag);
}

/* ---- what is attached to a document ---- */

static void release(void *responses)
{
    struct shared *take = responses;

    if (take->not_modified)
        MHD_destroy_response(take->not_modified);
    MHD_destroy_response(take->full);
    free(take);
}

/* The responses of this document, made when it is sent for the first time; NULL without memory. The
 * text belongs to the response from then on: an answer under way outlives the document. */
static struct shared *shared_of(struct document *d)
{
    struct shared *s;

    if (d->responses)
        return d->responses;
    s = calloc(1, sizeof(*s));
    if (s)
        s->full = MHD_create_response_from_buffer(d->bytes, (void *)(uintptr_t)d->text,
                                                  d->owned ? MHD_RESPMEM_MUST_FREE
                                                           : MHD_RESPMEM_PERSISTENT);
    if (!s || !s->full) {
        free(s);
        return NULL;
    }
    s->has_headers = add_document_headers(s->full, d);
    d->owned = NULL;
    d->responses = s;
    d->release = release;
    return s;
}

/* A response of its own: for a client that wants its request id back, or where the one to share has
 * no headers. */
static struct MHD_Response *copy_of(const struct document *d, const char *trace)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        d->bytes, (void *)(uintptr_t)d->text, MHD_RESPMEM_MUST_COPY);

    if (response && add_document_headers(response, d) &&
        (!*trace || add_header(response, REQUEST_ID_FIELD, trace)))
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

static enum MHD_Result send_not_modified(struct MHD_Connection *connection,
                                         const struct request *request, const struct document *d,
                                         struct shared *s)
{
    if (request->trace_given) {
        struct MHD_Response *own = make_not_modified(d->etag);
        if (own)
            add_header(own, REQUEST_ID_FIELD, request->trace);
        return send_and_free(connection, MHD_HTTP_NOT_MODIFIED, own);
    }
    if (!s->not_modified)
        s->not_modified = make_not_modified(d->etag);
    return s->not_modified ? MHD_queue_response(connection, MHD_HTTP_NOT_MODIFIED, s->not_modified)
                           : MHD_NO;
}

static enum MHD_Result send_document(struct MHD_Connection *connection,
                                     const struct request *request, struct document *d,
                                     unsigned *out_status)
{
    struct shared *s = shared_of(d);

    if (!s)
        return MHD_NO;
    if (reply_tag_matches(request->if_none_match, d->etag)) {
        *out_status = MHD_HTTP_NOT_MODIFIED;
        return send_not_modified(connection, request, d, s);
    }
    *out_status = MHD_HTTP_OK;
    if (request->trace_given || !s->has_headers)
        return send_and_free(connection, MHD_HTTP_OK,
                             copy_of(d, request->trace_given ? request->trace : ""));
    return MHD_queue_response(connection, MHD_HTTP_OK, s->full);
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

bool send_prepare(void)
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

enum MHD_Result send_reply(struct MHD_Connection *connection, const struct request *request,
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
