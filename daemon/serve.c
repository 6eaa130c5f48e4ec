/* serve.c: runs the main loop of the daemon.
 *
 * One thread waits in epoll for a signal, a publication (only with a service manager) and a point
 * in time (only for its watchdog). An idle daemon does not wake at all. All other work happens in
 * other threads: one thread per socket serves (http_threads.c), one thread per GPU measures
 * (pipeline), and one thread maintains the store.
 */
#include "serve.h"

#include "service/backend.h"
#include "base/clock.h"
#include "base/log.h"
#include "compare/reference.h"
#include "base/memory_trim.h"
#include "service/http_threads.h"
#include "service/store_maintenance.h"
#include "service/listen.h"
#include "measure/pipeline.h"
#include "service/sd_notify.h"
#include "service/state_file.h"
#include "service/token.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { SERVE_MAX_EVENTS = 4, SERVE_DEMO_POLL_MS = 50, DEMO_FREE_SHARE = 50 };

/* The objects that live while the daemon serves. */
struct serve {
    struct config *config; /* owned by the caller; SIGHUP renews it */
    int argc;
    char **argv;
    struct store *store;
    struct snapshot_cell *cell;
    struct pipeline *pipeline;
    struct store_maintenance *store_maintenance;
    struct reference *reference; /* chips to compare with; NULL if there are none */
    struct backend backend;
    struct api_backend api;
    struct http_threads *http_threads;
    struct listen_set sockets;
    char token[TOKEN_BYTES]; /* secret for POST and DELETE; "" if there is no token */
    struct sd_notify sd_notify;
    int publication_fd; /* readable after a publication, owned by the cell; -1 if not used */
    int signal_fd;
    int epoll_fd;
    bool announced; /* --demo: the requests to try were printed */
};

/* ---- demo ---- */

/* Returns whether every GPU has a fingerprint or has failed to get one. */
static bool demo_is_ready(const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        enum gpu_state state = s->gpus[i].state;

        if (state == GPU_STATE_UNKNOWN || state == GPU_STATE_QUEUED ||
            state == GPU_STATE_MEASURING || state == GPU_STATE_CHECKING)
            return false;
    }
    return true;
}

/* Prints one request to the first socket as a curl command. */
static void demo_curl(const struct listen_set *sockets, const char *path)
{
    const char *address = sockets->addresses[0];

    if (address[0] == '/') {
        printf("  curl -s --unix-socket %s 'http://localhost%s'\n", address, path);
    } else {
        printf("  curl -s --noproxy '*' 'http://%s%s'\n", address, path);
    }
}

/* Prints a command that calls reachctl. The program is beside `program`, the path of reachd, or on
 * PATH if that path has no folder. */
static void demo_reachctl(const struct listen_set *sockets, const char *program, unsigned gib)
{
    const char *const address = sockets->addresses[0];
    const char *const slash = strrchr(program, '/');

    printf("  %.*sreachctl %s%s plan %uGiB\n", slash ? (int)(slash + 1 - program) : 0, program,
           address[0] == '/' ? "--socket " : "--url http://", address, gib);
}

/* Returns the size in GiB of a job that uses nearly all of the memory of the first GPU. */
static unsigned demo_gib(const struct snapshot *s)
{
    const unsigned gib = s->gpu_count ? (unsigned)(s->gpus[0].identity.memory_bytes >> 30) : 0;
    const unsigned used = gib - gib / DEMO_FREE_SHARE;

    return used ? used : 1;
}

