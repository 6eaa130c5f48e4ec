/* config.c: the command line of reachd. One table of options; each knows how to store its value. */
#include "config.h"

#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char config_help_text[] =
    "reachd: measures how far each GPU of this node translates addresses without a miss, and\n"
    "answers over HTTP where a job should work.\n"
    "\n"
    "Serving\n"
    "  --listen ADDRESS:PORT   TCP address, default 127.0.0.1:17322; port 0 takes a free one;\n"
    "                          \"none\" for no TCP\n"
    "  --socket PATH           Unix socket, default /run/reachd/reachd.sock when run as root;\n"
    "                          \"none\" for none; root and the group of the daemon may use it\n"
    "  --health ADDRESS:PORT   a port for /healthz, /readyz and /metrics alone, default the one\n"
    "                          after that of --listen; \"none\" for none\n"
    "  --token-file PATH       a secret of 16 to 256 characters: what changes something must "
    "bring\n"
    "                          it (Authorization: Bearer ...); needed to serve other machines\n"
    "  --max-connections N     at once on the TCP address, default 1024\n"
    "  --request-deadline-ms N most that one request may take from its first byte to the last of\n"
    "                          its answer, default 10000\n"
    "  --state PATH            database, default /var/lib/reachd/reachd.db; \":memory:\" forgets\n"
    "  --state-fallback-memory go on in memory where the database cannot be used\n"
    "  --no-measure-on-start   do not measure GPUs that have no fingerprint, or a stale one\n"
    "  --no-check-on-start     do not check whether stored fingerprints are still true\n"
    "  --log-level LEVEL       error, warning, info (default) or debug\n"
    "  --demo                  make the state directory, simulate an H200 where there is no GPU,\n"
    "                          print lines to try\n"
    "\n"
    "GPUs\n"
    "  --simulate TEXT         a simulated GPU instead of the real ones: a profile (k80, p100,\n"
    "                          a100-80g, h100-80g, h200) or a description; may be repeated\n"
    "  --libcuda NAME          driver library, default libcuda.so.1\n"
    "  --memory-limit BYTES    most device memory that probes may hold, default 1.1 GiB\n"
    "  --probe-deadline-ms N   most that one probe may take on the device, default 30000\n"
    "  --plain-arena           do without the virtual memory API\n"
    "\n"
    "Without serving\n"
    "  --measure DEPTH         measure all GPUs at once, print what was found, exit; DEPTH is\n"
    "                          quick, full or matrix; may be repeated\n"
    "  --repeat N              each of these N times\n"
    "  --export DIR            with --measure: write fingerprints and observations to a folder\n"
    "                          for each GPU under DIR\n"
    "  --conclude FILE         read exported observations (\"-\": standard input), print the\n"
    "                          fingerprint that follows from them\n"
    "  --depth DEPTH           with --conclude: as if measured at this depth\n"
    "  --worker=stdio          drive one GPU by hand, with JSON lines\n"
    "  --check-config          check the options and exit\n"
    "  --version, --help\n"
    "\n"
    "Exit status: 0 fine, 1 failed, 2 wrong options, 75 another process has the database or the\n"
    "address.\n";

const char *config_help(void)
{
    return config_help_text;
}

/* One option. `value` is "" where the option takes none. */
struct option {
    const char *name;
    bool has_value;
    enum status (*store)(struct config *c, const char *value, struct err *err);
};

static enum status config_wrong(struct err *err, const char *option, const char *sentence)
{
    return err_set(err, STATUS_INVALID_ARGUMENT, "%s %s", option, sentence);
}

static const char *config_none(const char *value)
{
    return strcmp(value, "none") == 0 ? NULL : value;
}

static enum status store_listen(struct config *c, const char *value, struct err *err)
{
    if (strcmp(value, "none") != 0 && !strrchr(value, ':')) {
        return config_wrong(err, "--listen", "takes ADDRESS:PORT, such as 127.0.0.1:17322");
    }
    c->listen = config_none(value);
    c->listen_given = true;
    return STATUS_OK;
}

static enum status store_socket(struct config *c, const char *value, struct err *err)
{
    (void)err;
    c->socket = config_none(value);
    c->socket_given = true;
    return STATUS_OK;
}

static enum status store_health(struct config *c, const char *value, struct err *err)
{
    if (strcmp(value, "none") != 0 && !strrchr(value, ':')) {
        return config_wrong(err, "--health", "takes ADDRESS:PORT, such as 127.0.0.1:17323");
    }
    c->health = config_none(value);
    c->health_given = true;
    return STATUS_OK;
}

static enum status store_token_file(struct config *c, const char *value, struct err *err)
{
    (void)err;
    c->token_file = value;
    return STATUS_OK;
}

static enum status store_state(struct config *c, const char *value, struct err *err)
{
    (void)err;
    c->state = value;
    c->state_given = true;
    return STATUS_OK;
}

static enum status store_simulate(struct config *c, const char *value, struct err *err)
{
    size_t n = 0;

