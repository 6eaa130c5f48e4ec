/* reply.h: what a handler answers.
 *
 * A reply either brings a body of its own, or names a document: a body rendered earlier, with its
 * headers, which many answers share.
 */
#ifndef REACH_API_REPLY_H
#define REACH_API_REPLY_H

#include "api/decode/problem.h"
#include "api/decode/request.h"
#include "api/handlers/document.h"
#include "api/http_status.h"

enum { REPLY_LOCATION_BYTES = 64 };

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
    char etag[DOCUMENT_ETAG_BYTES];      /* with its quotes; "": none */
    char location[REPLY_LOCATION_BYTES]; /* "": none */
    const char *allow;                   /* static; NULL: none */
    bool varies_by_accept;
    bool asks_token;              /* 401: says which kind of credential opens this */
    bool is_empty;                /* no body on purpose */
    bool close;                   /* the connection, after this answer */
    uint32_t retry_after_seconds; /* 0: none */
    struct document *document;    /* instead of a body; held */
    handlers_fn *deferred;        /* instead of all: to be called where it may read the database */
};

/* Takes the value and makes it the body, with a tag made of its bytes. NULL, or no memory: as
 * reply_no_memory. */
void reply_json(struct reply *reply, unsigned http_status, json_t *take);
/* The same with a finished text from malloc. `content_type` is static. */
void reply_text(struct reply *reply, const char *content_type, char *take, size_t bytes);
void reply_document(struct reply *reply, struct document *document);
/* No body. */
void reply_empty(struct reply *reply, unsigned http_status);
/* 503, and no body either: there is no memory for one. */
void reply_no_memory(struct reply *reply);
void reply_clear(struct reply *take);

/* Makes the reply a problem document (reply_problem.c), */
void reply_problem(struct reply *reply, const struct request *request,
                   const struct problem *problem);
/* with a status and a sentence, */
void reply_failure(struct reply *reply, const struct request *request, enum status status,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* or with those of an error, and the parameter that it names. */
void reply_err(struct reply *reply, const struct request *request, const struct err *err);

/* Does the value of If-None-Match name this tag (with quotes)? NULL names nothing. */
bool reply_tag_matches(const char *if_none_match, const char *etag);

#endif
