/* reply.h: the reply of a handler: a status, a document as its body, and header fields. Only one
 * thread at a time may use a reply. */
#pragma once

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
        *document;  /* a held reference; NULL if the body is empty (is_empty) or memory ran out */
    bool is_shared; /* other replies of this snapshot share the document */
    bool is_empty;
    bool is_deferred; /* the db_thread must answer; the other members have no meaning */
    char location[REPLY_LOCATION_BYTES]; /* value of Location; "" if it is not sent */
    const char *allow;                   /* value of Allow, static; NULL if it is not sent */
    const char *vary; /* static: name of the request field that selected the document, or NULL */
    const struct reply_field *fields; /* static: more fields, ended by a NULL name; may be NULL */
    bool asks_token;                  /* the header fields request a token (for 401) */
    bool close;                       /* the connection is closed after this answer */
    uint32_t retry_after_seconds;     /* value of Retry-After; 0 if it is not sent */
};

/* Makes a 200 whose document other replies share. A NULL document makes a 503 without a body, here
 * and in the functions below. */
void reply_document(struct reply *reply, struct document *take);
/* Makes a reply with this status and a document that no other reply shares. */
void reply_once(struct reply *reply, unsigned http_status, struct document *take);
/* Makes such a reply of the text of a writer, and ends the text. */
void reply_json(struct reply *reply, unsigned http_status, struct json_writer *t);
void reply_empty(struct reply *reply, unsigned http_status);
void reply_clear(struct reply *take);

/* Makes the reply a problem document. */
void reply_problem(struct reply *reply, const struct request *request,
                   const struct problem *problem);
/* Makes the reply a problem document like `kind`, with a formatted detail. */
void reply_refusal(struct reply *reply, const struct request *request, const struct problem *kind,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Makes the reply a problem document of an error, with its sentence, its hint and the parameter
 * that it names. */
void reply_err(struct reply *reply, const struct request *request, const struct err *err);
/* Makes such a reply with an HTTP status that differs from the default of err->status. */
void reply_err_as(struct reply *reply, const struct request *request, const struct err *err,
                  unsigned http_status);

/* Returns whether the value of If-None-Match names this tag (with quotes). NULL names no tag. */
bool reply_tag_matches(const char *if_none_match, const char *etag);
