/* identity.c: the names of the three origins. They are part of the stored and served formats. */
#include "base/identity.h"

#include "base/name_of.h"

/* A wrong origin would let a simulated number pass as a measured one, so there is no fallback. */
NAME_FUNCTIONS(origin, enum origin, [ORIGIN_MEASURED] = "measured",
               [ORIGIN_SIMULATED] = "simulated", [ORIGIN_IMPORTED] = "imported")
