/* config_parse.c: reads the options, and decides which of them wins.
 *
 * The three places are read in turn: file, environment, command line. A later place overrides an
 * earlier one, and all override the defaults. config_table.c stores the values. An error message
 * contains the name that the option has in its place.
 */
#include "config/config.h"

#include "config/config_table.h"
#include "store/store_path.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_DEFAULT_LOG_RATE = 50, CONFIG_NAME_BYTES = 64 };

#define CONFIG_PREFIX "REACHD_"
/* A variable that the environment file of the unit sets. The unit puts its value on the command
 * line. */
#define CONFIG_OF_UNIT "REACHD_OPTIONS="
/* A variable of the clients: the daemon's address. */
#define CONFIG_OF_CLIENTS "REACHD_URL="
/* The prefix of variables for the workers of a daemon. It is not CONFIG_PREFIX, because variables
 * with CONFIG_PREFIX would override the file at SIGHUP. */
#define CONFIG_WORKER_PREFIX "REACH_WORKER_"

/* A text with the lifetime of the configuration. */
struct config_text {
    struct config_text *next;
    char text[];
};

static const char *config_keep(struct config *c, const char *text, size_t length)
{
    struct config_text *kept = malloc(sizeof *kept + length + 1);

    if (!kept)
        return NULL;
    memcpy(kept->text, text, length);
    kept->text[length] = '\0';
    kept->next = c->texts;
    c->texts = kept;
    return kept->text;
}

void config_free(struct config *config)
{
    while (config->texts) {
        struct config_text *next = config->texts->next;

        free(config->texts);
        config->texts = next;
    }
}

/* Returns the default path of the state file, which depends on the user and is determined once. */
static const char *config_default_state(void)
{
    static char path[PATH_MAX];

    if (!path[0])
        store_default_path(path, sizeof path);
    return path;
}

struct config config_defaults(void)
{
    return (struct config){
        .listen = "127.0.0.1:17322",
        .socket = geteuid() == 0 ? "/run/reachd/reachd.sock" : NULL,
        .state = config_default_state(),
        .gpus = true,
        .measure_on_start = true,
        .check_on_start = true,
        .vmm = true,
        .log_level = LOG_LEVEL_INFO,
        .log_format = LOG_FORMAT_AUTO,
        .log_rate = CONFIG_DEFAULT_LOG_RATE,
    };
}

static const struct config_option *config_find(const char *name, size_t length)
{
    for (size_t i = 0; i < config_option_count; i++) {
        const struct config_option *o = &config_options[i];

        if (strlen(o->name) == length && strncmp(o->name, name, length) == 0)
            return o;
    }
    return NULL;
}

/* Stores a value; an error begins with `who`: "--repeat must be a number ...". */
static enum status config_put(struct config *c, const struct config_option *o, const char *value,
                              enum config_source source, const char *who, struct err *err)
{
    struct err why = {0};
    enum status status = *value
                             ? config_store(c, o, value, source, &why)
                             : err_set(&why, STATUS_INVALID_ARGUMENT, "needs a value; see --help");

    return status ? err_set(err, status, "%s %s", who, why.text) : STATUS_OK;
}

/* ---- file ---- */

/* One line of a configuration file. */
struct config_line {
    const char *file;
    unsigned number;
    uint64_t seen; /* one bit for each option that was set */
};

/* Removes blanks at both ends of a text. */
static void config_trim(const char **text, size_t *length)
{
    while (*length > 0 && isspace((unsigned char)(*text)[0])) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && isspace((unsigned char)(*text)[*length - 1]))
        (*length)--;
}

