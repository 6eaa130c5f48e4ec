/* jsonl.h: JSON texts over a descriptor, one per line, for both ends of a worker's socket pair.
 *
 * A line is at most JSONL_MAX_BYTES long, its end not counted; a longer one cannot be skipped
 * safely, so it ends the conversation. Every wait has a deadline and can be woken.
 */
#ifndef REACH_WORKER_JSONL_H
#define REACH_WORKER_JSONL_H

#include "base/clock.h"

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* A full pair matrix of 132 SMs is about 10 MiB; nothing sensible is larger than this. */
#define JSONL_MAX_BYTES ((size_t)64 << 20)
/* No deadline. */
#define JSONL_NO_DEADLINE ((nsec_t)UINT64_MAX)

enum jsonl_event {
    JSONL_DONE = 0,
    JSONL_END,      /* the other side has closed */
    JSONL_TIMEOUT,  /* the deadline has passed */
    JSONL_WOKEN,    /* `wake_fd` became readable, or a signal came */
    JSONL_TOO_LONG, /* more than JSONL_MAX_BYTES */
    JSONL_FAILED,   /* see errno */
};

/* How long to wait, and what ends the wait early. */
struct jsonl_wait {
    nsec_t until;         /* clock_monotonic(), or JSONL_NO_DEADLINE */
    int wake_fd;          /* -1: none */
    const sigset_t *mask; /* signals blocked while waiting, as in ppoll; NULL: as they are */
};

/* Bytes that were read and not returned yet. Zero it to start, except `fd`. */
struct jsonl_reader {
    int fd;
    char *buffer; /* owned */
    size_t start; /* of what was not returned */
    size_t end;
    size_t scanned; /* no newline before this */
    size_t capacity;
};

/* The next line, without its line feed, terminated by NUL. It stays valid until the next call.
 * `*out_length` distinguishes a NUL within it from its end. */
enum jsonl_event jsonl_read(struct jsonl_reader *r, const struct jsonl_wait *wait, char **out,
                            size_t *out_length);
/* Frees the buffer; the descriptor stays open. */
void jsonl_reader_free(struct jsonl_reader *take);

/* Writes one line, `length` bytes with their line feed. Never raises SIGPIPE on a socket. */
enum jsonl_event jsonl_write(int fd, const char *line, size_t length,
                             const struct jsonl_wait *wait);

/* One line as an object: no duplicate names, nothing after it. NULL with a message in `why`;
 * json_load_was_short() returns whether memory was short. */
json_t *jsonl_parse(const char *line, size_t length, char *why, size_t why_size);

#endif
