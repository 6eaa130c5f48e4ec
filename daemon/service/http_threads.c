/* http_threads.c: runs one HTTP server (api/server.h) and one thread per socket.
 *
 *     thread: serve what is ready, beat, sleep        watcher: check the heartbeat, wake the thread
 *
 * The threads share the snapshot cell, the backend and the counters. Each thread renders and caches
 * its own documents. Connection slots are divided among the threads first, because file descriptors
 * belong to the process.
 */
#include "service/http_threads.h"

#include "api/server/server.h"
#include "api/handlers/stats.h"
#include "base/heartbeat.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HTTP_THREADS_UNIX_CONNECTIONS = 256 };

struct http_thread {
    struct api_server *server; /* owned by the thread, which frees it */
    pthread_t thread;
    struct heartbeat heartbeat;
    atomic_bool stop;
    enum listen_role role;
    char address[LISTEN_TEXT_BYTES];
};

struct http_threads {
    struct stats stats;
    uint32_t count;
    struct http_thread threads[LISTEN_MAX];
};

_Static_assert((int)LISTEN_MAX <= (int)API_MAX_LISTENERS, "every socket can be served");

static void *http_threads_main(void *self)
{
    static const char *const names[] = {
        [LISTEN_TCP] = "http", [LISTEN_UNIX] = "http-unix", [LISTEN_HEALTH] = "http-health"};
    struct http_thread *d = self;

    pthread_setname_np(pthread_self(), names[d->role]);
    heartbeat_adopt(&d->heartbeat);
    while (!atomic_load(&d->stop)) {
        heartbeat_beat();
        api_server_wait(d->server);
    }
    api_server_finish(d->server);
    heartbeat_adopt(NULL);
    return NULL;
}

static enum status http_threads_connection_slots(const struct listen_set *sockets,
                                                 const struct http_threads_options *options,
                                                 struct api_listener *out, struct err *err)
{
    for (uint32_t i = 0; i < sockets->count; i++) {
        out[i] = (struct api_listener){.fd = sockets->fds[i]};
        switch (sockets->roles[i]) {
        case LISTEN_HEALTH:
            out[i].role = API_FOR_PROBES;
            break;
        case LISTEN_UNIX:
            out[i].connection_limit = HTTP_THREADS_UNIX_CONNECTIONS;
            break;
        case LISTEN_TCP:
            out[i].connection_limit = options->max_connections;
            break;
        }
    }
    return api_share_slots(out, sockets->count, err);
}

/* Starts the next thread for socket `i` of the set, and removes the socket from the set. */
static enum status http_threads_add(struct http_threads *http_threads,
                                    const struct http_threads_options *options,
                                    const struct api_listener *listener, struct listen_set *sockets,
                                    uint32_t i, struct err *err)
{
    const struct api_options api = {.listeners = {*listener},
                                    .listen_count = 1,
                                    .request_deadline_ns = options->request_deadline_ns,
                                    .daemon_version = options->daemon_version,
                                    .token = options->token,
                                    .stats = &http_threads->stats};
    struct http_thread *d = &http_threads->threads[http_threads->count];
    enum status status = api_server_new(&api, options->cell, options->backend, &d->server, err);

    if (status)
        return status;
    sockets->fds[i] = -1;
    d->role = sockets->roles[i];
    memcpy(d->address, sockets->addresses[i], sizeof d->address);
    int error = pthread_create(&d->thread, NULL, http_threads_main, d);

    if (error) {
        api_server_free(d->server);
        return err_set(err, STATUS_NO_MEMORY, "cannot create the HTTP thread of %s: %s", d->address,
                       strerror(error));
    }
    http_threads->count++;
    return STATUS_OK;
}

enum status http_threads_open(struct listen_set *sockets,
                              const struct http_threads_options *options, struct http_threads **out,
                              struct err *err)
{
    struct api_listener listeners[LISTEN_MAX];
    struct http_threads *http_threads = *out = calloc(1, sizeof *http_threads);
    enum status status = STATUS_OK;

    if (!http_threads)
        return err_set(err, STATUS_NO_MEMORY, "cannot start the HTTP threads: out of memory");
    http_threads->stats.started_at = clock_wall_seconds();
    status = http_threads_connection_slots(sockets, options, listeners, err);
    for (uint32_t i = 0; i < sockets->count && !status; i++)
        status = http_threads_add(http_threads, options, &listeners[i], sockets, i, err);
    return status;
}

bool http_threads_are_alive(struct http_threads *http_threads, char *out_stuck, size_t size)
{
    bool all = true;

    for (uint32_t i = 0; i < http_threads->count; i++) {
        struct http_thread *d = &http_threads->threads[i];
        const bool moved = heartbeat_is_alive(&d->heartbeat);
        const bool reads = api_server_db_thread_is_alive(d->server);

        if (all && (!moved || !reads)) {
            all = false;
            snprintf(out_stuck, size, "the thread that %s %s", moved ? "reads for" : "serves",
                     d->address);
        }
        api_server_wake(d->server);
    }
    return all;
}

void http_threads_set_token(struct http_threads *http_threads, const char *token)
{
    for (uint32_t i = 0; i < http_threads->count; i++)
        api_server_set_token(http_threads->threads[i].server, token);
}

void http_threads_close(struct http_threads *take)
{
    if (!take)
        return;
    for (uint32_t i = 0; i < take->count; i++) {
        atomic_store(&take->threads[i].stop, true);
        api_server_wake(take->threads[i].server);
    }
    for (uint32_t i = 0; i < take->count; i++) {
        pthread_join(take->threads[i].thread, NULL);
        api_server_free(take->threads[i].server);
    }
    free(take);
}
