/* desks.h: a thread for each socket that is served. Whoever keeps the thread of the TCP port busy
 * keeps neither health probes waiting nor those who look after the node over the Unix socket. */
#ifndef REACH_DESKS_H
#define REACH_DESKS_H

#include "api/handlers/backend.h"
#include "base/clock.h"
#include "listen.h"
#include "snapshot/snapshot.h"

struct desks;

struct desks_options {
    struct snapshot_cell *cell;        /* borrowed, as the backend, until desks_close */
    const struct api_backend *backend; /* whose slots may be called from several threads */
    const char *daemon_version;        /* static string */
    const char *token;                 /* copied; "": none */
    nsec_t request_deadline_ns;        /* 0: 10 s */
    uint32_t max_connections;          /* of each TCP socket */
};

/* Serves all sockets of the set, which are the desks' from then on, also where it fails. */
enum status desks_open(struct listen_set *sockets, const struct desks_options *options,
                       struct desks **out, struct err *err);
/* Did every thread move since this was asked last? Wakes them, so that they can. Where one did not,
 * `out_stuck` says which. For one watcher. */
bool desks_move(struct desks *desks, char *out_stuck, size_t size);
/* Another token for what changes something, for every request that comes after. */
void desks_set_token(struct desks *desks, const char *token);
/* Finishes answers under way (at most 1 s) and closes everything. NULL is fine. */
void desks_close(struct desks *take);

#endif
