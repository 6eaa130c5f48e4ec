/* worker.c: the daemon's side of a measurement process. See worker.h for the messages.
 *
 * A conversation that is out of step cannot be continued: after a deadline the late answer would be
 * mistaken for the next answer. So the first such failure marks the worker (`ended`). It can then
 * only be stopped, and a new worker is cheap.
 */
#include "worker/worker.h"

#include "base/assert.h"
#include "base/json_load.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "worker/jsonl.h"
#include "worker/reap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORKER_FD = 3 };

/* A new process reads its first message at once. The limit is for a machine that swaps. */
#define WORKER_SEND_DEADLINE (10 * NSEC_PER_SEC)
/* The time between two checks whether the daemon is stopping. */
#define WORKER_WAIT_STEP (20 * NSEC_PER_MSEC)
/* The time for the kernel's work on exit, from the end of the conversation to the end of the
 * process. */
#define WORKER_DEATH_DEADLINE (2 * NSEC_PER_SEC)

struct worker {
    pid_t pid;
    bool reaped;
    int exit_status; /* once reaped */
    int fd;
    int wake_fd; /* eventfd, permanently readable once cancelled */
    struct jsonl_reader reader;
    uint32_t asked;   /* probes without an answer yet */
    struct err ended; /* a status other than STATUS_OK means out of step */
};

/* Marks the worker as out of step. */
static enum status __attribute__((format(printf, 4, 5)))
worker_end(struct worker *w, struct err *err, enum status status, const char *format, ...)
{
    char reason[300];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    err_set(&w->ended, status, "%s", reason);
    return err_set(err, status, "%s", reason);
}

/* Reports why the worker is out of step. */
static enum status worker_has_ended(const struct worker *w, struct err *err)
{
    if (err)
        *err = w->ended;
    return w->ended.status;
}

/* Reports how the process ended, after the connection was closed. */
static enum status worker_died(struct worker *w, struct err *err)
{
    static const char killed[] =
        "The kernel kills a process that exceeds the memory limit of its control group, and one "
        "when the machine has no memory left: look for oom-kill in the kernel log, and raise the "
        "limit or lower --host-memory-limit; then measure again.";
    char how[100];

    if (!w->reaped)
        w->reaped = reap_wait(w->pid, WORKER_DEATH_DEADLINE, &w->exit_status);
    (void)worker_end(w, NULL, STATUS_GPU_LOST, "the measurement process %s",
                     w->reaped ? reap_describe(w->exit_status, how, sizeof how)
                               : "has closed its connection and does not end");
    if (w->reaped && WIFSIGNALED(w->exit_status) && WTERMSIG(w->exit_status) == SIGKILL)
        w->ended.hint = killed;
    return worker_has_ended(w, err);
}

static enum status worker_event(struct worker *w, enum jsonl_event event, struct err *err)
{
    switch (event) {
    case JSONL_DONE:
        return STATUS_OK;
    case JSONL_END:
        return worker_died(w, err);
    case JSONL_TIMEOUT:
        return worker_end(w, err, STATUS_DEADLINE,
                          "the measurement process did not answer in time");
    case JSONL_WOKEN:
        return worker_end(w, err, STATUS_CANCELLED, "the measurement was cancelled");
    case JSONL_TOO_LONG:
        return worker_end(w, err, STATUS_PROTOCOL, "a message is longer than 64 MiB");
    case JSONL_FAILED:
        break;
    }
    return worker_end(w, err, errno == ENOMEM ? STATUS_NO_MEMORY : STATUS_IO, "%s",
                      strerror(errno));
}

/* Begins a message, to which members can be added. */
static void worker_begin(struct json_writer *message, const char *verb)
{
    json_writer_begin(message, 0);
    json_writer_open(message, NULL, '{');
    json_writer_text(message, "do", verb);
}

/* Ends a message and sends it. */
static enum status worker_send(struct worker *w, struct json_writer *message, nsec_t deadline_ns,
                               struct err *err)
{
    const struct jsonl_wait wait = {.until = clock_monotonic() + deadline_ns,
                                    .wake_fd = w->wake_fd};
    enum status status = STATUS_OK;
    size_t length = 0;
    char *line;

