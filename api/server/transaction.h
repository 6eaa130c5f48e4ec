/* exchange.h: one request from its first line to the end of its answer, as libmicrohttpd calls it.
 */
#ifndef REACH_API_EXCHANGE_H
#define REACH_API_EXCHANGE_H

#include "api/handlers/handlers.h"

struct exchange;

/* What one call of the access handler brings. Texts are libmicrohttpd's. */
struct exchange_call {
    struct MHD_Connection *connection;
    const char *url;
    const char *method;
    const char *http_version;
    const char *data;
    size_t *data_bytes;
};

/* Begins with the request target. NULL without memory; then the connection is closed. */
struct exchange *exchange_new(const char *target);
void exchange_free(struct exchange *take);

/* One call of the access handler: the header fields are there; a piece of body; the end of it. */
enum MHD_Result exchange_step(struct exchange *x, struct handlers_context *c,
                              const struct exchange_call *call);

#endif
