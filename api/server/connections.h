/* connections.h: the open connections, each with a clock that ends the connection in time. Only the
 * serving thread uses them. */
#pragma once

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct connection {
    struct connection *before;
    struct connection *next;
    int fd;                          /* owned by libmicrohttpd, which closes it */
    nsec_t since;                    /* start of the current request, or end of the last one */
    uint32_t answered;               /* requests */
    struct transaction *transaction; /* current request, set by the server; else NULL */
    bool in_request;                 /* true from the request line to the end of the answer */
};

struct connections {
    struct connection *first; /* the newest connection */
    uint32_t count;
    uint32_t in_request;
};

/* Adds a connection. Returns NULL if memory runs out. */
struct connection *connections_add(struct connections *all, int fd, nsec_t now);
void connections_remove(struct connections *all, struct connection *take);

/* Reports that a request line has arrived. */
void connections_begin(struct connections *all, struct connection *client, nsec_t now);
/* Reports that the answer to the request is complete, or that the request was abandoned. */
void connections_end(struct connections *all, struct connection *client, nsec_t now);

/* Shuts down the connections whose clock has run for `deadline` or longer, and adds their number to
 * `*timed_out`. libmicrohttpd then closes them. Returns the time of the next call, at most a 128th
 * of the deadline after the next connection is due. Returns 0 if there is no connection. */
nsec_t connections_reap(const struct connections *all, nsec_t now, nsec_t deadline,
                        uint64_t *timed_out);
