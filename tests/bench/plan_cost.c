/* plan_cost.c: what a plan costs, in-process and over the Unix socket.
 *
 *   plan_cost FINGERPRINT.json SOCKET GPU
 *
 * prints, in microseconds, the median of many plans in-process (the fingerprint's id handed in), of
 * many different questions over one connection (each answer is worked out and rendered), and of one
 * question asked again and again (the answer is kept). Sizes go from 1 GiB to 140 GiB.
 */
#include "base/units.h"
#include "placement/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 2000, ANSWER_BYTES = 1 << 16 };

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

static void print_median(const char *name, double *us)
{
    qsort(us, ROUNDS, sizeof(*us), by_size);
    printf("%s %.2f\n", name, us[ROUNDS / 2]);
}

static uint64_t size_of(int round)
{
    return GIB + (uint64_t)round * (139 * GIB / ROUNDS);
}

static int in_process(const char *path)
{
    static struct fingerprint fp;
    static struct strategy_answer answer;
    static double us[ROUNDS];
    char id[FINGERPRINT_ID_BYTES];
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    struct err err = {.text = "no such file, or no JSON"};

    if (!json || fingerprint_from_json(json, &fp, &err) != STATUS_OK) {
        fprintf(stderr, "plan_cost: %s: %s\n", path, err.text);
        return 1;
    }
    json_decref(json);
    fingerprint_id(&fp, id);
    for (int i = 0; i < ROUNDS; i++) {
        const struct job_request job = {
            .bytes = size_of(i), .input_bytes = 8, .look_gps = 600, .fingerprint_id = id};
        const double start = now_us();
        if (strategy_plan(&fp, &job, &answer, &err) != STATUS_OK) {
            fprintf(stderr, "plan_cost: %s\n", err.text);
            return 1;
        }
        us[i] = now_us() - start;
    }
    print_median("in_process_us", us);
    return 0;
}

/* One answer: its head says how long its body is. False: no 200. */
static bool ask(int fd, const char *gpu, uint64_t bytes)
{
    static char text[ANSWER_BYTES];
    char request[256];
    size_t have = 0;
    size_t want = ANSWER_BYTES;
    int n = snprintf(request, sizeof(request),
                     "GET /v1/gpus/%.40s/plan?bytes=%llu&input_bytes=8&look_gps=600 HTTP/1.1\r\n"
                     "Host: bench\r\n\r\n",
                     gpu, (unsigned long long)bytes);

    if (write(fd, request, (size_t)n) != n)
        return false;
    while (have < want && have + 1 < sizeof(text)) {
        ssize_t got = read(fd, text + have, sizeof(text) - 1 - have);
        const char *end;
        if (got <= 0)
            return false;
        have += (size_t)got;
        text[have] = '\0';
        end = strstr(text, "\r\n\r\n");
        if (end && want == ANSWER_BYTES) {
            const char *length = strcasestr(text, "\r\nContent-Length:");
            if (!length || length > end)
                return false;
            want = (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10);
        }
    }
    return strncmp(text, "HTTP/1.1 200", 12) == 0;
}

static int over_socket(const char *path, const char *gpu)
{
    static double us[ROUNDS];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        perror("plan_cost: the daemon's socket");
        if (fd >= 0)
            close(fd);
        return 1;
    }
    for (int kept = 0; kept < 2; kept++) {
        for (int i = 0; i < ROUNDS; i++) {
            const double start = now_us();
            if (!ask(fd, gpu, kept ? 100 * GIB : size_of(i))) {
                fputs("plan_cost: the daemon did not answer with 200\n", stderr);
                close(fd);
                return 1;
            }
            us[i] = now_us() - start;
        }
        print_median(kept ? "socket_kept_us" : "socket_us", us);
    }
    close(fd);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: plan_cost FINGERPRINT.json SOCKET GPU\n", stderr);
        return 2;
    }
    return in_process(argv[1]) != 0 || over_socket(argv[2], argv[3]) != 0;
}
