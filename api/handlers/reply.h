/* reply.h: what a handler answers, and how it gets onto the wire.
 *
 * A reply either brings a body of its own, or names a document: a body rendered earlier, with its
 * headers, which many answers share.
 */
#ifndef REACH_API_REPLY_H
#define REACH_API_REPLY_H

#include "api/decode/request.h"

#include <jansson.h>
#include <microhttpd.h>

enum { REPLY_ETAG_BYTES = 40, REPLY_LOCATION_BYTES = 64 };

struct document; /* one rendered body with its tag; never changes */
struct handlers_context;
struct reply;

/* Fills the reply to a request (handlers.h). */
typedef void handlers_fn(struct handlers_context *c, const struct request *request,
                         struct reply *reply);

struct reply {
    unsigned http_status;
    const char *content_type; /* static */
    char *body;               /* owned, from malloc */
    size_t body_bytes;
    char etag[REPLY_ETAG_BYTES];         /* with its quotes; "": none */
    char location[REPLY_LOCATION_BYTES]; /* "": none */
    const char *allow;                   /* static; NULL: none */
    bool varies_by_accept;
    bool asks_token;              /* 401: says which kind of credential opens this */
    bool is_empty;                /* no body on purpose */
    bool close;                   /* the connection, after this answer */
    uint32_t retry_after_seconds; /* 0: none */
    struct document *document;    /* instead of a body; held */
    handlers_fn *later;           /* instead of all: to be called where it may read the database */
};

/* Takes the value and makes it the body, with a tag made of its bytes. NULL, or no memory, makes
 * the reply a problem instead. */
void reply_json(struct reply *reply, const struct request *request, unsigned http_status,
                json_t *take);
/* The same with a finished text from malloc. `content_type` is static. */
void reply_text(struct reply *reply, const char *content_type, char *take, size_t bytes);
void reply_document(struct reply *reply, struct document *document);
/* No body. */
void reply_empty(struct reply *reply, unsigned http_status);

/* Queues the answer: 304 without a body where the request says that it has this tag already. Clears
 * the reply. `*out_status` is what was sent, 0 where the connection is closed instead. */
enum MHD_Result reply_send(struct MHD_Connection *connection, const struct request *request,
                           struct reply *take, unsigned *out_status);
void reply_clear(struct reply *take);
/* Makes ready what reply_send answers where memory ends. Any number of times, one thread at a time.
 */
bool reply_prepare(void);

/* Documents are shared and count who holds them. document_new and its like make one that the caller
 * holds; document_free lets go. Renders a document. `tag` is its ETag without quotes; NULL: made of
 * its bytes. Takes the value. NULL without memory or value. */
struct document *document_new(json_t *take, const char *tag);
/* The same from a text that outlives everything. */
struct document *document_new_static(const char *content_type, const char *text, size_t bytes);
/* The same from a finished text from malloc: JSON, or of another type. */
struct document *document_new_text(char *take, size_t bytes, const char *tag);
struct document *document_new_typed(const char *content_type, char *take, size_t bytes,
                                    const char *tag);
void document_hold(struct document *document);
/* Answers under way that use it stay whole. NULL is fine. */
void document_free(struct document *take);

/* Does the value of If-None-Match name this tag (with quotes)? NULL names nothing. */
bool reply_tag_matches(const char *if_none_match, const char *etag);

#endif
