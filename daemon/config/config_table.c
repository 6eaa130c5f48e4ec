/* config_table.c: the options, and the functions that parse, print and compare each type of
 * value. */
#include "config/config_table.h"

#include "base/units.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- checks of a value ---- */

static enum status config_wrong(struct err *err, const char *message)
{
    return err_set(err, STATUS_INVALID_ARGUMENT, "%s", message);
}

static enum status check_listen(const char *value, struct err *err)
{
    return strrchr(value, ':') ? STATUS_OK
                               : config_wrong(err, "must be ADDRESS:PORT, such as 127.0.0.1:17322");
}

/* --worker is recognized by config_parse.c if it is the only argument. */
static enum status check_worker(const char *value, struct err *err)
{
    (void)value;
    return config_wrong(err, "cannot be combined with another option");
}

/* ---- the table ---- */

static const struct config_word log_levels[] = {{"error", LOG_LEVEL_ERROR},
                                                {"warning", LOG_LEVEL_WARNING},
                                                {"info", LOG_LEVEL_INFO},
                                                {"debug", LOG_LEVEL_DEBUG},
                                                {NULL, 0}};

static const struct config_word log_formats[] = {{"auto", LOG_FORMAT_AUTO},
                                                 {"text", LOG_FORMAT_TEXT},
                                                 {"json", LOG_FORMAT_JSON},
                                                 {"journal", LOG_FORMAT_JOURNAL},
                                                 {NULL, 0}};

static const struct config_word depths[] = {{"quick", DEPTH_QUICK},
                                            {"full", DEPTH_FULL},
                                            {"memory", DEPTH_MEMORY},
                                            {"matrix", DEPTH_MATRIX},
                                            {NULL, 0}};

#define AT(field)    .offset = offsetof(struct config, field)
#define GIVEN(field) .given_offset = offsetof(struct config, field)

enum {
    CONFIG_HOUR_MS = 3600 * 1000,
    CONFIG_MAX_PERIOD_S = 31 * 24 * 3600,
    CONFIG_MAX_LOG_RATE = 1000000
};

