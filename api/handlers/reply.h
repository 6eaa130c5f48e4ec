/* reply.h: the reply of a handler: a status, a document as its body, and header fields. Used by one
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
        *document;  /* a held reference. NULL if the body is empty (is_empty) or memory ran out */
    bool is_shared; /* other replies of this snapshot share the document */
    bool is_empty;
    bool is_deferred; /* ignore the other members and dispatch in the db_thread */
    char location[REPLY_LOCATION_BYTES]; /* "": none */
    const char *allow;                   /* static; NULL if there is none */
    const char *vary; /* static: request field that chose the document; may be NULL */
    const struct reply_field *fields; /* static: more fields, ended by a NULL name; may be NULL */
    bool asks_token;                  /* for 401: names the kind of credential */
    bool close;                       /* close the connection after this answer */
    uint32_t retry_after_seconds;     /* 0: none */
};

/* Makes a 200 whose document other replies share. A NULL document makes a 503 without a body, here
 * and in the functions below. */
void reply_document(struct reply *reply, struct document *take);
/* Makes a 200 with a body of this reply alone. */
void reply_once(struct reply *reply, unsigned http_status, struct document *take);
/* Does the same with a text, which it ends. */
void reply_json(struct reply *reply, unsigned http_status, struct json_writer *t);
void reply_empty(struct reply *reply, unsigned http_status);
void reply_clear(struct reply *take);

/* Makes the reply a problem document. */
void reply_problem(struct reply *reply, const struct request *request,
                   const struct problem *problem);
/* Makes the reply a problem document of this kind with this detail. */
void reply_refusal(struct reply *reply, const struct request *request, const struct problem *kind,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Does the same for an error: its sentence, its hint, and the parameter that it names. */
void reply_err(struct reply *reply, const struct request *request, const struct err *err);
/* Does the same with an HTTP status that differs from the default of err->status. */
void reply_err_as(struct reply *reply, const struct request *request, const struct err *err,
                  unsigned http_status);

/* Returns whether the value of If-None-Match names this tag (with quotes). NULL names no tag. */
bool reply_tag_matches(const char *if_none_match, const char *etag);

#endif
