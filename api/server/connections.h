/* connections.h: the open connections, each with a clock, so that each ends in time. Used by the
 * serving thread alone. */
#ifndef REACH_API_SERVER_CONNECTIONS_H
#define REACH_API_SERVER_CONNECTIONS_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct connection {
    struct connection *before;
    struct connection *next;
    int fd;                          /* libmicrohttpd's, which closes it */
    nsec_t since;                    /* start of the current request, or end of the last */
    uint32_t answered;               /* requests */
    struct transaction *transaction; /* the server's, of the current request; NULL: none */
    bool in_request;                 /* from the request line to the end of the answer */
};

struct connections {
    struct connection *first; /* the newest connection */
    uint32_t count;
    uint32_t in_request;
};

/* A new connection. NULL without memory. */
struct connection *connections_add(struct connections *all, int fd, nsec_t now);
void connections_remove(struct connections *all, struct connection *take);

/* A request line has arrived. */
void connections_begin(struct connections *all, struct connection *client, nsec_t now);
/* Its answer is complete, or it was abandoned. */
void connections_end(struct connections *all, struct connection *client, nsec_t now);

/* Shuts down those whose clock has run for `deadline` or longer, and adds their number to
 * `*timed_out`; libmicrohttpd then closes them. Returns when to call this again, at most a 128th of
 * the deadline after the next one is due; 0: there is no connection. */
nsec_t connections_reap(const struct connections *all, nsec_t now, nsec_t deadline,
                        uint64_t *timed_out);

#endif
