/* log_sink.h: where lines go, without ever waiting. Only log.c includes this. */
#ifndef REACH_BASE_LOG_SINK_H
#define REACH_BASE_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>

/* One whole line to standard error. False: it would have to wait, or nobody is there. */
bool log_sink_stderr(const char *line, size_t size);
/* One record to the journal at `path`. False: likewise. */
bool log_sink_journal(const char *path, const char *record, size_t size);
/* Does standard error lead to systemd's journal (JOURNAL_STREAM)? */
bool log_sink_is_journal(void);
bool log_sink_is_terminal(void);

#endif
