/* guard.c: what libmicrohttpd 0.9.75 lets through and must not reach a handler.
 *
 * Request smuggling needs two readers that disagree where a request ends (RFC 9112, section 11.2).
 * So framing must be beyond doubt: one Host, at most one Content-Length, of digits, no
 * Transfer-Encoding beside it, none but "chunked", none in HTTP/1.0. Names must be tokens, values
 * free of control characters. All of these are refused with 400 (too long: 413), and the connection
 * is closed.
 *
 * Beyond an application's sight are folded header lines, which arrive joined, what follows a NUL in
 * the value of a field, which is cut off, and errors that the library answers itself (a few lines
 * of HTML with 400, 413, 414, 431 or 505).
 */
#include "api/server/guard.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NEAR_BYTES = 16 << 10 }; /* a target and its version lie in one buffer of this size */

struct headers {
    struct request *request;
    unsigned hosts;
    unsigned lengths;
    unsigned encodings;
    unsigned types;
    unsigned authorizations;
    const char *host;
    const char *length;
    const char *encoding;
    bool bad_name;
    bool bad_value;
};

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_token(const char *name, size_t bytes)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < bytes; i++) {
        if (!is_alnum(name[i]) && name[i] != '-' && (name[i] == '\0' || !strchr(others, name[i])))
            return false;
    }
    return bytes > 0;
}

static bool has_control(const char *value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)value[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return true;
    }
    return false;
}

/* A name, an address, or one in brackets; perhaps a port (RFC 9110, section 7.2). */
static bool is_host(const char *host)
{
    static const char others[] = "-._~%!$&'()*+,;=:[]";

    for (const char *at = host; *at; at++) {
        if (!is_alnum(*at) && !strchr(others, *at))
            return false;
    }
    return true;
}

/* Remembers the fields that matter; their names are told apart by length first. */
static void take_field(struct headers *h, const char *name, size_t bytes, const char *value)
{
    struct request *r = h->request;

    if (bytes == 4 && strcasecmp(name, "Host") == 0) {
        h->hosts++;
        h->host = value;
    } else if (bytes == 6 && strcasecmp(name, "Accept") == 0) {
        r->accept = value;
    } else if (bytes == 12 && strcasecmp(name, "Content-Type") == 0) {
        h->types++;
        r->content_type = value;
    } else if (bytes == 12 && strcasecmp(name, "X-Request-Id") == 0) {
        request_take_id(r, value);
    } else if (bytes == 13 && strcasecmp(name, "If-None-Match") == 0) {
        r->if_none_match = value;
    } else if (bytes == 13 && strcasecmp(name, "Authorization") == 0) {
        h->authorizations++;
        r->authorization = value;
    } else if (bytes == 14 && strcasecmp(name, "Content-Length") == 0) {
        h->lengths++;
        h->length = value;
    } else if (bytes == 17 && strcasecmp(name, "Transfer-Encoding") == 0) {
        h->encodings++;
        h->encoding = value;
    }
}

static enum MHD_Result look_at(void *cls, enum MHD_ValueKind kind, const char *name,
                               size_t name_bytes, const char *value, size_t value_bytes)
{
    struct headers *h = cls;

    (void)kind;
    if (!is_token(name, name_bytes))
        h->bad_name = true;
    if (value && has_control(value, value_bytes))
        h->bad_value = true;
    take_field(h, name, name_bytes, value);
    return MHD_YES;
}

/* NULL where all is well. */
static const char *framing_fault(const struct headers *h, bool is_http_1_0)
{
    if (h->bad_name)
        return "the name of a header field has a character that none may have";
    if (h->bad_value)
        return "the value of a header field has a control character in it";
    if (h->hosts > 1)
        return "more than one Host field";
    if (h->host && !is_host(h->host))
        return "a Host field with a character that no host has";
    if (h->authorizations > 1)
        return "more than one Authorization field";
    if (h->lengths > 1)
        return "more than one Content-Length field";
    if (h->types > 1)
        return "more than one Content-Type field";
    if (h->encodings > 1)
        return "more than one Transfer-Encoding field";
    if (h->lengths && h->encodings)
        return "both Content-Length and Transfer-Encoding";
    if (h->encodings && is_http_1_0)
        return "Transfer-Encoding in an HTTP/1.0 request";
    if (h->encodings && (!h->encoding || strcasecmp(h->encoding, "chunked") != 0))
        return "a Transfer-Encoding other than chunked";
    if (h->lengths &&
        (!h->length || !*h->length || h->length[strspn(h->length, "0123456789")] != '\0'))
        return "a Content-Length that is not a number";
    return NULL;
}

static bool too_long(const struct headers *h)
{
    const char *digits = h->length ? h->length + strspn(h->length, "0") : "";

    /* Seven digits hold the limit; more are too many however they read. */
    return strlen(digits) > 7 || strtoul(digits, NULL, 10) > REQUEST_MAX_BODY_BYTES;
}

static void malformed(const char *fault, struct problem *out)
{
    *out = (struct problem){.status = STATUS_INVALID_ARGUMENT,
                            .http_status = MHD_HTTP_BAD_REQUEST,
                            .slug = "malformed-request",
                            .title = "The request is not well-formed HTTP.",
                            .next_step = "Send the request with an ordinary HTTP client."};
    snprintf(out->detail, sizeof(out->detail), "%s", fault);
}

bool guard_check(struct MHD_Connection *connection, const char *http_version,
                 struct request *request, struct problem *out)
{
    struct headers h = {.request = request};
    const char *fault;

    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look_at, &h);
    fault = framing_fault(&h, strcmp(http_version, MHD_HTTP_VERSION_1_0) == 0);
    if (fault) {
        malformed(fault, out);
        return false;
    }
    if (h.lengths && too_long(&h)) {
        guard_too_large(out);
        return false;
    }
    return true;
}

bool guard_target_is_whole(const char *url, size_t target_bytes, const char *version)
{
    const char *end = url + target_bytes;
    uintptr_t gap = (uintptr_t)version - (uintptr_t)end;

    if ((uintptr_t)version < (uintptr_t)end || gap > NEAR_BYTES)
        return true; /* another library keeps the version elsewhere: nothing can be told */
    for (uintptr_t i = 0; i < gap; i++) {
        if (end[i] != '\0' && end[i] != ' ' && end[i] != '\t')
            return false;
    }
    return true;
}

void guard_bad_target(struct problem *out)
{
    malformed("the request target has a NUL in it", out);
}

void guard_too_large(struct problem *out)
{
    *out = (struct problem){.status = STATUS_INVALID_ARGUMENT,
                            .http_status = MHD_HTTP_CONTENT_TOO_LARGE,
                            .slug = "body-too-large",
                            .title = "The body is larger than this service reads.",
                            .next_step = "Send no body, or {\"depth\": \"full\"}."};
    snprintf(out->detail, sizeof(out->detail), "the body has more than %d bytes",
             REQUEST_MAX_BODY_BYTES);
}
