/* transaction.h: one request from its first line to the end of its answer, as libmicrohttpd calls
 * it.
 */
#ifndef REACH_API_SERVER_TRANSACTION_H
#define REACH_API_SERVER_TRANSACTION_H

#include "api/handlers/handlers.h"

#include <microhttpd.h>

struct transaction;

/* The arguments of one call of the access handler. Texts are libmicrohttpd's. */
struct transaction_call {
    struct MHD_Connection *connection;
    const char *url;
    const char *method;
    const char *http_version;
    const char *data;
    size_t *data_bytes;
};

/* Begins at the request target. NULL without memory; then the connection is closed. */
struct transaction *transaction_new(const char *target);
void transaction_free(struct transaction *take);

/* One call of the access handler: the header fields are there; a piece of body; the end of it. */
enum MHD_Result transaction_step(struct transaction *x, struct handlers_context *c,
                                 const struct transaction_call *call);

/* ---- refuses requests that two servers in a row could read differently (guard.c) ---- */

/* Checks the header fields before any body is read. Those that matter are borrowed into `request`.
 * Fills `out` on false. */
bool guard_check(struct MHD_Connection *connection, const char *http_version,
                 struct request *request, struct problem *out);
/* Checks that there are only blanks between the target, as libmicrohttpd passes it, and the version
 * after it: a target with a NUL in it was cut there. `url` and `version` are arguments of the
 * access handler, `target_bytes` is the length of the target. */
bool guard_check_target(const char *url, size_t target_bytes, const char *version,
                        struct problem *out);

/* The problem of a body over REQUEST_MAX_BODY_BYTES. */
void guard_too_large(struct problem *out);

/* ---- sends a reply through libmicrohttpd (send.c) ---- */

/* Queues the answer: 304 without a body if the request says that it has this tag already. Clears
 * the reply. `*out_status` is what was sent, 0 if the connection is closed instead. */
enum MHD_Result send_reply(struct MHD_Connection *connection, const struct request *request,
                           struct reply *take, unsigned *out_status);
/* Prepares what send_reply answers without memory. Any number of times, one thread at a time. */
bool send_prepare(void);

#endif
