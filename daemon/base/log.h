/* log.h: one event, one line: to systemd's journal as fields, or to standard error as a JSON object
 * or as text: "warning: message". Lines of text that lead to journald begin with the priority that
 * it reads instead, "<4>message".
 *
 * Never blocks, never allocates, and never floods: a line that cannot be written at once is lost,
 * lines above the rate are dropped, and the next line that is written is preceded by one with their
 * number. Any thread may call any function.
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
/* At most this many lines per second, of which ten seconds' worth may come at once; errors and
 * warnings are counted apart from the rest. 0, the default: no limit. */
void log_set_rate(uint32_t lines_per_second);
/* A socket in place of systemd's journal. Borrowed. For tests. */
void log_set_journal(const char *path);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Lines lost so far: dropped by the rate, or not writable at once. */
uint64_t log_lost(void);

#endif
