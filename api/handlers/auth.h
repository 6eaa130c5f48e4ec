/* auth.h: authorizes requests that change something. The functions are pure and may be called on
 * any thread. */
#pragma once

#include <stdbool.h>

/* Returns whether the value of an Authorization field (NULL if it was not sent) contains this token
 * (RFC 6750, section 2.1). An empty or NULL token allows every request. The time of the comparison
 * does not depend on the token. */
bool auth_is_allowed(const char *token, const char *authorization);
