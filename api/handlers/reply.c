/* reply.c: bodies and tags of answers.
 *
 * Each GET that succeeds carries a strong ETag, so that a client may keep the answer and ask
 * cheaply whether it still holds (RFC 9110, sections 8.8.3 and 13.1.2). A fingerprint's tag is its
 * id; other tags are a hash of the body.
 */
#include "api/handlers/reply.h"

#include "base/json_out.h"

#include <stdlib.h>
#include <string.h>

static const char JSON_TYPE[] = "application/json";

void reply_json(struct reply *reply, unsigned http_status, json_t *take)
{
    size_t bytes = 0;
    char *text = json_out_render(take, &bytes);

    json_decref(take);
    if (!text) {
        reply_no_memory(reply);
        return;
    }
    reply_text(reply, JSON_TYPE, text, bytes);
    reply->http_status = http_status;
}

void reply_text(struct reply *reply, const char *content_type, char *take, size_t bytes)
{
    reply_clear(reply);
    reply->http_status = HTTP_OK;
    reply->content_type = content_type;
    reply->body = take;
    reply->body_bytes = bytes;
    document_tag(take, bytes, reply->etag);
}

void reply_document(struct reply *reply, struct document *document)
{
    document_hold(document);
    reply_clear(reply);
    reply->http_status = HTTP_OK;
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

void reply_no_memory(struct reply *reply)
{
    reply_clear(reply);
    reply->http_status = HTTP_SERVICE_UNAVAILABLE;
}

void reply_clear(struct reply *take)
{
    free(take->body);
    document_free(take->document);
    *take = (struct reply){.http_status = 0};
}
