/* request.h: one parsed HTTP request. Borrowed texts live as long as the request.
 *
 * The target is parsed here and not by libmicrohttpd. That library cuts texts at %00, does not
 * report duplicate parameters, and accepts invalid percent codes unchanged.
 */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REQUEST_MAX_SEGMENTS = 8,
    REQUEST_MAX_PARAMS = 24,
    REQUEST_MAX_BODY_BYTES = 64 << 10,
    REQUEST_MAX_INSTANCE_BYTES = 160,
    REQUEST_ID_BYTES = 65
};

struct request_param {
    const char *name;
    const char *value;
};

struct request {
    const char *method;
    char *texts;        /* owned copy of the target; segments and params point into it */
    const char *target; /* as sent; owned by the caller of request_parse */
    char instance[REQUEST_MAX_INSTANCE_BYTES]; /* the path as sent, cut if it is too long */
    uint32_t segment_count;
    const char *segments[REQUEST_MAX_SEGMENTS]; /* "/v1/gpus" has two segments, "/" has none */
    uint32_t param_count;
    struct request_param params[REQUEST_MAX_PARAMS];
    const char *gpu; /* values of {gpu} and {id}, NULL if the route has none */
    const char *id;
    const char *accept; /* header values, NULL if they were not sent */
    const char *accept_encoding;
    const char *content_type;
    const char *if_none_match;
    const char *authorization;
    char trace[REQUEST_ID_BYTES]; /* X-Request-Id of the request; "" before the request has an id */
    bool trace_given; /* true if the client sent the id; the response then repeats the id */
    char *body;       /* owned; NULL if the request has no body */
    size_t body_bytes;
    bool body_too_large;
};

/* Takes the id that the client sent if it consists of 1 to 64 letters, digits, "-", "_", "." and
 * ":". Any other id is ignored. */
void request_take_id(struct request *request, const char *given);
/* Makes an id from `number` if the request has none. */
void request_make_id(struct request *request, uint64_t number);

/* Parses a request target ("/v1/gpus?limit=3") into a zeroed request. Returns
 * STATUS_INVALID_ARGUMENT with a sentence if the target is invalid (not a path, %00, bad percent
 * code, control character, not UTF-8, duplicate parameter, too many). Returns STATUS_NO_MEMORY if
 * memory runs out. */
enum status request_parse(struct request *out, const char *target, struct err *err);

/* Returns the value of a query parameter, or NULL if the client did not send the parameter. */
const char *request_param(const struct request *request, const char *name);

/* Appends to the body. If the body exceeds REQUEST_MAX_BODY_BYTES, sets body_too_large and drops
 * the body. */
enum status request_add_body(struct request *request, const char *data, size_t bytes);

void request_clear(struct request *take);