    json_writer_close(message, '}');
    line = json_writer_end(message, &length);
    if (!line)
        return err_no_memory(err, "a message to the worker");
    if (w->ended.status) {
        status = worker_has_ended(w, err);
    } else {
        enum jsonl_event event = jsonl_write(w->fd, line, length, &wait);

        /* A worker that has exited may have sent the reason, which worker_receive reads. */
        status = event == JSONL_END ? STATUS_OK : worker_event(w, event, err);
    }
    free(line);
    return status;
}

/* Fills `err` with a failure that the worker reports. */
static enum status worker_reported_error(const json_t *message, struct err *err)
{
    const char *slug = json_string_value(json_object_get(message, "error"));
    const char *text = json_string_value(json_object_get(message, "text"));
    enum status status = status_from_slug(slug ? slug : "");

    return err_set(err, status, "%s", text && *text ? text : status_info(status)->message);
}

/* Waits for the answer to `verb`. On success the caller owns `*out`. If `values` is not NULL, it
 * receives the values of the line, which the caller owns in any case. */
static enum status worker_receive(struct worker *w, const char *verb, nsec_t deadline_ns,
                                  struct observation_values *values, json_t **out, struct err *err)
{
    const struct jsonl_wait wait = {.until = clock_monotonic() + deadline_ns,
                                    .wake_fd = w->wake_fd};
    char why[200];
    char *line = NULL;
    size_t length = 0;

    *out = NULL;
    if (w->ended.status)
        return worker_has_ended(w, err);
    enum status status = worker_event(w, jsonl_read(&w->reader, &wait, &line, &length), err);

    if (status)
        return status;
    if (values && observation_take_values(line, &length, values, err))
        return worker_end(w, err, STATUS_NO_MEMORY, "cannot allocate an answer: out of memory");
    json_t *message = jsonl_parse(line, length, why, sizeof why);

    if (!message)
        return json_load_was_short() ? worker_end(w, err, STATUS_NO_MEMORY, "%s", why)
                                     : worker_end(w, err, STATUS_PROTOCOL,
                                                  "invalid message from the worker: %s", why);
    const char *ok = json_string_value(json_object_get(message, "ok"));

    if (ok && strcmp(ok, verb) == 0) {
        *out = message;
        return STATUS_OK;
    }
    status = json_object_get(message, "error")
                 ? worker_reported_error(message, err)
                 : worker_end(w, err, STATUS_PROTOCOL,
                              "the worker's message is not an answer to \"%s\"", verb);
    json_decref(message);
    return status;
}

static enum status worker_send_options(struct worker *w, const struct gpu_options *options,
                                       struct err *err)
{
    struct json_writer t;

    worker_begin(&t, "options");
    json_writer_open(&t, "simulated", '[');
    for (const char *const *s = options->simulated; s && *s; s++)
        json_writer_text(&t, NULL, *s);
    json_writer_close(&t, ']');
    if (options->libcuda)
        json_writer_text(&t, "libcuda", options->libcuda);
    if (options->state)
        json_writer_text(&t, "state", options->state);
    json_writer_u64(&t, "memory_limit_bytes", options->memory_limit_bytes);
    json_writer_u64(&t, "host_memory_bytes", options->host_memory_bytes);
    json_writer_u64(&t, "memory_ms", options->memory_ms);
    json_writer_u64(&t, "deadline_ms", options->deadline_ms);
    json_writer_u64(&t, "identify_ms", options->identify_ms);
    json_writer_bool(&t, "no_vmm", options->no_vmm);
    json_writer_bool(&t, "alone", options->alone);
    json_writer_bool(&t, "idle_only", options->idle_only);
    return worker_send(w, &t, WORKER_SEND_DEADLINE, err);
}

/* Starts the process with the standard descriptors and `child_fd` as descriptor 3, and no other
 * descriptor of the daemon. It gets its own process group, so that Ctrl-C in a terminal reaches the
 * daemon alone. The daemon then stops the worker in order. */
static enum status worker_spawn(const char *executable, int child_fd, pid_t *out, struct err *err)
{
    char name[] = "reachd", option[] = "--worker";
    char *const argv[] = {name, option, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;

    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGTERM);
    sigaddset(&defaults, SIGINT);
    posix_spawn_file_actions_init(&actions); /* these two allocate nothing */
    posix_spawnattr_init(&attributes);
    int error = posix_spawn_file_actions_adddup2(&actions, child_fd, WORKER_FD);

