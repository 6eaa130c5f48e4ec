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

#endif
