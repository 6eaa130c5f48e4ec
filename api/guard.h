/* guard.h: refuses requests that two servers in a row could read differently. */
#ifndef REACH_API_GUARD_H
#define REACH_API_GUARD_H

#include "api/problem.h"

#include <microhttpd.h>

/* Looks at the header fields before any body is read, and fills `out` on false. */
bool guard_check(struct MHD_Connection *connection, const char *http_version, struct problem *out);

/* The problem of a body over REQUEST_MAX_BODY_BYTES. */
void guard_too_large(struct problem *out);

#endif
