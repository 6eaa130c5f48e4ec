/* handle.h: what a handle is made of, and the one way in which libreach says that a call failed.
 * Inside libreach alone; programs include reach.h.
 *
 *     ask.c       the questions, one function each
 *     remote.c    puts them to a daemon         offline.c   answers them from a fingerprint
 *     wire.c      HTTP                          answer.c    the daemon's JSON -> the answers
 *     kept.c      what it said last, by ETag    job.c       what is in the job's environment
 */
#ifndef REACH_CLIENT_HANDLE_H
#define REACH_CLIENT_HANDLE_H

#include "clients/c/reach.h"

#include "base/status.h"

#include <stdatomic.h>

struct wire;
struct kept;
struct offline;
struct job;

struct reach {
    struct offline *offline; /* owned; all comes from this file. NULL: there is none */
    struct job *job;         /* owned; what is known without asking. NULL: nothing */
    struct wire *wire;       /* owned; NULL: nobody to ask */
    struct kept *kept;       /* owned; NULL: nobody to ask */
    atomic_uint deadline_ms;
    atomic_uint accept;
};

/* Fills `*error` (if not NULL) and is `status`. A macro, so that a checker that reads one file sees
 * that a failure is one. */
#define fail_with(error, status, ...) (fail_text(error, status, __VA_ARGS__), (status))

void fail_text(struct reach_error *error, enum reach_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failure that the daemon's code found in-process. */
enum reach_status fail_with_err(struct reach_error *error, const struct err *err);

#endif
