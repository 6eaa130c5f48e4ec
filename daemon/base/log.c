/* log.c: writes one line per event in one call.
 *
 * The line is built on the stack and written in a single call. So lines of several threads, and of
 * the workers that share standard error, do not mix. (A pipe keeps writes up to 4096 bytes whole,
 * and a line is shorter.) A longer message is cut. Newlines inside a message become blanks: a text
 * that came over the network must not be able to forge a second line.
 *
 * The rate limit is a point in time. A line moves that point forward by one interval. A line that
 * would move it more than the burst ahead of the clock is dropped. So there is no lock, and a
 * stopped thread blocks no other.
 *
 * No write blocks. O_NONBLOCK belongs to the open file, which standard error shares with other
 * processes, so it is not set there. A socket takes MSG_DONTWAIT per call. A pipe or a terminal is
 * opened once more, non-blocking, through /proc. If that is not allowed, poll reports whether there
 * is room for a line; a write then blocks only if another process fills the pipe at that moment.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The room for a line: a message, in which JSON escapes every byte at worst, and the text around
 * it. */
enum { MESSAGE_BYTES = 1024, LINE_BYTES = 2 * MESSAGE_BYTES + 256, BURST_SECONDS = 10 };

static struct {
    _Atomic int level;
    _Atomic int format;
    _Atomic uint64_t interval_ns;   /* pause between two lines; 0 means no limit */
    _Atomic uint64_t paid_until[2]; /* [0] is for errors and warnings, [1] for other lines */
    _Atomic uint64_t above_rate;    /* lines dropped and not reported yet */
    _Atomic uint64_t unwritten;     /* lines not written and not reported yet */
    _Atomic uint64_t lost;          /* all lines lost so far */
    const char *_Atomic journal;
} logger = {.level = LOG_LEVEL_INFO, .journal = "/run/systemd/journal/socket"};

void log_set_level(enum log_level max)
{
    logger.level = (int)max;
}

void log_set_format(enum log_format format)
{
    logger.format = (int)format;
}

void log_set_rate(uint32_t lines_per_second)
{
    logger.interval_ns = lines_per_second ? NSEC_PER_SEC / lines_per_second : 0;
}

void log_set_journal(const char *path)
{
    logger.journal = path;
}

uint64_t log_lost(void)
{
    return logger.lost;
}

/* ---- where lines go ---- */

enum sink_kind { SINK_FILE, SINK_SOCKET, SINK_OWN, SINK_POLL };

static struct {
    pthread_once_t once;
    enum sink_kind kind;
    int fd;         /* standard error, or the same file opened once more */
    bool journal;   /* standard error leads to systemd's journal */
    int journal_fd; /* unconnected datagram socket; -1 if there is none */
} sink = {.once = PTHREAD_ONCE_INIT, .fd = STDERR_FILENO, .journal_fd = -1};

/* JOURNAL_STREAM is "device:inode" of the socket that systemd has connected to standard error. */
static bool sink_leads_to_journal(const struct stat *st)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char *end = NULL;

    if (!stream)
        return false;
    unsigned long long device = strtoull(stream, &end, 10);

    return *end == ':' && device == (unsigned long long)st->st_dev &&
           strtoull(end + 1, NULL, 10) == (unsigned long long)st->st_ino;
}

static void sink_open(void)
{
    struct stat st;

    if (fstat(STDERR_FILENO, &st) < 0)
        return;
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

/* Writes one whole line to standard error. Returns false if the write would block or there is no
 * reader. */
static bool sink_stderr(const char *line, size_t size)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (sink.kind == SINK_SOCKET)
        return send(sink.fd, line, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
    if (sink.kind == SINK_POLL && (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT)))
        return false;
    return write(sink.fd, line, size) == (ssize_t)size;
}

/* Sends one record to the journal. Returns false if the call would block or there is no reader. */
static bool sink_journal(const char *record, size_t size)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const char *const path = logger.journal;

    if (sink.journal_fd < 0 || strlen(path) >= sizeof name.sun_path)
        return false;
    strcpy(name.sun_path, path);
    return sendto(sink.journal_fd, record, size, MSG_NOSIGNAL, (const struct sockaddr *)&name,
                  sizeof name) == (ssize_t)size;
}

/* ---- one line in each format ---- */

static const char *level_name(enum log_level level)
{
    return level == LOG_LEVEL_ERROR     ? "error"
           : level == LOG_LEVEL_WARNING ? "warning"
           : level == LOG_LEVEL_DEBUG   ? "debug"
                                        : "info";
}

