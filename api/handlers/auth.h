/* auth.h: who may change something. Reading is free to everybody who can reach a socket. */
#ifndef REACH_API_AUTH_H
#define REACH_API_AUTH_H

#include <stdbool.h>

/* Does the value of an Authorization field (NULL: none) bring this token (RFC 6750, section 2.1)?
 * An empty or NULL token lets everybody in. How long it takes says nothing about the token. */
bool auth_is_allowed(const char *token, const char *authorization);

#endif
