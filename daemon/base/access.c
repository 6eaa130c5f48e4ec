/* access.c: see access.h. */
#include "base/access.h"

#include "base/name_of.h"

static const char *const access_names[ACCESS_COUNT] = {
    [ACCESS_READ] = "read",
    [ACCESS_ATOMIC] = "atomic",
    [ACCESS_WRITE] = "write",
};

const char *access_name(enum access a)
{
    return NAME_OF(access_names, a);
}

bool access_from_name(const char *name, enum access *out)
{
    return FROM_NAME(access_names, name, out);
}