static enum status config_parse_line(struct config *c, struct config_line *at, const char *text,
                                     size_t length, struct err *err)
{
    char who[CONFIG_NAME_BYTES + 200];

    config_trim(&text, &length);
    if (length == 0 || text[0] == '#')
        return STATUS_OK;
    const char *equals = memchr(text, '=', length);
    size_t name_length = equals ? (size_t)(equals - text) : length;
    const char *name = text, *value = equals ? equals + 1 : text;
    size_t value_length = equals ? length - name_length - 1 : 0;

    config_trim(&name, &name_length);
    config_trim(&value, &value_length);
    snprintf(who, sizeof who, "%.200s:%u: %.*s", at->file, at->number,
             name_length < CONFIG_NAME_BYTES ? (int)name_length : CONFIG_NAME_BYTES - 1, name);
    const struct config_option *o = config_find(name, name_length);

    if (!equals)
        return err_set(err, STATUS_INVALID_ARGUMENT, "%s: a line must be NAME = VALUE", who);
    if (!o || o->section == CONFIG_ONCE)
        return err_set(err, STATUS_INVALID_ARGUMENT, "%s %s", who,
                       o ? "belongs on the command line" : "is not an option; see reachd.conf(5)");
    const uint64_t bit = (uint64_t)1 << (o - config_options);

    if (o->type != CONFIG_LIST && (at->seen & bit))
        return err_set(err, STATUS_INVALID_ARGUMENT, "%s is given twice", who);
    at->seen |= bit;
    const char *kept = config_keep(c, value, value_length);

    return kept ? config_put(c, o, kept, CONFIG_FILE, who, err)
                : err_no_memory(err, "%s", at->file);
}

enum status config_read_text(struct config *out, const char *name, const char *text, size_t size,
                             struct err *err)
{
    struct config_line at = {.file = name};

    if (memchr(text, '\0', size))
        return err_set(err, STATUS_INVALID_ARGUMENT, "%s is not text: the file has a zero byte",
                       name);
    for (size_t start = 0; start < size;) {
        const char *newline = memchr(text + start, '\n', size - start);
        size_t length = newline ? (size_t)(newline - (text + start)) : size - start;

        at.number++;
        enum status status = config_parse_line(out, &at, text + start, length, err);

        if (status)
            return status;
        start += length + 1;
    }
    return STATUS_OK;
}

/* Reads the whole file to `out` (CONFIG_MAX_FILE_BYTES + 1). Refuses a pipe or a device, because
 * reading one might block or never end. */
static enum status config_load(const char *path, char *out, size_t *out_size, struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t n = regular ? read(fd, out, CONFIG_MAX_FILE_BYTES + 1) : -1;
    enum status status = STATUS_OK;

    if (fd >= 0 && !regular) {
        status = err_set(err, STATUS_INVALID_ARGUMENT, "%s is not a regular file", path);
    } else if (n < 0) {
        status = err_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_INVALID_ARGUMENT,
                         "cannot read %s: %s", path, strerror(errno));
    } else if (n > CONFIG_MAX_FILE_BYTES) {
        status = err_set(err, STATUS_INVALID_ARGUMENT, "%s has more than %d bytes", path,
                         CONFIG_MAX_FILE_BYTES);
    }
    *out_size = n > 0 ? (size_t)n : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

/* Returns the path from --config, else from the environment, else NULL. */
static const char *config_named_file(int argc, char **argv)
{
    const char *named = getenv(CONFIG_PREFIX "CONFIG");

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--config=", strlen("--config=")) == 0) {
            named = argv[i] + strlen("--config=");
        } else if (strcmp(argv[i], "--config") == 0 && i + 1 < argc) {
            named = argv[++i];
        }
    }
    return named && *named ? named : NULL;
}

static enum status config_parse_file(int argc, char **argv, struct config *out, struct err *err)
{
    const char *named = config_named_file(argc, argv);
    const char *path = named ? named : CONFIG_DEFAULT_FILE;
    size_t size = 0;

    if (strcmp(path, "none") == 0)
        return STATUS_OK;
    char *text = malloc(CONFIG_MAX_FILE_BYTES + 1);

    if (!text)
        return err_set(err, STATUS_NO_MEMORY, "cannot read the configuration file: out of memory");
    out->blame = CONFIG_FILE;
    enum status status = config_load(path, text, &size, err);

    if (!status) {
        out->file = path;
        status = config_read_text(out, path, text, size, err);
    } else if (status == STATUS_NOT_FOUND) {
        status = named ? STATUS_INVALID_ARGUMENT : STATUS_OK;
    }
    free(text);
    return status;
}

/* ---- environment ---- */

/* Writes the name of a variable: "log-level" becomes "REACHD_LOG_LEVEL". */
static void config_variable(const char *prefix, const struct config_option *o,
                            char out[CONFIG_NAME_BYTES])
{
    size_t used = (size_t)snprintf(out, CONFIG_NAME_BYTES, "%s", prefix);

    for (const char *s = o->name; *s && used < CONFIG_NAME_BYTES - 1; s++)
        out[used++] = *s == '-' ? '_' : (char)toupper((unsigned char)*s);
    out[used] = '\0';
}

