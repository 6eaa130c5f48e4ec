/* fetch.c: implements fetch.h. The socket never blocks; every wait is a ppoll for the rest of the
 * deadline, on the monotonic clock. */
#include "clients/slurm/fetch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* pause between two attempts while the daemon's queue of connections is full */
enum { RETRY_NS = 2000000 };
/* time that is reserved for the rest of the hook, so that the whole hook meets the deadline */
enum { KEPT_PERCENT = 5 };

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Closes the connection and sets f->why; returns false. */
static bool close_with_reason(struct fetch *f, const char *what, int number)
{
    snprintf(f->why, sizeof(f->why), "%s%s%s", what, number ? ": " : "",
             number ? strerror(number) : "");
    fetch_close(f);
    return false;
}

/* Returns the time that remains of the deadline; 0 if it has passed. */
static uint64_t time_left_ns(const struct fetch *f)
{
    const uint64_t now = now_ns();

    return now < f->end_ns ? f->end_ns - now : 0;
}

static struct timespec to_timespec(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* Waits until the socket is ready. After the deadline it closes the connection and returns false.
 */
static bool wait_for_socket(struct fetch *f, short events)
{
    struct pollfd p = {.fd = f->fd, .events = events};

    for (;;) {
        const uint64_t ns = time_left_ns(f);
        const struct timespec t = to_timespec(ns);
        const int n = ns > 0 ? ppoll(&p, 1, &t, NULL) : 0;
        if (n > 0)
            return true;
        if (n == 0)
            return close_with_reason(f, "no response within the deadline", 0);
        if (errno != EINTR)
            return close_with_reason(f, "cannot wait for reachd", errno);
    }
}

/* ---- open and close ---- */

void fetch_close(struct fetch *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* A Unix socket connects at once, or not at all if the queue is full. */
static bool try_connect(struct fetch *f, const struct sockaddr_un *to)
{
    const struct timespec pause = to_timespec(RETRY_NS);

    while (connect(f->fd, (const struct sockaddr *)to, sizeof(*to)) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            return close_with_reason(f, "no daemon", errno);
        if (time_left_ns(f) <= RETRY_NS)
            return close_with_reason(f, "reachd accepts no connection within the deadline", 0);
        nanosleep(&pause, NULL);
    }
    return true;
}

bool fetch_open(struct fetch *f, const char *path, uint32_t deadline_ms)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const uint64_t ns = deadline_ms * (uint64_t)(100 - KEPT_PERCENT) * 10000;

    *f = (struct fetch){.fd = -1, .end_ns = now_ns() + ns};
    if (strlen(path) >= sizeof(to.sun_path))
        return close_with_reason(f, "the path of the socket is too long", 0);
    strcpy(to.sun_path, path);
    f->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (f->fd < 0)
        return close_with_reason(f, "cannot create a socket", errno);
    if (!try_connect(f, &to))
        return false;
    f->left_ns = time_left_ns(f);
    return true;
}

/* ---- one answer ---- */

static bool send_all(struct fetch *f, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = send(f->fd, text, bytes, MSG_NOSIGNAL);
        if (n >= 0) {
            text += n;
            bytes -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (!wait_for_socket(f, POLLOUT))
                return false;
        } else if (errno != EINTR) {
            return close_with_reason(f, "reachd closed the connection", errno);
        }
    }
    return true;
}

/* Receives at least one byte; returns 0 on failure. */
static size_t receive_bytes(struct fetch *f, char *to, size_t room)
{
    for (;;) {
        const ssize_t n = recv(f->fd, to, room, 0);
        if (n > 0 && time_left_ns(f) > 0)
            return (size_t)n;
        if (n > 0)
            close_with_reason(f, "no complete response within the deadline", 0);
        else if (n == 0)
            close_with_reason(f, "reachd closed the connection", 0);
        else if (errno == EINTR)
            continue;
        else if (errno == EAGAIN && wait_for_socket(f, POLLIN))
            continue;
        else if (f->fd >= 0)
            close_with_reason(f, "reachd closed the connection", errno);
        return 0;
    }
}

/* The relevant parts of the head of a response. */
struct head {
    int status;
    bool has_length;
    bool plain;
    bool odd; /* the head contains a feature that this client does not support */
    uint64_t length;
};

