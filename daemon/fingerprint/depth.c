/* depth.c: the names of depths. */
#include "fingerprint/depth.h"

#include "types/name_of.h"

NAME_FUNCTIONS(depth, enum depth, [DEPTH_QUICK] = "quick", [DEPTH_FULL] = "full",
               [DEPTH_MEMORY] = "memory", [DEPTH_MATRIX] = "matrix")
