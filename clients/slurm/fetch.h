/* fetch.h: GET over a Unix socket for a process that has little time and must not be harmed: one
 * connection, one deadline for everything, no memory but the caller's, no signal, no thread. The
 * server is not trusted: anything but a plain HTTP/1.1 response with a length that fits is a
 * failure. Needs only libc.
 */
#ifndef REACH_CLIENTS_SLURM_FETCH_H
#define REACH_CLIENTS_SLURM_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FETCH_WHY_BYTES = 160, FETCH_HEAD_BYTES = 4096 };

struct fetch {
    int fd;                    /* -1: not connected */
    uint64_t left_ns;          /* of the deadline; time between calls does not count */
    uint64_t end_ns;           /* of the deadline, during a call: CLOCK_MONOTONIC */
    char why[FETCH_WHY_BYTES]; /* of the last failure: one line for a log */
};

/* Connects to the socket at `path`, at most `deadline_ms` for this and all that follows. The
 * descriptor closes on exec. False: see why; nothing is open. */
bool fetch_open(struct fetch *f, const char *path, uint32_t deadline_ms);

/* GET `target`, which is printable and without blanks. Writes the body to `body`, terminated.
 * `*out_status` is the HTTP status, 200 only with text/plain. False: no valid response in time; the
 * connection is closed. */
bool fetch_get(struct fetch *f, const char *target, char *body, size_t room, int *out_status);

/* Twice is fine. */
void fetch_close(struct fetch *f);

#endif