    while (c->simulated[n]) {
        n++;
    }
    if (n == REACH_MAX_GPUS) {
        return config_wrong(err, "--simulate", "is given more than 32 times");
    }
    c->simulated[n] = value;
    return STATUS_OK;
}

static enum status store_libcuda(struct config *c, const char *value, struct err *err)
{
    (void)err;
    c->libcuda = value;
    return STATUS_OK;
}

static enum status store_memory_limit(struct config *c, const char *value, struct err *err)
{
    enum status status = units_parse_bytes(value, &c->memory_limit_bytes, err);

    if (status) {
        return err_prefix(err, "--memory-limit");
    }
    return c->memory_limit_bytes ? STATUS_OK : config_wrong(err, "--memory-limit", "is 0");
}

/* A decimal number from 1 to `max`, and nothing behind it. */
static enum status config_number(const char *option, const char *value, uint32_t max, uint32_t *out,
                                 struct err *err)
{
    char *end = NULL;

    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);

    if (value[0] < '0' || value[0] > '9' || *end || errno || n < 1 || n > max) {
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "%s takes a number from 1 to %u, not \"%.40s\"", option, max, value);
    }
    *out = (uint32_t)n;
    return STATUS_OK;
}

static enum status store_deadline(struct config *c, const char *value, struct err *err)
{
    const uint32_t hour_ms = 3600 * 1000;

    return config_number("--probe-deadline-ms", value, hour_ms, &c->probe_deadline_ms, err);
}

static enum status store_max_connections(struct config *c, const char *value, struct err *err)
{
    return config_number("--max-connections", value, CONFIG_MAX_CONNECTIONS, &c->max_connections,
                         err);
}

static enum status store_request_deadline(struct config *c, const char *value, struct err *err)
{
    const uint32_t hour_ms = 3600 * 1000;

    return config_number("--request-deadline-ms", value, hour_ms, &c->request_deadline_ms, err);
}

static enum status store_plain_arena(struct config *c, const char *value, struct err *err)
{
    (void)value;
    (void)err;
    c->plain_arena = true;
    return STATUS_OK;
}

static enum status store_fallback(struct config *c, const char *value, struct err *err)
{
    (void)value;
    (void)err;
    c->state_fallback_memory = true;
    return STATUS_OK;
}

static enum status store_no_measure(struct config *c, const char *value, struct err *err)
{
    (void)value;
    (void)err;
    c->measure_on_start = false;
    return STATUS_OK;
}

static enum status store_no_check(struct config *c, const char *value, struct err *err)
{
    (void)value;
    (void)err;
    c->check_on_start = false;
    return STATUS_OK;
}

static enum status store_demo(struct config *c, const char *value, struct err *err)
{
    (void)value;
    (void)err;
    c->demo = true;
    return STATUS_OK;
}

static enum status store_log_level(struct config *c, const char *value, struct err *err)
{
    static const struct {
        const char *name;
        enum log_level level;
    } levels[] = {{"error", LOG_LEVEL_ERROR},
                  {"warning", LOG_LEVEL_WARNING},
                  {"info", LOG_LEVEL_INFO},
                  {"debug", LOG_LEVEL_DEBUG}};

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(value, levels[i].name) == 0) {
            c->log_level = levels[i].level;
            return STATUS_OK;
        }
    }
    return config_wrong(err, "--log-level", "is one of error, warning, info and debug");
}

static enum status store_measure(struct config *c, const char *value, struct err *err)
{
    if (c->depth_count == CONFIG_MAX_DEPTHS) {
        return config_wrong(err, "--measure", "is given more than 16 times");
    }
    if (!depth_from_name(value, &c->depths[c->depth_count])) {
        return config_wrong(err, "--measure", "takes quick, full or matrix");
    }
    c->depth_count++;
    c->mode = CONFIG_MEASURE;
    return STATUS_OK;
}

static enum status store_repeat(struct config *c, const char *value, struct err *err)
{
    return config_number("--repeat", value, CONFIG_MAX_REPEATS, &c->repeats, err);
}

static enum status store_export(struct config *c, const char *value, struct err *err)
{
    (void)err;
    c->export_dir = value;
    return STATUS_OK;
}

static enum status store_conclude(struct config *c, const char *value, struct err *err)
{
    (void)err;
    c->conclude = value;
    c->mode = CONFIG_CONCLUDE;
    return STATUS_OK;
}

static enum status store_depth(struct config *c, const char *value, struct err *err)
{
    c->conclude_depth_given = true;
    return depth_from_name(value, &c->conclude_depth)
               ? STATUS_OK
               : config_wrong(err, "--depth", "takes quick, full or matrix");
}

static enum status store_check(struct config *c, const char *value, struct err *err)
{
    (void)value;
    (void)err;
    c->mode = CONFIG_CHECK;
    return STATUS_OK;
}

