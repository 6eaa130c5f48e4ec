/* config.h: the command line of reachd, as a value. There is no configuration file: under systemd
 * the options come from the environment file (REACHD_OPTIONS). */
#ifndef REACH_CONFIG_H
#define REACH_CONFIG_H

#include "base/identity.h"
#include "base/log.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "gpu/gpu.h"

enum config_mode {
    CONFIG_SERVE = 0,
    CONFIG_MEASURE,  /* measure, print, export, exit */
    CONFIG_CONCLUDE, /* observations from a file in, fingerprint out */
    CONFIG_CHECK,
    CONFIG_HELP,
    CONFIG_VERSION,
    CONFIG_WORKER, /* started by the daemon, over descriptor 3 */
    CONFIG_WORKER_STDIO
};

enum { CONFIG_MAX_DEPTHS = 16, CONFIG_MAX_REPEATS = 1000, CONFIG_MAX_CONNECTIONS = 100000 };

/* Strings are borrowed from the command line or static. */
struct config {
    enum config_mode mode;
    const char *listen; /* "ADDRESS:PORT", NULL: none */
    bool listen_given;  /* not a default: it must work */
    const char *health; /* the same, for health probes; NULL: none */
    bool health_given;  /* otherwise it is the port after that of `listen` */
    const char *socket; /* path, NULL: none */
    bool socket_given;
    const char *token_file;       /* NULL: the service manager's credential, if there is one */
    uint32_t max_connections;     /* of the port; 0: 1024 */
    uint32_t request_deadline_ms; /* 0: 10 s */
    const char *state;            /* path or ":memory:" */
    bool state_given;
    bool state_fallback_memory;
    const char *simulated[REACH_MAX_GPUS + 1]; /* NULL-terminated */
    const char *libcuda;
    uint64_t memory_limit_bytes;
    uint32_t probe_deadline_ms;
    bool plain_arena;
    bool measure_on_start;
    bool check_on_start;
    bool demo;
    enum log_level log_level;
    uint32_t depth_count; /* CONFIG_MEASURE */
    enum depth depths[CONFIG_MAX_DEPTHS];
    uint32_t repeats;
    const char *export_dir; /* CONFIG_MEASURE; NULL: print only */
    const char *conclude;   /* CONFIG_CONCLUDE: path, "-": standard input */
    bool conclude_depth_given;
    enum depth conclude_depth;
};

/* Reads the command line. STATUS_INVALID_ARGUMENT names the option. */
enum status config_parse(int argc, char **argv, struct config *out, struct err *err);

/* How to treat the GPUs, borrowing from `config`. */
struct gpu_options config_gpu_options(const struct config *config);

/* One paragraph an option, for --help. */
const char *config_help(void);

#endif