static bool read_status(const char *line, int *out)
{
    if (strncmp(line, "HTTP/1.1 ", 9) != 0 || strspn(line + 9, "0123456789") != 3 ||
        line[9] < '1' || line[9] > '5')
        return false;
    *out = (int)strtol(line + 9, NULL, 10);
    return line[12] == ' ' || line[12] == '\0';
}

static void read_length(const char *text, struct head *h)
{
    const size_t digits = strspn(text, "0123456789");

    h->odd = h->odd || h->has_length || digits == 0 || digits > 9 || text[digits] != '\0';
    h->has_length = true;
    h->length = strtoul(text, NULL, 10);
}

static void read_field(char *line, struct head *h)
{
    char *colon = strchr(line, ':');
    const char *value;

    if (!colon || colon == line || line[0] == ' ' || line[0] == '\t') {
        h->odd = true;
        return;
    }
    *colon = '\0';
    value = colon + 1 + strspn(colon + 1, " \t");
    if (strcasecmp(line, "Content-Length") == 0)
        read_length(value, h);
    else if (strcasecmp(line, "Transfer-Encoding") == 0 ||
             strcasecmp(line, "Content-Encoding") == 0)
        h->odd = true;
    else if (strcasecmp(line, "Content-Type") == 0)
        h->plain = strncasecmp(value, "text/plain", 10) == 0;
}

/* Reads a terminated head. Each of its lines ends with CR and LF. */
static bool read_head(char *text, struct head *h)
{
    char *line = text;

    *h = (struct head){.status = 0};
    for (char *end = strstr(line, "\r\n"); end; line = end + 2, end = strstr(line, "\r\n")) {
        *end = '\0';
        if (line == text && !read_status(line, &h->status))
            return false;
        if (line != text && *line)
            read_field(line, h);
    }
    return h->status != 0 && !h->odd && h->has_length && (h->status != 200 || h->plain);
}

/* Reads up to the empty line; `*out_rest` points to the bytes behind it. */
static bool receive_head(struct fetch *f, char *text, size_t room, struct head *h, char **out_rest,
                         size_t *out_bytes)
{
    size_t bytes = 0;
    char *end = NULL;

    while (!end) {
        size_t n = bytes + 1 < room ? receive_bytes(f, text + bytes, room - 1 - bytes) : 0;
        if (n == 0)
            return f->fd >= 0 ? close_with_reason(
                                    f, "the response is not one of reachd: its head is too long", 0)
                              : false;
        if (memchr(text + bytes, '\0', n))
            return close_with_reason(f, "the response is not one of reachd: it is not text", 0);
        bytes += n;
        text[bytes] = '\0';
        end = strstr(text, "\r\n\r\n");
    }
    *out_rest = end + 4;
    *out_bytes = bytes - (size_t)(end + 4 - text);
    end[2] = '\0';
    return read_head(text, h) ? true : close_with_reason(f, "the response is not one of reachd", 0);
}

bool fetch_get(struct fetch *f, const char *target, char *body, size_t room, int *out_status)
{
    char text[FETCH_HEAD_BYTES];
    struct head head = {.length = 0};
    char *rest = NULL;
    size_t bytes = 0;
    int n;

    if (f->fd < 0)
        return false;
    f->end_ns = now_ns() + f->left_ns;
    n = snprintf(text, sizeof(text),
                 "GET %s HTTP/1.1\r\nHost: reachd\r\nAccept: text/plain\r\n\r\n", target);
    if (n < 0 || (size_t)n >= sizeof(text))
        return close_with_reason(f, "the request is too long", 0);
    if (!send_all(f, text, (size_t)n) || !receive_head(f, text, sizeof(text), &head, &rest, &bytes))
        return false;
    if (head.length >= room || bytes > head.length)
        return close_with_reason(f, "the response is not one of reachd: it is too long", 0);
    memcpy(body, rest, bytes);
    while (bytes < head.length) {
        const size_t more = receive_bytes(f, body + bytes, (size_t)head.length - bytes);
        if (more == 0)
            return false;
        bytes += more;
    }
    body[bytes] = '\0';
    *out_status = head.status;
    f->left_ns = time_left_ns(f);
    return true;
}
