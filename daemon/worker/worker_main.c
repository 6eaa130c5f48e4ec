/* worker_main.c: the measurement process, which opens one GPU, has one conversation, and exits.
 *
 * `reachd --worker=stdio` reads these lines from a terminal or a pipe:
 *
 *     {"do":"options","simulated":["h200"]}
 *     {"do":"list"}                       -> {"ok":"list","gpu":{"uuid":"SIM-..",..}} for each
 *                                            {"ok":"list"} at the end
 *     {"do":"open","uuid":"SIM-.."}       -> {"ok":"open","gpu":{..},"limits":{..},"open_ns":81}
 *     {"do":"run","probe":{..}}           -> {"ok":"run","time":{..},"observation":{..}}
 *     {"do":"close"}                      -> {"ok":"close"}
 *
 * "options" may be left out (real GPUs, default limits), has no answer, and may contain any of:
 * simulated, libcuda, memory_limit_bytes, deadline_ms, no_vmm, alone, idle_only, identify_ms.
 * Without "uuid", "open" takes the first GPU.
 *
 * A message that cannot be carried out is answered {"error":slug,"text":message} and the
 * conversation continues. Anything but a JSON object, and a line that is too long, ends the
 * conversation (WORKER_EXIT_MALFORMED), because the peer is out of step. After a lost GPU or a hung
 * kernel any call of the driver may hang, so the process reports it and exits without closing
 * (WORKER_EXIT_GPU).
 *
 * SIGTERM is blocked except while waiting for a message. A running probe is finished (it has its
 * own deadline), then the GPU is closed and the process ends. The kernel sends SIGTERM when the
 * daemon dies.
 */
#include "worker/worker.h"

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "worker/jsonl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { WORKER_EXIT_OK = 0, WORKER_EXIT_GPU = 3, WORKER_EXIT_MALFORMED = 65, WORKER_EXIT_IO = 74 };

enum { WORKER_CLOSE_SECONDS = 20 }; /* SIGALRM ends a process that closes for longer */

/* One conversation. */
struct session {
    int out_fd;
    sigset_t waiting; /* signals blocked while waiting for a message */
    struct gpu_options options;
    json_t *options_json;                      /* owns the strings of `options` */
    const char *simulated[REACH_MAX_GPUS + 1]; /* the list in `options` */
    struct gpu *gpu;                           /* the open GPU, owned; NULL if no GPU is open */
    bool gpu_lost;                             /* the worker must leave without closing */
    nsec_t probed_ns;  /* time when the last probe ended or the GPU was opened; clock_monotonic() */
    nsec_t waiting_ns; /* the part of the time since then spent waiting for messages */
    int exit_code;
    bool ended;
};

static volatile sig_atomic_t session_stop;

static void session_on_signal(int number)
{
    (void)number;
    session_stop = 1;
}

static void session_end(struct session *s, int exit_code)
{
    s->ended = true;
    s->exit_code = exit_code;
}

/* Sends a line and frees it. NULL means that memory ran out. A closed connection ends the
 * conversation. */
static void session_send(struct session *s, char *take, size_t length)
{
    const struct jsonl_wait wait = {.until = JSONL_NO_DEADLINE, .wake_fd = -1};
    enum jsonl_event event = take ? jsonl_write(s->out_fd, take, length, &wait) : JSONL_FAILED;

    if (!take)
        errno = ENOMEM;
    if (event == JSONL_TOO_LONG) {
        static const char too_long[] =
            "{\"error\":\"full\",\"text\":\"the answer is longer than a line may be; ask for "
            "fewer samples\"}\n";
        event = jsonl_write(s->out_fd, too_long, sizeof too_long - 1, &wait);
    }
    if (event != JSONL_DONE)
        session_end(s, event == JSONL_END ? WORKER_EXIT_OK : WORKER_EXIT_IO);
    free(take);
}

/* Begins a reply with its first member. */
static void session_begin(struct json_writer *reply, const char *name, const char *word)
{
    json_writer_begin(reply, 0);
    json_writer_open(reply, NULL, '{');
    json_writer_text(reply, name, word);
}

/* Ends a reply and sends it. */
static void session_reply(struct session *s, struct json_writer *reply)
{
    size_t length = 0;

    json_writer_close(reply, '}');
    char *const line = json_writer_end(reply, &length);

    session_send(s, line, length);
}

/* Sends a reply without further members. */
static void session_done(struct session *s, const char *verb)
{
    struct json_writer t;

    session_begin(&t, "ok", verb);
    session_reply(s, &t);
}

static void session_error(struct session *s, const struct err *err)
{
    struct json_writer t;

    session_begin(&t, "error", status_info(err->status)->slug);
    json_writer_text(&t, "text", err->text);
    session_reply(s, &t);
}

/* Ends the conversation with a peer that is out of step. */
static void session_malformed(struct session *s, const char *why)
{
    struct err err = {0};

    err_set(&err, STATUS_PROTOCOL, "%s", why);
    session_error(s, &err);
    session_end(s, WORKER_EXIT_MALFORMED);
}

