/* log.c: one event, one line, one write.
 *
 * The line is put together on the stack and leaves in a single write(2), so lines of several
 * threads and of the workers that share stderr do not mix (a pipe keeps writes up to 4096 bytes
 * whole, and a line is shorter). A longer message is cut. Newlines inside a message become blanks:
 * a text that came over the network must not be able to forge a second line.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 1024 };

static enum log_level max_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level max)
{
    max_level = max;
}

/* What a person reads on a terminal, where the number in angle brackets would be noise. */
static const char *terminal_prefix(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "error: ";
    case LOG_LEVEL_WARNING:
        return "warning: ";
    case LOG_LEVEL_DEBUG:
        return "debug: ";
    case LOG_LEVEL_INFO:
        break;
    }
    return "";
}

/* Appends to line[used...]; returns the new length, which leaves room for the newline. */
static size_t append(char *line, size_t used, const char *format, va_list args)
{
    const size_t room = LINE_BYTES - 1 - used;
    const int n = vsnprintf(line + used, room, format, args);

    if (n < 0)
        return used;
    return (size_t)n < room ? used + (size_t)n : LINE_BYTES - 2;
}

/* Control characters would move the cursor of whoever reads the log. UTF-8 passes. */
static void make_one_line(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c == 0x7f)
            text[i] = ' ';
    }
}

void log_line(enum log_level level, const char *format, ...)
{
    /* A caller logs first and looks at errno afterwards more often than it should. */
    const int saved_errno = errno;
    char line[LINE_BYTES];
    size_t used;
    va_list args;

    if (level > max_level)
        return;
    if (isatty(STDERR_FILENO))
        used = (size_t)snprintf(line, sizeof(line), "%s", terminal_prefix(level));
    else
        used = (size_t)snprintf(line, sizeof(line), "<%d>", (int)level);
    va_start(args, format);
    used = append(line, used, format, args);
    va_end(args);
    make_one_line(line, used);
    line[used++] = '\n';
    /* A log that cannot be written has nowhere to complain: the result is looked at, and dropped.
     */
    if (write(STDERR_FILENO, line, used) < 0)
        errno = 0;
    errno = saved_errno;
}
