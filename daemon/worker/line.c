/* line.c: JSON texts over a descriptor, one a line. See line.h. */
#include "worker/line.h"

#include "base/json_load.h"
#include "base/json_out.h"
#include "base/pulse.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What one read asks for. An observation of 300 KiB takes five reads, an answer to "close" one
 * small buffer. */
#define LINE_CHUNK_BYTES ((size_t)64 << 10)
/* A buffer that one large line has grown is not kept for the small ones behind it. */
#define LINE_KEEP_BYTES ((size_t)256 << 10)

/* A thread that is watched shows while it waits that it moves. */
#define LINE_PULSE (NSEC_PER_SEC / 4)

/* How long the next poll may take; LINE_FOREVER. */
static nsec_t line_patience(const struct line_wait *wait)
{
    nsec_t now = clock_monotonic();
    nsec_t ns = wait->until == LINE_FOREVER ? LINE_FOREVER
                : wait->until > now         ? wait->until - now
                                            : 0;

    return pulse_is_watched() && ns > LINE_PULSE ? LINE_PULSE : ns;
}

/* Waits until `fd` is ready for `events` (LINE_DONE) or the wait is over. */
static enum line_event line_poll(int fd, short events, const struct line_wait *wait)
{
    struct pollfd fds[2] = {{.fd = fd, .events = events}, {.fd = wait->wake_fd, .events = POLLIN}};

    for (;;) {
        const nsec_t ns = line_patience(wait);
        const struct timespec left = {.tv_sec = (time_t)(ns / NSEC_PER_SEC),
                                      .tv_nsec = (long)(ns % NSEC_PER_SEC)};

        pulse_beat();
        int n = ppoll(fds, 2, ns == LINE_FOREVER ? NULL : &left, wait->mask);

        if (n < 0 && errno == EINTR) {
            if (wait->mask) {
                return LINE_WOKEN;
            }
            continue;
        }
        if (n < 0) {
            return LINE_FAILED;
        }
        if (fds[1].revents) {
            return LINE_WOKEN;
        }
        if (fds[0].revents) {
            return LINE_DONE;
        }
        if (n == 0 && wait->until != LINE_FOREVER && clock_monotonic() >= wait->until) {
            return LINE_TIMEOUT;
        }
    }
}

/* Makes room for one more chunk behind `end`. */
static bool line_reserve(struct line_reader *r)
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

    if (need <= r->capacity) {
        return true;
    }
    size_t capacity = need > 2 * r->capacity ? need : 2 * r->capacity;
    char *grown = realloc(r->buffer, capacity);

    if (!grown) {
        return false;
    }
    r->buffer = grown;
    r->capacity = capacity;
    return true;
}

/* Hands out the line that ends at `newline`. */
static enum line_event line_take(struct line_reader *r, char *newline, char **out,
                                 size_t *out_length)
{
    *newline = '\0';
    *out = r->buffer + r->start;
    *out_length = (size_t)(newline - *out);
    r->start += *out_length + 1;
    r->scanned = r->start;
    return LINE_DONE;
}

enum line_event line_read(struct line_reader *r, const struct line_wait *wait, char **out,
                          size_t *out_length)
{
    for (;;) {
        char *newline =
            r->end > r->scanned ? memchr(r->buffer + r->scanned, '\n', r->end - r->scanned) : NULL;

        if (newline) {
            if ((size_t)(newline - (r->buffer + r->start)) > LINE_MAX_BYTES) {
                return LINE_TOO_LONG;
            }
            return line_take(r, newline, out, out_length);
        }
        r->scanned = r->end;
        if (r->end - r->start > LINE_MAX_BYTES) {
            return LINE_TOO_LONG;
        }
        if (!line_reserve(r)) {
            errno = ENOMEM;
            return LINE_FAILED;
        }
        enum line_event event = line_poll(r->fd, POLLIN, wait);

        if (event != LINE_DONE) {
            return event;
        }
        ssize_t n = read(r->fd, r->buffer + r->end, r->capacity - r->end);

        if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (n == 0 || (n < 0 && errno == ECONNRESET)) {
            return LINE_END;
        }
        if (n < 0) {
            return LINE_FAILED;
        }
        r->end += (size_t)n;
    }
}

void line_reader_free(struct line_reader *take)
{
    free(take->buffer);
    *take = (struct line_reader){.fd = -1};
}

/* Sends without SIGPIPE where `fd` is a socket, writes where it is a pipe or a terminal. */
static ssize_t line_send(int fd, const char *data, size_t n)
{
    ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);

    return sent < 0 && errno == ENOTSOCK ? write(fd, data, n) : sent;
}

static enum line_event line_write_all(int fd, const char *data, size_t n,
                                      const struct line_wait *wait)
{
    size_t done = 0;

    while (done < n) {
        enum line_event event = line_poll(fd, POLLOUT, wait);

        if (event != LINE_DONE) {
            return event;
        }
        ssize_t sent = line_send(fd, data + done, n - done);

        if (sent < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (sent < 0) {
            return errno == EPIPE || errno == ECONNRESET ? LINE_END : LINE_FAILED;
        }
        done += (size_t)sent;
    }
    return LINE_DONE;
}

enum line_event line_write(int fd, const json_t *message, const struct line_wait *wait)
{
    enum line_event event = LINE_FAILED;
    size_t length = 0;
    char *text = json_out_render(message, &length);

    if (!text) {
        errno = ENOMEM;
        return LINE_FAILED;
    }

    if (length - 1 > LINE_MAX_BYTES) {
        event = LINE_TOO_LONG;
        goto out;
    }
    event = line_write_all(fd, text, length, wait); /* the line feed too */
out:
    free(text);
    return event;
}

json_t *line_parse(const char *line, size_t length, char *why, size_t why_size)
{
    json_error_t error;
    json_t *json = json_load_whole(line, length, &error);

    if (!json && json_load_was_short()) {
        snprintf(why, why_size, "%s", error.text);
        return NULL;
    }
    if (!json) {
        snprintf(why, why_size, "not JSON at byte %d: %s", error.position, error.text);
        return NULL;
    }
    if (!json_is_object(json)) {
        snprintf(why, why_size, "a message is a JSON object");
        json_decref(json);
        return NULL;
    }
    return json;
}
