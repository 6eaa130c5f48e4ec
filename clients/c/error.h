/* error.h: errors of calls of libreach. The functions may be called on any thread. */
#pragma once

#include "clients/c/reach.h"

#include "base/status.h"

/* Fills `*error` (if not NULL) and evaluates to `status`. It is a macro so that a checker of a
 * single file can see the failure. */
#define fail_with(error, status, ...) (fail_text(error, status, __VA_ARGS__), (status))

void fail_text(struct reach_error *error, enum reach_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Names the parameter to blame in a filled error. `field` is NULL if no parameter is to blame. */
void fail_field(struct reach_error *error, const char *field);