/* Stores the items of a list, which are separated by semicolons. */
static enum status config_parse_list(struct config *c, const struct config_option *o,
                                     const char *value, const char *who, struct err *err)
{
    for (const char *item = value; item;) {
        const char *end = strchr(item, ';');
        const char *text = item;
        size_t length = end ? (size_t)(end - item) : strlen(item);

        config_trim(&text, &length);
        const char *kept = config_keep(c, text, length);
        enum status status = kept ? config_put(c, o, kept, CONFIG_ENVIRONMENT, who, err)
                                  : err_no_memory(err, "%s", who);

        if (status)
            return status;
        item = end ? end + 1 : NULL;
    }
    return STATUS_OK;
}

/* Finds a variable with our prefix that is not an option. It is most likely misspelled. */
static void config_find_unknown(struct config *c)
{
    for (char **v = environ; v && *v; v++) {
        char name[CONFIG_NAME_BYTES];
        bool known = strncmp(*v, CONFIG_PREFIX, strlen(CONFIG_PREFIX)) != 0 ||
                     strncmp(*v, CONFIG_OF_UNIT, strlen(CONFIG_OF_UNIT)) == 0 ||
                     strncmp(*v, CONFIG_OF_CLIENTS, strlen(CONFIG_OF_CLIENTS)) == 0;

        for (size_t i = 0; i < config_option_count && !known; i++) {
            config_variable(CONFIG_PREFIX, &config_options[i], name);
            known = strncmp(*v, name, strlen(name)) == 0 && (*v)[strlen(name)] == '=';
        }
        if (!known)
            snprintf(c->unknown_variable, sizeof c->unknown_variable, "%.*s", (int)strcspn(*v, "="),
                     *v);
    }
}

/* An empty variable counts as unset, because an environment file may contain it. */
static enum status config_parse_environment(struct config *out, bool only_live, struct err *err)
{
    out->blame = CONFIG_ENVIRONMENT;
    for (size_t i = 0; i < config_option_count; i++) {
        const struct config_option *o = &config_options[i];
        char name[CONFIG_NAME_BYTES];

        config_variable(only_live ? CONFIG_WORKER_PREFIX : CONFIG_PREFIX, o, name);
        const bool wanted = o->section != CONFIG_ONCE && (o->live || !only_live);
        const char *value = wanted ? getenv(name) : NULL;
        enum status status = STATUS_OK;

        if (value && *value && o->type == CONFIG_LIST) {
            status = config_parse_list(out, o, value, name, err);
        } else if (value && *value) {
            status = config_put(out, o, value, CONFIG_ENVIRONMENT, name, err);
        }
        if (status)
            return status;
    }
    config_find_unknown(out);
    return STATUS_OK;
}

/* ---- command line ---- */

/* Returns the option of `argument` ("--name", "--name=value", "--no-name"), or NULL if there is
 * none. */
static const struct config_option *config_match(const char *argument, bool *out_no)
{
    static const char no[] = "--no-";
    const size_t length = strcspn(argument, "=");
    const struct config_option *o =
        strncmp(argument, "--", 2) == 0 ? config_find(argument + 2, length - 2) : NULL;

    *out_no = !o && strncmp(argument, no, strlen(no)) == 0;
    if (*out_no) {
        o = config_find(argument + strlen(no), length - strlen(no));
        o = o && o->type == CONFIG_SWITCH ? o : NULL;
    }
    return o;
}

/* Stores the option at argv[*i] and moves *i to its last argument. */
static enum status config_parse_argument(int argc, char **argv, int *i, struct config *out,
                                         struct err *err)
{
    const char *argument = argv[*i];
    const char *value = strchr(argument, '=');
    char who[CONFIG_NAME_BYTES];
    bool no = false;
    const struct config_option *o = config_match(argument, &no);

    if (!o)
        return err_set(err, STATUS_INVALID_ARGUMENT, "unknown option %.60s; see --help", argument);
    snprintf(who, sizeof who, "--%s%s", no ? "no-" : "", o->name);
    if (!o->argument)
        return value ? err_set(err, STATUS_INVALID_ARGUMENT, "%s takes no value", who)
                     : config_put(out, o, no ? "no" : "yes", CONFIG_COMMAND_LINE, who, err);
    value = value ? value + 1 : *i + 1 < argc ? argv[++*i] : "";
    return config_put(out, o, value, CONFIG_COMMAND_LINE, who, err);
}