const struct config_option config_options[] = {
    {"listen", CONFIG_SERVING, CONFIG_PLACE, AT(listen), .argument = "ADDRESS:PORT",
     .check = check_listen,
     .help = "TCP address, default 127.0.0.1:17322; port 0 selects a\n"
             "free port; \"none\" disables TCP"},
    {"socket", CONFIG_SERVING, CONFIG_PLACE, AT(socket), GIVEN(socket_given), .argument = "PATH",
     .help = "Unix socket, default /run/reachd/reachd.sock when run as\n"
             "root; \"none\" disables the socket; root and the group of\n"
             "the daemon may connect"},
    {"health", CONFIG_SERVING, CONFIG_PLACE, AT(health), GIVEN(health_given),
     .argument = "ADDRESS:PORT", .check = check_listen,
     .help = "a port for only /healthz, /readyz and /metrics, default\n"
             "the port after --listen's; \"none\" disables the port"},
    {"token-file", CONFIG_SERVING, CONFIG_TEXT, AT(token_file), .argument = "PATH",
     .help = "a secret of 16 to 256 characters, required for POST and\n"
             "DELETE (Authorization: Bearer ...) and to serve other\n"
             "machines"},
    {"max-connections", CONFIG_SERVING, CONFIG_NUMBER, AT(max_connections), .argument = "N",
     .least = 1, .most = CONFIG_MAX_CONNECTIONS,
     .help = "maximum connections to the TCP address, default 1024"},
    {"request-deadline-ms", CONFIG_SERVING, CONFIG_NUMBER, AT(request_deadline_ms), .argument = "N",
     .least = 1, .most = CONFIG_HOUR_MS,
     .help = "time limit of one request from its first byte to the\n"
             "last byte of its response, default 10000"},
    {"state", CONFIG_SERVING, CONFIG_TEXT, AT(state), GIVEN(state_given), .argument = "PATH",
     .help = "database, default /var/lib/reachd/reachd.db when run as\n"
             "root or as the owner of its directory, else\n"
             "~/.local/state/reachd/reachd.db; \":memory:\" stores nothing"},
    {"state-fallback-memory", CONFIG_SERVING, CONFIG_SWITCH, AT(state_fallback_memory),
     .help = "continue in memory if the database cannot be used"},
    {"reference", CONFIG_SERVING, CONFIG_PLACE, AT(reference), GIVEN(reference_given),
     .argument = "FOLDER",
     .help = "folder of the reference set for comparisons, default\n"
             "share/reachd/reference of the installation, or \"none\""},
    {"gpus", CONFIG_SERVING, CONFIG_SWITCH, AT(gpus), .on = true,
     .help = "do not query the driver: serve the GPUs in the database,\n"
             "and measure nothing"},
    {"expect-gpus", CONFIG_SERVING, CONFIG_NUMBER, AT(expected_gpus), .argument = "N", .least = 1,
     .most = REACH_MAX_GPUS,
     .help = "number of GPUs of the node; if the driver shows fewer,\n"
             "/v1/health, /metrics and the log report the difference"},
    {"measure-on-start", CONFIG_SERVING, CONFIG_SWITCH, AT(measure_on_start), .on = true,
     .help = "do not measure GPUs without a fingerprint or with a stale\n"
             "fingerprint"},
    {"check-on-start", CONFIG_SERVING, CONFIG_SWITCH, AT(check_on_start), .on = true,
     .help = "do not verify stored fingerprints"},
    {"check-every", CONFIG_SERVING, CONFIG_DURATION, AT(check_every_s), .argument = "DURATION",
     .least = 1, .most = CONFIG_MAX_PERIOD_S,
     .help = "check each GPU with this period, such as 1h, while no\n"
             "process uses it; report GPUs and PCIe links that have\n"
             "become slower; at most 0.1 % of the time of a GPU"},
    {"demo", CONFIG_SERVING, CONFIG_SWITCH, AT(demo),
     .help = "create the state directory, simulate an H200 if there is\n"
             "no GPU, print requests to try"},
    {"simulate", CONFIG_GPUS, CONFIG_LIST, AT(simulated), .argument = "TEXT",
     .help = "a simulated GPU instead of the real ones: a profile (k80,\n"
             "p100, a100-80g, h100-80g, h200) or a description; may be\n"
             "repeated (in the environment: separated by ';')"},
    {"libcuda", CONFIG_GPUS, CONFIG_TEXT, AT(libcuda), .argument = "NAME",
     .help = "driver library, default libcuda.so.1"},
    {"memory-limit", CONFIG_GPUS, CONFIG_BYTES, AT(memory_limit_bytes), .argument = "BYTES",
     .help = "maximum device memory of the probes, default 1.1 GiB;\n"
             "without this option, managed memory at depth memory takes\n"
             "three quarters of the free memory for some seconds"},
    {"host-memory-limit", CONFIG_GPUS, CONFIG_BYTES, AT(host_memory_bytes), .argument = "BYTES",
     .help = "maximum host memory of the probes; the default and the\n"
             "upper limit is a quarter of the available memory; depth\n"
             "full takes at most 768 MiB"},
    {"memory-time-ms", CONFIG_GPUS, CONFIG_NUMBER, AT(memory_ms), .argument = "N", .least = 1,
     .most = CONFIG_HOUR_MS,
     .help = "time for host, managed and peer memory, default 1000 at\n"
             "depth full and 60000 at depth memory; after this time no\n"
             "further kind of memory is measured"},
    {"probe-deadline-ms", CONFIG_GPUS, CONFIG_NUMBER, AT(probe_deadline_ms), .argument = "N",
     .least = 1, .most = CONFIG_HOUR_MS,
     .help = "time limit of one probe on the device, default 30000"},
    {"vmm", CONFIG_GPUS, CONFIG_SWITCH, AT(vmm), .on = true,
     .help = "do not use the virtual memory API"},
    {"log-level", CONFIG_LOG, CONFIG_WORD, .live = true, AT(log_level), .argument = "LEVEL",
     .words = log_levels, .help = "error, warning, info (default) or debug"},
    {"log-format", CONFIG_LOG, CONFIG_WORD, .live = true, AT(log_format), .argument = "FORMAT",
     .words = log_formats,
     .help = "text; json: one object per line; journal: fields of\n"
             "systemd's journal; auto (default): journal if standard\n"
             "error is connected to the journal, else text"},
    {"log-rate", CONFIG_LOG, CONFIG_NUMBER, .live = true, AT(log_rate), .argument = "N",
     .most = CONFIG_MAX_LOG_RATE,
     .help = "maximum lines per second, default 50; a burst may have the\n"
             "lines of ten seconds; warnings are counted separately;\n"
             "0 disables the limit"},
    {"config", CONFIG_ONCE, CONFIG_FLAG, .argument = "PATH",
     .help = "configuration file, default " CONFIG_DEFAULT_FILE "\n"
             "if it exists, or \"none\""},
    {"check-config", CONFIG_ONCE, CONFIG_FLAG, .mode = CONFIG_CHECK,
     .help = "do the steps of a start without serving; print the options\n"
             "in effect, or the error, and exit"},
    {"measure", CONFIG_ONCE, CONFIG_DEPTHS, AT(depths), .mode = CONFIG_MEASURE, .argument = "DEPTH",
     .words = depths,
     .help = "measure all GPUs at the same time, print the results, exit;\n"
             "DEPTH is quick, full, memory or matrix; may be repeated"},
    {"repeat", CONFIG_ONCE, CONFIG_NUMBER, AT(repeats), .argument = "N", .least = 1,
     .most = CONFIG_MAX_REPEATS, .help = "make each measurement N times"},
    {"export", CONFIG_ONCE, CONFIG_TEXT, AT(export_dir), .argument = "DIR",
     .help = "with --measure: write fingerprints and observations to a\n"
             "folder for each GPU under DIR"},
    {"analyze", CONFIG_ONCE, CONFIG_TEXT, AT(analyze), .mode = CONFIG_ANALYZE, .argument = "FILE",
     .help = "read exported observations (\"-\": standard input), print the\n"
             "resulting fingerprint"},
    {"depth", CONFIG_ONCE, CONFIG_WORD, AT(analyze_depth), GIVEN(analyze_depth_given),
     .argument = "DEPTH", .words = depths,
     .help = "with --analyze: analyze as a measurement of this depth"},
    {"worker", CONFIG_ONCE, CONFIG_FLAG, .check = check_worker, .argument = "stdio",
     .help = "drive one GPU by hand, with JSON lines"},
    {"version", CONFIG_ONCE, CONFIG_FLAG, .mode = CONFIG_VERSION, .help = "print the version"},
    {"help", CONFIG_ONCE, CONFIG_FLAG, .mode = CONFIG_HELP, .help = "print this summary"},
};

