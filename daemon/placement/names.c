/* names.c: the words of placement that travel in requests and answers. */
#include "placement/placement.h"

#include <string.h>

static const char *const ACCESS_NAMES[] = {[ACCESS_READ] = "read", [ACCESS_ATOMIC] = "atomic"};
enum { ACCESS_COUNT = sizeof(ACCESS_NAMES) / sizeof(*ACCESS_NAMES) };

static const char *const ADVICE_NAMES[] = {[ADVICE_NOTHING_TO_DO] = "nothing-to-do",
                                           [ADVICE_SCOPES] = "scopes",
                                           [ADVICE_WINDOWS] = "windows",
                                           [ADVICE_NO_LIMIT_SEEN] = "no-limit-seen",
                                           [ADVICE_NOT_ENOUGH_GROUPS] = "not-enough-groups"};
enum { ADVICE_COUNT = sizeof(ADVICE_NAMES) / sizeof(*ADVICE_NAMES) };

const char *access_name(enum access a)
{
    return (unsigned)a < ACCESS_COUNT ? ACCESS_NAMES[a] : "read";
}

bool access_from_name(const char *name, enum access *out)
{
    for (unsigned i = 0; i < ACCESS_COUNT; i++) {
        if (strcmp(name, ACCESS_NAMES[i]) == 0) {
            *out = (enum access)i;
            return true;
        }
    }
    return false;
}

const char *advice_name(enum advice a)
{
    return (unsigned)a < ADVICE_COUNT ? ADVICE_NAMES[a] : "scopes";
}
