/* server.c: drives libmicrohttpd with an epoll loop.
 *
 *   a loop --waits on--> epoll fd of the server --nests--> epoll fd of each MHD daemon
 *                                               \--------> timer of the request deadline
 *                                                \-------> eventfd with which other threads wake it
 *
 * Each listening socket has its own MHD daemon, and so its own connection slots. All daemons run in
 * external epoll mode, in which MHD_run always polls. The library's own epoll thread waits with its
 * blocking timeout after a batch of exactly 128 ready connections. Its inactivity timeout is off,
 * because one byte per second defeats it: see connections.c.
 */
#include "api/server/server.h"

#include "api/handlers/cache.h"
#include "api/server/connections.h"
#include "api/server/transaction.h"
#include "api/handlers/handlers.h"
#include "api/server/db_thread.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    DEFAULT_LIMIT = 1024,
    DEFAULT_PROBE_LIMIT = 64,
    RESERVED_FDS = 64, /* descriptors that are not connections */
    /* The size of the buffer for the request line and header fields of one request, and a piece of
     * its body. The library clears this buffer once or twice per request. With 256 connections and
     * a buffer of 10 KiB an answer takes 10 % more CPU time. RFC 9110, section 4.1, recommends room
     * for a target of 8000 bytes. The longest valid target here has less than 1000 bytes, and 4000
     * fit. */
    CONNECTION_MEMORY = 5 << 10,
    TIMER_EVENT = API_MAX_LISTENERS, /* tags after the numbers of the listeners */
    WAKE_EVENT,
    MAX_EVENTS
};

#define DEFAULT_DEADLINE (10 * NSEC_PER_SEC)
#define DRAIN_TIME       NSEC_PER_SEC
#define NUMBER_STEP      0x9e3779b97f4a7c15u /* the step is odd, so every number occurs once */

struct listener {
    struct api_server *server;
    struct MHD_Daemon *daemon;
    enum api_listener_role role;
    bool ready;
};

struct api_server {
    int epoll_fd;
    int timer_fd;
    int wake_fd;
    nsec_t timer_due; /* time when the timer expires; 0 if the timer is not set */
    nsec_t now;       /* start of this turn of the loop, exact enough for deadlines */
    nsec_t deadline_ns;
    bool finished;
    bool place_freed; /* a connection was closed since the last run */
    struct listener listeners[API_MAX_LISTENERS];
    uint32_t listener_count;
    struct connections clients;
    struct cache *cache;
    struct snapshot_cell *cell;
    const struct snapshot *view; /* view of this turn, acquired when needed; NULL between turns */
    const struct api_backend *backend;
    const char *daemon_version;
    char token[API_TOKEN_BYTES];
    char next_token[API_TOKEN_BYTES]; /* next token, set by another thread under the mutex */
    pthread_mutex_t token_mutex;
    atomic_bool token_changed;
    struct stats *stats;
    struct stats own_stats;
    struct db_thread *db_thread;
    uint64_t number; /* number of the last call; request ids are made from it */
};

/* ---- callbacks of libmicrohttpd ---- */

static struct connection *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct api_server *server = ((struct listener *)cls)->server;
    const union MHD_ConnectionInfo *info;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*socket_context)
            transaction_free(((struct connection *)*socket_context)->transaction);
        connections_remove(&server->clients, *socket_context);
        *socket_context = NULL;
        server->place_freed = true;
        stats_add(&server->stats->connections, UINT64_MAX); /* one less */
        return;
    }
    stats_add(&server->stats->connections, 1);
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info)
        *socket_context = connections_add(&server->clients, info->connect_fd, server->now);
}

/* Cuts the query off the library's own copy of the target, which request.c does not use. Otherwise
 * the library makes a record of each query parameter in the memory of the connection. If the
 * records do not fit, the library has no memory left for a response, and the client waits until its
 * deadline closes the connection. */
static void drop_query(const char *target)
{
    char *query = strchr((char *)(uintptr_t)target, '?'); /* the library writes there itself */

    if (query)
        query[1] = '\0';
}

static void *on_request_line(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct api_server *server = ((struct listener *)cls)->server;
    struct connection *client = client_of(connection);

    if (!client)
        return NULL; /* memory ran out: on_request closes the connection */
    connections_begin(&server->clients, client, server->now);
    /* The connection keeps the transaction, because a request that the library itself refuses
     * begins here and is never completed. */
    transaction_free(client->transaction);
    client->transaction = transaction_new(target);
    drop_query(target);
    return client->transaction;
}

/* Returns the newest view, held until the end of this turn. It is acquired for the first request of
 * a turn and after a publication. */
