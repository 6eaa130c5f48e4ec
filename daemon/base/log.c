/* log.c: one event, one line, one write.
 *
 * The line is put together on the stack and leaves in a single call, so lines of several threads
 * and of the workers that share standard error do not mix (a pipe keeps writes up to 4096 bytes
 * whole, and a line is shorter). A longer message is cut. Newlines inside a message become blanks:
 * a text that came over the network must not be able to forge a second line.
 *
 * The rate is kept as a point in time up to which lines are paid for; a line moves it on by one
 * interval, and one that would move it more than the burst ahead of the clock is left out. So there
 * is no lock, and a stopped thread holds up no other.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/log_sink.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 1024, LINE_BYTES = 4000, VALUE_BYTES = 256, BURST_SECONDS = 10 };

static struct {
    _Atomic int level;
    _Atomic int format;
    _Atomic uint64_t interval_ns;   /* between two lines, 0: no limit */
    _Atomic uint64_t paid_until[2]; /* warnings and worse; the rest */
    _Atomic uint64_t left_out;      /* by the rate, not told yet */
    _Atomic uint64_t unwritten;     /* not told yet */
    _Atomic uint64_t lost;          /* all of them */
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

/* ---- texts -------------------------------------------------------------------------------------
 */

/* A line that grows; what has no room is cut, and room for the end is kept. */
struct line {
    char text[LINE_BYTES];
    size_t used;
};

static void line_add(struct line *l, const char *text, size_t n)
{
    const size_t room = sizeof l->text - 4 - l->used;

    n = n < room ? n : room;
    memcpy(l->text + l->used, text, n);
    l->used += n;
}

static void line_format(struct line *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void line_format(struct line *l, const char *format, ...)
{
    char text[VALUE_BYTES];
    va_list args;

    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);

    va_end(args);
    if (n > 0) {
        line_add(l, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    }
}

/* A JSON string of a text that text_sanitize has seen. Only a whole one is added. */
static void line_json(struct line *l, const char *name, const char *value)
{
    const size_t before = l->used;
    const size_t most = sizeof l->text - 8;

    line_format(l, "%s\"%s\":\"", l->used > 1 ? "," : "", name);
    for (const char *s = value; *s && l->used < most; s++) {
        if (*s == '"' || *s == '\\') {
            line_add(l, "\\", 1);
        }
        line_add(l, s, 1);
    }
    if (l->used >= most) {
        l->used = before;
        return;
    }
    line_add(l, "\"", 1);
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "error";
    case LOG_LEVEL_WARNING:
        return "warning";
    case LOG_LEVEL_DEBUG:
        return "debug";
    case LOG_LEVEL_INFO:
        break;
    }
    return "info";
}

/* ---- one line in each format -------------------------------------------------------------------
 */

struct event {
    enum log_level level;
    const struct log_field *fields;
    size_t count;
    const char *message; /* plain */
};

/* The value of field `i`, as one plain line. */
static const char *event_value(const struct event *e, size_t i, char out[VALUE_BYTES])
{
    snprintf(out, VALUE_BYTES, "%s", e->fields[i].value ? e->fields[i].value : "");
    text_sanitize(out);
    return out;
}

static bool write_text(const struct event *e)
{
    struct line l = {.used = 0};

    /* On a terminal a person reads, to whom the number in angle brackets would be noise. */
    if (!log_sink_is_terminal()) {
        line_format(&l, "<%d>", (int)e->level);
    } else if (e->level != LOG_LEVEL_INFO) {
        line_format(&l, "%s: ", level_name(e->level));
    }
    line_add(&l, e->message, strlen(e->message));
    line_add(&l, "\n", 1);
    return log_sink_stderr(l.text, l.used);
}

