/* error.c: names of statuses, and sentences of failures. */
#include "clients/c/error.h"

#include "base/text.h"

#include <stdio.h>

static const char *const names[] = {
    [REACH_OK] = "ok",
    [REACH_INVALID_ARGUMENT] = "invalid-argument",
    [REACH_NOT_FOUND] = "not-found",
    [REACH_NOT_MEASURED] = "not-measured",
    [REACH_STALE] = "stale",
    [REACH_WRONG_GPU] = "wrong-gpu",
    [REACH_NO_SUCH_SM] = "no-such-sm",
    [REACH_NO_WINDOW] = "no-window",
    [REACH_UNREACHABLE] = "unreachable",
    [REACH_TIMEOUT] = "timeout",
    [REACH_PROTOCOL] = "protocol",
    [REACH_CORRUPT] = "corrupt",
    [REACH_NOT_SUPPORTED] = "not-supported",
    [REACH_NO_MEMORY] = "no-memory",
    [REACH_UNAVAILABLE] = "unavailable",
    [REACH_INTERNAL] = "internal",
    [REACH_UNAUTHORIZED] = "unauthorized",
};
enum { NAME_COUNT = sizeof(names) / sizeof(*names) };

const char *reach_status_name(enum reach_status status)
{
    return (unsigned)status < NAME_COUNT ? names[status] : "unknown";
}

void fail_text(struct reach_error *error, enum reach_status status, const char *format, ...)
{
    va_list args;

    if (!error)
        return;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    text_sanitize(error->text); /* the message may contain any bytes */
    error->status = status;
    error->http_status = 0;
    error->field[0] = '\0';
}

void fail_field(struct reach_error *error, const char *field)
{
    if (error && field)
        snprintf(error->field, sizeof(error->field), "%s", field);
}
