/* identity.c: the names of the three origins. They are part of the stored and served formats. */
#include "base/identity.h"

#include "base/name_of.h"

static const char *const names[] = {
    [ORIGIN_MEASURED] = "measured",
    [ORIGIN_SIMULATED] = "simulated",
    [ORIGIN_IMPORTED] = "imported",
};

/* A wrong origin would let a simulated number pass as a measured one, so there is no fallback. */
const char *origin_name(enum origin o)
{
    return NAME_OF(names, o);
}

bool origin_from_name(const char *name, enum origin *out)
{
    return FROM_NAME(names, name, out);
}