/* Makes the list of simulated GPUs: NULL-terminated, with borrowed strings. */
static void session_read_simulated(struct json_reader *in, const char *out[REACH_MAX_GPUS + 1])
{
    const json_t *list = json_reader_array(in, "simulated", REACH_MAX_GPUS);
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n; i++) {
        out[i] = json_string_value(json_array_get(list, i));
        if (!out[i])
            json_reader_fail(in, "simulated", "element %zu must be a string", i);
    }
    out[n] = NULL;
}

static enum status session_do_options(struct session *s, struct json_reader *in)
{
    const char *simulated[REACH_MAX_GPUS + 1];
    struct gpu_options options = {.libcuda = json_reader_word(in, "libcuda"),
                                  .state = json_reader_word(in, "state")};

    session_read_simulated(in, simulated);
    json_reader_u64(in, "memory_limit_bytes", &options.memory_limit_bytes);
    json_reader_u64(in, "host_memory_bytes", &options.host_memory_bytes);
    json_reader_u32(in, "memory_ms", UINT32_MAX, &options.memory_ms);
    json_reader_u32(in, "deadline_ms", UINT32_MAX, &options.deadline_ms);
    json_reader_u32(in, "identify_ms", UINT32_MAX, &options.identify_ms);
    json_reader_bool(in, "no_vmm", &options.no_vmm);
    json_reader_bool(in, "alone", &options.alone);
    json_reader_bool(in, "idle_only", &options.idle_only);
    enum status status = json_reader_end(in);

    if (!status && s->gpu)
        status =
            err_set(in->err, STATUS_CONFLICT, "a GPU is open; close the GPU to change options");
    if (status)
        return status;
    json_decref(s->options_json);
    s->options_json = json_incref((json_t *)(uintptr_t)in->object);
    memcpy(s->simulated, simulated, sizeof simulated);
    s->options = options;
    s->options.simulated = s->simulated[0] ? s->simulated : NULL;
    return STATUS_OK;
}

/* Sends one GPU of the list. */
static void session_found(void *self, const struct gpu_listed *gpu)
{
    const struct err *const why = &gpu->error;
    struct json_writer t;

    session_begin(&t, "ok", "list");
    identity_json_write(&t, "gpu", &gpu->identity);
    if (gpu->minor.known == MAYBE_KNOWN)
        json_writer_u64(&t, "minor", gpu->minor.v);
    if (why->status != STATUS_OK) {
        json_writer_text(&t, "failure", status_info(why->status)->slug);
        json_writer_text(&t, "text", why->text);
    }
    session_reply(self, &t);
}

static enum status session_do_list(struct session *s, struct json_reader *in)
{
    enum status status = json_reader_end(in);

    status = status ? status : gpu_find(&s->options, session_found, s, in->err);
    if (!status)
        session_done(s, "list");
    return status;
}

/* Opens `uuid`, or the first GPU if the message names none. */
static enum status session_do_open(struct session *s, struct json_reader *in)
{
    const char *uuid = json_reader_word(in, "uuid");
    struct gpu_identity identity = {0};
    struct gpu_limits limits = {0};
    struct json_writer t;
    uint32_t count = 0;
    enum status status = json_reader_end(in);

    if (!status && s->gpu)
        status = err_set(in->err, STATUS_CONFLICT, "a GPU is open already");
    if (!status && !uuid) {
        status = gpu_list(&s->options, &identity, 1, &count, in->err);
        if (!status && count == 0)
            status = err_set(in->err, STATUS_NOT_FOUND, "there is no GPU");
        uuid = identity.uuid;
    }
    if (status)
        return status;
    nsec_t start = clock_monotonic();

    status = gpu_open(&s->options, uuid, &s->gpu, in->err);
    if (status) {
        s->gpu = NULL;
        return status;
    }
    nsec_t open_ns = clock_monotonic() - start;

    s->probed_ns = start + open_ns;
    s->waiting_ns = 0;

    gpu_describe(s->gpu, &identity, &limits);
    session_begin(&t, "ok", "open");
    identity_json_write(&t, "gpu", &identity);
    gpu_limits_write(&t, "limits", &limits);
    json_writer_i64(&t, "open_ns", open_ns);
    session_reply(s, &t);
    return STATUS_OK;
}

static void session_answer(struct session *s, const struct observation *o)
{
    const struct probe_time *const time = &o->result.time;
    struct json_writer t;

    session_begin(&t, "ok", "run");
    json_writer_open(&t, "time", '{');
    json_writer_u64(&t, "memory_ns", time->memory_ns);
    json_writer_u64(&t, "query_ns", time->query_ns);
    json_writer_u64(&t, "messages_ns", time->messages_ns);
    json_writer_u64(&t, "idle_ns", time->idle_ns);
    json_writer_close(&t, '}');
    observation_write(&t, "observation", o);
    session_reply(s, &t);
}

