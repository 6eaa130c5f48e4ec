/* reply.c: bodies of answers, and when a client has one already.
 *
 * Each GET that succeeds carries a strong ETag, so that a client may keep the answer and ask
 * cheaply whether it still holds (RFC 9110, sections 8.8.3 and 13.1.2). The tag of a fingerprint is
 * its id; other tags are a hash of the body.
 */
#include "api/handlers/reply.h"

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

void reply_json(struct reply *reply, unsigned http_status, json_t *take)
{
    reply_once(reply, http_status, document_new(take, NULL));
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
