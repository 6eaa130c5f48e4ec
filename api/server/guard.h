/* guard.h: refuses requests that two servers in a row could read differently. Serving thread only.
 */
#ifndef REACH_API_SERVER_GUARD_H
#define REACH_API_SERVER_GUARD_H

#include "api/decode/problem.h"
#include "api/decode/request.h"

#include <microhttpd.h>

/* Checks the header fields before any body is read. Those that matter are borrowed into `request`.
 * Fills `out` on false. */
bool guard_check(struct MHD_Connection *connection, const char *http_version,
                 struct request *request, struct problem *out);
/* Checks that there are only blanks between the target, as libmicrohttpd passes it, and the version
 * after it: a target with a NUL in it was cut there. `url` and `version` are arguments of the
 * access handler, `target_bytes` is the length of the target. */
bool guard_check_target(const char *url, size_t target_bytes, const char *version,
                        struct problem *out);

/* The problem of a body over REQUEST_MAX_BODY_BYTES. */
void guard_too_large(struct problem *out);

#endif
