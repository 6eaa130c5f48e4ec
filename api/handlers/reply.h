/* reply.h: what a handler answers: a status, a document as its body, and header fields. Used by one
 * thread at a time. */
#ifndef REACH_API_HANDLERS_REPLY_H
#define REACH_API_HANDLERS_REPLY_H

#include "api/decode/problem.h"
#include "api/decode/request.h"
#include "api/handlers/document.h"
#include "api/http_status.h"

enum { REPLY_LOCATION_BYTES = 64 };

struct reply_field {
    const char *name;
    const char *value;
};

struct reply {
    unsigned http_status;
    struct document
        *document;  /* held. NULL: no body, on purpose (is_empty) or for want of memory */
    bool is_shared; /* the document: other replies of this snapshot have the same */
    bool is_empty;
    bool is_deferred;                    /* instead of all this: dispatch it in the db_thread */
    char location[REPLY_LOCATION_BYTES]; /* "": none */
    const char *allow;                   /* static; NULL: none */
    const char *vary; /* static: the request field that chose the document; NULL: none */
    const struct reply_field *fields; /* static: further ones, until a name is NULL; NULL: none */
    bool asks_token;                  /* 401: names the kind of credential */
    bool close;                       /* the connection, after this answer */
    uint32_t retry_after_seconds;     /* 0: none */
};

/* A 200 that other replies share. NULL, as in all that follows: 503 without a body. */
void reply_document(struct reply *reply, struct document *take);
/* A body of this reply alone. */
void reply_once(struct reply *reply, unsigned http_status, struct document *take);
/* The same from a text, which it ends. */
void reply_json(struct reply *reply, unsigned http_status, struct json_writer *t);
void reply_empty(struct reply *reply, unsigned http_status);
void reply_clear(struct reply *take);

/* Makes the reply a problem document, */
void reply_problem(struct reply *reply, const struct request *request,
                   const struct problem *problem);
/* of this kind with this detail, */
void reply_refusal(struct reply *reply, const struct request *request, const struct problem *kind,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for an error: its sentence, its hint, and the parameter that it names. */
void reply_err(struct reply *reply, const struct request *request, const struct err *err);
/* The same with another HTTP status than err->status stands for. */
void reply_err_as(struct reply *reply, const struct request *request, const struct err *err,
                  unsigned http_status);

/* Does the value of If-None-Match name this tag (with quotes)? NULL names nothing. */
bool reply_tag_matches(const char *if_none_match, const char *etag);

#endif
