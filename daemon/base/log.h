/* log.h: writes one line per event: fields to systemd's journal, or a JSON object or a text
 * ("warning: message") to standard error. If standard error leads to journald, a text begins with a
 * priority instead: "<4>message".
 *
 * A call never blocks and never allocates memory. A line that cannot be written at once is lost,
 * and lines above the rate are dropped. Before the next line, one more line reports their number.
 * Any thread may call any function.
 */
#pragma once

#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

enum log_format {
    LOG_FORMAT_AUTO = 0, /* the journal if standard error leads there, else text */
    LOG_FORMAT_TEXT,
    LOG_FORMAT_JSON,
    LOG_FORMAT_JOURNAL
};

/* Sets the level above which lines are dropped; the default is LOG_LEVEL_INFO. */
void log_set_level(enum log_level max);
/* Sets the format of a line; the default is LOG_FORMAT_AUTO. */
void log_set_format(enum log_format format);
/* Sets the largest number of lines per second; a burst may have ten times that number. Errors and
 * warnings are counted apart from all other lines. 0, the default, means no limit. */
void log_set_rate(uint32_t lines_per_second);
/* Sets the path of the socket that replaces systemd's journal in a test. `path` is borrowed. */
void log_set_journal(const char *path);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Returns the number of lines lost so far: those dropped by the rate, and those that could not be
 * written at once. */
uint64_t log_lost(void);
