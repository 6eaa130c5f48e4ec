/* tlb.c: the names of the enumerations of tlb.h. */
#include "fingerprint/tlb.h"

#include "types/name_of.h"

NAME_FUNCTION(shared_by_name, enum shared_by, [SHARED_UNKNOWN] = "unknown", [SHARED_SM] = "sm",
              [SHARED_GROUP] = "group", [SHARED_GPU] = "gpu")

NAME_FUNCTION(replacement_name, enum replacement, [REPLACEMENT_UNKNOWN] = "unknown",
              [REPLACEMENT_LRU] = "lru", [REPLACEMENT_NOT_LRU] = "not-lru")

NAME_FUNCTION(fill_name,
              enum fill, [FILL_UNKNOWN] = "unknown", [FILL_WHOLE] = "whole", [FILL_PARTS] = "parts")
