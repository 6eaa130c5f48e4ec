/* wire.h: GET from the daemon over a Unix socket or a URL, within a deadline. Any thread: each
 * call has a connection of its own, which is kept open for the next one. */
#ifndef REACH_CLIENT_WIRE_H
#define REACH_CLIENT_WIRE_H

#include "clients/c/handle.h"

enum { WIRE_TAG_BYTES = 64, WIRE_PATH_BYTES = 1024 };

struct wire;

/* `base` is a URL without a path; `socket_path` NULL: by address. Copies both. Errors:
 * REACH_NO_MEMORY, REACH_NOT_SUPPORTED (libcurl does not start). */
enum reach_status wire_new(const char *base, const char *socket_path, struct wire **out,
                           struct reach_error *error);
void wire_free(struct wire *take);

/* What came back: owned body, terminated; NULL where it is empty. */
struct wire_answer {
    long http_status;
    char tag[WIRE_TAG_BYTES]; /* the ETag with its quotes; "": none */
    char *body;
    size_t body_bytes;
};

/* `tag` goes into If-None-Match; "": no such field. Any HTTP status is REACH_OK here. Errors:
 * REACH_UNREACHABLE, REACH_DEADLINE, REACH_PROTOCOL (no HTTP, or far too long), REACH_NO_MEMORY.
 * Only after REACH_OK has `*out` something to free (wire_answer_free). */
enum reach_status wire_get(struct wire *wire, const char *path, const char *tag,
                           uint32_t deadline_ms, struct wire_answer *out,
                           struct reach_error *error);
void wire_answer_free(struct wire_answer *take);

/* Whom it asks, for sentences. Borrowed. */
const char *wire_where(const struct wire *wire);

#endif
