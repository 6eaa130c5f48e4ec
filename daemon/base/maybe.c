/* maybe.c: the closed set of reasons for an absent number, as text. */
#include "base/maybe.h"

#include <stddef.h>
#include <string.h>

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
};

const char *reason_slug(enum reason r)
{
    if ((unsigned)r >= REASON_COUNT)
        r = REASON_NOT_MEASURED;
    return slugs[r];
}

/* "" is no reason that a stored null could have, so the search starts behind REASON_NONE. */
enum reason reason_from_slug(const char *slug)
{
    for (unsigned r = REASON_NONE + 1; slug && r < REASON_COUNT; r++) {
        if (strcmp(slug, slugs[r]) == 0)
            return (enum reason)r;
    }
    return REASON_NOT_MEASURED;
}
