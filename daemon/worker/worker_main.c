/* worker_main.c: the measurement process. One GPU, one conversation, then it exits.
 *
 * Try it by hand (`reachd --worker=stdio` reads these lines from a terminal or a pipe):
 *
 *     {"do":"options","simulated":["h200"]}
 *     {"do":"list"}                       -> {"ok":"list","gpus":[{"uuid":"SIM-..",..}]}
 *     {"do":"open","uuid":"SIM-.."}       -> {"ok":"open","gpu":{..},"limits":{..},"open_ns":81}
 *     {"do":"run","probe":{..}}           -> {"ok":"run","observation":{..}}
 *     {"do":"close"}                      -> {"ok":"close"}
 *
 * "options" may be left out (real GPUs, default limits), has no answer of its own, and may name
 * any of: simulated, libcuda, memory_limit_bytes, deadline_ms, no_vmm. Without "uuid", "open"
 * takes the first GPU.
 *
 * A message that cannot be carried out is answered {"error":slug,"text":sentence} and the
 * conversation goes on. What is no JSON object, or longer than a line may be, ends it
 * (WORKER_EXIT_MALFORMED): whoever writes that is out of step. After a lost GPU or a hung kernel
 * the driver may hang in any call, so the process says so and leaves without closing
 * (WORKER_EXIT_GPU).
 *
 * SIGTERM is blocked but while waiting for a message: a probe under way is finished (it has a
 * deadline of its own), then the GPU is closed and the process ends. The kernel sends SIGTERM when
 * the daemon dies.
 */
#include "worker/worker.h"

#include "base/json_builder.h"
#include "base/log.h"
#include "worker/jsonl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { WORKER_EXIT_OK = 0, WORKER_EXIT_GPU = 3, WORKER_EXIT_MALFORMED = 65, WORKER_EXIT_IO = 74 };

enum { WORKER_CLOSE_SECONDS = 20 }; /* longest that leaving may take; then SIGALRM ends it */

/* One conversation. */
struct session {
    int out_fd;
    sigset_t waiting; /* signals blocked while waiting for a message */
    struct gpu_options options;
    json_t *options_json;   /* owns the strings of `options` */
    const char **simulated; /* owned; the list in `options` */
    struct gpu *gpu;        /* owned; NULL: closed */
    bool gpu_lost;          /* leave without closing */
    int exit_code;
    bool ended;
};

static volatile sig_atomic_t session_stop;

static void session_on_signal(int number)
{
    (void)number;
    session_stop = 1;
}

/* Answers; a reader that has gone ends the conversation. Takes the reply. */
static void session_reply(struct session *s, json_t *take)
{
    const struct jsonl_wait wait = {.until = JSONL_NO_DEADLINE, .wake_fd = -1};
    enum jsonl_event event = take ? jsonl_write(s->out_fd, take, &wait) : JSONL_FAILED;

    if (event == JSONL_TOO_LONG) {
        json_t *error = json_pack("{s:s,s:s}", "error", status_info(STATUS_FULL)->slug, "text",
                                  "the answer is longer than a line may be; ask for fewer samples");
        event = error ? jsonl_write(s->out_fd, error, &wait) : JSONL_FAILED;
        json_decref(error);
    }
    if (event != JSONL_DONE) {
        s->ended = true;
        s->exit_code = event == JSONL_END ? WORKER_EXIT_OK : WORKER_EXIT_IO;
    }
    json_decref(take);
}

static void session_error(struct session *s, const struct err *err)
{
    /* A driver's words need not be UTF-8. */
    session_reply(s, json_pack("{s:s,s:o}", "error", status_info(err->status)->slug, "text",
                               json_new_text(err->text)));
}

/* Is every name of `message` in the NULL-terminated list `known`? */
static enum status session_check_names(json_t *message, const char *const *known, struct err *err)
{
    for (void *i = json_object_iter(message); i; i = json_object_iter_next(message, i)) {
        const char *name = json_object_iter_key(i);
        const char *const *k = known;

        while (*k && strcmp(*k, name) != 0) {
            k++;
        }
        if (!*k) {
            return err_set(err, STATUS_PROTOCOL, "unknown field \"%.60s\"", name);
        }
    }
    return STATUS_OK;
}

/* Reads an integer in [0, max] into `*out`; a missing one leaves it. */
static enum status session_get_integer(json_t *message, const char *name, uint64_t max,
                                       uint64_t *out, struct err *err)
{
    const json_t *value = json_object_get(message, name);

    if (!value) {
        return STATUS_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max) {
        return err_set(err, STATUS_PROTOCOL, "\"%s\" is an integer from 0 to %llu", name,
                       (unsigned long long)max);
    }
    *out = (uint64_t)json_integer_value(value);
    return STATUS_OK;
}

/* The simulated GPUs as a NULL-terminated list into the strings of `list`. */
static enum status session_get_simulated(const json_t *list, const char ***out, struct err *err)
{
    size_t n = json_array_size(list);

