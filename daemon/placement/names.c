/* names.c: the words of placement that travel in requests and answers. */
#include "placement/placement.h"

static const char *const ADVICE_NAMES[] = {[ADVICE_NOTHING_TO_DO] = "nothing-to-do",
                                           [ADVICE_SCOPES] = "scopes",
                                           [ADVICE_WINDOWS] = "windows",
                                           [ADVICE_NO_LIMIT_SEEN] = "no-limit-seen",
                                           [ADVICE_NOT_ENOUGH_GROUPS] = "not-enough-groups"};
enum { ADVICE_COUNT = sizeof(ADVICE_NAMES) / sizeof(*ADVICE_NAMES) };

const char *advice_name(enum advice a)
{
    return (unsigned)a < ADVICE_COUNT ? ADVICE_NAMES[a] : "scopes";
}