static enum status store_help(struct config *c, const char *value, struct err *err)
{
    (void)value;
    (void)err;
    c->mode = CONFIG_HELP;
    return STATUS_OK;
}

static enum status store_version(struct config *c, const char *value, struct err *err)
{
    (void)value;
    (void)err;
    c->mode = CONFIG_VERSION;
    return STATUS_OK;
}

static const struct option config_options[] = {
    {"--listen", true, store_listen},
    {"--socket", true, store_socket},
    {"--health", true, store_health},
    {"--token-file", true, store_token_file},
    {"--max-connections", true, store_max_connections},
    {"--request-deadline-ms", true, store_request_deadline},
    {"--state", true, store_state},
    {"--state-fallback-memory", false, store_fallback},
    {"--no-measure-on-start", false, store_no_measure},
    {"--no-check-on-start", false, store_no_check},
    {"--log-level", true, store_log_level},
    {"--demo", false, store_demo},
    {"--simulate", true, store_simulate},
    {"--libcuda", true, store_libcuda},
    {"--memory-limit", true, store_memory_limit},
    {"--probe-deadline-ms", true, store_deadline},
    {"--plain-arena", false, store_plain_arena},
    {"--measure", true, store_measure},
    {"--repeat", true, store_repeat},
    {"--export", true, store_export},
    {"--conclude", true, store_conclude},
    {"--depth", true, store_depth},
    {"--check-config", false, store_check},
    {"--version", false, store_version},
    {"--help", false, store_help},
};

/* The option that `argument` ("--name" or "--name=value") names, or NULL. */
static const struct option *config_find(const char *argument)
{
    size_t length = strcspn(argument, "=");

    for (size_t i = 0; i < sizeof config_options / sizeof config_options[0]; i++) {
        const struct option *o = &config_options[i];

        if (strlen(o->name) == length && strncmp(o->name, argument, length) == 0) {
            return o;
        }
    }
    return NULL;
}

/* Stores the option at argv[*i]; moves *i to the last argument it has used. */
static enum status config_take(int argc, char **argv, int *i, struct config *out, struct err *err)
{
    const char *argument = argv[*i];
    const struct option *o = config_find(argument);
    const char *value = strchr(argument, '=');

    if (!o) {
        return err_set(err, STATUS_INVALID_ARGUMENT, "there is no option %.60s; try --help",
                       argument);
    }
    if (!o->has_value) {
        return value ? config_wrong(err, o->name, "takes no value") : o->store(out, "", err);
    }
    if (value) {
        value++;
    } else if (*i + 1 < argc) {
        value = argv[++*i];
    }
    if (!value || !*value) {
        return config_wrong(err, o->name, "needs a value; try --help");
    }
    return o->store(out, value, err);
}

/* Options that mean something only beside others. */
static enum status config_check(const struct config *c, struct err *err)
{
    bool measures = c->depth_count > 0;

    if (c->export_dir && !measures) {
        return config_wrong(err, "--export", "goes with --measure");
    }
    if (c->repeats && !measures) {
        return config_wrong(err, "--repeat", "goes with --measure");
    }
    if (c->conclude_depth_given && !c->conclude) {
        return config_wrong(err, "--depth", "goes with --conclude");
    }
    if (measures && c->conclude) {
        return config_wrong(err, "--conclude", "does not go with --measure");
    }
    if (measures && c->demo) {
        return config_wrong(err, "--demo", "does not go with --measure");
    }
    return STATUS_OK;
}

enum status config_parse(int argc, char **argv, struct config *out, struct err *err)
{
    *out = (struct config){
        .listen = "127.0.0.1:17322",
        .socket = geteuid() == 0 ? "/run/reachd/reachd.sock" : NULL,
        .state = "/var/lib/reachd/reachd.db",
        .measure_on_start = true,
        .check_on_start = true,
        .log_level = LOG_LEVEL_INFO,
    };
    if (argc > 1 && strcmp(argv[1], "--worker") == 0) {
        out->mode = CONFIG_WORKER;
    } else if (argc > 1 && strcmp(argv[1], "--worker=stdio") == 0) {
        out->mode = CONFIG_WORKER_STDIO;
    }
    if (out->mode != CONFIG_SERVE) {
        return argc == 2 ? STATUS_OK : config_wrong(err, "--worker", "goes with no other option");
    }
    for (int i = 1; i < argc; i++) {
        enum status status = config_take(argc, argv, &i, out, err);

        if (status) {
            return status;
        }
        if (out->mode == CONFIG_HELP || out->mode == CONFIG_VERSION) {
            return STATUS_OK;
        }
    }
    return config_check(out, err);
}

struct gpu_options config_gpu_options(const struct config *config)
{
    return (struct gpu_options){.simulated = config->simulated[0] ? config->simulated : NULL,
                                .libcuda = config->libcuda,
                                .memory_limit_bytes = config->memory_limit_bytes,
                                .deadline_ms = config->probe_deadline_ms,
                                .plain_arena = config->plain_arena};
}
