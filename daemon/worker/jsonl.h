/* jsonl.h: sends and receives JSON texts, one per line, at both ends of a worker's socket pair.
 *
 * A line is at most JSONL_MAX_BYTES long without its end. A longer line cannot be skipped safely,
 * so it ends the conversation. Every wait has a deadline and can be woken.
 */
#pragma once

#include "base/clock.h"

#include <jansson.h>
#include <signal.h>
#include <stddef.h>

/* A full pair matrix of 132 SMs is about 10 MiB. No valid line is longer than this limit. */
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

/* The limit of a wait, and the events that end it early. */
struct jsonl_wait {
    nsec_t until;         /* a time of clock_monotonic(), or JSONL_NO_DEADLINE */
    int wake_fd;          /* descriptor that ends the wait when it is readable, or -1 */
    const sigset_t *mask; /* signals blocked while waiting, like in ppoll; NULL changes nothing */
};

/* Bytes that were read but not returned yet. The caller zeroes it before the first use and sets
 * `fd`. */
struct jsonl_reader {
    int fd;
    char *buffer; /* owned */
    size_t start; /* start of the bytes that were not returned */
    size_t end;
    size_t scanned; /* no newline comes before this place */
    size_t capacity;
};

/* Returns the next line without its line feed, terminated by NUL. The line stays valid until the
 * next call. `*out_length` distinguishes a NUL within the line from its end. */
enum jsonl_event jsonl_read(struct jsonl_reader *r, const struct jsonl_wait *wait, char **out,
                            size_t *out_length);
/* Frees the buffer; the descriptor stays open. */
void jsonl_reader_free(struct jsonl_reader *take);

/* Writes one line of `length` bytes, including its line feed. Never raises SIGPIPE on a socket. */
enum jsonl_event jsonl_write(int fd, const char *line, size_t length,
                             const struct jsonl_wait *wait);

/* Parses one line as an object without duplicate names or trailing text. Returns NULL with a
 * message in `why` on failure; json_load_was_short() returns whether memory was short. */
json_t *jsonl_parse(const char *line, size_t length, char *why, size_t why_size);