static const struct snapshot *newest_view(struct api_server *server)
{
    if (server->view && server->view->generation == snapshot_generation(server->cell))
        return server->view;
    snapshot_release(server->view);
    server->view = snapshot_acquire(server->cell);
    cache_renew(server->cache, server->view->generation);
    return server->view;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_bytes, void **request_context)
{
    const struct listener *listener = cls;
    struct api_server *server = listener->server;
    const struct transaction_call call = {.connection = connection,
                                          .url = url,
                                          .method = method,
                                          .http_version = version,
                                          .data = data,
                                          .data_bytes = data_bytes};
    struct handlers_context c = {.backend = server->backend,
                                 .token = server->token,
                                 .stats = server->stats,
                                 .db_thread = server->db_thread,
                                 .number = server->number += NUMBER_STEP,
                                 .cache = server->cache,
                                 .ui = ui_files,
                                 .for_probes = listener->role == API_FOR_PROBES,
                                 .daemon_version = server->daemon_version};

    if (!*request_context)
        return MHD_NO;
    c.snapshot = newest_view(server);
    return transaction_step(*request_context, &c, &call);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **request_context,
                         enum MHD_RequestTerminationCode code)
{
    struct api_server *server = ((struct listener *)cls)->server;
    struct connection *client = client_of(connection);

    (void)code;
    *request_context = NULL;
    if (!client)
        return;
    transaction_free(client->transaction);
    client->transaction = NULL;
    connections_end(&server->clients, client, server->now);
}

/* request.c decodes the target. */
static size_t on_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return strlen(text);
}

__attribute__((format(printf, 2, 0))) static void on_log(void *cls, const char *format,
                                                         va_list args)
{
    char line[256];

    (void)cls;
    vsnprintf(line, sizeof(line), format, args);
    line[strcspn(line, "\n")] = '\0';
    log_debug("http: %s", line);
}

/* ---- start ---- */

static uint32_t limit_of(const struct api_listener *l)
{
    if (l->connection_limit)
        return l->connection_limit;
    return l->role == API_FOR_PROBES ? DEFAULT_PROBE_LIMIT : DEFAULT_LIMIT;
}

/* A connection without a descriptor would hang, so the slots never exceed the descriptors. */
enum status api_share_slots(struct api_listener *listeners, uint32_t count, struct err *err)
{
    struct rlimit files;
    uint64_t sum = 0;
    uint64_t given = 0;
    uint64_t room;

    for (uint32_t i = 0; i < count; i++) {
        listeners[i].connection_limit = limit_of(&listeners[i]);
        sum += listeners[i].connection_limit;
    }
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY ||
        files.rlim_cur >= sum + RESERVED_FDS)
        return STATUS_OK;
    if (files.rlim_cur < RESERVED_FDS + count)
        return err_set(err, STATUS_NOT_PERMITTED,
                       "the limit of open files is %llu, but reachd needs at least %u: %u for its "
                       "own files and "
                       "one connection for each of %u sockets. Raise LimitNOFILE= of the service, "
                       "or ulimit -n",
                       (unsigned long long)files.rlim_cur, RESERVED_FDS + count, RESERVED_FDS,
                       count);
    room = files.rlim_cur - RESERVED_FDS;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t share = listeners[i].connection_limit * room / sum;
        listeners[i].connection_limit = share > 0 ? (uint32_t)share : 1;
        given += listeners[i].connection_limit;
    }
    log_warning(
        "http: serving at most %llu connections instead of %llu: the limit of open files is %llu",
        (unsigned long long)given, (unsigned long long)sum, (unsigned long long)files.rlim_cur);
    return STATUS_OK;
}

static struct MHD_Daemon *start_daemon(struct listener *listener, int fd, uint32_t limit)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
        listener, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)limit, MHD_OPTION_CONNECTION_TIMEOUT, 0u,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL, MHD_OPTION_URI_LOG_CALLBACK,
        on_request_line, listener, MHD_OPTION_NOTIFY_CONNECTION, on_connection, listener,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, listener, MHD_OPTION_END);
}

static enum status watch(struct api_server *server, int fd, uint32_t tag, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};

    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return err_set(err, STATUS_IO, "cannot watch a descriptor: %s", strerror(errno));
    return STATUS_OK;
}

/* The library gets a duplicate descriptor and closes it. */
static enum status add_listener(struct api_server *server, const struct api_listener *asked,
                                struct err *err)
{
    struct listener *listener = &server->listeners[server->listener_count];
    const union MHD_DaemonInfo *info;
    int own = fcntl(asked->fd, F_DUPFD_CLOEXEC, 3);
    int flags = own < 0 ? -1 : fcntl(own, F_GETFL);