const size_t config_option_count = sizeof config_options / sizeof config_options[0];

/* ---- values ---- */

static void *config_field(struct config *c, const struct config_option *o)
{
    return (char *)c + o->offset;
}

static const void *config_value(const struct config *c, const struct config_option *o)
{
    return (const char *)c + o->offset;
}

/* Returns whether the option was given. Options without a `given` field always count as given. */
static bool config_given(const struct config *c, const struct config_option *o)
{
    return !o->given_offset || *(const bool *)((const char *)c + o->given_offset);
}

static enum status store_number(struct config *c, const struct config_option *o, const char *value,
                                struct err *err)
{
    char *end = NULL;

    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);

    if (value[0] < '0' || value[0] > '9' || *end || errno || n < o->least || n > o->most)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "must be a number from %u to %u, not \"%.40s\"", o->least, o->most, value);
    *(uint32_t *)config_field(c, o) = (uint32_t)n;
    return STATUS_OK;
}

static enum status store_duration(struct config *c, const struct config_option *o,
                                  const char *value, struct err *err)
{
    struct err why = {0};
    uint64_t seconds = 0;

    if (units_parse_seconds(value, &seconds, &why))
        return err_set(err, STATUS_INVALID_ARGUMENT, "must be a duration: %s", why.text);
    if (seconds < o->least || seconds > o->most)
        return err_set(err, STATUS_INVALID_ARGUMENT, "must be from %us to %ud, not \"%.40s\"",
                       o->least, o->most / (24 * 3600), value);
    *(uint32_t *)config_field(c, o) = (uint32_t)seconds;
    return STATUS_OK;
}

static enum status store_text(struct config *c, const struct config_option *o, const char *value,
                              struct err *err)
{
    const bool none = o->type == CONFIG_PLACE && strcmp(value, "none") == 0;
    enum status status = none || !o->check ? STATUS_OK : o->check(value, err);

    if (!status)
        *(const char **)config_field(c, o) = none ? NULL : value;
    return status;
}

static enum status store_bytes(struct config *c, const struct config_option *o, const char *value,
                               struct err *err)
{
    struct err why = {0};
    uint64_t bytes = 0;

    if (units_parse_bytes(value, &bytes, &why))
        return err_set(err, STATUS_INVALID_ARGUMENT, "must be a size: %s", why.text);
    if (bytes == 0)
        return config_wrong(err, "must not be 0");
    *(uint64_t *)config_field(c, o) = bytes;
    return STATUS_OK;
}

static enum status store_switch(struct config *c, const struct config_option *o, const char *value,
                                struct err *err)
{
    bool *field = config_field(c, o);

    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return err_set(err, STATUS_INVALID_ARGUMENT, "must be yes or no, not \"%.40s\"", value);
    *field = value[0] == 'y';
    return STATUS_OK;
}

/* Stores the value of a word in `out`, which is an enum. */
static enum status find_word(const struct config_option *o, const char *value, void *out,
                             struct err *err)
{
    char words[100] = "";
    size_t used = 0;

