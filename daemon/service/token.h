/* token.h: reads the secret required for POST and DELETE from a file. */
#pragma once

#include "base/status.h"

enum { TOKEN_MIN_CHARS = 16, TOKEN_MAX_CHARS = 256, TOKEN_BYTES = TOKEN_MAX_CHARS + 1 };

/* Name of the credential that systemd may pass (LoadCredential=reachd-token:FILE). */
#define TOKEN_CREDENTIAL "reachd-token"

/* Reads the token from `path`. If `path` is NULL, reads the credential in $CREDENTIALS_DIRECTORY;
 * without a credential, `out` is "". A file contains 16 to 256 visible ASCII characters and an
 * optional line feed, and must not be readable by every user. Returns STATUS_INVALID_ARGUMENT, also
 * if there is no such file, or STATUS_IO. The error message never contains the token. */
enum status token_load(const char *path, char out[TOKEN_BYTES], struct err *err);
