/* fail.c: the one way in which a call of libreach fails. */
#include "clients/c/handle.h"

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
    [REACH_DEADLINE] = "deadline",
    [REACH_PROTOCOL] = "protocol",
    [REACH_CORRUPT] = "corrupt",
    [REACH_NOT_SUPPORTED] = "not-supported",
    [REACH_NO_MEMORY] = "no-memory",
    [REACH_UNAVAILABLE] = "unavailable",
};
enum { NAME_COUNT = sizeof(names) / sizeof(*names) };

const char *reach_status_name(enum reach_status status)
{
    return (unsigned)status < NAME_COUNT ? names[status] : "unknown";
}

/* Texts from elsewhere may hold anything: what does not print becomes a blank. */
static void tidy(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
    }
}

void fail_text(struct reach_error *error, enum reach_status status, const char *format, ...)
{
    va_list args;

    if (!error)
        return;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    tidy(error->text);
    error->status = status;
}

static enum reach_status of_daemon(enum status status)
{
    switch (status) {
    case STATUS_INVALID_ARGUMENT:
        return REACH_INVALID_ARGUMENT;
    case STATUS_NOT_FOUND:
        return REACH_NOT_FOUND;
    case STATUS_NOT_APPLICABLE:
    case STATUS_NOT_OBSERVABLE:
        return REACH_NOT_MEASURED;
    case STATUS_NO_MEMORY:
        return REACH_NO_MEMORY;
    case STATUS_CORRUPT:
        return REACH_CORRUPT;
    case STATUS_NOT_SUPPORTED:
        return REACH_NOT_SUPPORTED;
    default:
        return REACH_PROTOCOL;
    }
}

enum reach_status fail_with_err(struct reach_error *error, const struct err *err)
{
    const enum reach_status status = of_daemon(err->status);

    return fail_with(error, status, "%s", err->text);
}
