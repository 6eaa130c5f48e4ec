/* config.h: the options of reachd.
 *
 * An option has one name and three places, of which the later wins: the configuration file
 * ("log-level = debug"), the environment (REACHD_LOG_LEVEL=debug) and the command line (--log-level
 * debug). config_table.c has the table of them all. Options that apply once (--measure, --help) are
 * on the command line alone.
 */
#ifndef REACH_CONFIG_CONFIG_H
#define REACH_CONFIG_CONFIG_H

#include "types/identity.h"
#include "base/log.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "gpu/gpu.h"

#include <stdio.h>

enum config_mode {
    CONFIG_SERVE = 0,
    CONFIG_MEASURE, /* measure, print, export, exit */
    CONFIG_ANALYZE, /* observations from a file in, fingerprint out */
    CONFIG_CHECK,
    CONFIG_HELP,
    CONFIG_VERSION,
    CONFIG_WORKER, /* started by the daemon, over descriptor 3 */
    CONFIG_WORKER_STDIO
};

enum {
    CONFIG_MAX_DEPTHS = 16,
    CONFIG_MAX_REPEATS = 1000,
    CONFIG_MAX_CONNECTIONS = 100000,
    CONFIG_MAX_FILE_BYTES = 64 << 10
};

#define CONFIG_DEFAULT_FILE "/etc/reachd/reachd.conf"

/* Where a value came from. */
enum config_source { CONFIG_DEFAULT = 0, CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_COMMAND_LINE };

/* Strings are borrowed from the command line and the environment, static, or kept in `texts`. */
struct config {
    enum config_mode mode;
    const char *file;             /* the configuration file that was read, NULL: none */
    const char *listen;           /* "ADDRESS:PORT", NULL: none */
    const char *health;           /* the same, for health probes; NULL: none */
    bool health_given;            /* otherwise the port after the port of `listen` */
    const char *socket;           /* path, NULL: none */
    bool socket_given;            /* not a default: it must work */
    const char *token_file;       /* NULL: the service manager's credential, if there is one */
    uint32_t max_connections;     /* of the port; 0: 1024 */
    uint32_t request_deadline_ms; /* 0: 10 s */
    const char *reference;        /* folder of other chips, NULL: none */
    bool reference_given;         /* otherwise the installed one, if it is there */
    const char *state;            /* path or ":memory:" */
    bool state_given;
    bool state_fallback_memory;
    bool gpus; /* false: serve what is stored, and start no worker */
    const char *simulated[REACH_MAX_GPUS + 1]; /* NULL-terminated */
    const char *libcuda;                       /* NULL: libcuda.so.1 */
    uint64_t memory_limit_bytes;               /* 0: the default of gpu.h */
    uint64_t host_memory_bytes;                /* likewise */
    uint32_t memory_ms;                        /* likewise */
    uint32_t probe_deadline_ms;                /* 0: the default of gpu.h */
    bool vmm;                                  /* use the virtual memory API */
    bool measure_on_start;
    bool check_on_start;
    bool demo;
    enum log_level log_level;
    enum log_format log_format;
    uint32_t log_rate;    /* lines a second of each kind; 0: no limit */
    uint32_t depth_count; /* CONFIG_MEASURE */
    enum depth depths[CONFIG_MAX_DEPTHS];
    uint32_t repeats;
    const char *export_dir; /* CONFIG_MEASURE; NULL: print only */
    const char *analyze;    /* CONFIG_ANALYZE: path, "-": standard input */
    bool analyze_depth_given;
    enum depth analyze_depth;
    enum config_source list_source; /* of `simulated`: a later place replaces the whole list */
    enum config_source blame;       /* after an error: its place */
    char unknown_variable[64];      /* a REACHD_ variable that is not an option, "": none */
    struct config_text *texts;      /* owned */
};

/* Reads file, environment and command line. Give `*out` to config_free in any case.
 * STATUS_INVALID_ARGUMENT names the option and its place; it is also returned if the file cannot be
 * read. `out->blame` is the place at fault. */
enum status config_parse(int argc, char **argv, struct config *out, struct err *err);
void config_free(struct config *config);

/* Reads the text of a configuration file, without a terminating zero, over what is in `*out` (a
 * value from config_defaults, or {0}). `name` is what the errors call it. */
enum status config_read_text(struct config *out, const char *name, const char *text, size_t size,
                             struct err *err);
/* The defaults. */
struct config config_defaults(void);

/* Puts those options of `from` that may change while the daemon serves into `to`. Names in `others`
 * (space-separated, cut at `size`, "" if there are none) those that differ and need a restart.
 */
void config_reload(struct config *to, const struct config *from, char *others, size_t size);

/* Puts into the environment what a worker needs to know of the options: how to log. Before threads
 * start. */
void config_pass_on(const struct config *config);

/* How to treat the GPUs, borrowing from `config`. */
struct gpu_options config_gpu_options(const struct config *config);

/* STATUS_INVALID_ARGUMENT if the simulator does not have what `simulated` asks for: a daemon would
 * serve nothing. */
enum status config_check_simulated(const struct config *config, struct err *err);

/* One paragraph an option, for --help. */
void config_print_help(FILE *out);
/* The options that hold, as a configuration file. */
void config_print(const struct config *config, FILE *out);

#endif
