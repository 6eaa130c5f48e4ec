/* token.h: the secret required for POST and DELETE, read from a file. */
#ifndef REACH_SERVICE_TOKEN_H
#define REACH_SERVICE_TOKEN_H

#include "base/status.h"

enum { TOKEN_MIN_CHARS = 16, TOKEN_MAX_CHARS = 256, TOKEN_BYTES = TOKEN_MAX_CHARS + 1 };

/* Name of the credential that systemd may hand over (LoadCredential=reachd-token:FILE). */
#define TOKEN_CREDENTIAL "reachd-token"

/* Reads the token from `path`; NULL: from the credential in $CREDENTIALS_DIRECTORY, if there is
 * one, else `out` is "". A file holds 16 to 256 visible ASCII characters and perhaps one line feed,
 * and must not be open to every user. STATUS_INVALID_ARGUMENT, also if there is no such file,
 * or STATUS_IO; the sentence never has the token in it. */
enum status token_load(const char *path, char out[TOKEN_BYTES], struct err *err);

#endif
