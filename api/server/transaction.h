/* transaction.h: one request from its first line to the end of its answer, as libmicrohttpd calls
 * it.
 */
#pragma once

#include "api/handlers/handlers.h"

#include <microhttpd.h>

struct transaction;

/* The arguments of one call of the access handler. libmicrohttpd owns the texts. */
struct transaction_call {
    struct MHD_Connection *connection;
    const char *url;
    const char *method;
    const char *http_version;
    const char *data;
    size_t *data_bytes;
};

/* Begins at the request target. Returns NULL if memory runs out; the connection is then closed. */
struct transaction *transaction_new(const char *target);
void transaction_free(struct transaction *take);

/* Handles one call of the access handler: after the header fields, for a piece of the body, or at
 * its end. */
enum MHD_Result transaction_step(struct transaction *x, struct handlers_context *c,
                                 const struct transaction_call *call);

/* ---- refusal of requests that two servers could read differently (guard.c) ---- */

/* Checks the header fields before any body is read. The needed fields are borrowed into `request`.
 * Fills `out` if it returns false. */
bool guard_check(struct MHD_Connection *connection, const char *http_version,
                 struct request *request, struct problem *out);
/* Checks that only blanks separate the target passed by libmicrohttpd from the version. Otherwise
 * the target contains a NUL and was cut there. `url` and `version` are arguments of the access
 * handler, `target_bytes` is the length of the target. */
bool guard_check_target(const char *url, size_t target_bytes, const char *version,
                        struct problem *out);

/* Makes the problem of a body over REQUEST_MAX_BODY_BYTES. */
void guard_too_large(struct problem *out);

/* ---- replies through libmicrohttpd (send.c) ---- */

/* Queues the answer, which is 304 without a body if If-None-Match contains the tag of the document.
 * Clears the reply. `*out_status` is the status that was sent, or 0 if the connection is closed
 * instead. */
enum MHD_Result send_reply(struct MHD_Connection *connection, const struct request *request,
                           struct reply *take, unsigned *out_status);
/* Prepares the answer that send_reply sends if memory runs out. The function may be called again,
 * by one thread at a time. */
bool send_prepare(void);
