/* guard.c: refuses requests that libmicrohttpd 0.9.75 accepts but no handler may receive.
 *
 * Request smuggling needs two readers that disagree about the end of a request (RFC 9112, section
 * 11.2). So framing must be certain: one Host, and at most one Content-Length, which consists of
 * digits. A Transfer-Encoding must be "chunked", without a Content-Length, and not in HTTP/1.0.
 * Names must be tokens, and values must not contain control characters. All other requests are
 * refused with 400 (413 if too long), and the connection is closed.
 *
 * An application does not see folded header lines, which arrive joined. It does not see the text
 * after a NUL in the value of a field, which is cut off. It does not see errors that the library
 * answers itself (a few lines of HTML with 400, 413, 414, 431 or 505).
 */
#include "api/server/transaction.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NEAR_BYTES = 16 << 10 }; /* size of the buffer for a target and its version */

/* The header fields that are read. Fields before ACCEPT may occur once. */
enum field {
    HOST = 0,
    CONTENT_TYPE,
    AUTHORIZATION,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    ACCEPT,
    ACCEPT_ENCODING,
    IF_NONE_MATCH,
    X_REQUEST_ID,
    FIELD_COUNT
};
static const struct {
    const char *name;
    size_t bytes;
} fields[FIELD_COUNT] = {
    [HOST] = {"Host", 4},
    [CONTENT_TYPE] = {"Content-Type", 12},
    [AUTHORIZATION] = {"Authorization", 13},
    [CONTENT_LENGTH] = {"Content-Length", 14},
    [TRANSFER_ENCODING] = {"Transfer-Encoding", 17},
    [ACCEPT] = {"Accept", 6},
    [ACCEPT_ENCODING] = {"Accept-Encoding", 15},
    [IF_NONE_MATCH] = {"If-None-Match", 13},
    [X_REQUEST_ID] = {"X-Request-Id", 12},
};

struct headers {
    unsigned count[FIELD_COUNT];
    const char *value[FIELD_COUNT]; /* value of the last one; owned by libmicrohttpd */
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

/* Accepts a name, an address, or an address in brackets, with an optional port (RFC 9110, section
 * 7.2). */
static bool is_host(const char *host)
{
    static const char others[] = "-._~%!$&'()*+,;=:[]";

    for (const char *at = host; *at; at++) {
        if (!is_alnum(*at) && !strchr(others, *at))
            return false;
    }
    return true;
}

static enum MHD_Result scan_field(void *cls, enum MHD_ValueKind kind, const char *name,
                                  size_t name_bytes, const char *value, size_t value_bytes)
{
    struct headers *h = cls;

    (void)kind;
    if (!is_token(name, name_bytes))
        h->bad_name = true;
    if (value && has_control(value, value_bytes))
        h->bad_value = true;
    for (int f = 0; f < FIELD_COUNT; f++) {
        if (name_bytes == fields[f].bytes && strcasecmp(name, fields[f].name) == 0) {
            h->count[f]++;
            h->value[f] = value;
        }
    }
    return MHD_YES;
}

/* Returns a message about wrong framing, or NULL if the framing is right. `text` is the buffer for
 * a message that names a field. */
static const char *framing_fault(const struct headers *h, bool is_http_1_0, char *text, size_t size)
{
    const char *host = h->value[HOST];
    const char *length = h->value[CONTENT_LENGTH];
    const char *encoding = h->value[TRANSFER_ENCODING];

    if (h->bad_name)
        return "the name of a header field has a character that none may have";
    if (h->bad_value)
        return "the value of a header field has a control character in it";
    for (int f = HOST; f < ACCEPT; f++) {
        if (h->count[f] > 1) {
            snprintf(text, size, "more than one %s field", fields[f].name);
            return text;
        }
    }
    if (host && !is_host(host))
        return "a Host field with a character that no host has";
    if (h->count[CONTENT_LENGTH] && h->count[TRANSFER_ENCODING])
        return "both Content-Length and Transfer-Encoding";
    if (h->count[TRANSFER_ENCODING] && is_http_1_0)
        return "Transfer-Encoding in an HTTP/1.0 request";
    if (h->count[TRANSFER_ENCODING] && (!encoding || strcasecmp(encoding, "chunked") != 0))
        return "a Transfer-Encoding other than chunked";
    if (h->count[CONTENT_LENGTH] &&
        (!length || !*length || length[strspn(length, "0123456789")] != '\0'))
        return "a Content-Length that is not a number";
    return NULL;
}

/* Returns whether a Content-Length exceeds the limit, which has fewer than eight digits. */
static bool is_too_long(const char *length)
{
    const char *digits = length ? length + strspn(length, "0") : "";

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
    struct headers h = {.bad_name = false};
    const char *fault;
    char text[64];

    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, scan_field, &h);
    request->accept = h.value[ACCEPT];
    request->accept_encoding = h.value[ACCEPT_ENCODING];
    request->content_type = h.value[CONTENT_TYPE];
    request->if_none_match = h.value[IF_NONE_MATCH];
    request->authorization = h.value[AUTHORIZATION];
    request_take_id(request, h.value[X_REQUEST_ID]);
    fault = framing_fault(&h, strcmp(http_version, MHD_HTTP_VERSION_1_0) == 0, text, sizeof(text));
    if (fault)
        malformed(fault, out);
    else if (is_too_long(h.value[CONTENT_LENGTH]))
        guard_too_large(out);
    return !fault && !is_too_long(h.value[CONTENT_LENGTH]);
}

bool guard_check_target(const char *url, size_t target_bytes, const char *version,
                        struct problem *out)
{
    const char *end = url + target_bytes;
    uintptr_t gap = (uintptr_t)version - (uintptr_t)end;

    if ((uintptr_t)version < (uintptr_t)end || gap > NEAR_BYTES)
        return true; /* the library keeps the version elsewhere */
    for (uintptr_t i = 0; i < gap; i++) {
        if (end[i] != '\0' && end[i] != ' ' && end[i] != '\t') {
            malformed("the request target has a NUL in it", out);
            return false;
        }
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