/* Prints the address, the page and some requests to try. */
static void demo_announce(const struct listen_set *sockets, const struct snapshot *s,
                          const char *program)
{
    const unsigned gib = demo_gib(s);
    char placement[64];

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct snapshot_gpu *gpu = &s->gpus[i];

        printf("GPU %u: %s, %s, %s\n", i, gpu->identity.name, origin_name(gpu->identity.origin),
               gpu->has_fingerprint ? gpu->fingerprint_id : gpu->last_error.text);
    }
    printf("reachd serves %s%s; Ctrl-C ends it. ", sockets->addresses[0][0] == '/' ? "" : "http://",
           sockets->addresses[0]);
    if (sockets->addresses[0][0] != '/')
        printf("A page for a browser:\n  http://%s/ui/\n", sockets->addresses[0]);
    puts("Try in another terminal:");
    demo_reachctl(sockets, program, gib);
    demo_curl(sockets, "/healthz");
    demo_curl(sockets, "/v1/gpus/0/fingerprint");
    snprintf(placement, sizeof placement, "/v1/gpus/0/placement?bytes=%uGiB", gib);
    demo_curl(sockets, placement);
    fflush(stdout);
}

/* ---- start ---- */

/* Starts the pipeline. In a demo without a GPU, starts it again with a simulated GPU. */
static enum status serve_start_pipeline(struct serve *s, struct err *err)
{
    static const char *const stand_in[] = {"h200", NULL};
    struct pipeline_options options = {.executable = "/proc/self/exe",
                                       .gpu = config_gpu_options(s->config),
                                       .measure_unknown = s->config->measure_on_start,
                                       .check_known = s->config->check_on_start,
                                       .discover_later = !s->config->demo,
                                       .list_lost = true,
                                       .check_every_s = s->config->check_every_s,
                                       .expected_gpus = s->config->expected_gpus,
                                       .stored_only = !s->config->gpus};
    enum status status = pipeline_start(&options, s->store, s->cell, &s->pipeline, err);

    if (status || !s->config->demo || options.gpu.simulated || options.stored_only)
        return status;
    const struct snapshot *view = snapshot_acquire(s->cell);
    uint32_t count = 0;

    for (uint32_t i = 0; i < view->gpu_count; i++)
        count += view->gpus[i].state != GPU_STATE_LOST;
    if (count == 0) {
        printf("No GPU was found (%s). A simulated H200 answers instead: its numbers come from a "
               "model, and every answer is labeled as simulated.\n",
               view->source_error.text);
        fflush(stdout);
    }
    snapshot_release(view);
    if (count > 0)
        return STATUS_OK;
    pipeline_stop(s->pipeline);
    s->pipeline = NULL;
    options.gpu.simulated = stand_in;
    return pipeline_start(&options, s->store, s->cell, &s->pipeline, err);
}

/* Blocks the signals that end the daemon, in this thread and all threads that it starts, and
 * delivers them through a descriptor. */
static enum status serve_signals(struct serve *s, struct err *err)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL); /* a file at its size limit then fails one write */
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signal_fd < 0
               ? err_set(err, STATUS_IO, "cannot create a signalfd: %s", strerror(errno))
               : STATUS_OK;
}

static enum status serve_watch(struct serve *s, int fd, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0
               ? err_set(err, STATUS_IO, "cannot watch a descriptor: %s", strerror(errno))
               : STATUS_OK;
}

/* Raises the limit of open files, because connections are files. The usual limit of 1024 protects
 * programs that use select, which the daemon does not. */
static void serve_raise_file_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void serve_warn_of_variable(const struct config *config)
{
    if (config->unknown_variable[0])
        log_warning("%s in the environment is not an option", config->unknown_variable);
}

static enum status serve_sockets(struct serve *s, struct err *err)
{
    enum status status = token_load(s->config->token_file, s->token, err);

    status = status ? status : listen_open(s->config, &s->sockets, err);
    if (!status && !s->token[0])
        status = listen_check_local(&s->sockets, err);
    return status ? status : config_check_simulated(s->config, err);
}

/* Loads the chips to compare with. The default folder need not exist, and the daemon also serves if
 * a set cannot be read. */