    *out = NULL;
    if (!list || json_is_null(list)) {
        return STATUS_OK;
    }
    if (!json_is_array(list) || n > REACH_MAX_GPUS) {
        return err_set(err, STATUS_PROTOCOL, "\"simulated\" is a list of at most %d strings",
                       REACH_MAX_GPUS);
    }
    const char **names = calloc(n + 1, sizeof *names);

    if (!names) {
        return err_set(err, STATUS_NO_MEMORY, "no memory for %zu names", n);
    }
    for (size_t i = 0; i < n; i++) {
        names[i] = json_string_value(json_array_get(list, i));
        if (!names[i]) {
            free(names);
            return err_set(err, STATUS_PROTOCOL, "\"simulated\" holds strings");
        }
    }
    *out = names;
    return STATUS_OK;
}

static enum status session_do_options(struct session *s, json_t *message, struct err *err)
{
    static const char *const known[] = {"do",          "simulated", "libcuda", "memory_limit_bytes",
                                        "deadline_ms", "no_vmm",    NULL};
    const json_t *libcuda = json_object_get(message, "libcuda");
    const json_t *plain = json_object_get(message, "no_vmm");
    const char **simulated = NULL;
    uint64_t memory_limit = 0, deadline_ms = 0;
    enum status status = session_check_names(message, known, err);

    if (!status && s->gpu) {
        status = err_set(err, STATUS_CONFLICT, "a GPU is open; close it to change options");
    }
    if (!status && libcuda && !json_is_string(libcuda) && !json_is_null(libcuda)) {
        status = err_set(err, STATUS_PROTOCOL, "\"libcuda\" is a string");
    }
    if (!status && plain && !json_is_boolean(plain)) {
        status = err_set(err, STATUS_PROTOCOL, "\"no_vmm\" is true or false");
    }
    status =
        status ? status
               : session_get_integer(message, "memory_limit_bytes", INT64_MAX, &memory_limit, err);
    status = status ? status
                    : session_get_integer(message, "deadline_ms", UINT32_MAX, &deadline_ms, err);
    status = status ? status
                    : session_get_simulated(json_object_get(message, "simulated"), &simulated, err);
    if (status) {
        return status;
    }
    free(s->simulated);
    json_decref(s->options_json);
    s->simulated = simulated;
    s->options_json = json_incref(message);
    s->options = (struct gpu_options){.simulated = simulated,
                                      .libcuda = json_string_value(libcuda),
                                      .memory_limit_bytes = memory_limit,
                                      .deadline_ms = (uint32_t)deadline_ms,
                                      .no_vmm = json_is_true(plain)};
    return STATUS_OK;
}

static enum status session_do_list(struct session *s, json_t *message, struct err *err)
{
    static const char *const known[] = {"do", NULL};
    struct gpu_identity *gpus = calloc(REACH_MAX_GPUS, sizeof *gpus);
    uint32_t count = 0;
    enum status status = session_check_names(message, known, err);

    if (!status && !gpus) {
        status = err_set(err, STATUS_NO_MEMORY, "no memory for a list of GPUs");
    }
    status = status ? status : gpu_list(&s->options, gpus, REACH_MAX_GPUS, &count, err);
    if (!status) {
        json_t *list = json_array();

        for (uint32_t i = 0; i < count; i++) {
            json_array_append_new(list, gpu_identity_to_json(&gpus[i]));
        }
        session_reply(s, json_pack("{s:s,s:o}", "ok", "list", "gpus", list));
    }
    free(gpus);
    return status;
}

/* Opens `uuid`, or the first GPU where the message names none. */
static enum status session_do_open(struct session *s, json_t *message, struct err *err)
{
    static const char *const known[] = {"do", "uuid", NULL};
    const json_t *uuid_json = json_object_get(message, "uuid");
    const char *uuid = json_string_value(uuid_json);
    struct gpu_identity identity = {0};
    struct gpu_limits limits = {0};
    uint32_t count = 0;
    enum status status = session_check_names(message, known, err);

    if (!status && s->gpu) {
        status = err_set(err, STATUS_CONFLICT, "a GPU is open already");
    }
    if (!status && uuid_json && !uuid) {
        status = err_set(err, STATUS_PROTOCOL, "\"uuid\" is a string");
    }
    if (!status && !uuid) {
        status = gpu_list(&s->options, &identity, 1, &count, err);
        if (!status && count == 0) {
            status = err_set(err, STATUS_NOT_FOUND, "there is no GPU");
        }
        uuid = identity.uuid;
    }
    if (status) {
        return status;
    }
    nsec_t start = clock_monotonic();

    status = gpu_open(&s->options, uuid, &s->gpu, err);
    if (status) {
        s->gpu = NULL;
        return status;
    }
    nsec_t open_ns = clock_monotonic() - start;