    for (const struct config_word *w = o->words; w->name; w++) {
        if (strcmp(value, w->name) == 0) {
            memcpy(out, &w->value, sizeof w->value);
            return STATUS_OK;
        }
        used +=
            (size_t)snprintf(words + used, sizeof words - used, "%s%s", used ? ", " : "", w->name);
    }
    return err_set(err, STATUS_INVALID_ARGUMENT, "must be one of %s, not \"%.40s\"", words, value);
}

static enum status store_depth(struct config *c, const struct config_option *o, const char *value,
                               struct err *err)
{
    enum status status = c->depth_count < CONFIG_MAX_DEPTHS
                             ? find_word(o, value, &c->depths[c->depth_count], err)
                             : config_wrong(err, "is given more than 16 times");

    c->depth_count += !status;
    return status;
}

static enum status store_item(struct config *c, const struct config_option *o, const char *value,
                              enum config_source source, struct err *err)
{
    const char **items = config_field(c, o);
    size_t n = 0;

    if (c->list_source != source) {
        memset(items, 0, (REACH_MAX_GPUS + 1) * sizeof *items);
        c->list_source = source;
    }
    while (items[n])
        n++;
    if (n == REACH_MAX_GPUS)
        return config_wrong(err, "is given more than 32 times");
    items[n] = value;
    return STATUS_OK;
}

enum status config_store(struct config *c, const struct config_option *o, const char *value,
                         enum config_source source, struct err *err)
{
    enum status status = STATUS_OK;

    switch (o->type) {
    case CONFIG_TEXT:
    case CONFIG_PLACE:
        status = store_text(c, o, value, err);
        break;
    case CONFIG_BYTES:
        status = store_bytes(c, o, value, err);
        break;
    case CONFIG_DURATION:
        status = store_duration(c, o, value, err);
        break;
    case CONFIG_NUMBER:
        status = store_number(c, o, value, err);
        break;
    case CONFIG_SWITCH:
        status = store_switch(c, o, value, err);
        break;
    case CONFIG_WORD:
        status = find_word(o, value, config_field(c, o), err);
        break;
    case CONFIG_LIST:
        status = store_item(c, o, value, source, err);
        break;
    case CONFIG_DEPTHS:
        status = store_depth(c, o, value, err);
        break;
    case CONFIG_FLAG:
        status = o->check ? o->check(value, err) : STATUS_OK;
        break;
    }
    if (!status && o->given_offset)
        *(bool *)((char *)c + o->given_offset) = true;
    if (!status && o->mode)
        c->mode = o->mode;
    return status;
}

static const char *show_word(const struct config_option *o, const void *value)
{
    for (const struct config_word *w = o->words; w->name; w++) {
        if (memcmp(&w->value, value, sizeof w->value) == 0)
            return w->name;
    }
    return NULL;
}

const char *config_show(const struct config *c, const struct config_option *o, size_t index,
                        char *out, size_t out_size)
{
    const void *value = config_value(c, o);
    const char *text = NULL;

    switch (o->type) {
    case CONFIG_TEXT:
        return *(const char *const *)value;
    case CONFIG_PLACE:
        text = *(const char *const *)value;
        return text || !config_given(c, o) ? text : "none";
    case CONFIG_BYTES:
        return *(const uint64_t *)value ? units_print_bytes(*(const uint64_t *)value, out, out_size)
                                        : NULL;
    case CONFIG_DURATION:
        return *(const uint32_t *)value
                   ? units_print_seconds(*(const uint32_t *)value, out, out_size)
                   : NULL;
    case CONFIG_NUMBER:
        snprintf(out, out_size, "%u", *(const uint32_t *)value);
        return *(const uint32_t *)value >= o->least ? out : NULL;
    case CONFIG_SWITCH:
        return *(const bool *)value ? "yes" : "no";
    case CONFIG_WORD:
        return show_word(o, value);
    case CONFIG_LIST:
        return ((const char *const *)value)[index];
    case CONFIG_DEPTHS:
    case CONFIG_FLAG:
        break;
    }
    return NULL;
}

bool config_same(const struct config *a, const struct config *b, const struct config_option *o)
{
    for (size_t i = 0;; i++) {
        char one[40], other[40];
        const char *x = config_show(a, o, i, one, sizeof one);
        const char *y = config_show(b, o, i, other, sizeof other);

        if (!x || !y || strcmp(x, y) != 0)
            return !x && !y;
        if (o->type != CONFIG_LIST)
            return true;
    }
}

void config_copy(struct config *to, const struct config *from, const struct config_option *o)
{
    static const size_t sizes[] = {[CONFIG_BYTES] = sizeof(uint64_t),
                                   [CONFIG_NUMBER] = sizeof(uint32_t),
                                   [CONFIG_SWITCH] = sizeof(bool),
                                   [CONFIG_WORD] = sizeof(int)};

    memcpy(config_field(to, o), config_value(from, o), sizes[o->type]);
}