static void serve_load_reference(struct serve *s)
{
    char folder[PATH_MAX];
    struct err err = {0};

    if (!s->config->reference_given && reference_find_folder(folder, sizeof folder))
        (void)reference_load(folder, &s->reference, &err);
    else if (s->config->reference)
        (void)reference_load(s->config->reference, &s->reference, &err);
    if (err.status)
        log_warning("cannot compare with other chips: %s", err.text);
    else if (s->reference)
        log_debug("%u kinds of chips to compare with, in %zu bytes", s->reference->kind_count,
                  s->reference->bytes);
}

enum status serve_check(struct config *config, struct err *err)
{
    struct serve *s = calloc(1, sizeof *s);

    if (!s)
        return err_set(err, STATUS_NO_MEMORY, "cannot check the configuration: out of memory");
    s->config = config;
    serve_warn_of_variable(config);
    enum status status = serve_sockets(s, err);

    status = status ? status : state_file_check(config, err);
    if (!status)
        serve_load_reference(s);
    reference_free(s->reference);
    listen_close(&s->sockets);
    free(s);
    return status;
}

static enum status serve_start_api(struct serve *s, const char *version, struct err *err)
{
    const struct http_threads_options options = {
        .cell = s->cell,
        .backend = &s->api,
        .daemon_version = version,
        .token = s->token,
        .request_deadline_ns = (nsec_t)s->config->request_deadline_ms * NSEC_PER_MSEC,
        .max_connections = s->config->max_connections};

    s->backend =
        (struct backend){.store = s->store, .pipeline = s->pipeline, .reference = s->reference};
    s->api = backend_api(&s->backend);
    return http_threads_open(&s->sockets, &options, &s->http_threads, err);
}

void serve_set_log(const struct config *config)
{
    log_set_level(config->log_level);
    log_set_format(config->log_format);
    log_set_rate(config->log_rate);
}

/* Sends the state of the GPUs to the service manager. */
static void serve_report_status(struct serve *s, bool ready)
{
    const struct snapshot *view = snapshot_acquire(s->cell);

    sd_notify_state(&s->sd_notify, view, ready);
    snapshot_release(view);
}

/* Reads the token again. A token cannot be removed while the daemon runs, because then every user
 * could measure. */
static enum status serve_read_token(const struct serve *s, char *out, struct err *err)
{
    enum status status = token_load(s->config->token_file, out, err);

    if (!status && s->token[0] && !out[0])
        status = err_set(err, STATUS_NOT_FOUND, "the token file was removed");
    return status;
}

/* Handles SIGHUP: reads the options and the token again. After an error, both stay unchanged. The
 * driver is queried again for its GPUs. */
static void serve_reload(struct serve *s)
{
    char others[200];
    char token[TOKEN_BYTES];
    struct config fresh;
    struct err err = {0};

    sd_notify_reloading(&s->sd_notify);
    if (config_parse(s->argc, s->argv, &fresh, &err) || serve_read_token(s, token, &err)) {
        log_error("cannot reload the options: %s; the options are unchanged", err.text);
    } else {
        memcpy(s->token, token, sizeof s->token);
        http_threads_set_token(s->http_threads, s->token);
        config_reload(s->config, &fresh, others, sizeof others);
        serve_set_log(s->config);
        log_info("reloaded%s%s", others[0] ? "; these need a restart: " : "", others);
    }
    config_free(&fresh);
    if (pipeline_rediscover(s->pipeline, &err))
        log_error("cannot query the driver for its GPUs: %s", err.text);
    serve_report_status(s, true);
}

/* Does the pending work. Returns the milliseconds until there is work again, or -1 for never. */
static int serve_due(struct serve *s)
{
    int wait_ms = sd_notify_due(&s->sd_notify, s->pipeline, s->store_maintenance, s->http_threads);

    if (s->config->demo && !s->announced) {
        const struct snapshot *view = snapshot_acquire(s->cell);

        s->announced = demo_is_ready(view);
        if (s->announced) {
            demo_announce(&s->sockets, view, s->argv[0]);
        } else if (wait_ms < 0 || wait_ms > SERVE_DEMO_POLL_MS) {
            wait_ms = SERVE_DEMO_POLL_MS;
        }
        snapshot_release(view);
    }
    return wait_ms;
}