static enum status session_do_run(struct session *s, struct json_reader *in)
{
    const json_t *probe = json_reader_object(in, "probe");
    struct observation o = {0};
    enum status status = json_reader_end(in);

    if (!status && !s->gpu)
        status = err_set(in->err, STATUS_CONFLICT, "no GPU is open");
    status = status ? status : probe_spec_from_json(probe, &o.spec, in->err);
    if (status)
        return status;
    const nsec_t since = clock_monotonic() - s->probed_ns;
    const nsec_t idle = s->waiting_ns;

    status = gpu_run(s->gpu, &o.spec, &o.result, in->err);
    s->probed_ns = clock_monotonic();
    s->waiting_ns = 0;
    if (status == STATUS_GPU_LOST || status == STATUS_DEADLINE) {
        s->gpu_lost = true;
        session_end(s, WORKER_EXIT_GPU);
    }
    if (!status) {
        o.result.time.idle_ns = idle;
        o.result.time.messages_ns = since - idle;
        session_answer(s, &o);
        observation_free(&o);
    }
    return status;
}

static enum status session_do_close(struct session *s, struct json_reader *in)
{
    enum status status = json_reader_end(in);

    if (!status) {
        gpu_close(s->gpu);
        s->gpu = NULL;
        session_done(s, "close");
    }
    return status;
}

static const struct {
    const char *verb;
    enum status (*run)(struct session *s, struct json_reader *in);
} session_verbs[] = {
    {.verb = "options", .run = session_do_options}, {.verb = "list", .run = session_do_list},
    {.verb = "open", .run = session_do_open},       {.verb = "run", .run = session_do_run},
    {.verb = "close", .run = session_do_close},
};

/* Carries out one line. */
static void session_handle(struct session *s, const char *line, size_t length)
{
    enum { VERBS = sizeof session_verbs / sizeof session_verbs[0] };
    struct json_reader in;
    struct err err = {0};
    char why[200];
    json_t *message = jsonl_parse(line, length, why, sizeof why);

    if (!message) {
        session_malformed(s, why);
        return;
    }
    json_reader_begin(&in, message, "", JSON_READER_OPTIONAL, STATUS_PROTOCOL, &err);
    const char *verb = json_reader_word(&in, "do");
    size_t i = 0;

    while (i < VERBS && (!verb || strcmp(verb, session_verbs[i].verb) != 0))
        i++;
    enum status status = i < VERBS ? session_verbs[i].run(s, &in)
                                   : err_set(&err, STATUS_PROTOCOL,
                                             "\"do\" must be options, list, open, run or close");

    if (status) {
        err.status = status;
        session_error(s, &err);
    }
    json_decref(message);
}

/* Makes SIGTERM and SIGINT end only the wait for a message. */
static void session_signals(struct session *s, bool has_daemon)
{
    const struct sigaction stop = {.sa_handler = session_on_signal};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t blocked;

    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigprocmask(SIG_BLOCK, &blocked, &s->waiting);
    sigdelset(&s->waiting, SIGTERM);
    sigdelset(&s->waiting, SIGINT);
    if (has_daemon)
        prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* Reads messages until the conversation is over. */
static void session_serve(struct session *s, struct jsonl_reader *reader)
{
    const struct jsonl_wait wait = {.until = JSONL_NO_DEADLINE, .wake_fd = -1, .mask = &s->waiting};

    while (!s->ended && !session_stop) {
        const nsec_t start = clock_monotonic();
        char *line = NULL;
        size_t length = 0;
        const enum jsonl_event event = jsonl_read(reader, &wait, &line, &length);

        s->waiting_ns += clock_monotonic() - start;
        switch (event) {
        case JSONL_DONE:
            session_handle(s, line, length);
            break;
        case JSONL_END:
            if (reader->end > reader->start)
                session_malformed(s, "the last line has no end");
            s->ended = true;
            break;
        case JSONL_WOKEN:
            break;
        case JSONL_TOO_LONG:
            session_malformed(s, "a line is longer than 64 MiB");
            break;
        case JSONL_TIMEOUT:
        case JSONL_FAILED:
            log_error("worker: cannot read a message: %s", strerror(errno));
            session_end(s, WORKER_EXIT_IO);
            break;
        }
    }
}

int worker_main(int in_fd, int out_fd)
{
    struct session s = {.out_fd = out_fd};
    struct jsonl_reader reader = {.fd = in_fd};

    session_signals(&s, in_fd == out_fd);
    session_serve(&s, &reader);
    if (s.gpu_lost) {
        /* Every driver call may hang now, even in exit handlers. */
        log_warning("worker: the GPU does not respond; exiting without closing the GPU");
        _exit(s.exit_code);
    }
    alarm(WORKER_CLOSE_SECONDS);
    gpu_close(s.gpu);
    alarm(0);
    jsonl_reader_free(&reader);
    json_decref(s.options_json);
    return s.exit_code;
}