/* Checks options that are valid only together with others. */
static enum status config_check(const struct config *c, struct err *err)
{
    const bool measures = c->depth_count > 0;
    const char *wrong = c->export_dir && !measures              ? "--export goes with --measure"
                        : c->repeats && !measures               ? "--repeat goes with --measure"
                        : c->analyze_depth_given && !c->analyze ? "--depth goes with --analyze"
                        : measures && c->analyze ? "--analyze does not go with --measure"
                        : measures && c->demo    ? "--demo does not go with --measure"
                                                 : NULL;

    return wrong ? err_set(err, STATUS_INVALID_ARGUMENT, "%s", wrong) : STATUS_OK;
}

/* Returns whether the command is `reachd --worker`, which gets its options from the daemon. */
static bool config_is_worker(int argc, char **argv, struct config *out)
{
    if (argc == 2 && strcmp(argv[1], "--worker") == 0) {
        out->mode = CONFIG_WORKER;
    } else if (argc == 2 && strcmp(argv[1], "--worker=stdio") == 0) {
        out->mode = CONFIG_WORKER_STDIO;
    }
    return out->mode != CONFIG_SERVE;
}

enum status config_parse(int argc, char **argv, struct config *out, struct err *err)
{
    *out = config_defaults();
    if (config_is_worker(argc, argv, out))
        return config_parse_environment(out, true, err);
    /* Help is printed even if another option is wrong. */
    for (int i = 1; i < argc && out->mode == CONFIG_SERVE; i++)
        out->mode = strcmp(argv[i], "--help") == 0      ? CONFIG_HELP
                    : strcmp(argv[i], "--version") == 0 ? CONFIG_VERSION
                                                        : CONFIG_SERVE;
    if (out->mode != CONFIG_SERVE)
        return STATUS_OK;
    enum status status = config_parse_file(argc, argv, out, err);

    status = status ? status : config_parse_environment(out, false, err);
    for (int i = 1; i < argc && !status; i++) {
        out->blame = CONFIG_COMMAND_LINE;
        status = config_parse_argument(argc, argv, &i, out, err);
    }
    return status ? status : config_check(out, err);
}

/* ---- the worker ---- */

void config_pass_on(const struct config *config)
{
    for (size_t i = 0; i < config_option_count; i++) {
        const struct config_option *o = &config_options[i];
        char name[CONFIG_NAME_BYTES], text[40];
        const char *value = o->live ? config_show(config, o, 0, text, sizeof text) : NULL;

        config_variable(CONFIG_WORKER_PREFIX, o, name);
        if (value)
            setenv(name, value, 1);
    }
}

/* ---- what other modules use ---- */

void config_reload(struct config *to, const struct config *from, char *others, size_t size)
{
    size_t used = 0;

    others[0] = '\0';
    for (size_t i = 0; i < config_option_count; i++) {
        const struct config_option *o = &config_options[i];

        if (o->live) {
            config_copy(to, from, o);
        } else if (o->section != CONFIG_ONCE && !config_same(to, from, o) && used < size) {
            used += (size_t)snprintf(others + used, size - used, "%s%s", used ? " " : "", o->name);
        }
    }
}

struct gpu_options config_gpu_options(const struct config *config)
{
    return (struct gpu_options){.simulated = config->simulated[0] ? config->simulated : NULL,
                                .libcuda = config->libcuda,
                                .memory_limit_bytes = config->memory_limit_bytes,
                                .host_memory_bytes = config->host_memory_bytes,
                                .state = config->state,
                                .memory_ms = config->memory_ms,
                                .deadline_ms = config->probe_deadline_ms,
                                .no_vmm = !config->vmm};
}

enum status config_check_simulated(const struct config *config, struct err *err)
{
    const struct gpu_options options = config_gpu_options(config);
    struct gpu_identity *gpus;
    struct err why = {0};
    uint32_t count = 0;
    enum status status;

    if (!options.simulated)
        return STATUS_OK;
    gpus = calloc(REACH_MAX_GPUS, sizeof *gpus);
    if (!gpus)
        return err_no_memory(err, "a list of GPUs");
    status = gpu_list(&options, gpus, REACH_MAX_GPUS, &count, &why);
    free(gpus);
    return status ? err_set(err, STATUS_INVALID_ARGUMENT, "%s", why.text) : STATUS_OK;
}