    error = error ? error : posix_spawn_file_actions_addclosefrom_np(&actions, WORKER_FD + 1);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    error = error ? error : posix_spawn(out, executable, &actions, &attributes, argv, environ);

    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return err_set(err, error == ENOMEM ? STATUS_NO_MEMORY : STATUS_IO,
                       "cannot start %s as a worker: %s", executable, strerror(error));
    return STATUS_OK;
}

enum status worker_start(const char *executable, const struct gpu_options *options,
                         struct worker **out, struct err *err)
{
    enum status status = STATUS_OK;
    struct worker *w = calloc(1, sizeof *w);
    int pair[2] = {-1, -1};

    *out = NULL;
    reap_leftovers();
    if (!w)
        return err_no_memory(err, "a worker");
    w->fd = -1;
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->wake_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        status =
            err_set(err, STATUS_IO, "cannot create the sockets of a worker: %s", strerror(errno));
        goto out;
    }
    w->fd = pair[0];
    w->reader = (struct jsonl_reader){.fd = w->fd};
    if (fcntl(w->fd, F_SETFL, O_NONBLOCK) < 0) {
        status = err_set(err, STATUS_IO, "cannot prepare a socket: %s", strerror(errno));
        goto out;
    }
    status = worker_spawn(executable, pair[1], &w->pid, err);
    if (status)
        goto out;
    status = worker_send_options(w, options, err);
    if (!status) {
        *out = w;
        w = NULL;
    }
out:
    if (pair[1] >= 0)
        close(pair[1]);
    worker_stop(w, &(struct worker_timeouts){.grace_ns = NSEC_PER_SEC, .may_kill = true});
    return status;
}

/* Reads one GPU of the list. */
static enum status worker_read_listed(const json_t *answer, struct gpu_listed *out, struct err *err)
{
    const char *failure = json_string_value(json_object_get(answer, "failure"));
    const char *text = json_string_value(json_object_get(answer, "text"));
    const json_t *minor = json_object_get(answer, "minor");

    *out = (struct gpu_listed){.minor = UNKNOWN_U32(REASON_NOT_REPORTED)};
    if (json_is_integer(minor))
        out->minor = KNOWN_U32((uint32_t)json_integer_value(minor));
    if (failure)
        err_set(&out->error, status_from_slug(failure), "%s", text ? text : failure);
    return gpu_identity_from_json(json_object_get(answer, "gpu"), &out->identity, err);
}

enum status worker_list(struct worker *w, nsec_t deadline_ns, gpu_found_fn *found, void *self,
                        struct err *err)
{
    const nsec_t end = clock_monotonic() + deadline_ns;
    struct json_writer t;
    enum status status;

    worker_begin(&t, "list");
    status = worker_send(w, &t, WORKER_SEND_DEADLINE, err);
    for (bool more = true; more && !status;) {
        const nsec_t now = clock_monotonic();
        struct gpu_listed gpu;
        json_t *answer = NULL;

        status = worker_receive(w, "list", now < end ? end - now : 0, NULL, &answer, err);
        more = !status && json_object_get(answer, "gpu");
        if (more)
            status = worker_read_listed(answer, &gpu, err);
        if (more && !status)
            found(self, &gpu);
        json_decref(answer);
    }
    return status;
}

enum status worker_open(struct worker *w, const char *uuid, nsec_t deadline_ns,
                        struct gpu_identity *identity, struct gpu_limits *limits, struct err *err)
{
    json_t *answer = NULL;
    struct json_writer t;
    enum status status;

    worker_begin(&t, "open");
    json_writer_text(&t, "uuid", uuid);
    status = worker_send(w, &t, WORKER_SEND_DEADLINE, err);
    status = status ? status : worker_receive(w, "open", deadline_ns, NULL, &answer, err);
    status =
        status ? status : gpu_identity_from_json(json_object_get(answer, "gpu"), identity, err);
    status = status ? status : gpu_limits_from_json(json_object_get(answer, "limits"), limits, err);
    json_decref(answer);
    return status;
}

enum status worker_submit(struct worker *w, const struct probe_spec *spec, nsec_t deadline_ns,
                          struct err *err)
{
    struct json_writer t;
    enum status status;

