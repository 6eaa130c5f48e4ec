/* access.c: see access.h. */
#include "base/access.h"

#include "base/name_of.h"

NAME_FUNCTIONS(
    access,
    enum access, [ACCESS_READ] = "read", [ACCESS_ATOMIC] = "atomic", [ACCESS_WRITE] = "write")
