/* plan_cost.c: measures the time of a plan for a job that uses libreach, in-process and over the
 * Unix socket.
 *
 *   plan_cost FINGERPRINT.json SOCKET GPU
 *
 * The program prints three medians in microseconds. They are for many plans in-process, for many
 * different requests over one connection, and for one repeated request. For different requests the
 * daemon computes each answer and libreach reads and checks it. For the repeated request the daemon
 * confirms the ETag. Sizes are from 1 GiB to 140 GiB.
 */
#include "clients/c/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 2000 };
#define GIB ((uint64_t)1 << 30)

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static uint64_t size_of(int round)
{
    return GIB + (uint64_t)round * (139 * GIB / ROUNDS);
}

/* Prints the median time of the plans of one handle; with `same` all have one size. */
static enum reach_status measure(struct reach *reach, const char *gpu, const char *name, bool same,
                                 struct reach_error *error)
{
    static double us[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        const struct reach_job job = {.size = sizeof(job),
                                      .bytes = same ? 100 * GIB : size_of(i),
                                      .input_bytes = 8,
                                      .scan_gps = 600};
        const double start = now_us();
        struct reach_answer *plan = NULL;
        const enum reach_status status = reach_get_plan(reach, gpu, &job, &plan, error);
        us[i] = now_us() - start;
        reach_answer_free(plan);
        if (status != REACH_OK)
            return status;
    }
    qsort(us, ROUNDS, sizeof(*us), by_size);
    printf("%s %.2f\n", name, us[ROUNDS / 2]);
    return REACH_OK;
}

static enum reach_status open_at(const char *kind, const char *path, struct reach **out,
                                 struct reach_error *error)
{
    char where[512];

    snprintf(where, sizeof(where), "%s:%.400s", kind, path);
    return reach_open(where, out, error);
}

int main(int argc, char **argv)
{
    struct reach_error error = {.text = "usage: plan_cost FINGERPRINT.json SOCKET GPU"};
    struct reach *file = NULL;
    struct reach *socket = NULL;
    const bool done = argc == 4 && open_at("file", argv[1], &file, &error) == REACH_OK &&
                      open_at("unix", argv[2], &socket, &error) == REACH_OK &&
                      measure(file, "0", "in_process_us", false, &error) == REACH_OK &&
                      measure(socket, argv[3], "socket_us", false, &error) == REACH_OK &&
                      measure(socket, argv[3], "socket_kept_us", true, &error) == REACH_OK;

    if (!done)
        fprintf(stderr, "plan_cost: %s\n", error.text);
    reach_close(file);
    reach_close(socket);
    return done ? 0 : 1;
}