static bool write_text(enum log_level level, const char *message)
{
    char line[LINE_BYTES];
    char priority[16] = "";

    /* Only journald reads the number in angle brackets. */
    if (sink.journal)
        snprintf(priority, sizeof priority, "<%d>", (int)level);
    else if (level != LOG_LEVEL_INFO)
        snprintf(priority, sizeof priority, "%s: ", level_name(level));
    return sink_stderr(line, (size_t)snprintf(line, sizeof line, "%s%s\n", priority, message));
}

static bool write_json(enum log_level level, const char *message)
{
    char line[LINE_BYTES], seconds[32], escaped[2 * MESSAGE_BYTES] = "";
    struct timespec now = {0};
    size_t n = 0;

    /* text_sanitize has left nothing else to escape. */
    for (const char *s = message; *s; s++) {
        if (*s == '"' || *s == '\\')
            escaped[n++] = '\\';
        escaped[n++] = *s;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    clock_rfc3339(now.tv_sec, seconds, sizeof seconds);
    return sink_stderr(line, (size_t)snprintf(line, sizeof line,
                                              "{\"time\":\"%.19s.%03ldZ\",\"level\":\"%s\","
                                              "\"message\":\"%.*s\",\"pid\":%d}\n",
                                              seconds, now.tv_nsec / (long)NSEC_PER_MSEC,
                                              level_name(level), (int)n, escaped, (int)getpid()));
}

static bool write_journal(enum log_level level, const char *message)
{
    char record[LINE_BYTES];

    return sink_journal(record, (size_t)snprintf(record, sizeof record,
                                                 "PRIORITY=%d\nSYSLOG_IDENTIFIER=reachd\n"
                                                 "MESSAGE=%s\n",
                                                 (int)level, message));
}

static bool write_line(enum log_level level, const char *message)
{
    int format = logger.format;

    pthread_once(&sink.once, sink_open);
    if (format == LOG_FORMAT_AUTO)
        format = sink.journal ? LOG_FORMAT_JOURNAL : LOG_FORMAT_TEXT;
    if (format == LOG_FORMAT_JSON)
        return write_json(level, message);
    if (format == LOG_FORMAT_JOURNAL) {
        if (write_journal(level, message))
            return true;
        if (errno == EAGAIN || errno == ENOBUFS)
            return false; /* the journal is busy, and standard error leads to it as well */
    }
    return write_text(level, message);
}

/* ---- rate ---- */

static bool has_room(enum log_level level)
{
    const uint64_t interval = logger.interval_ns;
    _Atomic uint64_t *paid = &logger.paid_until[level > LOG_LEVEL_WARNING];
    uint64_t until = *paid;

    while (interval) {
        const uint64_t now = clock_monotonic();
        const uint64_t next = (until > now ? until : now) + interval;

        if (next - now > BURST_SECONDS * NSEC_PER_SEC)
            return false;
        if (atomic_compare_exchange_weak(paid, &until, next))
            break;
    }
    return true;
}

/* Reports the number of lost lines before the next line. If the report cannot be written, it is
 * retried later. */
static bool report_dropped(void)
{
    char message[160];
    const uint64_t above_rate = atomic_exchange(&logger.above_rate, 0);
    const uint64_t unwritten = atomic_exchange(&logger.unwritten, 0);

    if (above_rate + unwritten == 0)
        return true;
    snprintf(message, sizeof message,
             "%llu log lines are missing here: %llu above the rate, %llu could not be written",
             (unsigned long long)(above_rate + unwritten), (unsigned long long)above_rate,
             (unsigned long long)unwritten);
    if (write_line(LOG_LEVEL_WARNING, message))
        return true;
    logger.above_rate += above_rate;
    logger.unwritten += unwritten;
    return false;
}

void log_line(enum log_level level, const char *format, ...)
{
    const int saved_errno = errno; /* callers may log before they read errno */
    char message[MESSAGE_BYTES];
    va_list args;

    if ((int)level > logger.level)
        return;
    if (!has_room(level)) {
        logger.above_rate++;
        logger.lost++;
        return;
    }
    va_start(args, format);
    const int n = vsnprintf(message, sizeof message, format, args);

    va_end(args);
    if (n < 0)
        snprintf(message, sizeof message, "%s", format);
    text_sanitize(message);
    if (!report_dropped() || !write_line(level, message)) {
        logger.unwritten++;
        logger.lost++;
    }
    errno = saved_errno;
}