    gpu_describe(s->gpu, &identity, &limits);
    session_reply(s, json_pack("{s:s,s:o,s:o,s:I}", "ok", "open", "gpu",
                               gpu_identity_to_json(&identity), "limits",
                               gpu_limits_to_json(&limits), "open_ns", (json_int_t)open_ns));
    return STATUS_OK;
}

static enum status session_do_run(struct session *s, json_t *message, struct err *err)
{
    static const char *const known[] = {"do", "probe", NULL};
    struct observation o = {0};
    enum status status = session_check_names(message, known, err);

    if (!status && !s->gpu) {
        status = err_set(err, STATUS_CONFLICT, "no GPU is open");
    }
    status =
        status ? status : probe_spec_from_json(json_object_get(message, "probe"), &o.spec, err);
    if (status) {
        return status;
    }
    status = gpu_run(s->gpu, &o.spec, &o.result, err);
    if (status == STATUS_GPU_LOST || status == STATUS_DEADLINE) {
        s->gpu_lost = true;
        s->ended = true;
        s->exit_code = WORKER_EXIT_GPU;
    }
    if (!status) {
        session_reply(s,
                      json_pack("{s:s,s:o}", "ok", "run", "observation", observation_to_json(&o)));
        observation_free(&o);
    }
    return status;
}

static enum status session_do_close(struct session *s, json_t *message, struct err *err)
{
    static const char *const known[] = {"do", NULL};
    enum status status = session_check_names(message, known, err);

    if (status) {
        return status;
    }
    gpu_close(s->gpu);
    s->gpu = NULL;
    session_reply(s, json_pack("{s:s}", "ok", "close"));
    return STATUS_OK;
}

static const struct {
    const char *verb;
    enum status (*run)(struct session *s, json_t *message, struct err *err);
} session_verbs[] = {
    {.verb = "options", .run = session_do_options}, {.verb = "list", .run = session_do_list},
    {.verb = "open", .run = session_do_open},       {.verb = "run", .run = session_do_run},
    {.verb = "close", .run = session_do_close},
};

/* Carries out one line. */
static void session_handle(struct session *s, const char *line, size_t length)
{
    enum { VERBS = sizeof session_verbs / sizeof session_verbs[0] };
    struct err err = {0};
    char why[200];
    json_t *message = jsonl_parse(line, length, why, sizeof why);

    if (!message) {
        err_set(&err, STATUS_PROTOCOL, "%s", why);
        session_error(s, &err);
        s->ended = true;
        s->exit_code = WORKER_EXIT_MALFORMED;
        return;
    }
    const char *verb = json_string_value(json_object_get(message, "do"));
    size_t i = 0;

    while (i < VERBS && (!verb || strcmp(verb, session_verbs[i].verb) != 0)) {
        i++;
    }
    enum status status = i < VERBS ? session_verbs[i].run(s, message, &err)
                                   : err_set(&err, STATUS_PROTOCOL,
                                             "\"do\" is one of options, list, open, run and close");

    if (status) {
        err.status = status;
        session_error(s, &err);
    }
    json_decref(message);
}

/* SIGTERM and SIGINT end the wait for a message and nothing else. */
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
    if (has_daemon) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    }
}

/* Reads messages until the conversation is over. */
static void session_serve(struct session *s, struct jsonl_reader *reader)
{
    const struct jsonl_wait wait = {.until = JSONL_NO_DEADLINE, .wake_fd = -1, .mask = &s->waiting};

    while (!s->ended && !session_stop) {
        struct err err = {0};
        char *line = NULL;
        size_t length = 0;

        switch (jsonl_read(reader, &wait, &line, &length)) {
        case JSONL_DONE:
            session_handle(s, line, length);
            break;
        case JSONL_END:
            if (reader->end > reader->start) {
                err_set(&err, STATUS_PROTOCOL, "the last line has no end");
                session_error(s, &err);
                s->exit_code = WORKER_EXIT_MALFORMED;
            }
            s->ended = true;
            break;
        case JSONL_WOKEN:
            break;
        case JSONL_TOO_LONG:
            err_set(&err, STATUS_PROTOCOL, "a line is longer than %zu bytes", JSONL_MAX_BYTES);
            session_error(s, &err);
            s->ended = true;
            s->exit_code = WORKER_EXIT_MALFORMED;
            break;
        case JSONL_TIMEOUT:
        case JSONL_FAILED:
            log_error("worker: cannot read: %s", strerror(errno));
            s->ended = true;
            s->exit_code = WORKER_EXIT_IO;
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
        /* Every driver call may hang now, those of exit handlers as well. */
        log_warning("worker: the GPU does not answer; leaving without closing it");
        _exit(s.exit_code);
    }
    alarm(WORKER_CLOSE_SECONDS);
    gpu_close(s.gpu);
    alarm(0);
    jsonl_reader_free(&reader);
    free(s.simulated);
    json_decref(s.options_json);
    return s.exit_code;
}
