/* connections.c: ends connections that take too long.
 *
 * libmicrohttpd's own timeout counts silence, so a client that sends one byte per second holds its
 * slot indefinitely. Here every connection has one clock that only a complete answer resets:
 *
 *   opened ----- request ----- answer | idle ----- request line ----- rest ----- answer | idle ...
 *   ^ clock starts                    ^ starts     ^ starts again
 *
 * A first request must be complete within the deadline from the opening of the connection. An idle
 * connection is closed after the deadline too; its idle time does not count against the next
 * request. So no client holds a slot for more than twice the deadline without a complete answer.
 *
 * A clock is one number, so a request writes only to its own connection. All connections are
 * scanned when one may be due. This is rare enough to cost little compared with the requests.
 */
#include "api/server/connections.h"

#include <stdlib.h>
#include <sys/socket.h>

/* A connection ends late by at most one 128th of the deadline. */
enum { CHECKS_PER_DEADLINE = 128 };

struct connection *connections_add(struct connections *all, int fd, nsec_t now)
{
    struct connection *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->fd = fd;
    c->since = now;
    c->next = all->first;
    if (c->next)
        c->next->before = c;
    all->first = c;
    all->count++;
    return c;
}

void connections_remove(struct connections *all, struct connection *take)
{
    if (!take)
        return;
    if (take->in_request)
        all->in_request--;
    if (take->before)
        take->before->next = take->next;
    else
        all->first = take->next;
    if (take->next)
        take->next->before = take->before;
    all->count--;
    free(take);
}

void connections_begin(struct connections *all, struct connection *client, nsec_t now)
{
    if (!client->in_request)
        all->in_request++;
    client->in_request = true;
    if (client->answered > 0)
        client->since = now;
}

void connections_end(struct connections *all, struct connection *client, nsec_t now)
{
    if (client->in_request)
        all->in_request--;
    client->in_request = false;
    client->answered++;
    client->since = now;
}

nsec_t connections_reap(const struct connections *all, nsec_t now, nsec_t deadline,
                        uint64_t *timed_out)
{
    const nsec_t soonest = now + deadline / CHECKS_PER_DEADLINE;
    nsec_t due = now + deadline;

    for (struct connection *c = all->first; c; c = c->next) {
        if (now - c->since >= deadline) {
            shutdown(c->fd, SHUT_RDWR);
            *timed_out += 1;
            c->since = now; /* a connection that lingers is shut down again */
        }
        if (c->since + deadline < due)
            due = c->since + deadline;
    }
    if (!all->first)
        return 0;
    return due > soonest ? due : soonest;
}