/* Handles a signal. Returns false if the daemon ends. */
static bool serve_signalled(struct serve *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGHUP) {
            log_info("stopping: SIG%s", sigabbrev_np((int)info.ssi_signo));
            return false;
        }
        serve_reload(s);
    }
    return true;
}

static void serve_published(struct serve *s)
{
    uint64_t count;

    if (read(s->publication_fd, &count, sizeof count) == (ssize_t)sizeof count)
        serve_report_status(s, false);
}

/* Serves until a signal ends it. */
static enum status serve_loop(struct serve *s, struct err *err)
{
    struct epoll_event events[SERVE_MAX_EVENTS];

    for (;;) {
        int n = epoll_wait(s->epoll_fd, events, SERVE_MAX_EVENTS, serve_due(s));

        if (n < 0 && errno != EINTR)
            return err_set(err, STATUS_IO, "epoll: %s", strerror(errno));
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == s->signal_fd && !serve_signalled(s))
                return STATUS_OK;
            if (events[i].data.fd == s->publication_fd)
                serve_published(s);
        }
    }
}

/* Starts everything in order. `s` has the parts that were started, also after a failure. */
static enum status serve_start(struct serve *s, const char *version, struct err *err)
{
    enum status status = serve_signals(s, err);

    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!status && s->epoll_fd < 0)
        status = err_set(err, STATUS_IO, "cannot create an epoll instance: %s", strerror(errno));
    status = status ? status : serve_watch(s, s->signal_fd, err);
    status = status ? status : serve_sockets(s, err);
    status = status ? status : state_file_open(s->config, &s->store, err);
    if (!status) {
        log_info("reachd %s, state in %s", version, s->config->state);
        s->cell = snapshot_cell_new();
        status = s->cell ? STATUS_OK : err_no_memory(err, "a snapshot");
    }
    if (!status && s->sd_notify.fd >= 0) {
        s->publication_fd = snapshot_cell_watch(s->cell);
        status = s->publication_fd < 0 ? STATUS_OK : serve_watch(s, s->publication_fd, err);
    }
    status = status ? status : serve_start_pipeline(s, err);
    status = status ? status
                    : store_maintenance_start(s->store, s->pipeline, &s->store_maintenance, err);
    if (!status) {
        for (uint32_t i = 0; i < s->sockets.count; i++)
            log_info("serving %s%s",
                     s->sockets.roles[i] == LISTEN_HEALTH ? "health probes on " : "",
                     s->sockets.addresses[i]);
    }
    if (status)
        return status;
    serve_load_reference(s);
    return serve_start_api(s, version, err);
}

enum status serve_run(struct config *config, int argc, char **argv, const char *version,
                      struct err *err)
{
    struct serve *s = calloc(1, sizeof *s);

    if (!s)
        return err_set(err, STATUS_NO_MEMORY, "cannot start: out of memory");
    s->config = config;
    s->argc = argc;
    s->argv = argv;
    s->signal_fd = -1;
    s->epoll_fd = -1;
    s->publication_fd = -1;
    s->sd_notify = sd_notify_open();
    serve_raise_file_limit();
    serve_warn_of_variable(config);
    enum status status = serve_start(s, version, err);

    if (!status) {
        memory_trim();
        serve_report_status(s, true);
        status = serve_loop(s, err);
        sd_notify_send(&s->sd_notify, "STOPPING=1\nSTATUS=stopping");
    }
    http_threads_close(s->http_threads);
    store_maintenance_stop(s->store_maintenance);
    pipeline_stop(s->pipeline);
    snapshot_cell_free(s->cell);
    store_close(s->store);
    reference_free(s->reference);
    listen_close(&s->sockets);
    sd_notify_close(&s->sd_notify);
    if (s->epoll_fd >= 0)
        close(s->epoll_fd);
    if (s->signal_fd >= 0)
        close(s->signal_fd);
    free(s);
    return status;
}
