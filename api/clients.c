/* clients.c: cuts connections that take too long.
 *
 * libmicrohttpd's own timeout counts silence, so a client that sends one byte a second holds its
 * place for ever. Here every connection has one clock that only a complete answer sets back:
 *
 *   opened ----- request ----- answer | idle ----- request line ----- rest ----- answer | idle ...
 *   ^ clock starts                    ^ starts     ^ starts again
 *
 * A first request must be over within the deadline from the opening of the connection. An idle
 * connection is closed after the deadline too; the time it was idle is not counted against
 * the request that follows. So nobody holds a place for more than twice the deadline without
 * getting a complete answer.
 *
 * A list in order of these clocks: who is touched goes to the end, so the front is always due
 * first and reaping costs nothing for the others.
 */
#include "api/clients.h"

#include <stdlib.h>
#include <sys/socket.h>

static void unlink_client(struct clients *all, struct client *c)
{
    if (c->older)
        c->older->newer = c->newer;
    else
        all->oldest = c->newer;
    if (c->newer)
        c->newer->older = c->older;
    else
        all->newest = c->older;
    c->older = NULL;
    c->newer = NULL;
}

static void link_newest(struct clients *all, struct client *c, nsec_t now)
{
    c->since = now;
    c->older = all->newest;
    c->newer = NULL;
    if (all->newest)
        all->newest->newer = c;
    else
        all->oldest = c;
    all->newest = c;
}

struct client *clients_add(struct clients *all, int fd, nsec_t now)
{
    struct client *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->fd = fd;
    link_newest(all, c, now);
    all->count++;
    return c;
}

void clients_remove(struct clients *all, struct client *take)
{
    if (!take)
        return;
    if (take->in_request)
        all->in_request--;
    unlink_client(all, take);
    all->count--;
    free(take);
}

static void touch(struct clients *all, struct client *c, nsec_t now)
{
    unlink_client(all, c);
    link_newest(all, c, now);
}

void clients_begin(struct clients *all, struct client *client, nsec_t now)
{
    if (!client->in_request)
        all->in_request++;
    client->in_request = true;
    if (client->answered > 0)
        touch(all, client, now);
}

void clients_end(struct clients *all, struct client *client, nsec_t now)
{
    if (client->in_request)
        all->in_request--;
    client->in_request = false;
    client->answered++;
    touch(all, client, now);
}

nsec_t clients_reap(struct clients *all, nsec_t now, nsec_t deadline, uint64_t *cut)
{
    struct client *c = all->oldest;
    uint32_t left = all->count;

    while (c && left-- > 0 && now - c->since >= deadline) {
        struct client *next = c->newer;
        shutdown(c->fd, SHUT_RDWR);
        *cut += 1;
        touch(all, c, now); /* should it linger, it is shut down again */
        c = next;
    }
    return all->oldest ? all->oldest->since + deadline : 0;
}
