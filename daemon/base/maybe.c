/* maybe.c: names the closed set of reasons for an absent number. */
#include "base/maybe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define NOT_OBSERVABLE_PREFIX "not-observable: "

static const char *const slugs[REASON_COUNT] = {
    [REASON_NONE] = "",
    [REASON_NOT_MEASURED] = "not-measured",
    [REASON_BEYOND_MEMORY] = "beyond-memory",
    [REASON_NO_CONTRAST] = "no-contrast",
    [REASON_DISAGREEMENT] = "disagreement",
    [REASON_TOO_LITTLE_DATA] = "too-little-data",
    [REASON_NO_DEVICE_MEMORY] = "no-device-memory",
    [REASON_NOT_APPLICABLE] = "not-applicable",
    [REASON_NOT_REPORTED] = "not-reported",
    [REASON_IRREGULAR] = "irregular",
    [REASON_NO_TRACE] = "no-trace",
    [REASON_NOT_SUPPORTED] = "not-supported",
    [REASON_NOT_PERMITTED] = "not-permitted",
    [REASON_NO_HOST_MEMORY] = "no-host-memory",
};

const char *reason_slug(enum reason r)
{
    if ((unsigned)r >= REASON_COUNT)
        r = REASON_NOT_MEASURED;
    return slugs[r];
}

/* "" is not a valid reason for a stored null, so the search starts after REASON_NONE. */
enum reason reason_from_slug(const char *slug)
{
    for (unsigned r = REASON_NONE + 1; slug && r < REASON_COUNT; r++) {
        if (strcmp(slug, slugs[r]) == 0)
            return (enum reason)r;
    }
    return REASON_NOT_MEASURED;
}

char *reason_text(enum known known, enum reason reason, char *out)
{
    snprintf(out, REASON_TEXT_BYTES, "%s%s",
             known == MAYBE_NOT_OBSERVABLE ? NOT_OBSERVABLE_PREFIX : "",
             reason_slug(reason == REASON_NONE ? REASON_NOT_MEASURED : reason));
    return out;
}

void reason_parse(const char *text, enum known *out_known, enum reason *out_reason)
{
    const size_t prefix = strlen(NOT_OBSERVABLE_PREFIX);
    const bool not_observable = strncmp(text, NOT_OBSERVABLE_PREFIX, prefix) == 0;

    *out_known = not_observable ? MAYBE_NOT_OBSERVABLE : MAYBE_UNKNOWN;
    *out_reason = reason_from_slug(text + (not_observable ? prefix : 0));
}

char *reason_field(const char *name, char *out)
{
    snprintf(out, REASON_FIELD_BYTES, "%s_reason", name);
    return out;
}
