/* fetch.h: GET over a Unix socket for a process that has little time and must not be disturbed. It
 * uses one connection, one deadline for all requests, memory of the caller, no signals and no
 * threads. The server is not trusted: any response but a plain HTTP/1.1 response with a length that
 * fits is a failure. Needs only libc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FETCH_WHY_BYTES = 160, FETCH_HEAD_BYTES = 4096 };

struct fetch {
    int fd;                    /* -1 if not connected */
    uint64_t left_ns;          /* rest of the deadline; time between calls does not count */
    uint64_t end_ns;           /* end of the deadline during a call, CLOCK_MONOTONIC */
    char why[FETCH_WHY_BYTES]; /* the last failure, one line for a log */
};

/* Connects to the socket at `path`. `deadline_ms` limits this call and all following calls
 * together. The descriptor closes on exec. On failure it returns false, `why` has the reason, and
 * nothing is open. */
bool fetch_open(struct fetch *f, const char *path, uint32_t deadline_ms);

/* GETs `target`, which is printable and has no blanks. Writes the terminated body to `body`.
 * `*out_status` is the HTTP status, which is 200 only with text/plain. Returns false, with the
 * connection closed, if no valid response arrives in time. */
bool fetch_get(struct fetch *f, const char *target, char *body, size_t room, int *out_status);

/* Closes the connection; a second call has no effect. */
void fetch_close(struct fetch *f);
