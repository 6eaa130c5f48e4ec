/* log.h: one event, one line: to systemd's journal as fields, or to standard error as a JSON object
 * or as text: "warning: message". If standard error leads to journald, a line of text begins with a
 * priority for it instead: "<4>message".
 *
 * A call never blocks, allocates or floods. A line that cannot be written at once is lost, and
 * lines above the rate are dropped. Before the next line, one more line reports their number. Any
 * thread may call any function.
 */
#ifndef REACH_BASE_LOG_H
#define REACH_BASE_LOG_H

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

/* Lines above this level are dropped; the default is LOG_LEVEL_INFO. */
void log_set_level(enum log_level max);
/* How a line is written; the default is LOG_FORMAT_AUTO. */
void log_set_format(enum log_format format);
/* The largest number of lines per second; a burst may be ten times that. Errors and warnings are
 * counted apart from all other lines. 0, the default, means no limit. */
void log_set_rate(uint32_t lines_per_second);
/* A socket in place of systemd's journal. Borrowed. For tests. */
void log_set_journal(const char *path);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* The number of lines lost so far: dropped by the rate, or not writable at once. */
uint64_t log_lost(void);

#endif
