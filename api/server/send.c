/* send.c: sends replies as responses of libmicrohttpd. A shared document keeps its finished
 * responses, 200 and 304, which count their own references. Shared responses are the same for every
 * client, so they have no request id. If the client sent an id, it gets a response of its own. All
 * other responses have a request id. Cache-Control: no-cache lets a client keep an answer and
 * revalidate it.
 */
#include "api/server/transaction.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NO_MEMORY_BYTES = 512 };

/* The responses that all answers from one document share. */
struct shared {
    struct MHD_Response *full;
    struct MHD_Response *not_modified; /* the 304; NULL until it is needed */
    bool has_headers;                  /* memory sufficed for the header fields of `full` */
};

/* The 503 for a request that cannot be answered for lack of memory. The response is made at the
 * start and never freed.
 */
static struct MHD_Response *no_memory;

/* libmicrohttpd requires a pointer to writable memory, but does not write. */
static struct MHD_Response *response_over(const char *text, size_t bytes,
                                          enum MHD_ResponseMemoryMode mode)
{
    return MHD_create_response_from_buffer(bytes, (void *)(uintptr_t)text, mode);
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

static bool add_reply_headers(struct MHD_Response *response, const struct reply *reply)
{
    const struct document *d = reply->document;
    char seconds[16];
    bool ok = !d || add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, d->content_type);

    if (d && d->etag[0] && reply->http_status == MHD_HTTP_OK)
        ok = ok && add_cache_headers(response, d->etag);
    else
        ok = ok && add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (reply->location[0])
        ok = ok && add_header(response, MHD_HTTP_HEADER_LOCATION, reply->location);
    if (reply->allow)
        ok = ok && add_header(response, MHD_HTTP_HEADER_ALLOW, reply->allow);
    if (reply->asks_token)
        ok =
            ok && add_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"reachd\"");
    if (reply->vary)
        ok = ok && add_header(response, MHD_HTTP_HEADER_VARY, reply->vary);
    for (const struct reply_field *f = reply->fields; f && f->name; f++)
        ok = ok && add_header(response, f->name, f->value);
    if (reply->close)
        ok = ok && add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (reply->retry_after_seconds > 0) {
        snprintf(seconds, sizeof(seconds), "%" PRIu32, reply->retry_after_seconds);
        ok = ok && add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    return ok;
}

/* Returns the response. If its header fields could not be added, frees it and returns NULL. */
static struct MHD_Response *finish(struct MHD_Response *take, bool has_headers)
{
    if (take && has_headers)
        return take;
    if (take)
        MHD_destroy_response(take);
    return NULL;
}

/* Makes a response without a body, with the fields that a cache needs. */
static struct MHD_Response *make_not_modified(const struct reply *reply)
{
    struct MHD_Response *response = response_over("", 0, MHD_RESPMEM_PERSISTENT);
    bool ok = response && add_cache_headers(response, reply->document->etag);

    if (reply->vary)
        ok = ok && add_header(response, MHD_HTTP_HEADER_VARY, reply->vary);
    return finish(response, ok);
}

/* ---- responses of a document ---- */

static void release(void *responses)
{
    struct shared *take = responses;

    if (take->not_modified)
        MHD_destroy_response(take->not_modified);
    MHD_destroy_response(take->full);
    free(take);
}

/* Returns the responses of this reply's document, made when it is sent for the first time. Returns
 * NULL if memory runs out. From then on the response owns the text, because an answer that is being
 * sent outlives the document. */
static struct shared *shared_of(struct document *d, const struct reply *reply)
{
    struct shared *s;

    if (d->responses)
        return d->responses;
    s = calloc(1, sizeof(*s));
    if (s)
        s->full = response_over(d->text, d->bytes,
                                d->owned ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!s || !s->full) {
        free(s);
        return NULL;
    }
    s->has_headers = add_reply_headers(s->full, reply);
    d->owned = NULL;
    d->responses = s;
    d->release = release;
    return s;
}

/* Returns the shared response of this reply, borrowed. Returns NULL if the reply needs its own
 * response. */
static struct MHD_Response *find_shared(const struct request *request, const struct reply *reply,
                                        bool not_modified)
{
    struct document *d = reply->is_shared && !request->trace_given ? reply->document : NULL;
    struct shared *s = d ? shared_of(d, reply) : NULL;

    if (!s)
        return NULL;
    if (!not_modified)
        return s->has_headers ? s->full : NULL;
    if (!s->not_modified)
        s->not_modified = make_not_modified(reply);
    return s->not_modified;
}

/* Makes a response with the text of a document, and takes the text if it can. */
static struct MHD_Response *response_of(struct document *d)
{
    const bool takes = d->owned && d->holders == 1;
    struct MHD_Response *response =
        response_over(d->text, d->bytes, takes ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_MUST_COPY);

    if (response && takes)
        d->owned = NULL;
    return response;
}

/* Makes a response for this reply alone; returns NULL if memory runs out. */
static struct MHD_Response *make_response(const struct request *request, const struct reply *reply,
                                          bool not_modified)
{
    struct document *d = reply->document;
    struct MHD_Response *response = NULL;
    bool ok = true;

    if (not_modified) {
        response = make_not_modified(reply);
    } else if (d || reply->is_empty) {
        response = d ? response_of(d) : response_over("", 0, MHD_RESPMEM_PERSISTENT);
        ok = response && add_reply_headers(response, reply);
    }
    if (response && ok && request->trace[0])
        ok = add_header(response, "X-Request-Id", request->trace);
    return finish(response, ok);
}

bool send_prepare(void)
{
    static char text[NO_MEMORY_BYTES];
    const struct status_info *info = status_info(STATUS_NO_MEMORY);

    if (no_memory)
        return true;
    int bytes = snprintf(text, sizeof(text),
                         "{\"type\":\"urn:reachd:problem:%s\",\"slug\":\"%s\",\"title\":\"%s\","
                         "\"status\":503,\"detail\":\"cannot answer this request: out of memory\","
                         "\"next_step\":\"%s\"}",
                         info->slug, info->slug, info->message, info->next_step);
    struct MHD_Response *made = response_over(text, (size_t)bytes, MHD_RESPMEM_PERSISTENT);

    no_memory = finish(
        made, made && add_header(made, MHD_HTTP_HEADER_CONTENT_TYPE, "application/problem+json") &&
                  add_header(made, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
                  add_header(made, MHD_HTTP_HEADER_RETRY_AFTER, "5"));
    return no_memory != NULL;
}

enum MHD_Result send_reply(struct MHD_Connection *connection, const struct request *request,
                           struct reply *take, unsigned *out_status)
{
    const struct document *d = take->http_status == MHD_HTTP_OK ? take->document : NULL;
    const bool not_modified = d && d->etag[0] && reply_tag_matches(request->if_none_match, d->etag);
    struct MHD_Response *shared = find_shared(request, take, not_modified);
    struct MHD_Response *own = shared ? NULL : make_response(request, take, not_modified);
    enum MHD_Result result = MHD_NO;

    *out_status = not_modified ? MHD_HTTP_NOT_MODIFIED : take->http_status;
    if (shared || own)
        result = MHD_queue_response(connection, *out_status, shared ? shared : own);
    if (own)
        MHD_destroy_response(own);
    if (result != MHD_YES && no_memory) {
        *out_status = MHD_HTTP_SERVICE_UNAVAILABLE;
        result = MHD_queue_response(connection, MHD_HTTP_SERVICE_UNAVAILABLE, no_memory);
    }
    if (result != MHD_YES)
        *out_status = 0;
    reply_clear(take);
    return result; /* MHD_NO closes the connection */
}
