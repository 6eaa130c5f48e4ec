/* log_sink.c: writing a line without waiting for whoever reads it. See log_sink.h.
 *
 * O_NONBLOCK belongs to the open file, which standard error shares with other processes, so it is
 * not set there. A socket takes MSG_DONTWAIT by the call. A pipe or a terminal is opened once more,
 * without waiting, through /proc. Where that is not allowed, poll tells whether there is room for a
 * line; then only another process that fills the pipe in that very moment could make us wait.
 */
#include "base/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum sink_kind { SINK_FILE, SINK_SOCKET, SINK_OWN, SINK_POLL };

static struct {
    pthread_once_t once;
    enum sink_kind kind;
    int fd; /* where lines go: standard error, or our own opening of it */
    bool terminal;
    bool journal;
    int journal_fd; /* unconnected datagram socket, -1: none */
} sink = {.once = PTHREAD_ONCE_INIT, .fd = STDERR_FILENO, .journal_fd = -1};

/* "device:inode" of the socket that systemd has made standard error. */
static bool sink_leads_to_journal(const struct stat *st)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char *end = NULL;

    if (!stream) {
        return false;
    }
    unsigned long long device = strtoull(stream, &end, 10);

    return *end == ':' && device == (unsigned long long)st->st_dev &&
           strtoull(end + 1, NULL, 10) == (unsigned long long)st->st_ino;
}

static void sink_open(void)
{
    struct stat st;

    if (fstat(STDERR_FILENO, &st) < 0) {
        return;
    }
    sink.terminal = isatty(STDERR_FILENO) == 1;
    sink.journal = sink_leads_to_journal(&st);
    sink.journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (S_ISSOCK(st.st_mode)) {
        sink.kind = SINK_SOCKET;
    } else if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
        int own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        sink.kind = own < 0 ? SINK_POLL : SINK_OWN;
        sink.fd = own < 0 ? STDERR_FILENO : own;
    }
}

bool log_sink_stderr(const char *line, size_t size)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

    pthread_once(&sink.once, sink_open);
    switch (sink.kind) {
    case SINK_SOCKET:
        return send(sink.fd, line, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
    case SINK_POLL:
        if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT)) {
            return false;
        }
        break;
    case SINK_FILE:
    case SINK_OWN:
        break;
    }
    return write(sink.fd, line, size) == (ssize_t)size;
}

bool log_sink_journal(const char *path, const char *record, size_t size)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    pthread_once(&sink.once, sink_open);
    if (sink.journal_fd < 0 || strlen(path) >= sizeof name.sun_path) {
        return false;
    }
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    return sendto(sink.journal_fd, record, size, MSG_NOSIGNAL, (const struct sockaddr *)&name,
                  sizeof name) == (ssize_t)size;
}

bool log_sink_is_journal(void)
{
    pthread_once(&sink.once, sink_open);
    return sink.journal;
}

bool log_sink_is_terminal(void)
{
    pthread_once(&sink.once, sink_open);
    return sink.terminal;
}
