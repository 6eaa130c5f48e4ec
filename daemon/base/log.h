/* log.h: one line an event, to stderr, with the syslog priority prefix that journald reads
 * ("<6>message") when stderr is not a terminal. Never blocks for long, never allocates. Any thread.
 */
#ifndef REACH_BASE_LOG_H
#define REACH_BASE_LOG_H

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

/* Lines above this level are dropped; the default is LOG_LEVEL_INFO. Set before threads start. */
void log_set_level(enum log_level max);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
