/* names.c: the names of the enumerations of the headers in this folder. */
#include "types/name_of.h"
#include "fingerprint/caches.h"
#include "fingerprint/depth.h"
#include "fingerprint/tlb.h"

NAME_FUNCTIONS(depth, enum depth, [DEPTH_QUICK] = "quick", [DEPTH_FULL] = "full",
               [DEPTH_MEMORY] = "memory", [DEPTH_MATRIX] = "matrix")

NAME_FUNCTION(shared_by_name, enum shared_by, [SHARED_UNKNOWN] = "unknown", [SHARED_SM] = "sm",
              [SHARED_GROUP] = "group", [SHARED_GPU] = "gpu")

NAME_FUNCTION(replacement_name, enum replacement, [REPLACEMENT_UNKNOWN] = "unknown",
              [REPLACEMENT_LRU] = "lru", [REPLACEMENT_NOT_LRU] = "not-lru")

NAME_FUNCTION(fill_name,
              enum fill, [FILL_UNKNOWN] = "unknown", [FILL_WHOLE] = "whole", [FILL_PARTS] = "parts")

NAME_FUNCTION(cache_kind_name, enum cache_kind, [CACHE_L1] = "l1", [CACHE_READ_ONLY] = "read-only",
              [CACHE_CONSTANT] = "constant", [CACHE_L2] = "l2")

NAME_FUNCTION(
    finding_name,
    enum finding, [FINDING_UNKNOWN] = "unknown", [FINDING_YES] = "yes", [FINDING_NO] = "no")

NAME_FUNCTION(slow_cause_name, enum slow_cause, [SLOW_UNKNOWN] = "unknown", [SLOW_BY_TLB] = "tlb",
              [SLOW_BY_BANDWIDTH] = "bandwidth")