    if (own < 0 || flags < 0 || fcntl(own, F_SETFL, flags | O_NONBLOCK) != 0) {
        if (own >= 0)
            close(own);
        return err_set(err, STATUS_IO, "cannot use a listening socket: %s", strerror(errno));
    }
    listener->server = server;
    listener->role = asked->role;
    listener->daemon = start_daemon(listener, own, asked->connection_limit);
    if (!listener->daemon)
        return err_set(err, STATUS_IO, "cannot serve HTTP on a listening socket");
    server->listener_count++;
    info = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "cannot serve HTTP: this libmicrohttpd lacks epoll");
    return watch(server, info->epoll_fd, server->listener_count - 1, err);
}

static enum status open_server(struct api_server *server, const struct api_options *options,
                               struct err *err)
{
    struct api_listener listeners[API_MAX_LISTENERS];
    enum status s;

    if (options->listen_count == 0 || options->listen_count > API_MAX_LISTENERS)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "cannot serve %u listening sockets: the number must be from 1 to %d",
                       options->listen_count, API_MAX_LISTENERS);
    server->cache = cache_new();
    server->db_thread =
        db_thread_new(&(struct db_thread_options){.cell = server->cell,
                                                  .backend = server->backend,
                                                  .daemon_version = server->daemon_version,
                                                  .wake = api_server_wake,
                                                  .server = server});
    if (!server->cache || !server->db_thread)
        return err_no_memory(err, "the HTTP server");
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->epoll_fd < 0 || server->timer_fd < 0 || server->wake_fd < 0)
        return err_set(err, STATUS_IO, "cannot create a descriptor: %s", strerror(errno));
    s = watch(server, server->timer_fd, TIMER_EVENT, err);
    if (s == STATUS_OK)
        s = watch(server, server->wake_fd, WAKE_EVENT, err);
    memcpy(listeners, options->listeners, sizeof(listeners));
    if (s == STATUS_OK)
        s = api_share_slots(listeners, options->listen_count, err);
    for (uint32_t i = 0; s == STATUS_OK && i < options->listen_count; i++)
        s = add_listener(server, &listeners[i], err);
    return s;
}

enum status api_server_new(const struct api_options *options, struct snapshot_cell *cell,
                           const struct api_backend *backend, struct api_server **out,
                           struct err *err)
{
    struct api_server *server = calloc(1, sizeof(*server));
    enum status s;

    if (!server || !send_prepare()) {
        free(server);
        return err_no_memory(err, "the HTTP server");
    }
    server->epoll_fd = -1;
    server->timer_fd = -1;
    server->wake_fd = -1;
    server->cell = cell;
    server->backend = backend;
    pthread_mutex_init(&server->token_mutex, NULL);
    api_server_set_token(server, options->token);
    if (getrandom(&server->number, sizeof(server->number), GRND_NONBLOCK) < 0)
        server->number = (uint64_t)clock_wall_seconds();
    server->own_stats.started_at = clock_wall_seconds();
    server->stats = options->stats ? options->stats : &server->own_stats;
    server->daemon_version = options->daemon_version ? options->daemon_version : "";
    server->deadline_ns =
        options->request_deadline_ns ? options->request_deadline_ns : DEFAULT_DEADLINE;
    s = open_server(server, options, err);
    if (s != STATUS_OK) {
        api_server_free(server);
        return s;
    }
    for (uint32_t i = 0; i < options->listen_count; i++)
        close(options->listeners[i].fd);
    *out = server;
    return STATUS_OK;
}

void api_server_set_token(struct api_server *server, const char *token)
{
    pthread_mutex_lock(&server->token_mutex);
    snprintf(server->next_token, sizeof(server->next_token), "%s", token ? token : "");
    atomic_store(&server->token_changed, true);
    pthread_mutex_unlock(&server->token_mutex);
}

/* Takes a token that another thread has set. Runs in the server's thread, between two turns of the
 * loop. */
static void take_token(struct api_server *server)
{
    if (!atomic_load_explicit(&server->token_changed, memory_order_acquire))
        return;
    pthread_mutex_lock(&server->token_mutex);
    memcpy(server->token, server->next_token, sizeof(server->token));
    atomic_store(&server->token_changed, false);
    pthread_mutex_unlock(&server->token_mutex);
}

/* ---- run ---- */

int api_server_fd(const struct api_server *server)
{
    return server->epoll_fd;
}

/* Returns whether the library has work that no descriptor announces. */
static bool has_work(const struct listener *listener)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;

    return MHD_get_timeout(listener->daemon, &wait_ms) == MHD_YES && wait_ms == 0;
}

