/* http.h: one request to the daemon over a Unix socket or a URL, within a timeout. Any thread may
 * call the functions, because each call has its own connection, which stays open for the next call.
 * After a fork the child opens its own connections. */
#pragma once

#include "clients/c/error.h"

enum { HTTP_TAG_BYTES = 64, HTTP_TARGET_BYTES = 4096, HTTP_FIELD_BYTES = 512 };

struct http;

/* `base` is a URL without a path. If `socket_path` is NULL, connects to the address in `base`.
 * Copies both texts. Returns REACH_NO_MEMORY, or REACH_NOT_SUPPORTED if libcurl does not start. */
enum reach_status http_new(const char *base, const char *socket_path, struct http **out,
                           struct reach_error *error);
void http_free(struct http *take);

/* A response. The body is owned and terminated; it is NULL if the response has no body. */
struct http_response {
    long http_status;
    char tag[HTTP_TAG_BYTES];        /* the ETag with its quotes; "" if there is none */
    char request_id[HTTP_TAG_BYTES]; /* X-Request-Id; "" if there is none */
    char *body;
    size_t body_bytes;
    size_t max_bytes; /* limit of the body; http_send returns REACH_PROTOCOL for a longer one */
};

/* `tag` is sent in If-None-Match; "" sends no such field. Returns REACH_OK for any HTTP status.
 * Otherwise returns REACH_UNREACHABLE, REACH_TIMEOUT, REACH_NO_MEMORY, or REACH_PROTOCOL (not HTTP,
 * too long, or the X-Request-Id of another request). `*out` has something to free
 * (http_response_free) only after REACH_OK. */
enum reach_status http_send(struct http *http, const struct reach_request *request, const char *tag,
                            size_t max_bytes, uint32_t timeout_ms, struct http_response *out,
                            struct reach_error *error);
void http_response_free(struct http_response *take);

/* Returns the address for messages, which `http` owns. */
const char *http_address(const struct http *http);
