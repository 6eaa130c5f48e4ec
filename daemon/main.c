/* main.c: starts every process of the daemon, and turns its status into an exit code.
 *
 *     reachd                    serves (serve.c)
 *     reachd --measure DEPTH    measures and exits (measure_once.c)
 *     reachd --analyze FILE     derives a fingerprint from exported observations (measure_once.c)
 *     reachd --worker           one measurement process (worker/worker_main.c)
 */
#include "base/log.h"
#include "base/output.h"
#include "config/config.h"
#include "batch/measure_once.h"
#include "serve.h"
#include "worker/worker.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

enum { MAIN_WORKER_FD = 3, MAIN_ALLOCATION_KEPT = 128 * 1024 };

/* The worker's main. It communicates over descriptor 3 if the daemon has put a socket there, else
 * over standard input and output. */
static int main_worker(bool stdio)
{
    int type = 0;
    socklen_t length = sizeof type;
    bool by_daemon = getsockopt(MAIN_WORKER_FD, SOL_SOCKET, SO_TYPE, &type, &length) == 0;

    return by_daemon && !stdio ? worker_main(MAIN_WORKER_FD, MAIN_WORKER_FD) : worker_main(0, 1);
}

/* Uses one arena and returns freed pages to the system, because a daemon is idle most of the time
 * and should then be small. */
static void main_keep_memory_small(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, MAIN_ALLOCATION_KEPT);
    mallopt(M_TRIM_THRESHOLD, MAIN_ALLOCATION_KEPT);
}

static enum status main_run(struct config *config, int argc, char **argv, struct err *err)
{
    enum status status;

    switch (config->mode) {
    case CONFIG_MEASURE:
        return measure_once_run(config, REACHD_VERSION, argc, argv, err);
    case CONFIG_ANALYZE:
        return measure_once_analyze(config, err);
    case CONFIG_CHECK:
        status = serve_check(config, err);
        if (!status)
            config_print(config, stdout);
        return status;
    case CONFIG_HELP:
        config_print_help(stdout);
        return STATUS_OK;
    case CONFIG_VERSION:
        printf("reachd %s\n", REACHD_VERSION);
        return STATUS_OK;
    case CONFIG_SERVE:
    case CONFIG_WORKER:
    case CONFIG_WORKER_STDIO:
        break;
    }
    main_keep_memory_small();
    config_pass_on(config);
    return serve_run(config, argc, argv, REACHD_VERSION, err);
}

/* Opens closed descriptors from 0 to 2. Otherwise the next opened file would get one of these
 * descriptors, and a log line could be written into the database. */
static void main_reserve_stdio(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    struct config config;
    struct err err = {0};

    main_reserve_stdio();
    if (config_parse(argc, argv, &config, &err)) {
        fprintf(stderr, "reachd: %s\n", err.text);
        config_free(&config);
        return config.blame == CONFIG_COMMAND_LINE ? EX_USAGE : EX_CONFIG;
    }
    serve_set_log(&config);
    if (config.mode == CONFIG_WORKER || config.mode == CONFIG_WORKER_STDIO)
        return main_worker(config.mode == CONFIG_WORKER_STDIO);
    enum status status = main_run(&config, argc, argv, &err);

    status = status ? status : output_end(&err);
    if (status)
        log_error("%s", err.text);
    config_free(&config);
    return status_info(status)->exit_code;
}
