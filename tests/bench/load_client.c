/* load_client.c: repeats one request to one server, at the least possible cost for a client.
 *
 *   load_client PORT CONNECTIONS SECONDS TARGET
 *
 * Each connection sends a GET, waits for the last byte of the answer, and sends the next. Prints
 * one line: requests, seconds, the latencies at 50, 99 and 100 % in microseconds, and the CPU time
 * of the client per request.
 *
 * wrk is not used because it reads 8 KiB at a time and looks at each byte. With bodies of 28 KiB
 * the client would be the bottleneck. Here the first and the last answer of each connection are
 * read and checked. The answers in between must have the same length; the kernel discards their
 * bytes and reports the count (MSG_TRUNC, tcp(7)).
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_CONNECTIONS = 4096,
    MAX_ANSWER_BYTES = 1 << 20,
    MAX_SAMPLES = 4 << 20,
    EVENTS = 256,
    REQUEST_BYTES = 1024
};

struct connection {
    int fd;
    size_t answer_bytes; /* head and body */
    size_t left_bytes;   /* bytes of the current answer still to come */
    double sent_us;
};

static struct connection connections[MAX_CONNECTIONS];
static float samples_us[MAX_SAMPLES];
static char answer[MAX_ANSWER_BYTES + 1];
static char request[REQUEST_BYTES];
static size_t request_bytes;

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double cpu_us(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static bool dial(struct connection *c, uint16_t port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return c->fd >= 0 && connect(c->fd, (const struct sockaddr *)&to, sizeof(to)) == 0;
}

static bool ask(struct connection *c)
{
    c->left_bytes = c->answer_bytes;
    c->sent_us = now_us();
    return send(c->fd, request, request_bytes, MSG_NOSIGNAL) == (ssize_t)request_bytes;
}

/* Sends one request, reads and checks the answer, and stores its length. */
static bool ask_and_read(struct connection *c)
{
    size_t got = 0;
    size_t whole = 0;

    if (!ask(c))
        return false;
    while (whole == 0 || got < whole) {
        const ssize_t n = recv(c->fd, answer + got, MAX_ANSWER_BYTES - got, 0);
        const char *body;
        const char *length;
        if (n <= 0)
            return false;
        got += (size_t)n;
        answer[got] = '\0';
        body = strstr(answer, "\r\n\r\n");
        length = strstr(answer, "Content-Length: ");
        if (body && length && length < body)
            whole = (size_t)(body + 4 - answer) + strtoul(length + 16, NULL, 10);
        else if (body || got == MAX_ANSWER_BYTES)
            return false;
    }
    c->answer_bytes = whole;
    return got == whole && strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
}

/* Reads what has arrived. Returns false if the connection is broken. `*done` is set at the end of
 * an answer. */
static bool take(struct connection *c, bool *done)
{
    const ssize_t n = recv(c->fd, NULL, c->left_bytes, MSG_TRUNC | MSG_DONTWAIT);

    if (n <= 0)
        return false;
    c->left_bytes -= (size_t)n;
    *done = c->left_bytes == 0;
    return true;
}

/* Sends requests on all connections until the time is over, then waits for the pending answers. */
static bool run(int epoll_fd, uint32_t count, double seconds, uint64_t *out_requests)
{
    struct epoll_event events[EVENTS];
    const double end_us = now_us() + seconds * 1e6;
    uint32_t busy = count;

    for (uint32_t i = 0; i < count; i++) {
        if (!ask(&connections[i]))
            return false;
    }
    while (busy > 0) {
        const int n = epoll_wait(epoll_fd, events, EVENTS, -1);
        const double now = now_us();
        for (int i = 0; i < n; i++) {
            struct connection *c = &connections[events[i].data.u32];
            bool done = false;
            if (!take(c, &done))
                return false;
            if (!done)
                continue;
            samples_us[*out_requests % MAX_SAMPLES] = (float)(now - c->sent_us);
            *out_requests += 1;
            if (now >= end_us)
                busy--;
            else if (!ask(c))
                return false;
        }
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a;
    const float y = *(const float *)b;

    return (x > y) - (x < y);
}

static bool open_all(int epoll_fd, uint32_t count, uint16_t port)
{
    for (uint32_t i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = i}};
        if (!dial(&connections[i], port) || !ask_and_read(&connections[i]) ||
            epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connections[i].fd, &event) != 0)
            return false;
    }
    return true;
}

static bool measure(uint32_t count, uint16_t port, double seconds)
{
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    uint64_t requests = 0;
    uint64_t kept;
    double begun_us;
    double spent_us;

    if (epoll_fd < 0 || !open_all(epoll_fd, count, port))
        return false;
    begun_us = now_us();
    spent_us = -cpu_us();
    if (!run(epoll_fd, count, seconds, &requests) || requests == 0)
        return false;
    spent_us += cpu_us();
    begun_us = now_us() - begun_us;
    for (uint32_t i = 0; i < count; i++) {
        const size_t before = connections[i].answer_bytes;
        if (!ask_and_read(&connections[i]) || connections[i].answer_bytes != before)
            return false;
    }
    kept = requests < MAX_SAMPLES ? requests : MAX_SAMPLES;
    qsort(samples_us, kept, sizeof(*samples_us), by_size);
    printf("%llu %.6f %.1f %.1f %.1f %.2f\n", (unsigned long long)requests, begun_us / 1e6,
           (double)samples_us[kept / 2], (double)samples_us[kept * 99 / 100],
           (double)samples_us[kept - 1], spent_us / (double)requests);
    return true;
}

int main(int argc, char **argv)
{
    const unsigned long port = argc == 5 ? strtoul(argv[1], NULL, 10) : 0;
    const unsigned long count = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
    const double seconds = argc == 5 ? strtod(argv[3], NULL) : 0;

    if (port == 0 || port > UINT16_MAX || count == 0 || count > MAX_CONNECTIONS || seconds <= 0) {
        fprintf(stderr, "usage: load_client PORT CONNECTIONS SECONDS TARGET\n");
        return 2;
    }
    request_bytes = (size_t)snprintf(request, sizeof(request),
                                     "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", argv[4]);
    if (request_bytes >= sizeof(request) || !measure((uint32_t)count, (uint16_t)port, seconds)) {
        fprintf(stderr, "load_client: a connection broke, or an answer was another than before\n");
        return 1;
    }
    return 0;
}
