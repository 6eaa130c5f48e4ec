/* auth.h: authorization of requests that change something. Pure; any thread. */
#ifndef REACH_API_HANDLERS_AUTH_H
#define REACH_API_HANDLERS_AUTH_H

#include <stdbool.h>

/* Does the value of an Authorization field (NULL: none) have this token (RFC 6750, section 2.1)?
 * An empty or NULL token allows every request. The time it takes does not depend on the token. */
bool auth_is_allowed(const char *token, const char *authorization);

#endif
