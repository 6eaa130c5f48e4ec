/* desks.c: one HTTP server (api/server.h) and one thread a socket.
 *
 *     thread: serve what is ready, beat, sleep        watcher: has it moved? wake it
 *
 * They share the snapshot cell, the backend and what is counted; each renders and keeps documents
 * of its own. Places are shared out among all of them first, since files are the process's.
 */
#include "desks.h"

#include "api/server/server.h"
#include "api/handlers/stats.h"
#include "base/pulse.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DESKS_UNIX_CONNECTIONS = 256 };

struct desk {
    struct api_server *server; /* the thread's, which frees it */
    pthread_t thread;
    struct pulse pulse;
    atomic_bool stop;
    enum listen_role role;
    char address[LISTEN_TEXT_BYTES];
};

struct desks {
    struct stats stats;
    uint32_t count;
    struct desk desk[LISTEN_MAX];
};

_Static_assert((int)LISTEN_MAX <= (int)API_MAX_LISTENERS, "every socket can be served");

static void *desk_main(void *self)
{
    static const char *const names[] = {
        [LISTEN_TCP] = "http", [LISTEN_UNIX] = "http-unix", [LISTEN_HEALTH] = "http-health"};
    struct desk *d = self;

    pthread_setname_np(pthread_self(), names[d->role]);
    pulse_adopt(&d->pulse);
    while (!atomic_load(&d->stop)) {
        pulse_beat();
        api_server_wait(d->server);
    }
    api_server_finish(d->server);
    pulse_adopt(NULL);
    return NULL;
}

static void desks_places(const struct listen_set *sockets, const struct desks_options *options,
                         struct api_listener *out)
{
    for (uint32_t i = 0; i < sockets->count; i++) {
        out[i] = (struct api_listener){.fd = sockets->fds[i]};
        switch (sockets->roles[i]) {
        case LISTEN_HEALTH:
            out[i].audience = API_FOR_PROBES;
            break;
        case LISTEN_UNIX:
            out[i].connection_limit = DESKS_UNIX_CONNECTIONS;
            break;
        case LISTEN_TCP:
            out[i].connection_limit = options->max_connections;
            break;
        }
    }
    api_share_places(out, sockets->count);
}

/* Opens the next desk for this socket. On failure the socket is still the caller's, or closed where
 * `*out_taken` says so. */
static enum status desks_add(struct desks *desks, const struct desks_options *options,
                             const struct api_listener *listener, bool *out_taken, struct err *err)
{
    const struct api_options api = {.listeners = {*listener},
                                    .listen_count = 1,
                                    .request_deadline_ns = options->request_deadline_ns,
                                    .daemon_version = options->daemon_version,
                                    .token = options->token,
                                    .stats = &desks->stats};
    struct desk *d = &desks->desk[desks->count];
    enum status status = api_server_new(&api, options->cell, options->backend, &d->server, err);

    *out_taken = !status;
    if (status) {
        return status;
    }
    int error = pthread_create(&d->thread, NULL, desk_main, d);

    if (error) {
        api_server_free(d->server);
        return err_set(err, STATUS_NO_MEMORY, "no thread to serve %s: %s", d->address,
                       strerror(error));
    }
    desks->count++;
    return STATUS_OK;
}

enum status desks_open(struct listen_set *sockets, const struct desks_options *options,
                       struct desks **out, struct err *err)
{
    struct api_listener listeners[LISTEN_MAX];
    struct desks *desks = calloc(1, sizeof *desks);
    enum status status = STATUS_OK;

    *out = NULL;
    if (!desks) {
        return err_set(err, STATUS_NO_MEMORY, "no memory to serve");
    }
    desks->stats.started_at = clock_wall_seconds();
    desks_places(sockets, options, listeners);
    for (uint32_t i = 0; i < sockets->count; i++) {
        struct desk *d = &desks->desk[desks->count];
        bool taken = false;

        d->role = sockets->roles[i];
        memcpy(d->address, sockets->addresses[i], sizeof d->address);
        if (!status) {
            status = desks_add(desks, options, &listeners[i], &taken, err);
        }
        if (!taken) {
            close(sockets->fds[i]);
        }
    }
    sockets->count = 0;
    if (status) {
        desks_close(desks);
        return status;
    }
    *out = desks;
    return STATUS_OK;
}

bool desks_move(struct desks *desks, char *out_stuck, size_t size)
{
    bool all = true;

    for (uint32_t i = 0; i < desks->count; i++) {
        struct desk *d = &desks->desk[i];
        const bool moved = pulse_has_moved(&d->pulse);
        const bool reads = api_server_db_thread_moves(d->server);

        if (all && (!moved || !reads)) {
            all = false;
            snprintf(out_stuck, size, "the thread that %s %s", moved ? "reads for" : "serves",
                     d->address);
        }
        api_server_wake(d->server);
    }
    return all;
}

void desks_set_token(struct desks *desks, const char *token)
{
    for (uint32_t i = 0; i < desks->count; i++) {
        api_server_set_token(desks->desk[i].server, token);
    }
}

void desks_close(struct desks *take)
{
    if (!take) {
        return;
    }
    for (uint32_t i = 0; i < take->count; i++) {
        atomic_store(&take->desk[i].stop, true);
        api_server_wake(take->desk[i].server);
    }
    for (uint32_t i = 0; i < take->count; i++) {
        pthread_join(take->desk[i].thread, NULL);
        api_server_free(take->desk[i].server);
    }
    free(take);
}