    REACH_ASSERT(w->asked < WORKER_MAX_PENDING);
    worker_begin(&t, "run");
    probe_spec_write(&t, "probe", spec);
    status = worker_send(w, &t, deadline_ns, err);
    if (!status)
        w->asked++;
    return status;
}

/* Reads a time for the log. A missing time counts as 0. */
static nsec_t worker_ns(const json_t *time, const char *name)
{
    const json_int_t ns = json_integer_value(json_object_get(time, name));

    return ns > 0 ? (nsec_t)ns : 0;
}

static struct probe_time worker_time(const json_t *time)
{
    return (struct probe_time){.memory_ns = worker_ns(time, "memory_ns"),
                               .query_ns = worker_ns(time, "query_ns"),
                               .messages_ns = worker_ns(time, "messages_ns"),
                               .idle_ns = worker_ns(time, "idle_ns")};
}

enum status worker_await(struct worker *w, nsec_t deadline_ns, struct observation *out,
                         struct err *err)
{
    struct observation_values values = {.numbers = NULL};
    json_t *answer = NULL;

    REACH_ASSERT(w->asked > 0);
    enum status status = worker_receive(w, "run", deadline_ns, &values, &answer, err);

    w->asked--;
    if (status) {
        free(values.numbers);
        return status;
    }
    status = observation_from_parts(json_object_get(answer, "observation"), &values, out, err);
    if (status)
        err_prefix(err, "the worker's answer");
    else
        out->result.time = worker_time(json_object_get(answer, "time"));
    json_decref(answer);
    return status;
}

enum status worker_run(struct worker *w, const struct probe_spec *spec, nsec_t deadline_ns,
                       struct observation *out, struct err *err)
{
    enum status status = worker_submit(w, spec, deadline_ns, err);

    return status ? status : worker_await(w, deadline_ns, out, err);
}

int worker_pid(const struct worker *w)
{
    return (int)w->pid;
}

void worker_cancel(struct worker *w)
{
    const uint64_t one = 1;
    ssize_t ignored = write(w->wake_fd, &one, sizeof one); /* a full counter is set already */

    (void)ignored;
}

/* Waits for the end of the process. Returns false if it has not ended. */
static bool worker_wait(struct worker *w, const struct worker_timeouts *p)
{
    const nsec_t start = clock_monotonic();

    for (;;) {
        const bool stopping = p->stopping && p->stopping(p->self);
        const nsec_t most = stopping ? p->stopping_ns : p->grace_ns;
        const nsec_t waited = clock_monotonic() - start;
        const nsec_t left = waited < most ? most - waited : 0;

        if (reap_wait(w->pid, left < WORKER_WAIT_STEP ? left : WORKER_WAIT_STEP, &w->exit_status))
            return true;
        if (left == 0)
            return false;
    }
}

/* Kills a process that does not end. Returns false if it is stuck in the driver. */
static bool worker_kill(struct worker *w, nsec_t grace_ns)
{
    if (reap_is_stuck(w->pid))
        return false;
    log_warning("worker %d does not exit; killing the process", (int)w->pid);
    kill(w->pid, SIGKILL);
    return reap_wait(w->pid, grace_ns, &w->exit_status);
}

/* Ends the process: closes the connection, then sends SIGTERM, then SIGKILL if allowed. Returns
 * false if the process is abandoned. */
static bool worker_end_process(struct worker *w, const struct worker_timeouts *p)
{
    bool in_step = w->ended.status == STATUS_OK && w->asked == 0;

    if (in_step && worker_wait(w, p))
        return true;
    kill(w->pid, SIGTERM);
    if (worker_wait(w, p))
        return true;
    const bool stopping = p->stopping && p->stopping(p->self);

    if ((p->may_kill || stopping) && worker_kill(w, stopping ? p->stopping_ns : p->grace_ns))
        return true;
    reap_abandon(w->pid);
    return false;
}

int worker_stop(struct worker *take, const struct worker_timeouts *timeouts)
{
    int left = 0;

    if (!take)
        return 0;
    if (take->fd >= 0) {
        close(take->fd); /* requests the worker to close its GPU and exit */
    }
    if (take->pid > 0 && !take->reaped && !worker_end_process(take, timeouts))
        left = (int)take->pid;
    if (take->wake_fd >= 0)
        close(take->wake_fd);
    jsonl_reader_free(&take->reader);
    free(take);
    reap_leftovers();
    return left;
}
