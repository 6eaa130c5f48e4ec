/* http.h: one request to the daemon over a Unix socket or a URL, within a timeout. Any thread: each
 * call has a connection of its own, which stays open for the next one. Any process: after a fork
 * the child opens its own connections. */
#ifndef REACH_CLIENTS_C_HTTP_H
#define REACH_CLIENTS_C_HTTP_H

#include "clients/c/error.h"

enum { HTTP_TAG_BYTES = 64, HTTP_TARGET_BYTES = 4096, HTTP_FIELD_BYTES = 512 };

struct http;

/* `base` is a URL without a path. If `socket_path` is NULL, connects by address. Copies both.
 * Returns REACH_NO_MEMORY, or REACH_NOT_SUPPORTED if libcurl does not start. */
enum reach_status http_new(const char *base, const char *socket_path, struct http **out,
                           struct reach_error *error);
void http_free(struct http *take);

/* A response. The body is owned and terminated; NULL if it is empty. */
struct http_response {
    long http_status;
    char tag[HTTP_TAG_BYTES];        /* the ETag with its quotes; "" if there is none */
    char request_id[HTTP_TAG_BYTES]; /* X-Request-Id; "" if there is none */
    char *body;
    size_t body_bytes;
    size_t max_bytes; /* limit; a longer body is REACH_PROTOCOL */
};

/* `tag` is sent in If-None-Match; "" sends no such field. Any HTTP status is REACH_OK here. Errors:
 * REACH_UNREACHABLE, REACH_TIMEOUT, REACH_PROTOCOL (not HTTP, too long, or the X-Request-Id of
 * another request), REACH_NO_MEMORY. `*out` has something to free (http_response_free) only after
 * REACH_OK. */
enum reach_status http_send(struct http *http, const struct reach_request *request, const char *tag,
                            size_t max_bytes, uint32_t timeout_ms, struct http_response *out,
                            struct reach_error *error);
void http_response_free(struct http_response *take);

/* Returns the address for messages. Borrowed. */
const char *http_address(const struct http *http);

#endif