int api_server_timeout_ms(const struct api_server *server)
{
    if (server->place_freed)
        return 0;
    for (uint32_t i = 0; i < server->listener_count; i++) {
        if (has_work(&server->listeners[i]))
            return 0;
    }
    return -1; /* the deadlines have a descriptor */
}

static void set_timer(struct api_server *server, nsec_t due)
{
    const struct itimerspec when = {.it_value = clock_timespec(due)};

    if (timerfd_settime(server->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) != 0)
        log_warning("http: cannot set the timer of the request deadline: %s", strerror(errno));
    server->timer_due = due;
}

/* The timer is set once and moved when it expires, so a request needs no system call for it. */
static void on_timer(struct api_server *server)
{
    uint64_t expirations;
    uint64_t timed_out = 0;
    nsec_t due;

    if (read(server->timer_fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
        log_warning("http: cannot read the timer: %s", strerror(errno));
    due = connections_reap(&server->clients, server->now, server->deadline_ns, &timed_out);
    stats_add(&server->stats->connections_timed_out, timed_out);
    set_timer(server, due);
}

/* An answer may be ready. Only a run of the library finds its connection. */
static bool on_wake(struct api_server *server)
{
    uint64_t count;

    if (read(server->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        log_warning("http: cannot read an event: %s", strerror(errno));
    return true;
}

/* Waits for at most `wait_ms` milliseconds (-1 means without a limit) and serves the connections
 * that are ready. */
static void serve(struct api_server *server, int wait_ms)
{
    struct epoll_event events[MAX_EVENTS];
    int count = epoll_wait(server->epoll_fd, events, MAX_EVENTS, wait_ms);
    bool run_all = server->place_freed;

    server->now = clock_monotonic();
    take_token(server);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 == TIMER_EVENT)
            on_timer(server);
        else if (events[i].data.u32 != WAKE_EVENT)
            server->listeners[events[i].data.u32].ready = true;
        else
            run_all = on_wake(server);
    }
    /* When all slots are taken, the library stops watching its listening socket. It resumes at the
     * next run and not when a slot is freed, but possibly no descriptor triggers that run. */
    server->place_freed = false;
    for (uint32_t i = 0; i < server->listener_count; i++) {
        struct listener *listener = &server->listeners[i];
        if (run_all || listener->ready || has_work(listener))
            MHD_run(listener->daemon);
        listener->ready = false;
    }
    snapshot_release(server->view);
    server->view = NULL;
    if (server->timer_due == 0 && server->clients.first)
        set_timer(server, server->now + server->deadline_ns);
}

void api_server_run(struct api_server *server)
{
    serve(server, 0);
}

void api_server_wait(struct api_server *server)
{
    serve(server, api_server_timeout_ms(server));
}

void api_server_wake(struct api_server *server)
{
    const uint64_t one = 1;

    if (write(server->wake_fd, &one, sizeof(one)) < 0)
        return; /* if the counter is full, the descriptor is readable already */
}

bool api_server_db_thread_is_alive(struct api_server *server)
{
    return db_thread_is_alive(server->db_thread);
}

/* ---- stop ---- */

static void stop_listening(struct api_server *server)
{
    for (uint32_t i = 0; i < server->listener_count; i++) {
        int fd = MHD_quiesce_daemon(server->listeners[i].daemon);
        if (fd >= 0)
            close(fd);
    }
}

static void finish_answers(struct api_server *server)
{
    nsec_t end = clock_monotonic() + DRAIN_TIME;

    while (server->clients.in_request > 0) {
        nsec_t now = clock_monotonic();
        int wait_ms = api_server_timeout_ms(server);
        if (now >= end)
            return;
        if (wait_ms < 0 || (nsec_t)wait_ms * NSEC_PER_MSEC > end - now)
            wait_ms = (int)((end - now) / NSEC_PER_MSEC) + 1;
        serve(server, wait_ms);
    }
}

void api_server_finish(struct api_server *server)
{
    if (server->finished)
        return;
    server->finished = true;
    stop_listening(server);
    finish_answers(server);
}

void api_server_free(struct api_server *take)
{
    if (!take)
        return;
    api_server_finish(take);
    pthread_mutex_destroy(&take->token_mutex);
    db_thread_free(take->db_thread); /* resumes every suspended connection */
    for (uint32_t i = 0; i < take->listener_count; i++)
        MHD_stop_daemon(take->listeners[i].daemon);
    cache_free(take->cache);
    if (take->timer_fd >= 0)
        close(take->timer_fd);
    if (take->wake_fd >= 0)
        close(take->wake_fd);
    if (take->epoll_fd >= 0)
        close(take->epoll_fd);
    free(take);
}
