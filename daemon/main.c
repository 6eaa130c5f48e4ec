/* main.c: the start of every process of the daemon. */
#include "worker/worker.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { MAIN_WORKER_FD = 3, MAIN_EXIT_USAGE = 2 };

/* The worker's main: over descriptor 3 where the daemon has put a socket there, else over standard
 * input and output. */
static int main_worker(const char *option)
{
    int type = 0;
    socklen_t length = sizeof type;
    bool started_by_daemon = strcmp(option, "--worker") == 0 &&
                             getsockopt(MAIN_WORKER_FD, SOL_SOCKET, SO_TYPE, &type, &length) == 0;

    return started_by_daemon ? worker_main(MAIN_WORKER_FD, MAIN_WORKER_FD) : worker_main(0, 1);
}

int main(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--worker") == 0 || strcmp(argv[1], "--worker=stdio") == 0)) {
        return main_worker(argv[1]);
    }
    fprintf(stderr, "reachd: only --worker=stdio is known to this build\n");
    return MAIN_EXIT_USAGE;
}
