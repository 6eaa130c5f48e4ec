/* guard.c: what libmicrohttpd 0.9.75 lets through and must not reach a handler.
 *
 * Request smuggling needs two readers that disagree where a request ends (RFC 9112, section 11.2).
 * So framing must be beyond doubt: one Host, at most one Content-Length, of digits, no
 * Transfer-Encoding beside it, none but "chunked", none in HTTP/1.0. Names must be tokens, values
 * free of control characters. All of these are refused with 400 (too long: 413), and the connection
 * is closed.
 *
 * Beyond an application's sight are folded header lines, which arrive joined, and errors
 * that the library answers itself (a few lines of HTML with 400, 413, 414, 431 or 505).
 */
#include "api/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct headers {
    unsigned hosts;
    unsigned lengths;
    unsigned encodings;
    unsigned types;
    const char *length;
    const char *encoding;
    bool bad_name;
    bool bad_value;
};

static bool is_token(const char *name, size_t bytes)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < bytes; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c != '\0' && strchr(others, c))))
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

static enum MHD_Result look_at(void *cls, enum MHD_ValueKind kind, const char *name,
                               size_t name_bytes, const char *value, size_t value_bytes)
{
    struct headers *h = cls;

    (void)kind;
    if (!is_token(name, name_bytes))
        h->bad_name = true;
    if (value && has_control(value, value_bytes))
        h->bad_value = true;
    if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0)
        h->hosts++;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_TYPE) == 0)
        h->types++;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        h->lengths++;
        h->length = value;
    }
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        h->encodings++;
        h->encoding = value;
    }
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

bool guard_check(struct MHD_Connection *connection, const char *http_version, struct problem *out)
{
    struct headers h = {.hosts = 0};
    const char *fault;

    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look_at, &h);
    fault = framing_fault(&h, strcmp(http_version, MHD_HTTP_VERSION_1_0) == 0);
    if (fault) {
        *out = (struct problem){.status = STATUS_INVALID_ARGUMENT,
                                .http_status = MHD_HTTP_BAD_REQUEST,
                                .slug = "malformed-request",
                                .title = "The request is not well-formed HTTP.",
                                .next_step = "Send the request with an ordinary HTTP client."};
        snprintf(out->detail, sizeof(out->detail), "%s", fault);
        return false;
    }
    if (h.lengths && too_long(&h)) {
        guard_too_large(out);
        return false;
    }
    return true;
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
