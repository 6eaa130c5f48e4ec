/* error.h: how a call of libreach fails. Any thread. */
#ifndef REACH_CLIENT_ERROR_H
#define REACH_CLIENT_ERROR_H

#include "clients/c/reach.h"

#include "base/status.h"

/* Fills `*error` (if not NULL) and is `status`. A macro, so that a checker that reads one file sees
 * that a failure is one. */
#define fail_with(error, status, ...) (fail_text(error, status, __VA_ARGS__), (status))

void fail_text(struct reach_error *error, enum reach_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Names the parameter to blame in an error that is filled. NULL: none. */
void fail_field(struct reach_error *error, const char *field);

#endif
