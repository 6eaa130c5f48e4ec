/* verdict.c: the names of the three verdicts. */
#include "base/verdict.h"

#include "base/name_of.h"

#include <string.h>

static const char *const verdict_names[] = {
    [VERDICT_CLEAN] = "clean",
    [VERDICT_DISTURBED] = "disturbed",
    [VERDICT_UNUSABLE] = "unusable",
};

enum { VERDICT_COUNT = sizeof verdict_names / sizeof verdict_names[0] };

const char *verdict_name(enum verdict v)
{
    return NAME_OF(verdict_names, v);
}

bool verdict_from_name(const char *name, enum verdict *out)
{
    for (unsigned i = 0; name && i < VERDICT_COUNT; i++) {
        if (strcmp(name, verdict_names[i]) == 0) {
            *out = (enum verdict)i;
            return true;
        }
    }
    return false;
}
