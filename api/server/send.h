/* send.h: a reply onto the wire. Serving thread only. */
#ifndef REACH_API_SEND_H
#define REACH_API_SEND_H

#include "api/handlers/reply.h"

#include <microhttpd.h>

/* Queues the answer: 304 without a body where the request says that it has this tag already. Clears
 * the reply. `*out_status` is what was sent, 0 where the connection is closed instead. */
enum MHD_Result send_reply(struct MHD_Connection *connection, const struct request *request,
                           struct reply *take, unsigned *out_status);
/* Makes ready what send_reply answers where memory ends. Any number of times, one thread at a time.
 */
bool send_prepare(void);

#endif
