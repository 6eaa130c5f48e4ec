/* main.c: the start of every process of the daemon, and what its end is called.
 *
 *     reachd                    serves (serve.c)
 *     reachd --measure DEPTH    measures and exits (oneshot.c)
 *     reachd --conclude FILE    concludes again from exported observations (oneshot.c)
 *     reachd --worker           one measurement process (worker/worker_main.c)
 */
#include "base/log.h"
#include "config.h"
#include "oneshot.h"
#include "serve.h"
#include "worker/worker.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { EXIT_USAGE = 2, EXIT_TAKEN = 75 };
enum { MAIN_WORKER_FD = 3, MAIN_ALLOCATION_KEPT = 128 * 1024 };

/* The worker's main: over descriptor 3 where the daemon has put a socket there, else over standard
 * input and output. */
static int main_worker(bool stdio)
{
    int type = 0;
    socklen_t length = sizeof type;
    bool by_daemon = getsockopt(MAIN_WORKER_FD, SOL_SOCKET, SO_TYPE, &type, &length) == 0;

    return by_daemon && !stdio ? worker_main(MAIN_WORKER_FD, MAIN_WORKER_FD) : worker_main(0, 1);
}

/* Checks what can be checked without a driver and without touching the state file. */
static enum status main_check(const struct config *config, struct err *err)
{
    const struct gpu_options options = config_gpu_options(config);
    struct gpu_identity *gpus = calloc(REACH_MAX_GPUS, sizeof *gpus);
    uint32_t count = 0;
    enum status status =
        gpus ? STATUS_OK : err_set(err, STATUS_NO_MEMORY, "no memory for a list of GPUs");

    if (!status && options.simulated) {
        status = gpu_list(&options, gpus, REACH_MAX_GPUS, &count, err);
    }
    if (!status) {
        printf("reachd: the options are fine\n");
    }
    free(gpus);
    return status;
}

/* One arena, and freed pages go back to the system: a daemon that rests most of the time should
 * be small then. */
static void main_keep_memory_small(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, MAIN_ALLOCATION_KEPT);
    mallopt(M_TRIM_THRESHOLD, MAIN_ALLOCATION_KEPT);
}

static enum status main_run(const struct config *config, int argc, char **argv, struct err *err)
{
    switch (config->mode) {
    case CONFIG_MEASURE:
        return oneshot_measure(config, REACHD_VERSION, argc, argv, err);
    case CONFIG_CONCLUDE:
        return oneshot_conclude(config, err);
    case CONFIG_CHECK:
        return main_check(config, err);
    case CONFIG_HELP:
        fputs(config_help(), stdout);
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
    return serve_run(config, REACHD_VERSION, err);
}

int main(int argc, char **argv)
{
    struct config config;
    struct err err = {0};

    if (config_parse(argc, argv, &config, &err)) {
        fprintf(stderr, "reachd: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (config.mode == CONFIG_WORKER || config.mode == CONFIG_WORKER_STDIO) {
        return main_worker(config.mode == CONFIG_WORKER_STDIO);
    }
    log_set_level(config.log_level);
    enum status status = main_run(&config, argc, argv, &err);

    if (status) {
        log_error("%s", err.text);
        return status == STATUS_CONFLICT ? EXIT_TAKEN : EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