static bool write_json(const struct event *e)
{
    struct line l = {.text = "{", .used = 1};
    struct timespec now = {0};
    char seconds[32], value[VALUE_BYTES];

    clock_gettime(CLOCK_REALTIME, &now);
    clock_rfc3339(now.tv_sec, seconds, sizeof seconds);
    snprintf(value, sizeof value, "%.19s.%03ldZ", seconds, now.tv_nsec / (long)NSEC_PER_MSEC);
    line_json(&l, "time", value);
    line_json(&l, "level", level_name(e->level));
    line_json(&l, "message", e->message);
    line_format(&l, ",\"pid\":%d", (int)getpid());
    for (size_t i = 0; i < e->count; i++) {
        line_json(&l, e->fields[i].name, event_value(e, i, value));
    }
    memcpy(l.text + l.used, "}\n", 2); /* line_add keeps the room */
    return log_sink_stderr(l.text, l.used + 2);
}

static bool write_journal(const struct event *e)
{
    struct line l = {.used = 0};
    char value[VALUE_BYTES];

    line_format(&l, "PRIORITY=%d\nSYSLOG_IDENTIFIER=reachd\nMESSAGE=", (int)e->level);
    line_add(&l, e->message, strlen(e->message));
    line_add(&l, "\n", 1);
    for (size_t i = 0; i < e->count; i++) {
        line_add(&l, "REACHD_", strlen("REACHD_"));
        for (const char *s = e->fields[i].name; *s; s++) {
            const char upper = *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;

            line_add(&l, &upper, 1);
        }
        line_format(&l, "=%s\n", event_value(e, i, value));
    }
    return log_sink_journal(logger.journal, l.text, l.used);
}

static bool event_write(const struct event *e)
{
    int format = logger.format;

    if (format == LOG_FORMAT_AUTO) {
        format = log_sink_is_journal() ? LOG_FORMAT_JOURNAL : LOG_FORMAT_TEXT;
    }
    if (format == LOG_FORMAT_JSON) {
        return write_json(e);
    }
    if (format == LOG_FORMAT_JOURNAL) {
        if (write_journal(e)) {
            return true;
        }
        if (errno == EAGAIN || errno == ENOBUFS) {
            return false; /* it is there and busy: standard error leads to the same place */
        }
    }
    return write_text(e);
}

/* ---- rate --------------------------------------------------------------------------------------
 */

static bool has_room(enum log_level level)
{
    const uint64_t interval = logger.interval_ns;
    _Atomic uint64_t *paid = &logger.paid_until[level > LOG_LEVEL_WARNING];
    uint64_t until = *paid;

    while (interval) {
        const uint64_t now = clock_monotonic();
        const uint64_t next = (until > now ? until : now) + interval;

        if (next - now > BURST_SECONDS * NSEC_PER_SEC) {
            return false;
        }
        if (atomic_compare_exchange_weak(paid, &until, next)) {
            break;
        }
    }
    return true;
}

/* Says how many lines are missing before the next one; what cannot be said is kept. */
static bool report_dropped(void)
{
    char message[160];
    const uint64_t left_out = atomic_exchange(&logger.left_out, 0);
    const uint64_t unwritten = atomic_exchange(&logger.unwritten, 0);
    const struct event e = {.level = LOG_LEVEL_WARNING, .message = message};

    if (left_out + unwritten == 0) {
        return true;
    }
    snprintf(message, sizeof message,
             "%llu log lines are missing here: %llu above the rate, %llu could not be written",
             (unsigned long long)(left_out + unwritten), (unsigned long long)left_out,
             (unsigned long long)unwritten);
    if (event_write(&e)) {
        return true;
    }
    logger.left_out += left_out;
    logger.unwritten += unwritten;
    return false;
}

void log_event(enum log_level level, const struct log_field *fields, size_t count,
               const char *format, ...)
{
    /* A caller logs first and looks at errno afterwards more often than it should. */
    const int saved_errno = errno;
    char message[MESSAGE_BYTES];
    const struct event e = {.level = level, .fields = fields, .count = count, .message = message};
    va_list args;

    if ((int)level > logger.level) {
        return;
    }
    if (!has_room(level)) {
        logger.left_out++;
        logger.lost++;
        return;
    }
    va_start(args, format);
    const int n = vsnprintf(message, sizeof message, format, args);

    va_end(args);
    if (n < 0) {
        snprintf(message, sizeof message, "%s", format);
    }
    text_sanitize(message);
    if (!report_dropped() || !event_write(&e)) {
        logger.unwritten++;
        logger.lost++;
    }
    errno = saved_errno;
}
