/* send.h: sends a reply through libmicrohttpd. Serving thread only. */
#ifndef REACH_API_SERVER_SEND_H
#define REACH_API_SERVER_SEND_H

#include "api/handlers/reply.h"

#include <microhttpd.h>

/* Queues the answer: 304 without a body if the request says that it has this tag already. Clears
 * the reply. `*out_status` is what was sent, 0 if the connection is closed instead. */
enum MHD_Result send_reply(struct MHD_Connection *connection, const struct request *request,
                           struct reply *take, unsigned *out_status);
/* Prepares what send_reply answers without memory. Any number of times, one thread at a time. */
bool send_prepare(void);

#endif
