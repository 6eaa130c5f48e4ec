/* jsonl.c: see jsonl.h. */
#include "worker/jsonl.h"

#include "base/json_load.h"
#include "base/heartbeat.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The size of one read. An observation of 300 KiB takes five reads. */
#define LINE_CHUNK_BYTES ((size_t)64 << 10)
/* A larger buffer is freed when it is empty. */
#define LINE_KEEP_BYTES ((size_t)256 << 10)

/* A watched thread beats its heartbeat at this interval while it waits. */
#define LINE_PULSE (NSEC_PER_SEC / 4)

/* Returns the limit of the next poll, or JSONL_NO_DEADLINE if there is none. */
static nsec_t jsonl_timeout(const struct jsonl_wait *wait)
{
    nsec_t now = clock_monotonic();
    nsec_t ns = wait->until == JSONL_NO_DEADLINE ? JSONL_NO_DEADLINE
                : wait->until > now              ? wait->until - now
                                                 : 0;

    return heartbeat_is_watched() && ns > LINE_PULSE ? LINE_PULSE : ns;
}

/* Waits until `fd` is ready for `events` (JSONL_DONE) or the wait is over. */
static enum jsonl_event jsonl_poll(int fd, short events, const struct jsonl_wait *wait)
{
    struct pollfd fds[2] = {{.fd = fd, .events = events}, {.fd = wait->wake_fd, .events = POLLIN}};

    for (;;) {
        const nsec_t ns = jsonl_timeout(wait);
        const struct timespec left = clock_timespec(ns);

        heartbeat_beat();
        int n = ppoll(fds, 2, ns == JSONL_NO_DEADLINE ? NULL : &left, wait->mask);

        if (n < 0 && errno == EINTR) {
            if (wait->mask)
                return JSONL_WOKEN;
            continue;
        }
        if (n < 0)
            return JSONL_FAILED;
        if (fds[1].revents)
            return JSONL_WOKEN;
        if (fds[0].revents)
            return JSONL_DONE;
        if (n == 0 && wait->until != JSONL_NO_DEADLINE && clock_monotonic() >= wait->until)
            return JSONL_TIMEOUT;
    }
}

/* Makes room for one more chunk after `end`. */
static bool jsonl_reserve(struct jsonl_reader *r)
{
    if (r->start > 0) {
        memmove(r->buffer, r->buffer + r->start, r->end - r->start);
        r->end -= r->start;
        r->scanned -= r->start;
        r->start = 0;
    }
    if (r->end == 0 && r->capacity > LINE_KEEP_BYTES) {
        free(r->buffer);
        r->buffer = NULL;
        r->capacity = 0;
    }
    size_t need = r->end + LINE_CHUNK_BYTES;

    if (need <= r->capacity)
        return true;
    size_t capacity = need > 2 * r->capacity ? need : 2 * r->capacity;
    char *grown = realloc(r->buffer, capacity);

    if (!grown)
        return false;
    r->buffer = grown;
    r->capacity = capacity;
    return true;
}

enum jsonl_event jsonl_read(struct jsonl_reader *r, const struct jsonl_wait *wait, char **out,
                            size_t *out_length)
{
    for (;;) {
        char *newline =
            r->end > r->scanned ? memchr(r->buffer + r->scanned, '\n', r->end - r->scanned) : NULL;

        if (newline) {
            *newline = '\0';
            *out = r->buffer + r->start;
            *out_length = (size_t)(newline - *out);
            r->start += *out_length + 1;
            r->scanned = r->start;
            return *out_length > JSONL_MAX_BYTES ? JSONL_TOO_LONG : JSONL_DONE;
        }
        r->scanned = r->end;
        if (r->end - r->start > JSONL_MAX_BYTES)
            return JSONL_TOO_LONG;
        if (!jsonl_reserve(r)) {
            errno = ENOMEM;
            return JSONL_FAILED;
        }
        enum jsonl_event event = jsonl_poll(r->fd, POLLIN, wait);

        if (event != JSONL_DONE)
            return event;
        ssize_t n = read(r->fd, r->buffer + r->end, r->capacity - r->end);

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return JSONL_END;
        if (n < 0)
            return JSONL_FAILED;
        r->end += (size_t)n;
    }
}

void jsonl_reader_free(struct jsonl_reader *take)
{
    free(take->buffer);
    *take = (struct jsonl_reader){.fd = -1};
}

/* Sends to a socket without SIGPIPE; writes to a pipe or a terminal. */
static ssize_t jsonl_send(int fd, const char *data, size_t n)
{
    ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);

    return sent < 0 && errno == ENOTSOCK ? write(fd, data, n) : sent;
}

static enum jsonl_event jsonl_write_all(int fd, const char *data, size_t n,
                                        const struct jsonl_wait *wait)
{
    size_t done = 0;

    while (done < n) {
        enum jsonl_event event = jsonl_poll(fd, POLLOUT, wait);

        if (event != JSONL_DONE)
            return event;
        ssize_t sent = jsonl_send(fd, data + done, n - done);

        if (sent < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (sent < 0)
            return errno == EPIPE || errno == ECONNRESET ? JSONL_END : JSONL_FAILED;
        done += (size_t)sent;
    }
    return JSONL_DONE;
}

enum jsonl_event jsonl_write(int fd, const char *line, size_t length, const struct jsonl_wait *wait)
{
    return length - 1 > JSONL_MAX_BYTES ? JSONL_TOO_LONG : jsonl_write_all(fd, line, length, wait);
}

json_t *jsonl_parse(const char *line, size_t length, char *why, size_t why_size)
{
    json_error_t error;
    json_t *json = json_load_whole(line, length, &error);

    if (!json && json_load_was_short()) {
        snprintf(why, why_size, "%s", error.text);
    } else if (!json) {
        snprintf(why, why_size, "not JSON at byte %d: %s", error.position, error.text);
    } else if (!json_is_object(json)) {
        snprintf(why, why_size, "a message is a JSON object");
        json_decref(json);
        json = NULL;
    }
    return json;
}
