/* verdict.c: the names of the three verdicts. */
#include "base/verdict.h"

#include "base/name_of.h"

static const char *const verdict_names[] = {
    [VERDICT_CLEAN] = "clean",
    [VERDICT_DISTURBED] = "disturbed",
    [VERDICT_UNUSABLE] = "unusable",
};

const char *verdict_name(enum verdict v)
{
    return NAME_OF(verdict_names, v);
}

bool verdict_from_name(const char *name, enum verdict *out)
{
    return FROM_NAME(verdict_names, name, out);
}
