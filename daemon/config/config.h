/* config.h: the options of reachd.
 *
 * An option has one name and three places: the configuration file ("log-level = debug"), the
 * environment (REACHD_LOG_LEVEL=debug) and the command line (--log-level debug). A later place
 * overrides an earlier one. config_table.c has the table of all options. Options that apply once
 * (--measure, --help) are accepted on the command line only.
 */
#pragma once

#include "types/identity.h"
#include "base/log.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "gpu/gpu.h"

#include <stdio.h>

enum config_mode {
    CONFIG_SERVE = 0,
    CONFIG_MEASURE, /* measures, prints, exports and exits */
    CONFIG_ANALYZE, /* reads observations from a file and prints the fingerprint */
    CONFIG_CHECK,
    CONFIG_HELP,
    CONFIG_VERSION,
    CONFIG_WORKER, /* started by the daemon, connected through descriptor 3 */
    CONFIG_WORKER_STDIO
};

enum {
    CONFIG_MAX_DEPTHS = 16,
    CONFIG_MAX_REPEATS = 1000,
    CONFIG_MAX_CONNECTIONS = 100000,
    CONFIG_MAX_FILE_BYTES = 64 << 10
};

#define CONFIG_DEFAULT_FILE "/etc/reachd/reachd.conf"

/* The place that a value came from. */
enum config_source { CONFIG_DEFAULT = 0, CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_COMMAND_LINE };

/* Strings are borrowed from the command line and the environment, static, or kept in `texts`. */
struct config {
    enum config_mode mode;
    const char *file;       /* the configuration file that was read, or NULL */
    const char *listen;     /* "ADDRESS:PORT", or NULL */
    const char *health;     /* "ADDRESS:PORT" for health probes, or NULL */
    bool health_given;      /* if false, health probes use the port after the port of `listen` */
    const char *socket;     /* path of the Unix socket, or NULL */
    bool socket_given;      /* if true, a socket that cannot be used is an error */
    const char *token_file; /* if NULL, the service manager's credential is used if there is one */
    uint32_t max_connections;     /* limit for the port; 0 means 1024 */
    uint32_t request_deadline_ms; /* limit of one request; 0 means 10 s */
    const char *reference;        /* folder with documents of other chips, or NULL */
    bool reference_given;         /* if false, the installed folder is used if it exists */
    const char *state;            /* path or ":memory:" */
    bool state_given;
    bool state_fallback_memory;
    bool gpus; /* if false, stored results are served and no worker starts */
    const char *simulated[REACH_MAX_GPUS + 1]; /* NULL-terminated */
    const char *libcuda;                       /* driver library; NULL means libcuda.so.1 */
    uint64_t memory_limit_bytes; /* limit of device memory; 0 means the default of gpu.h */
    uint64_t host_memory_bytes;  /* limit of host memory; 0 means the default of gpu.h */
    uint32_t memory_ms;          /* time for other memory; 0 means the default of gpu.h */
    uint32_t probe_deadline_ms;  /* limit of one probe; 0 means the default of gpu.h */
    bool vmm;                    /* whether to use the virtual memory API */
    uint32_t check_every_s;      /* period of quick checks; 0 means none */
    uint32_t expected_gpus;      /* GPUs that the node must have; 0 means any number */
    bool measure_on_start;
    bool check_on_start;
    bool demo;
    enum log_level log_level;
    enum log_format log_format;
    uint32_t log_rate;    /* lines per second of each kind; 0 means no limit */
    uint32_t depth_count; /* CONFIG_MEASURE */
    enum depth depths[CONFIG_MAX_DEPTHS];
    uint32_t repeats;
    const char *export_dir; /* CONFIG_MEASURE: NULL means print only */
    const char *analyze;    /* CONFIG_ANALYZE: a path, or "-" for standard input */
    bool analyze_depth_given;
    enum depth analyze_depth;
    enum config_source list_source; /* source of `simulated`; a later place replaces the list */
    enum config_source blame;       /* the place of an error */
    char unknown_variable[64];      /* a REACHD_ variable that is not an option, or "" */
    struct config_text *texts;      /* owned */
};

/* Reads file, environment and command line. Give `*out` to config_free in any case. Returns
 * STATUS_INVALID_ARGUMENT, with the option and its place in the message, if an option is wrong or
 * the file cannot be read. `out->blame` is the place of the error. */
enum status config_parse(int argc, char **argv, struct config *out, struct err *err);
void config_free(struct config *config);

/* Reads the text of a configuration file, without a terminating zero, and overrides the values in
 * `*out` (from config_defaults, or {0}). `name` is the name of the file in error messages. */
enum status config_read_text(struct config *out, const char *name, const char *text, size_t size,
                             struct err *err);
/* The defaults. */
struct config config_defaults(void);

/* Copies to `to` the options of `from` that may change while the daemon serves. `others`
 * (space-separated, cut at `size`, "" if there are none) gets the names of options that differ and
 * need a restart. */
void config_reload(struct config *to, const struct config *from, char *others, size_t size);

/* Puts the logging options into the environment, from which workers read them. Call it before
 * threads start. */
void config_pass_on(const struct config *config);

/* Returns the options for the GPUs, which borrow from `config`. */
struct gpu_options config_gpu_options(const struct config *config);

/* Returns STATUS_INVALID_ARGUMENT if the simulator does not have a GPU of `simulated`; the daemon
 * would have nothing to serve. */
enum status config_check_simulated(const struct config *config, struct err *err);

/* Prints one paragraph per option, for --help. */
void config_print_help(FILE *out);
/* Prints the options in effect in the form of a configuration file. */
void config_print(const struct config *config, FILE *out);
